"""Outer variables in the step of a loop: the step of a sequence, or the whole variable."""

from collections.abc import Collection, Iterator

from oarlock.errors import ProgramError, ShapeError
from oarlock.ir.block import Block
from oarlock.ir.location import here
from oarlock.ir.size import Size, add, names_in, rename
from oarlock.ir.substitution import rename_sizes, replace_reads
from oarlock.ir.var import Var

__all__ = ["STEPS", "Wholes", "is_stepped", "nothing_to_step_through", "require_nothing_read", "require_rows", "require_same_splits"]

STEPS = "t"
"""The default name of the number of steps of a sequence: `ol.sequence([10, 20, 30])` is float32[t, 1]."""


def is_stepped(var: Var, sequences: Collection[Var], around: Block) -> bool:
    """Return whether a loop in `around` over `sequences` also steps through `var`; `sequences` may still be empty.

    Sizes are matched by name, never by number; an explicit step input is stepped through regardless of the name of its size.
    """
    leading = var.shape[0] if var.shape else None
    if not sequences:
        return leading == STEPS or (leading is not None and around.splits_of(leading) is not None)
    return var in sequences or (isinstance(leading, str) and leading == next(iter(sequences)).shape[0])  # type: ignore[index]


def nothing_to_step_through() -> ProgramError:
    return ProgramError(
        "rnn: there is no sequence to step through",
        location=here(),
        contract=f"a step reads a sequence: a variable whose first size is {STEPS}, as of ol.sequence, a ragged value, or a step input",
        hint="call rnn.step_input(sequence) in the step",
    )


class Wholes:
    """Outer variables that a step reads whole, each represented by a variable of the step until the loop is closed.

    In a ragged loop, the symbol of the number of rows means the rows that still have a step, so whole variables use another symbol.
    """

    def __init__(self) -> None:
        self._inside: dict[Var, Var] = {}  # outer variable -> its representative
        self._names: dict[str, str] = {}  # symbol of the number of rows in these -> outer symbol

    def clear(self) -> None:
        self._inside.clear()
        self._names.clear()

    def of(self, var: Var, body: Block, rows: str | None) -> Var:
        """Return the variable that represents all of `var` in `body`; `rows` is the symbol of the rows of a ragged loop, if known."""
        found = self._inside.get(var)
        if found is None or found.name not in body.vars:
            shape = var.shape
            if rows is not None and shape is not None:
                name = f"{body.name.partition('.')[0]}.{rows}"
                shape = tuple(rename(size, {rows: name}) for size in shape)
                self._names[name] = rows
            found = body.new_var(body.program.unique(f"{var.name.partition('@')[0]}.whole"), var.dtype, shape)
            self._inside[var] = found
        return found

    def require_known(self, rows: str) -> None:
        """Raise ShapeError if a whole variable was requested before the symbol of the number of rows, `rows`, was known."""
        for var, inside in self._inside.items():
            if any(rows in names_in(size) for size in inside.shape or ()):
                raise ShapeError(
                    f'rnn.whole: "{var.name}" was used before the loop was known to be ragged, with {rows} rows',
                    location=inside.location,
                    given=[var.describe()],
                    hint="call rnn.step_input(sequence) first",
                )

    def settle(self, body: Block) -> None:
        """Make `body` read the outer variables themselves."""
        replace_reads(body, {inside: var for var, inside in self._inside.items()})
        for inside in self._inside.values():
            body.vars.pop(inside.name, None)
        rename_sizes(body, dict(self._names))


def require_nothing_read(sequence: Var, body: Block) -> None:
    """Raise ShapeError if `body` has already read whole a variable that now denotes its step."""
    for var in _read_from_outside(body):
        if var is sequence or (isinstance(sequence.shape[0], str) and var.shape and var.shape[0] == sequence.shape[0]):  # type: ignore[index]
            raise ShapeError(
                f'rnn.step_input: "{var.name}" was read whole in this step before the loop was known to step through {sequence.name}',
                location=here(),
                contract=f"in a step, a variable whose first size is {sequence.shape[0]} denotes its step",  # type: ignore[index]
                given=[var.describe(), sequence.describe()],
                hint=f"call rnn.step_input({sequence.name}) first, and rnn.whole({var.name}) for all of it",
            )


def _read_from_outside(body: Block) -> Iterator[Var]:
    """Yield the outer variables read in `body` and in the open blocks inside it."""
    around = set(body.enclosing()) - {body}
    for block in body.program.blocks[body.index :]:
        if body in block.enclosing():
            yield from (var for op in block.ops for var in op.reads if var.block in around)


def require_same_splits(sequence: Var, splits: Var | None, first: Var, those: Var | None) -> None:
    """Raise ShapeError unless `sequence` has the same row splits, `those`, as the `first` sequence of a loop, or both have none."""
    if splits is not those:
        raise ShapeError(
            f'rnn.step_input: "{sequence.name}" {_describe_splits(splits)}, but "{first.name}" {_describe_splits(those)}',
            location=here(),
            contract="the sequences of a loop have the same row splits, or none is ragged",
            given=[sequence.describe(), first.describe()],
            hint=f"if {first.name} is meant as a whole, use rnn.whole({first.name})",
        )


def _describe_splits(splits: Var | None) -> str:
    return "is not ragged" if splits is None else f'has the row splits "{splits.name}"'


def require_rows(sequence: Var, splits: Var) -> Size:
    """Return the symbol of the number of rows into which `splits` divide a sequence. Raises ShapeError if it is not a symbol."""
    rows = add(splits.shape[0], -1)  # type: ignore[index]
    if names_in(rows) != {rows}:
        raise ShapeError(
            f'rnn.step_input: "{sequence.name}" has {rows} rows, but a ragged loop needs a symbolic number of rows',
            location=here(),
            given=[sequence.describe(), splits.describe()],
            hint='declare the row splits as int64[n+1]: ol.layer.data("words", [], ragged=1)',
        )
    return rows
