"""The placement of every variable of a program, block by block: what each op needs, and what it gives."""

from collections.abc import Iterator, Mapping

from oarlock.ir.block import Block
from oarlock.ir.operation import Op
from oarlock.ir.size import Size, names_in
from oarlock.ir.traversal import inner_blocks, walk
from oarlock.ir.var import Var
from oarlock.op.control.active_rows import is_by_row
from oarlock.op.control.layout import Layout
from oarlock.passes.parallel.placement import PARTIAL, REPLICATED, Decision, Kind, Placement, rows_of, sharded
from oarlock.passes.parallel.rules import decide, whole
from oarlock.passes.parallel.unknown_sizes import unknown_sizes
from oarlock.registry.catalogue import Catalogue

__all__ = ["Analysis"]


class Analysis:
    """The decisions about the ops of a program, made in its order. `placed` has where each variable is, `shared` of what
    every worker has whole how some op takes it in shares.
    """

    def __init__(self, catalogue: Catalogue):
        self.catalogue = catalogue
        self.decisions: dict[Op, Decision] = {}
        self.placed: dict[Var, Placement] = {}
        self.shared: dict[Var, Placement] = {}
        self._kept_whole: set[Size] = set()

    def run(self, main: Block, given: Mapping[Var, Placement]) -> None:
        """Decide on every op of the main block and of those inside it, where the inputs and what is persistable are placed as given.

        Where a block could not know how many rows of a size all workers have, nobody has such rows of its own.
        """
        while True:
            self.placed = {var: REPLICATED for var in main.vars.values() if var.persistable} | dict(given)
            self._block(main, dict(self.placed))
            unknown = unknown_sizes(main, self.decisions, self.placed)
            if unknown <= self._kept_whole:
                return
            self._kept_whole |= unknown

    def _block(self, block: Block, have: dict[Var, Placement]) -> None:
        for op in block.ops:
            if op.is_commit:
                decision = Decision(dict.fromkeys(op.reads, have[op.writes[0]]), {})
            elif op.blocks:
                decision = self._owner(op, have)
            else:
                decision = decide(op, self.catalogue, have, self.shared)
                if not _can_part(decision.needs, have) or any(rows_of(*each) in self._kept_whole for each in decision.gives.items()):
                    decision = whole(op, have)
            self.decisions[op] = decision
            self.shared |= {var: need for var, need in decision.needs.items() if need.kind is Kind.SHARES and have[var] is REPLICATED}
            have.update(decision.gives)
            self.placed.update(decision.gives)

    def _owner(self, op: Op, have: dict[Var, Placement]) -> Decision:
        """The decision about an op that owns a block, and about what is in it."""
        if op.type == "conditional_block":
            return self._branch(op, have)
        if op.type in ("recurrent", "while") and not op.attributes.get("segments"):
            found = self._ragged(op, have) if op.inputs.get("splits") else self._loop(op, have)
            if found is not None and _can_part(found.needs, have):
                return found
        return self._whole(op, have)

    def _inside(self, body: Block, have: Mapping[Var, Placement], given: Mapping[Var, Placement]) -> dict[Var, Placement]:
        """Decide on the ops of a body that is given these."""
        inside = {**have, **given}
        self.placed.update(given)
        self._block(body, inside)
        return inside

    def _whole(self, op: Op, have: Mapping[Var, Placement]) -> Decision:
        """Every worker runs the block on whole values."""
        for body in op.blocks:
            given = dict.fromkeys((*body.inputs, *op.reads), REPLICATED)
            outside = {var: self.placed[var] for var in op.reads}
            self._inside(body, have, given)
            self.placed.update(outside)
        return Decision(
            dict.fromkeys(op.reads, REPLICATED), dict.fromkeys(op.writes, REPLICATED), outputs=[REPLICATED] * len(op.blocks[0].outputs)
        )

    def _branch(self, op: Op, have: dict[Var, Placement]) -> Decision:
        layout = Layout.of(op)
        ahead = 1 if op.inputs.get("when") else 0
        needs = dict.fromkeys(op.inputs.get("when", ()), REPLICATED)
        if any(have[outer].along_axis and have[outer].axis < ahead for _, outer in layout.steps):
            return self._whole(op, have)
        given = {inner: _moved(have[outer], -ahead) for inner, outer in layout.steps}
        inside = self._inside(layout.body, have, given)
        needs |= {outer: have[outer] for _, outer in layout.steps}
        outputs = [inside[var] for var in layout.body.outputs]
        outputs = [each if not ahead and _is_known(each, have) else _counted_no_more(each) for each in outputs]
        gives = {outer: _moved(placement, ahead) for (_, outer), placement in zip(layout.stacked, outputs, strict=True)}
        return Decision(needs, gives, outputs=outputs)

    def _loop(self, op: Op, have: dict[Var, Placement]) -> Decision | None:
        """A loop with the same trips on every worker: over sequences that none of them has a part of, or while a condition holds."""
        layout = Layout.of(op)
        steps = {outer: REPLICATED if have[outer] is PARTIAL else _counted_no_more(have[outer]) for _, outer in layout.steps}
        if any(placement.kind is Kind.SPLITS or (placement.along_axis and not placement.axis) for placement in steps.values()):
            return None
        carried = [REPLICATED if have[each.initial] is PARTIAL else _counted_no_more(have[each.initial]) for each in layout.carried]
        if any(placement.kind is Kind.SPLITS for placement in carried):
            return None
        inside: dict[Var, Placement] = {}
        for _ in range(2 * len(carried) + 2):
            given = {inner: _moved(steps[outer], -1) for inner, outer in layout.steps}
            given |= {each.inside: placement for each, placement in zip(layout.carried, carried, strict=True)}
            inside = self._inside(layout.body, have, given)
            agreed = [_agreed(before, inside[each.following], each.initial) for before, each in zip(carried, layout.carried, strict=True)]
            if agreed == carried:
                break
            carried = agreed
        else:
            return None
        condition = [] if layout.condition is None else [REPLICATED]
        stacked = [_counted_no_more(inside[inner]) for inner, _ in layout.stacked]
        summed = [_counted_no_more(inside[inner]) for inner, _ in layout.summed]
        if any(placement.kind is Kind.SPLITS for placement in (*stacked, *summed)):
            return None
        needs = {**steps, **{each.initial: placement for each, placement in zip(layout.carried, carried, strict=True)}}
        if len(needs) < len({*steps, *(each.initial for each in layout.carried)}) or any(needs[var] != steps[var] for var in steps):
            return None
        needs |= dict.fromkeys(op.inputs.get("condition", ()), REPLICATED)
        gives = {outer: _moved(placement, 1) for (_, outer), placement in zip(layout.stacked, stacked, strict=True)}
        gives |= {each.final: placement for each, placement in zip(layout.carried, carried, strict=True)}
        gives |= {outer: placement for (_, outer), placement in zip(layout.summed, summed, strict=True)}
        return Decision(needs, gives, outputs=[*condition, *stacked, *carried, *summed])

    def _ragged(self, op: Op, have: dict[Var, Placement]) -> Decision | None:
        """A loop over the sequences that each worker has, which may have another number of trips on each: they exchange nothing in it."""
        layout = Layout.of(op)
        (cuts,) = op.inputs["splits"]
        outside = [outer for _, outer in layout.steps] + [each.initial for each in layout.carried]
        inner = [inner for inner, _ in layout.steps] + [each.inside for each in layout.carried]
        if have[cuts].kind is not Kind.SPLITS or not all(is_by_row(var, layout.body) for var in inner):
            return None
        if not all(have[var] == sharded() or (have[var] is REPLICATED and var.shape) for var in outside):
            return None
        inside = self._inside(layout.body, have, dict.fromkeys(inner, sharded()))
        within = set(inner_blocks(layout.body))
        for each in walk(layout.body):
            decision = self.decisions[each]
            if decision.written or any(
                var.block in within and inside.get(var, self.placed[var]) != need for var, need in decision.needs.items()
            ):
                return None
        rows = [var for var, _ in layout.stacked] + [each.following for each in layout.carried]
        if not all(inside[var] == sharded() and is_by_row(var, layout.body) for var in rows):
            return None
        if not all(inside[var] is PARTIAL for var, _ in layout.summed):
            return None
        needs = {cuts: have[cuts]} | dict.fromkeys(outside, sharded())
        gives = {var: sharded() for var in op.writes} | {outer: PARTIAL for _, outer in layout.summed}
        return Decision(needs, gives, outputs=[inside[var] for var in layout.body.outputs])


def _can_part(needs: Mapping[Var, Placement], have: Mapping[Var, Placement]) -> bool:
    """Whether of each value that a worker is to have its rows of, the block of the value knows how many these are."""
    return all(
        any(size == var.shape[need.axis] and teller.block in var.block.enclosing() for teller, size in _sizes_told(have))  # type: ignore[index]
        for var, need in needs.items()
        if need.by_rows and have[var] != need
    )


def _is_known(placement: Placement, have: Mapping[Var, Placement]) -> bool:
    """Whether the rows that numbers count are told where these variables are; true of what are no such numbers."""
    return placement.kind is not Kind.NUMBERS or any(size == placement.rows for _, size in _sizes_told(have))


def _sizes_told(have: Mapping[Var, Placement]) -> Iterator[tuple[Var, Size]]:
    """Each variable that tells how many rows of some size a worker has, and that size."""
    for var, placement in have.items():
        size = rows_of(var, placement)
        if size is not None:
            yield var, size


def _moved(placement: Placement, by: int) -> Placement:
    return placement._replace(axis=placement.axis + by) if placement.kind in (Kind.SHARDED, Kind.SHARES) else placement


def _counted_no_more(placement: Placement) -> Placement:
    """The placement of numbers once they count all rows."""
    return sharded() if placement.kind is Kind.NUMBERS else placement


def _agreed(before: Placement, after: Placement, initial: Var) -> Placement:
    """The placement of a carried value that begins as `before` and is `after` in the next trip."""
    after = _counted_no_more(after)
    if before == after or (before.by_rows and after is REPLICATED):
        return before
    if before is REPLICATED and after.kind is Kind.SHARDED and initial.shape and names_in(initial.shape[after.axis]):
        return after
    return REPLICATED
