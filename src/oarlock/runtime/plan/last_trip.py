"""The ops that the last trip of a loop leaves out, since they compute what only a next one would read."""

from typing import TYPE_CHECKING

from oarlock.ir.operation import Op
from oarlock.op.control.layout import Layout
from oarlock.registry.value_checks import checks_values

if TYPE_CHECKING:
    from oarlock.runtime.plan.emitter import Emitter
    from oarlock.runtime.plan.straight_line import StraightLine

__all__ = ["for_the_next_trip"]


def for_the_next_trip(emitter: "Emitter", line: "StraightLine", layout: Layout) -> set[Op]:
    """The ops of a loop over even sequences that the last trip leaves out: they compute what nobody reads but the next trip.

    A memory goes no further where nobody reads its last value, and no trip returns it. Ops that may refuse values, have effects or
    blocks, or come from elsewhere, are not left out; nor is what has more than one output, or a size or shape that is read off it.
    """
    outer_line, kept = emitter.lines[-1], {inner for inner, _ in (*layout.stacked, *layout.summed)}
    needed = set(kept)
    for each in layout.carried:
        if outer_line.buffers.readers(each.final) or each.inside in kept or emitter.asks_sizes_of(each.final):
            needed.add(each.following)
    left_out: set[Op] = set()
    for number, op in reversed(list(enumerate(line.ops))):
        if needed.isdisjoint(op.writes) and _may_be_left_out(emitter, line, op, number):
            left_out.add(op)
        else:
            needed.update(op.reads)
    return left_out


def _may_be_left_out(emitter: "Emitter", line: "StraightLine", op: Op, number: int) -> bool:
    operator = emitter.catalogue.get(op.type)
    if not operator.is_trusted or op.blocks or checks_values(operator, op) or operator.effects or len(op.writes) != 1:
        return False
    (result,), (output,) = op.writes, operator.signature.outputs
    is_read_off = emitter.asks_sizes_of(result) or line.liveness.needs_shape_after(result, number)
    return not (output.variadic or emitter.numbers.has(result) or is_read_off)
