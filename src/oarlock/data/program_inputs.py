"""The inputs of a program, and the columns of a data set that they are fed from."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy

from oarlock.data.conversion import convert
from oarlock.errors import FeedError
from oarlock.ir.program import Program
from oarlock.ir.size import names_in
from oarlock.ir.var import Var, is_among
from oarlock.runtime.ragged import Ragged
from oarlock.runtime.value import describe_value
from oarlock.suggestions import list_names

__all__ = ["Feed", "ProgramInputs", "require_alike"]

Feed = dict[str, "numpy.ndarray | Ragged"]


@dataclass(frozen=True)
class ProgramInputs:
    """The inputs of a program that are fed from columns, by name and in order, each with the names of its row splits.

    `carried` are the inputs that may keep their stored value.
    """

    program: Program
    splits: dict[str, list[str]]
    carried: frozenset[str]

    @classmethod
    def of(cls, program: Program) -> "ProgramInputs":
        """Return the inputs of `program`, except row splits, which belong to their ragged inputs."""
        ragged = program.ragged_inputs()
        cuts = {splits for levels in ragged.values() for splits in levels}
        fed = [var for var in program.main.inputs if var not in cuts]
        splits = {var.name: [level.name for level in ragged.get(var, [])] for var in fed}
        return cls(program, splits, frozenset(var.name for var in fed if var.initializer is not None))

    @property
    def wanted(self) -> list[str]:
        """The columns that are fed, including row splits."""
        return [var.name for var in self.program.main.inputs]

    def require(self, names: Iterable[str]) -> None:
        """Raise FeedError for an input without a column among `names`."""
        require_columns(self.program, list(names))

    def feed(self, batch: object, rows: numpy.ndarray | None = None, *, rounds: bool = False) -> Feed:
        """Return the feed of a batch, which has columns by name, or is a tuple in the order of the inputs.

        `rows` are the row numbers in the table. With `rounds`, floats may be rounded. Raises FeedError for a column that is missing or
        does not fit, and for columns with different numbers of rows.
        """
        columns = self._named(batch)
        feed = {name: self._column(name, columns, rows, rounds) for name in self.splits if name in columns}
        require_alike(feed)
        self.require(columns)
        return feed

    def _column(self, name: str, columns: Mapping[str, object], rows: numpy.ndarray | None, rounds: bool) -> "numpy.ndarray | Ragged":
        """Return the column for the input `name`. The elements and row splits of a ragged column may be separate columns."""
        var, value, splits = self.program.main.var(name), columns[name], self.splits[name]
        if splits and not isinstance(value, Ragged) and all(each in columns for each in splits):
            value = Ragged(value, tuple(columns[each] for each in splits))  # type: ignore[arg-type]
        return convert(var, len(splits), value, rows, rounds=rounds)

    def _named(self, batch: object) -> Mapping[str, object]:
        if isinstance(batch, Mapping):
            return {str(name): value for name, value in batch.items()}
        parts = list(batch) if isinstance(batch, tuple | list) else [batch]
        asked = [name for name in self.splits if name not in self.carried]
        names = asked if len(parts) == len(asked) else list(self.splits)
        if len(parts) != len(names):
            raise FeedError(
                f"a batch has {len(parts)} part{'' if len(parts) == 1 else 's'} without names, but the program has {len(names)} inputs",
                given=[f"inputs: {', '.join(names) or 'none'}", f"parts of the batch: {', '.join(map(describe_value, parts))}"],
                hint="give batches as dicts by input name",
            )
        return dict(zip(names, parts, strict=True))


def require_alike(columns: "Mapping[str, numpy.ndarray | Ragged]") -> None:
    """Raise FeedError for columns with different numbers of rows. A scalar counts as 0 rows."""
    counts = {name: len(column) if isinstance(column, Ragged) or column.ndim else 0 for name, column in columns.items()}
    if len(set(counts.values())) > 1:
        given = [f'"{name}" has {count} rows' for name, count in counts.items()]
        raise FeedError("the arrays of the data set have different numbers of rows", given=given)


def require_columns(program: Program, names: list[str]) -> None:
    """Raise FeedError for the first input of `program` that has no column among `names`, and cannot keep a stored value."""
    every = program.ragged_inputs()
    cuts = {splits for var, levels in every.items() if var.name in names for splits in levels}
    fed = [var for var in program.main.inputs if var.name in names or var in cuts]
    symbols = {name for var in fed for size in (var.shape or ())[:1] for name in names_in(size)}
    missing = [var for var in program.main.inputs if not is_among(var, fed) and not _stands_alone(var, symbols)]
    if missing:
        lacks = next((var for var, levels in every.items() if is_among(missing[0], levels)), missing[0])
        raise FeedError(
            f'the data set has no "{lacks.name}"',
            location=lacks.location,
            given=[f"it has {list_names(lacks.name, names) or 'nothing'}"],
            hint="its stored value cannot be shuffled with the rows: add it to the data set"
            if lacks.initializer
            else _hint_of(lacks)
            if names
            else None,
        )


def _hint_of(var: Var) -> str:
    """Return a hint on how to select the column of an input, or its columns if each row has several numbers."""
    if len(var.shape or ()) == 2:
        return f'select all other columns with --columns "{var.name}=*", or ol.data.read(data, columns={{"{var.name}": "*"}})'
    return f'name its column with ol.data.read(data, columns={{"{var.name}": "COLUMN"}}), or --columns "{var.name}=COLUMN"'


def _stands_alone(var: Var, symbols: set[str]) -> bool:
    """Return whether an input may keep its stored value while the rows of inputs with leading `symbols` are shuffled."""
    leading = var.shape[0] if var.shape else 0
    return var.initializer is not None and not names_in(leading) & symbols
