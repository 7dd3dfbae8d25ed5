"""Program: a whole model (forward, backward and update ops) as one object."""

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
_MAX_LEVELS = 16  # levels of nested rows; equals the maximum rank of a shape


@dataclass(frozen=True)
class Training:
    """The training settings of a program: rows per step, epochs, and the backend that compiles its plans (None for no backend)."""

    batch_size: int
    epochs: int
    backend: str | None = None


class Program:
    """An ordered list of blocks; `main` is the first.

    Build one inside `with Program(seed=0) as program:`. `targets` maps labels to the output variables, in the order in which callers
    fetch them. `seed` keys initial values and random operators, 0 <= seed < 2**64. Building the same program twice, in any process and
    any directory, gives the same bytes.
    """

    def __init__(self, *, seed: int = 0):
        if not isinstance(seed, numbers.Integral) or isinstance(seed, bool) or not 0 <= seed < 2**64:
            raise ProgramError(f"seed must be an integer from 0 to 2**64 - 1, not {seed!r:.60}")
        self.seed = int(seed)
        self.blocks: list[Block] = [Block(self, 0, "main", None)]
        self.targets: dict[str, Var] = {}
        self.training: Training | None = None
        self.revision = 0
        self.serial = next(_serials)  # caches use this as their key, never id()
        self.lineage: int | str = self.serial
        """The identity that a program shares with its clones. Optimizer state in a scope belongs to a lineage."""
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
        """Return the collapsible drawing for notebooks; a plain picture if the program is very large."""
        from oarlock.drawing.program import draw

        return draw(self)._repr_html_()

    def _repr_svg_(self) -> str:
        from oarlock.drawing.program import draw

        return draw(self).svg

    def to_text(self, *, source: bool = True) -> str:
        """Return the program as readable text; `source=False` omits the source locations."""
        from oarlock.ir.printer import format_program

        return format_program(self, source=source)

    def changed(self, *, taken: str | None = None) -> None:
        """Increment `revision`, which invalidates caches of this program, and mark the name `taken` as used."""
        self.revision += 1
        if taken is not None:
            self._taken.add(taken)
            self._taken.add(taken.partition(".")[0])

    @contextmanager
    def write_as(self, role: Role, location: Location | None = None) -> Iterator[None]:
        """Append ops with this role, and with this location instead of the caller's line, inside the `with` block."""
        before = self.writing
        self.writing = (role, location)
        try:
            yield
        finally:
            self.writing = before

    def unique(self, prefix: str) -> str:
        """Return a name that is unused in this program: `fc_0`, `fc_1`. The result depends on this program only."""
        number = self._counts.get(prefix, 0)
        while f"{prefix}_{number}" in self._taken:
            number += 1
        self._counts[prefix] = number + 1
        name = f"{prefix}_{number}"
        self._taken.add(name)
        return name

    def is_free(self, name: str) -> bool:
        """Return whether `name` is unused in this program."""
        return name not in self._taken

    def claim_symbols(self, shape: Shape | None) -> None:
        """Mark the symbols of a shape as used, so that `unique` never returns one of them."""
        self._taken.update(symbol for size in shape or () if isinstance(size, str) for symbol in names_in(size))

    def claim_names(self) -> None:
        """Mark every name in the program as used. Call it after filling blocks without `new_var`."""
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
        """Append an empty block inside `parent`."""
        block = Block(self, len(self.blocks), name, parent)
        self.blocks.append(block)
        self.changed(taken=name)
        return block

    def discard_block(self, block: Block) -> None:
        """Remove a block that no op owns, together with its nested blocks."""
        self.blocks = [other for other in self.blocks if block not in other.enclosing()]
        for index, other in enumerate(self.blocks):
            other.index = index
        self.changed()

    def find_target(self, name: str) -> Var | None:
        """Return the target with the label `name`, else the variable `name` of the main block, or None."""
        return self.targets.get(name, self.main.vars.get(name))

    def get_target(self, name: str) -> Var:
        """Return the target with the label `name`, else the variable `name` of the main block. Raises UndefinedVarError."""
        found = self.find_target(name)
        if found is None:
            raise self.main.absent(name, list(self.targets))
        return found

    def parameters(self) -> list[Var]:
        """Return the parameters in order of declaration."""
        return [var for var in self.main.vars.values() if var.parameter]

    def persistables(self) -> list[Var]:
        """Return all variables that outlive a step: parameters, optimizer state, counters."""
        return [var for var in self.main.vars.values() if var.persistable]

    def ragged_inputs(self) -> dict[Var, list[Var]]:
        """Return the ragged inputs, each with its row splits, outermost first."""
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
        """Whether a step updates anything, through an optimizer or a manual commit. Running statistics of forward ops do not count."""
        ops = reversed(self.main.ops)  # commits are at the end of the block, so few ops are visited
        return any(op.role is Role.UPDATE for op in itertools.takewhile(lambda op: op.is_commit, ops))

    def counter(self) -> Var:
        """Return the variable that counts committed steps, int64[]. It is declared on first use."""
        found = self.main.find_var(COUNTER)
        if found is not None:
            return found
        zero = Initializer("constant", {"value": 0.0})
        return self.main.new_var(COUNTER, DType.INT64, (), persistable=True, stop_gradient=True, initializer=zero)

    def to_bytes(self, *, source: bool = True) -> bytes:
        """Return the program in the file format; `source=False` omits the source locations."""
        from oarlock.ir.serialization import write_program

        return write_program(self, source=source)

    @classmethod
    def from_bytes(cls, data: bytes) -> "Program":
        """Read a program from `data` and verify its structure. Raises FormatError, LimitError or VerifyError."""
        from oarlock.ir.serialization import read_program

        return read_program(data)

    def clone(self) -> "Program":
        """Return an independent copy with the same lineage: in a scope, the copy continues with the optimizer state of the original."""
        from oarlock.ir.copy import copy_program

        copy = copy_program(self)
        copy.lineage = self.lineage
        return copy
