"""The variables that stand for outer ones in the step of a loop: for a sequence its step, unless it is meant whole."""

from collections.abc import Collection, Iterator

from oarlock.errors import ProgramError, ShapeError
from oarlock.ir.block import Block
from oarlock.ir.location import here
from oarlock.ir.size import Size, add, names_in, rename
from oarlock.ir.substitution import rename_sizes, replace_reads
from oarlock.ir.var import Var

__all__ = ["STEPS", "Wholes", "is_stepped", "nothing_to_step_through", "require_nothing_read", "require_rows", "require_same_splits"]

STEPS = "t"
"""The name of the number of steps of a sequence, unless the user names it: `ol.sequence([10, 20, 30])` is float32[t, 1]."""


def is_stepped(var: Var, sequences: Collection[Var], around: Block) -> bool:
    """Whether a loop in `around` that steps through `sequences`, or is yet to find the first of them, steps through `var` too.

    Names of sizes decide, never numbers; a sequence that the loop was given is one whatever its size is called.
    """
    leading = var.shape[0] if var.shape else None
    if not sequences:
        return leading == STEPS or (leading is not None and around.splits_of(leading) is not None)
    return var in sequences or (isinstance(leading, str) and leading == next(iter(sequences)).shape[0])  # type: ignore[index]


def nothing_to_step_through() -> ProgramError:
    return ProgramError(
        "rnn: nothing to step through",
        location=here(),
        contract=f"a step reads a sequence: what leads with the size {STEPS}, as ol.sequence does, or is cut by row splits, or is named",
        hint="rnn.step_input(sequence) in the step",
    )


class Wholes:
    """The variables of outside that a step reads whole, each by a variable of the step that stands for all of it until the loop is closed.

    In a ragged loop, what is called after the number of rows means the rows that still have a step, so a whole of rows has another name.
    """

    def __init__(self) -> None:
        self._inside: dict[Var, Var] = {}  # a variable outside -> what stands for it
        self._names: dict[str, str] = {}  # what the number of rows is called in these -> outside

    def clear(self) -> None:
        self._inside.clear()
        self._names.clear()

    def of(self, var: Var, body: Block, rows: str | None) -> Var:
        """The variable that stands for all of `var` in `body`; `rows` names the number of rows of a ragged loop, where that is known."""
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
        """Raise ShapeError where a whole was asked for before the number of rows was known by its name, `rows`."""
        for var, inside in self._inside.items():
            if any(rows in names_in(size) for size in inside.shape or ()):
                raise ShapeError(
                    f'rnn.whole: all of "{var.name}" was asked for before the loop was known to be ragged, with {rows} rows',
                    location=inside.location,
                    given=[var.describe()],
                    hint="name the sequence before: rnn.step_input(sequence)",
                )

    def settle(self, body: Block) -> None:
        """Let `body` read the variables themselves."""
        replace_reads(body, {inside: var for var, inside in self._inside.items()})
        for inside in self._inside.values():
            body.vars.pop(inside.name, None)
        rename_sizes(body, dict(self._names))


def require_nothing_read(sequence: Var, body: Block) -> None:
    """Raise ShapeError where `body`, which now is to step through `sequence`, has read whole what stands for its step from here on."""
    for var in _read_from_outside(body):
        if var is sequence or (isinstance(sequence.shape[0], str) and var.shape and var.shape[0] == sequence.shape[0]):  # type: ignore[index]
            raise ShapeError(
                f'rnn.step_input: "{var.name}" was read whole in this step, before the loop was known to step through {sequence.name}',
                location=here(),
                contract=f"in a step, what leads with {sequence.shape[0]} stands for its step",  # type: ignore[index]
                given=[var.describe(), sequence.describe()],
                hint=f"call rnn.step_input({sequence.name}) first; rnn.whole({var.name}) is all of it",
            )


def _read_from_outside(body: Block) -> Iterator[Var]:
    """The variables of outer blocks that are read in `body`, and in the blocks that are being written in it."""
    around = set(body.enclosing()) - {body}
    for block in body.program.blocks[body.index :]:
        if body in block.enclosing():
            yield from (var for op in block.ops for var in op.reads if var.block in around)


def require_same_splits(sequence: Var, splits: Var | None, first: Var, those: Var | None) -> None:
    """Raise ShapeError where `sequence` is not cut as the `first` sequence of a loop is, by `those`, or is ragged where that is not."""
    if splits is not those:
        raise ShapeError(
            f'rnn.step_input: "{sequence.name}" {_how_cut(splits)}, but "{first.name}" {_how_cut(those)}',
            location=here(),
            contract="the sequences of a loop are cut by the same row splits, or none is ragged",
            given=[sequence.describe(), first.describe()],
            hint=f"where {first.name} was meant whole: rnn.whole({first.name})",
        )


def _how_cut(splits: Var | None) -> str:
    return "is not ragged" if splits is None else f'is cut by "{splits.name}"'


def require_rows(sequence: Var, splits: Var) -> Size:
    """The name of the number of rows into which `splits` cut a sequence. Raises ShapeError where it is no name."""
    rows = add(splits.shape[0], -1)  # type: ignore[index]
    if names_in(rows) != {rows}:
        raise ShapeError(
            f'rnn.step_input: "{sequence.name}" is cut into {rows} rows, where a ragged loop needs a name for their number',
            location=here(),
            given=[sequence.describe(), splits.describe()],
            hint='declare the row splits as int64[n+1]: ol.layer.data("words", [], ragged=1)',
        )
    return rows
