"""Sizes that only values tell: each has a name of its own, so that no two of them, and nothing that is fed, are taken for one."""

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from oarlock.errors import VerifyError
from oarlock.ir.block import Block
from oarlock.ir.operation import Op
from oarlock.ir.program import Program
from oarlock.ir.size import Size, names_in
from oarlock.ir.var import Var
from oarlock.registry.catalogue import Catalogue

__all__ = ["BlockSizes", "Made", "verify_own_sizes"]

Made = Mapping[Op, Mapping[str, Var]]
"""For the ops that make sizes, the name of each with the first output that bears it."""


class BlockSizes(NamedTuple):
    """The sizes of one op with a block. `told` lead inputs of which the run checks that they are what the op makes.

    What the block is given leads with `rows`, a size of its own, which may be another each time; `source` tells it.
    """

    told: frozenset[Size] = frozenset()
    rows: str | None = None
    source: Var | None = None


def _names(vars: Iterable[Var]) -> set[str]:
    """The names of sizes that some variables bear, in front or anywhere, as in `2*n+1`, or cut."""
    return {name for var in vars for size in (*(var.shape or ()), var.row_splits_of or 1) for name in names_in(size)}


def verify_own_sizes(program: Program, catalogue: Catalogue, made: Made) -> None:
    """Raise VerifyError for the first size that only values tell whose name is not its own.

    `made` says which ops make sizes. A name that an op makes is borne by nothing before it, and made by no other op, unless an input of
    the op tells it and the run checks that. Two blocks may call the rows that they count by one name where both count those of one
    variable, or where it stays inside each; a block may give them a name that is known where it is given a variable that bears
    it, for then the run compares the two. Linear in the size of the program.
    """
    if made or any(catalogue.get(op.type).block_sizes is not None for block in program.blocks for op in block.ops if op.blocks):
        _Sizes(program, catalogue, made).verify()


class _Sizes:
    """The names that are known, op by op."""

    def __init__(self, program: Program, catalogue: Catalogue, made: Made):
        self.program = program
        self.catalogue = catalogue
        self.made = made
        self.makers: dict[str, Op] = {}
        self.counted: dict[str, dict[Var, list[Block]]] = {}  # the name of rows -> what tells them -> the blocks that count them

    def verify(self) -> None:
        """Go through the blocks as they run, without recursion: a file may nest them deeper than Python does."""
        entered = [self._block(self.program.main, set())]
        while entered:
            inner = next(entered[-1], None)
            if inner is None:
                entered.pop()
            else:
                entered.append(self._block(*inner))
        several = {name: [block for blocks in found.values() for block in blocks] for name, found in self.counted.items() if len(found) > 1}
        if several:
            self._require_inside(several)

    def _block(self, block: Block, around: set[str]) -> Iterator[tuple[Block, set[str]]]:
        """Yields each block inside with the names that are known around it."""
        known = around | _names(block.inputs)
        for number, op in enumerate(block.ops):
            find = self.catalogue.get(op.type).block_sizes if op.blocks else None
            sizes = (None if find is None else find(op)) or BlockSizes()
            if sizes.rows is not None and sizes.source is not None:
                self._count(op, number, sizes.rows, sizes.source, known)
            for inner in op.blocks:
                yield inner, known
            for name, var in self.made.get(op, {}).items():
                if name in sizes.told:
                    continue
                if name in known or name in self.makers or name in self.counted:
                    self._refuse(op, number, f'"{var.name}" is declared {var.type_text}, yet {self._whose(name)}')
                self.makers[name] = op
            known |= _names(op.writes)

    def _count(self, op: Op, number: int, rows: str, source: Var, known: set[str]) -> None:
        """Note that `source` tells the block of `op` how many `rows` it is given."""
        (body,) = op.blocks
        found = self.counted.setdefault(rows, {})
        given = (size for var in body.inputs for size in (var.shape or ())[bool(var.shape) and var.shape[0] == rows :])  # type: ignore[index]
        if source in found or rows in _names(op.reads) or any(rows in names_in(size) for size in given):
            return
        if (rows in known or rows in self.makers) and rows in _names(op.writes):
            self._refuse(op, number, f"its block counts its rows by {rows}, yet {self._whose(rows)}")
        found[source] = [*found.get(source, ()), body]

    def _require_inside(self, several: Mapping[str, list[Block]]) -> None:
        """Raises VerifyError where a variable bears a name by which blocks count different rows, and stands in none of these."""
        for block in self.program.blocks:
            around = set(block.enclosing())
            names = {name for name, blocks in several.items() if around.isdisjoint(blocks)}
            for var in block.vars.values() if names else ():
                for name in sorted(names & _names([var])):
                    first, second = several[name][:2]
                    raise VerifyError(
                        f'{block.path}: "{var.name}" is declared {var.type_text}, yet {first.path} and {second.path} '
                        f"count different rows by {name}",
                        location=var.location,
                        hint="call one of them by another name",
                    )

    def _whose(self, name: str) -> str:
        maker = self.makers.get(name)
        what = "something before it is" if maker is None else f"what {maker.type} makes is"
        return f"{what} of the size {name} too; a size that only values tell has a name of its own"

    def _refuse(self, op: Op, number: int, message: str) -> None:
        raise VerifyError(
            f"{op.block.path}, op {number} ({op.type}): {message}",
            location=op.location,
            hint="call it by a name that nothing else has",
            op=op.type,
        )
