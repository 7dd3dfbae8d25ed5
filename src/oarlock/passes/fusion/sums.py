"""Fusion of sums: a product is added where it is computed, not after."""

from oarlock.ir.block import Block
from oarlock.ir.operation import Op
from oarlock.ir.program import Program
from oarlock.ir.traversal import inner_blocks, walk
from oarlock.ir.var import Var
from oarlock.passes.fusion.combination import Combination, Trips
from oarlock.passes.fusion.terms import FUSED, SUMS, Readers, Sum
from oarlock.passes.loops import StackedNames
from oarlock.registry.catalogue import Catalogue, standard

__all__ = ["fuse_sums"]

_FORMED = ("add", "subtract", "multiply", "linear", "lerp", *FUSED.values())


def fuse_sums(program: Program, catalogue: Catalogue) -> int:
    """Compute the sums of `program` with fewer ops; return how many sums that were.

    Before                                                   After
        a = add(z, linear(h, u))                                 a = addmm(z, h, u)
        b = sum([g, linear_dx(w, d), multiply(p, q)])            b = addmm_nt(addcmul(g, p, q), w, d)
        c = add(multiply(subtract(1, r), x), multiply(r, y))     c = lerp(x, y, r)
        d = add(x, multiply(r, subtract(y, x)))                  d = lerp(x, y, r)
        e = subtract(multiply(g, p), multiply(g, q))             e = multiply(g, subtract(p, q))
        f = sum([x, neg(y)])                                     f = subtract(x, y)
        g = add(linear(x, w), b)                                 g = linear(x, w, b)

    A sum is taken apart into terms, through intermediates that nothing else reads, and put together anew: first the values that a
    later pass may take out of the loop around it, then other values, then each product onto what is there. `e` is for `p` and `q`
    that a loop steps through, whose difference can leave it. Done where fewer kernels are called, or none adds up a list.
    Legal for floats whose shapes are declared equal, and for what broadcasts to them. Sums are rounded in another order, and
    products that are added are rounded once: values change in their last bits. Costs the stack of what leaves the loop.
    Does not apply to integers, to sums of negative terms alone, or to what may be an uneven stack.
    """
    if any(catalogue.find(type) is not standard.find(type) for type in _FORMED):
        return 0  # its operators are someone else's
    readers, names = Readers(program), StackedNames()
    owners = {block: op for op in walk(program.main) for block in op.blocks}
    return sum(_fuse_block(block, owners.get(block), readers, names) for block in inner_blocks(program.main))


def _fuse_block(block: Block, owner: Op | None, readers: Readers, names: StackedNames) -> int:
    trips = Trips(block, owner, names)
    written: dict[Op, list[Op]] = {}
    seen: set[Op] = set()
    count = 0
    for op in reversed(block.ops):
        if op.type not in SUMS or op in seen:
            continue
        combined = Combination(Sum(op, readers), trips)
        seen.update(combined.ops)
        if not combined.steps:
            continue
        for old in combined.ops:
            written[old] = []
            readers.remove(old)
            for var in old.writes if old is not op else ():
                del block.vars[var.name]
        written[op] = _write(combined, op)
        for new in written[op]:
            readers.insert(new)
        count += 1
    if count:
        block.ops = [new for op in block.ops for new in written.get(op, [op])]
        block.program.changed()
    return count


def _write(combined: Combination, root: Op) -> list[Op]:
    """The ops that stand for `root` and what it alone reads; the last gives its result."""
    block, (result,) = root.block, root.writes
    name = f"{result.name.partition('@')[0]}@FUSED"
    results: list[Var] = []
    ops: list[Op] = []
    for number, step in enumerate(combined.steps, start=1):
        last = number == len(combined.steps)
        results.append(result if last else block.new_var(block.program.unique(name), result.dtype, result.shape, location=root.location))
        inputs = {slot: (results[operand] if isinstance(operand, int) else operand,) for slot, operand in step.inputs.items()}
        output = standard.get(step.type).signature.outputs[0].name
        ops.append(Op(block, step.type, inputs, {output: (results[-1],)}, step.attributes, role=root.role, location=root.location))
        results[-1].op = ops[-1]
    return ops
