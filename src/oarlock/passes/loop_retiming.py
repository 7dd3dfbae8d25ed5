"""Loop retiming: a product that ends an iteration begins the next one instead, where it can be added to what that begins with."""

from oarlock.ir.operation import Op
from oarlock.ir.program import Program
from oarlock.ir.var import Var, is_among
from oarlock.op.control.layout import Carried, Layout
from oarlock.passes.canonicalization import number_of
from oarlock.passes.fusion.terms import FUSED, OPERANDS
from oarlock.passes.loops import copy_op, loops_in
from oarlock.passes.rewriter import declare, reader_counts
from oarlock.registry.catalogue import Catalogue, standard

__all__ = ["loop_retiming"]

_ROWS = {"linear": "x", "linear_dx": "dout"}
"""Products of rows and a matrix, and the slot of the rows: without them each is zeros."""


def loop_retiming(program: Program, catalogue: Catalogue) -> int:
    """Rotate the loops of `program` by a product each; return how many products that were.

    Before                                           After
        zeros = full_like(dh, 0)                         zeros = full_like(dh, 0)
        dzs = recurrent(dhs, hs, zeros, body=            dzs = recurrent(dhs, hs, zeros, body=
            a = add(dh, carried)                             product = linear_dx(u, carried)
            dz = tanh_dx(h, a)                               a = add(dh, product)
            next = linear_dx(u, dz)                          dz = tanh_dx(h, a)
            -> dz, next)                                     -> dz, dz)

    Then `fuse_sums` makes the product and the sum one op: a kernel less in each trip. Gradients of recurrent cells are such loops.
    Legal for a memory that begins as zeros, is a product of rows and a matrix from outside, and is read by a sum alone: rows of
    zeros have that product. The memory is the rows now; their product, once more, is what the memory was after the last trip.
    Costs that last product where somebody wants it. A sum and a product are rounded as one: values change in their last bits; and
    a matrix with an infinite element, or NaN, gives NaN in the first trip already.
    Does not apply to ragged sequences, to what is returned, nor where nothing tells the sizes of the first rows.
    """
    if any(catalogue.find(type) is not standard.find(type) for type in (*_ROWS, "add", "sum", "full_like", "full_batch_size_like")):
        return 0  # its operators are someone else's
    counts = reader_counts(program)
    return sum(_rotate(loop, counts, catalogue) for loop in loops_in(program.main) if "splits" not in loop.inputs)


def _rotate(loop: Op, counts: dict[Var, int], catalogue: Catalogue) -> int:
    layout = Layout.of(loop)
    made = {var: op for op in layout.body.ops for var in op.writes}
    rotated = 0
    for number, each in enumerate(layout.carried):
        product = made.get(each.following)
        if product is None or product.type not in FUSED or product.type not in _ROWS or product.inputs.get("bias"):
            continue
        (rows,) = product.inputs[_ROWS[product.type]]
        (matrix,) = (var for slot in OPERANDS[product.type] if slot != _ROWS[product.type] for var in product.inputs[slot])
        reader = next((op for op in layout.body.ops if is_among(each.inside, op.reads)), None)
        if rows not in made or matrix.block is layout.body or number_of(each.initial) != 0.0:
            continue
        if reader is None or reader.type not in ("add", "sum") or reader.writes[0].shape != each.inside.shape:
            continue
        if (counts[each.inside], counts[each.following]) != (1, 1):
            continue
        first = _zeros(rows, each, loop, catalogue)
        if first is None:
            continue
        inside = declare(each.inside, rows.shape, "ROTATED")
        final = declare(each.final, rows.shape, "ROTATED")
        (slot,) = product.outputs
        copy_op(product, layout.body, layout.body.ops.index(reader), {rows: inside}, {slot: (each.inside,)})
        layout.body.ops.remove(product)
        del layout.body.vars[each.following.name]
        copy_op(product, loop.block, loop.block.ops.index(loop) + 1, {rows: final}, {slot: (each.final,)})
        layout.carried[number] = Carried(inside, rows, first, final)
        final.op = loop
        counts[matrix] += 1
        rotated += 1
    if rotated:
        layout.write()
    return rotated


def _zeros(rows: Var, memory: Carried, loop: Op, catalogue: Catalogue) -> Var | None:
    """Zeros of the type of `rows`, defined before the loop; None where their sizes are not those of the memory, or numbers."""
    initial, shape = memory.initial, rows.shape
    if shape is None or initial.shape is None:
        return None
    given: dict[str, object] = {"value": 0.0, "dtype": rows.dtype}
    if shape == initial.shape:
        type = "full_like"
    elif len(shape) > 0 and shape[:1] == initial.shape[:1] and all(isinstance(size, int) for size in shape[1:]):
        type, given = "full_batch_size_like", given | {"axis": 0, "shape": shape[1:]}
    else:
        return None
    block = loop.block
    zeros = declare(initial, shape, "ROTATED", block)
    op = Op(block, type, {"like": (initial,)}, {"y": (zeros,)}, catalogue.get(type).convert_attributes(given), role=loop.role)
    block.ops.insert(block.ops.index(loop), op)
    zeros.op = op
    block.program.changed()
    return zeros
