"""Transposes before a loop: a matrix that each iteration would transpose is transposed once."""

from oarlock.ir.block import Block
from oarlock.ir.operation import Op
from oarlock.ir.program import Program
from oarlock.ir.var import Var
from oarlock.op.control.layout import Layout
from oarlock.passes.rewriter import declare, new_op
from oarlock.registry.catalogue import Catalogue, standard

__all__ = ["hoist_transposes"]

_PRODUCTS = {
    "linear_dx": ("linear", {"dout": "x"}),
    "addmm_nt": ("addmm", {"base": "base", "x": "x"}),
}
"""Products with the transpose of their `w`: the operator that takes the matrix as it is, and its names of the other inputs."""

_LOOPS = ("recurrent", "while")


def hoist_transposes(program: Program, catalogue: Catalogue) -> int:
    """Take views of matrices out of the loops of `program`; return how many products lost one.

    Before                                           After
        dzs = recurrent(dhs, hs, zeros, body=            ut = matrix_transpose(u)
            a = addmm_nt(dh, u, carried)           dzs = recurrent(dhs, hs, zeros, body=
            ...                                              a = addmm(dh, carried, ut)
                                                             ...

    Legal for a matrix from outside of the loop: the product is that of the same numbers at the same places in memory, by the same kernel,
    bit for bit. A view costs nothing but the call that makes it, which each trip made. Applied once, after the passes that look for
    gradients of products. Does not apply outside of loops, where a view is taken once anyway.
    """
    results = [result for result, _ in _PRODUCTS.values()]
    if any(catalogue.find(type) is not standard.find(type) for type in (*_PRODUCTS, *results, "matrix_transpose")):
        return 0  # its operators are someone else's
    return _transpose_in(program.main, [], {}, catalogue)


def _transpose_in(block: Block, owners: list[Op], views: dict[tuple[Op, Var], Var], catalogue: Catalogue) -> int:
    """The same for a block that is in `owners`, the outermost first; `views` are those that were taken before an op, by matrix."""
    count = 0
    for op in list(block.ops):
        for inner in op.blocks:
            count += _transpose_in(inner, [*owners, op], views, catalogue)
        if op.type not in _PRODUCTS:
            continue
        (matrix,) = op.inputs["w"]
        between = [number for number, owner in enumerate(owners) if owner.block is matrix.block]
        around = owners[between[0] :] if between else []  # from the op that stands where the matrix is known, to the block
        if any(owner.type in _LOOPS for owner in around):
            taken = (around[0], matrix)
            if taken not in views:
                views[taken] = _view(matrix, around[0], catalogue)
            type, names = _PRODUCTS[op.type]
            inputs = {name: op.inputs[slot][0] for slot, name in names.items()}
            block.ops[block.ops.index(op)] = new_op(op, type, {**inputs, "w": views[taken]}, {"out": op.writes[0]}, catalogue)
            for owner in reversed(around):
                Layout.of(owner).write()  # its block reads the view
            count += 1
    return count


def _view(matrix: Var, before: Op, catalogue: Catalogue) -> Var:
    """The transpose of a matrix, which is known where the op `before` stands."""
    assert matrix.shape is not None
    rows, columns = matrix.shape
    view = declare(matrix, (columns, rows), "TRANSPOSED")
    ops = before.block.ops
    ops.insert(ops.index(before), new_op(before, "matrix_transpose", {"x": matrix}, {"y": view}, catalogue))
    return view
