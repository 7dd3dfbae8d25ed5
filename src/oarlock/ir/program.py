"""Program: a model - forward, backward, update - as one value."""

import itertools
import numbers
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from oarlock.errors import ProgramError
from oarlock.ir import block_stack
from oarlock.ir.block import Block
from oarlock.ir.dtype import DType
from oarlock.ir.location import Location
from oarlock.ir.names import COUNTER
from oarlock.ir.operation import Role
from oarlock.ir.size import Shape, Size, add, names_in
from oarlock.ir.var import Initializer, Var, is_among

__all__ = ["Program", "Training"]

_serials = itertools.count()
_MAX_LEVELS = 16  # of rows of rows; as many as a shape may have dimensions


@dataclass(frozen=True)
class Training:
    """How a training program is driven: rows per step, passes over the data, and by which backend its plans are compiled, if by any."""

    batch_size: int
    epochs: int
    backend: str | None = None


class Program:
    """An ordered list of blocks; `main` is the first.

    Write one inside `with Program(seed=0) as program:`. `targets` names what the program is for, in the
    order in which a caller fetches it. `seed` keys initial values and random operators, 0 <= seed < 2**64.
    Building the same program twice, in any process and any directory, gives the same bytes.
    """

    def __init__(self, *, seed: int = 0):
        if not isinstance(seed, numbers.Integral) or isinstance(seed, bool) or not 0 <= seed < 2**64:
            raise ProgramError(f"a seed is a whole number from 0 to 2**64 - 1, not {seed!r:.60}")
        self.seed = int(seed)
        self.blocks: list[Block] = [Block(self, 0, "main", None)]
        self.targets: dict[str, Var] = {}
        self.training: Training | None = None
        self.revision = 0
        self.serial = next(_serials)  # caches key on this, never on id()
        self.lineage: int | str = self.serial
        """Which program this is, whatever copies of it there are: what it trains with in a scope belongs to it."""
        self.writing: tuple[Role, Location | None] = (Role.FORWARD, None)
        self._taken: set[str] = set()
        self._counts: dict[str, int] = {}

    @property
    def main(self) -> Block:
        """The outermost block."""
        return self.blocks[0]

    def __enter__(self) -> "Program":
        block_stack.push(self.main)
        return self

    def __exit__(self, *exception: object) -> None:
        block_stack.pop(self.main)

    def __repr__(self) -> str:
        return f"<Program of {len(self.blocks)} blocks, {sum(len(block.ops) for block in self.blocks)} ops>"

    def __str__(self) -> str:
        return self.to_text()

    def _repr_html_(self) -> str | None:
        """The drawing that a notebook shows, which folds; of a very large program, the picture."""
        from oarlock.drawing.program import draw

        return draw(self)._repr_html_()

    def _repr_svg_(self) -> str:
        from oarlock.drawing.program import draw

        return draw(self).svg

    def to_text(self, *, source: bool = True) -> str:
        """The program in a form that reads like code; without the author's lines where `source` is False."""
        from oarlock.ir.printer import format_program

        return format_program(self, source=source)

    def changed(self, *, taken: str | None = None) -> None:
        """Note that the program is not what it was; caches look at `revision`."""
        self.revision += 1
        if taken is not None:
            self._taken.add(taken)
            self._taken.add(taken.partition(".")[0])

    @contextmanager
    def write_as(self, role: Role, location: Location | None = None) -> Iterator[None]:
        """Give the ops appended meanwhile this role, and this location in place of the caller's line."""
        before = self.writing
        self.writing = (role, location)
        try:
            yield
        finally:
            self.writing = before

    def unique(self, prefix: str) -> str:
        """A name that nothing in the program has: `fc_0`, `fc_1`. It depends on this program alone."""
        number = self._counts.get(prefix, 0)
        while f"{prefix}_{number}" in self._taken:
            number += 1
        self._counts[prefix] = number + 1
        name = f"{prefix}_{number}"
        self._taken.add(name)
        return name

    def is_free(self, name: str) -> bool:
        """Whether nothing in the program is called `name`."""
        return name not in self._taken

    def claim_symbols(self, shape: Shape | None) -> None:
        """Count the symbols of a shape as taken, so that `unique` never names another size so."""
        self._taken.update(symbol for size in shape or () if isinstance(size, str) for symbol in names_in(size))

    def claim_names(self) -> None:
        """Count every name in use as taken; for whoever fills blocks without `new_var`."""
        for block in self.blocks:
            for name in (block.name, *block.vars):
                self._taken.add(name)
                self._taken.add(re.split(r"[.@]", name)[0] or name)
            for var in block.vars.values():
                self.claim_symbols((*(var.shape or ()), var.row_splits_of or 1))
            for op in block.ops:
                self._taken.add(op.name)
                if "random_id" in op.attributes:
                    self._taken.add(f"random_{op.attributes['random_id']}")

    def new_block(self, name: str, parent: Block) -> Block:
        """Add an empty block inside `parent`."""
        block = Block(self, len(self.blocks), name, parent)
        self.blocks.append(block)
        self.changed(taken=name)
        return block

    def discard_block(self, block: Block) -> None:
        """Remove a block that no op owns, and the blocks inside it."""
        self.blocks = [other for other in self.blocks if block not in other.enclosing()]
        for index, other in enumerate(self.blocks):
            other.index = index
        self.changed()

    def find_target(self, name: str) -> Var | None:
        """The variable that `name` stands for: the target of that label, else the variable of the main block; None where there is none."""
        return self.targets.get(name, self.main.vars.get(name))

    def get_target(self, name: str) -> Var:
        """The variable that `name` stands for, a target by its label or a variable of the main block. Raises UndefinedVarError."""
        found = self.find_target(name)
        if found is None:
            raise self.main.absent(name, list(self.targets))
        return found

    def parameters(self) -> list[Var]:
        """The parameters, in the order of their declaration."""
        return [var for var in self.main.vars.values() if var.parameter]

    def persistables(self) -> list[Var]:
        """Everything that outlives a step: parameters, optimizer state, counters."""
        return [var for var in self.main.vars.values() if var.persistable]

    def ragged_inputs(self) -> dict[Var, list[Var]]:
        """The inputs whose rows are cut by other inputs: those row splits, outermost first."""
        cuts: dict[Size, Var] = {var.row_splits_of: var for var in self.main.inputs if var.row_splits_of is not None}
        found: dict[Var, list[Var]] = {}
        for var in self.main.inputs if cuts else ():
            levels: list[Var] = []
            splits = cuts.get(var.shape[0]) if var.shape and var.row_splits_of is None else None
            while splits is not None and splits.shape and not is_among(splits, levels) and len(levels) < _MAX_LEVELS:
                levels.insert(0, splits)
                splits = cuts.get(add(splits.shape[0], -1))
            if levels:
                found[var] = levels
        return found

    @property
    def is_training(self) -> bool:
        """Whether a step updates anything, by an optimizer or by hand. What forward ops keep, running statistics, is no update."""
        ops = reversed(self.main.ops)  # an optimizer's commits stand last, so this is soon known
        return any(op.role is Role.UPDATE for op in itertools.takewhile(lambda op: op.is_commit, ops))

    def counter(self) -> Var:
        """The variable that counts committed steps, int64[]; declared when first asked for."""
        found = self.main.find_var(COUNTER)
        if found is not None:
            return found
        zero = Initializer("constant", {"value": 0.0})
        return self.main.new_var(COUNTER, DType.INT64, (), persistable=True, stop_gradient=True, initializer=zero)

    def to_bytes(self, *, source: bool = True) -> bytes:
        """The program as a file holds it; without the author's lines where `source` is False."""
        from oarlock.ir.serialization import write_program

        return write_program(self, source=source)

    @classmethod
    def from_bytes(cls, data: bytes) -> "Program":
        """The program in `data`, its structure verified. Raises FormatError, LimitError or VerifyError."""
        from oarlock.ir.serialization import read_program

        return read_program(data)

    def clone(self) -> "Program":
        """An independent copy, which is the same program to a scope: it goes on with what this one has left there."""
        from oarlock.ir.copy import copy_program

        copy = copy_program(self)
        copy.lineage = self.lineage
        return copy
