"""The sizes of which a block would need the rows of all workers, and cannot know their number, since another block finds it out."""

from collections.abc import Iterable, Mapping

from oarlock.ir.block import Block
from oarlock.ir.operation import Op
from oarlock.ir.size import Size, linear, names_in
from oarlock.ir.var import Var
from oarlock.passes.parallel.placement import REPLICATED, Decision, Kind, Placement, rows_of

__all__ = ["unknown_sizes"]


def unknown_sizes(main: Block, decisions: Mapping[Op, Decision], placed: Mapping[Var, Placement]) -> set[Size]:
    """The sizes that two blocks, neither inside the other, would each find out for themselves: the name of a size has one maker."""
    sizes = _Sizes(decisions, placed)
    sizes.block(main, _Known({}, set()))
    return sizes.unknown


class _Known:
    """The sizes that are known in a block so far: of one worker, with the block that tells each; and of all workers."""

    def __init__(self, own: Mapping[Size, Block], whole: Iterable[Size]):
        self.own = dict(own)
        self.whole = set(whole)

    def inside(self) -> "_Known":
        return _Known(self.own, self.whole)

    def tells(self, rows: Size) -> bool:
        """Whether the number of such rows that all workers have is known."""
        return rows in self.whole or names_in(rows) <= self.whole


class _Sizes:
    def __init__(self, decisions: Mapping[Op, Decision], placed: Mapping[Var, Placement]):
        self.decisions = decisions
        self.placed = placed
        self.makers: dict[str, Block] = {}
        self.unknown: set[Size] = set()

    def block(self, block: Block, known: _Known) -> None:
        self._see(block.inputs, known)
        for op in block.ops:
            decision = self.decisions[op]
            for var, need in decision.needs.items():
                self._need(var, need, known)
            for body in op.blocks:
                inside = known.inside()
                self.block(body, inside)
                for var, need in zip(body.outputs, decision.outputs, strict=True):
                    self._need(var, need, inside)
            self._see(op.writes, known)

    def _see(self, vars: Iterable[Var], known: _Known) -> None:
        for var in vars:
            placed = self.placed.get(var, REPLICATED)
            rows = rows_of(var, placed)
            if rows is not None:
                known.own.setdefault(rows, var.block)
            if placed.kind is not Kind.SPLITS:
                parted = placed.axis if placed.by_rows else None
                known.whole.update(item for axis, item in enumerate(var.shape or ()) if axis != parted)

    def _need(self, var: Var, need: Placement, known: _Known) -> None:
        """Note who finds out how many rows all workers have, where a value is asked for whole."""
        placed = self.placed.get(var, REPLICATED)
        if placed == need or not placed.differs:
            return
        rows = placed.rows if placed.kind is Kind.NUMBERS else rows_of(var, placed)
        if not isinstance(rows, str) or known.tells(rows):
            return
        name, _, rest = linear(rows) or (rows, 1, 0)
        maker = known.own[name if name in known.own and not rest else rows]
        for name in names_in(rows):
            if self.makers.setdefault(name, maker) not in maker.enclosing():
                self.unknown.add(rows)
        known.whole.add(rows)
