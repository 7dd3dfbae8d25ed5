"""Sink what no step of a loop reads again: one op on the stacks, after the loop, in place of one in each step."""

from oarlock.ir.operation import Op
from oarlock.ir.program import Program
from oarlock.ir.variable import Var
from oarlock.op.control.layout import Layout
from oarlock.passes.loops import computes_rows_alone, copy_op, loops_in, outside_shape, stacked_names, sums_rows
from oarlock.registry.catalogue import Catalogue

__all__ = ["sink"]


def sink(program: Program, catalogue: Catalogue) -> int:
    """Sink what may be sunk behind the loops of `program`; return how many ops that were.

    Before                                               After
        dw = recurrent(xs, dhs, body=                        dzs = recurrent(dhs, body=
            dz = ...                                              dz = ... -> dz)
            s = linear_dw(x, dz) -> sum of s)                dw = linear_dw(xs, dzs)

    Legal for what is only summed over the steps, where the operator sums over leading indices, and for what is only
    stacked, where it computes each leading index alone. Sums are rounded in another order: values change in their last bits.
    Costs the stacks of what the op reads. Does not apply to values whose sizes differ from step to step.
    """
    count = 0
    for op in loops_in(program.main):
        count += _sink_from(op, catalogue)
    return count


def _sink_from(loop: Op, catalogue: Catalogue) -> int:
    layout = Layout.of(loop)
    names = stacked_names(loop.block)
    varying = set(layout.body.vars.values())
    ragged = "splits" in loop.inputs
    position = loop.block.ops.index(loop) + 1
    count = 0
    for op in reversed(layout.body.ops):
        operator = catalogue.get(op.type)
        summed = _is_only_in(layout.summed, layout.stacked, op, layout)
        if op.type == "sum" and summed:
            _split_sum(op, layout, position)
        elif summed and sums_rows(operator, op, varying, ragged=ragged):
            count += _move(op, layout, position, names, summed=True)
        elif _is_only_in(layout.stacked, layout.summed, op, layout) and computes_rows_alone(operator, op, varying, ragged=ragged):
            count += _move(op, layout, position, names, summed=False)
    layout.write()
    return count


def _is_only_in(pairs: list[tuple[Var, Var]], others: list[tuple[Var, Var]], op: Op, layout: Layout) -> bool:
    """Whether what `op` defines is handed out in `pairs`, not in `others`, and is read by no op of the body nor by the next step."""
    handed_out = {inner for inner, _ in pairs}
    if not handed_out.issuperset(op.writes):
        return False
    read = {inner for inner, _ in others} | {each.following for each in layout.carried}
    return read.isdisjoint(op.writes) and not any(var in op.writes for other in layout.body.ops for var in other.reads)


def _split_sum(op: Op, layout: Layout, position: int) -> None:
    """The sum over the steps of a sum of terms: the sum of each term over the steps, added up after the loop."""
    (result,) = op.writes
    block = layout.op.block
    for pair in [pair for pair in layout.summed if pair[0] is result]:
        terms = [
            block.new_var(block.program.unique(f"{pair[1].name.partition('@')[0]}@TERM"), result.dtype, result.shape)
            for _ in op.inputs["xs"]
        ]
        layout.summed.remove(pair)
        layout.summed += zip(op.inputs["xs"], terms, strict=True)
        for term in terms:
            term.op = layout.op
        after = Op(block, "sum", {"xs": tuple(terms)}, {"y": (pair[1],)}, {}, role=op.role, location=op.location)
        block.ops.insert(position, after)
        pair[1].op = after
    layout.body.ops.remove(op)


def _move(op: Op, layout: Layout, position: int, names: set[str], *, summed: bool) -> int:
    """Take `op` out of the body, and put it behind the loop; 0 where what it reads has no stack."""
    block = layout.op.block
    whole = dict((*layout.steps, *layout.stacked))
    inside = [var for var in dict.fromkeys(op.reads) if var.block is layout.body]
    shapes = {var: outside_shape(layout, var, names) for var in inside}
    if None in shapes.values():
        return 0
    pairs = layout.summed if summed else layout.stacked
    results = [[outer for inner, outer in pairs if inner is var] for var in op.writes]
    if any(len(outer) != 1 for outer in results):
        return 0
    for var in inside:
        if var not in whole:
            whole[var] = block.new_var(block.program.unique(f"{var.name.partition('@')[0]}@STACK"), var.dtype, shapes[var])
            whole[var].op = layout.op
            layout.stacked.append((var, whole[var]))
    outputs = {slot: tuple(results[op.writes.index(var)][0] for var in vars) for slot, vars in op.outputs.items()}
    pairs[:] = [pair for pair in pairs if pair[0] not in op.writes]
    copy_op(op, block, position, whole, outputs)
    layout.body.ops.remove(op)
    return 1
