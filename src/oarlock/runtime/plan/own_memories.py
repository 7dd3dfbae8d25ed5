"""Which memories of a loop over even sequences its trips may write over: each is one alias set from trip to trip."""

from collections.abc import Callable, Collection
from typing import TYPE_CHECKING

from oarlock.ir.var import Var
from oarlock.op.control.layout import Carried, Layout

if TYPE_CHECKING:
    from oarlock.runtime.plan.straight_line import StraightLine

__all__ = ["with_own_memories"]


def with_own_memories(line_of: Callable[[Collection[Var]], "StraightLine"], layout: Layout, steps: Collection[Var]) -> "StraightLine":
    """The line of a body, made by `line_of`, that writes over as many memories as it may, which it names: `own`. It may also write over
    `steps`, but for those that a kernel may hold, or what would lie over them.

    Before                                   After
        c = start                                c = start.clone()
        for ...:                                 for ...:
            kept = multiply(forget, c)               kept = multiply_in_place(forget, c)
            c = add_in_place(kept, new)              c = add_in_place(kept, new)

    Legal where nothing but the memory goes on from trip to trip in the memory of its value: no stack, sum or other memory may lie in what
    it is or becomes, and no kernel may hold that. What it becomes lies over what it was, or in memory that the trip has taken, without
    gaps. So after the copy of what it begins as, nobody outside ever sees that memory, before the loop has ended. Costs the copy; where no
    op would write over a memory, it is left as it is. Does not apply to memories of a `while`, nor of ragged sequences, whose rows end one
    by one.
    """
    line, own = line_of(steps), set[Var]()
    kept = [inner for inner in steps if not line.buffers.alias_sets.is_lent(inner)]
    if len(kept) < len(steps):
        line = line_of(kept)
    wanted = _legal(line, layout)
    while wanted != own:
        own = wanted
        line = line_of([*kept, *own])
        wanted = own & _legal(line, layout)
        if wanted == own:
            wanted = own.intersection(line.buffers.root(var) for op in layout.body.ops for var in op.writes)
    line.own = own
    return line


def _legal(line: "StraightLine", layout: Layout) -> set[Var]:
    return {each.inside for each in layout.carried if _may_be_own(line, layout, each)}


def _may_be_own(line: "StraightLine", layout: Layout, each: Carried) -> bool:
    """Whether a line that writes over the memory may do so."""
    buffers = line.buffers
    returned = [inner for inner, _ in (*layout.stacked, *layout.summed)]
    returned += [other.following for other in layout.carried if other is not each]
    return (
        buffers.alias_sets.is_new_or_over(each.following, each.inside)
        and not buffers.alias_sets.may_share([each.inside, each.following], returned)
        and not buffers.has_gaps(each.following)
        and not any(map(buffers.alias_sets.is_lent, (each.inside, each.following)))
    )
