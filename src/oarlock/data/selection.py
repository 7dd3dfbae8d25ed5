"""Selecting rows and columns of a table, and renaming and joining columns."""

from collections.abc import Collection, Mapping, Sequence

import numpy

from oarlock.data.exact_integers import has_numbers, side_by_side
from oarlock.data.table import Table
from oarlock.errors import ArgumentError, FeedError
from oarlock.suggestions import did_you_mean, list_names

__all__ = ["Columns", "PartOfTable", "SelectedTable", "columns_of", "in_known_order", "parse_columns", "part_of"]

Columns = Mapping[str, str | Sequence[str]]
"""Table columns by their new names. Several columns are joined along a new axis; "first:last" selects a range of columns, and "*" all
columns not selected otherwise."""


def parse_columns(given: Sequence[str]) -> Columns | None:
    """Parse command-line columns: "x=width,height", "x=first:last", "label=kind", "x=*". None if there are none. Raises ArgumentError."""
    found: dict[str, str | list[str]] = {}
    for text in given:
        name, equals, wanted = text.partition("=")
        if not name or not equals or not wanted or name in found:
            raise ArgumentError(
                f"columns must be given as NAME=COLUMN, each name once, not {text!r:.60}", hint='--columns "x=width,height"'
            )
        found[name] = wanted.split(",") if "," in wanted else wanted
    return found or None


def columns_of(table: object) -> dict[str, Sequence[str]]:
    """Return the columns that a `SelectedTable` selects for each new name; empty for other tables."""
    return {name: taken for name, taken in table.columns.items() if taken != [name]} if isinstance(table, SelectedTable) else {}


def in_known_order(columns: Columns | None, known: Mapping[str, Sequence[str]], names: Collection[str]) -> Columns | None:
    """Return `columns`, completed from the `known` columns that a model was trained on, for a table that has `names`.

    "*" means the known columns of an input, in their order. If `columns` is None, the known columns are used for each input that is not
    the name of a column; all other columns are kept.
    """
    missing = {name: list(taken) for name, taken in known.items() if name not in names}
    if columns is None:
        return {**{name: name for name in names}, **missing} if missing else None
    return {name: list(known[name]) if wanted == "*" and name in known else wanted for name, wanted in columns.items()}


class SelectedTable(Table):
    """Columns of another table by new names; with `narrow`, floats may be rounded to the dtype of an input.

    Raises FeedError for a missing column.
    """

    def __init__(self, table: Table, columns: Columns | None, *, narrow: bool = False):
        if columns is not None and not isinstance(columns, Mapping):
            raise ArgumentError(f'columns must map input names to columns, such as {{"x": ["width", "height"]}}, not {columns!r:.60}')
        self.table, self.rounds = table, narrow or table.rounds
        self.is_in_memory, self.numbers = table.is_in_memory, table.numbers
        if columns is None:
            self.columns, self.joined = {name: [name] for name in table.names}, set()
        else:
            named = {name: self._named(wanted) for name, wanted in columns.items() if wanted != "*"}
            taken = {column for names in named.values() for column in names}
            self.columns = {name: named.get(name, [column for column in table.names if column not in taken]) for name in columns}
            self.joined = {
                name for name, wanted in columns.items() if not isinstance(wanted, str) or wanted == "*" or wanted not in table.names
            }
        self.names = tuple(self.columns)

    def __len__(self) -> int:
        return len(self.table)

    def take(self, rows: numpy.ndarray, names: Collection[str] | None = None) -> dict[str, object]:
        """See `Table.take`."""
        return self._chosen(self.table.take(rows, self._needed(names)), names)

    def whole(self, names: Collection[str] | None = None) -> dict[str, object]:
        """See `Table.whole`."""
        return self._chosen(self.table.whole(self._needed(names)), names)

    def _needed(self, names: Collection[str] | None) -> list[str] | None:
        wanted = [name for name in self.names if names is None or name in names]
        return [column for name in wanted for column in self.columns[name]] if self.columns else None

    def _chosen(self, found: dict[str, object], wanted: Collection[str] | None) -> dict[str, object]:
        if not self.columns:  # the rows have no column names
            return found
        return {
            name: self._one(name, [found[column] for column in names])
            for name, names in self.columns.items()
            if wanted is None or name in wanted
        }

    def _named(self, wanted: str | Sequence[str]) -> list[str]:
        if isinstance(wanted, str) and wanted not in self.table.names and ":" in wanted:
            first, _, last = wanted.partition(":")
            names = list(self.table.names)
            begin = names.index(self._known(first)) if first else 0
            end = names.index(self._known(last)) if last else len(names) - 1
            return names[begin : end + 1]
        return [self._known(name) for name in ([wanted] if isinstance(wanted, str) else wanted)]

    def _known(self, name: str) -> str:
        if name not in self.table.names:
            raise FeedError(
                f'the data set has no column "{name}"',
                given=[f"it has {list_names(name, self.table.names)}"],
                hint=did_you_mean(name, self.table.names),
            )
        return name

    def _one(self, name: str, parts: list[object]) -> object:
        if name not in self.joined:
            return parts[0]
        for column, part in zip(self.columns[name], parts, strict=True):
            if not isinstance(part, numpy.ndarray) or not has_numbers(part):
                raise FeedError(f'the column "{column}" is not numeric, so it cannot be joined with others in "{name}"')
        shapes = {numpy.shape(part) for part in parts}  # type: ignore[arg-type]
        if len(shapes) > 1:
            raise FeedError(
                f'the columns of "{name}" have different shapes', given=[f"their shapes are {', '.join(map(str, sorted(shapes)))}"]
            )
        return side_by_side(parts) if parts else numpy.zeros((0, 0))  # type: ignore[arg-type]


_SHARE = 5  # one row in five is for testing


def part_of(table: Table, part: str, seed: int) -> Table:
    """Return part of a table: "train" is a random 80 % of its rows (set by `seed`), "test" the remaining 20 %, "all" the whole table."""
    if part == "all":
        return table
    order = numpy.random.default_rng(seed).permutation(len(table))
    tested = len(table) // _SHARE
    return PartOfTable(table, numpy.sort(order[:tested] if part == "test" else order[tested:]))


class PartOfTable(Table):
    """The rows `numbers`, int64[n], of another table, in this order."""

    def __init__(self, table: Table, numbers: numpy.ndarray):
        self.table, self.names = table, table.names
        self.is_in_memory, self.rounds = table.is_in_memory, table.rounds
        self.numbers = numbers if table.numbers is None else table.numbers[numbers]
        self._rows = numbers

    def __len__(self) -> int:
        return len(self._rows)

    def take(self, rows: numpy.ndarray, names: Collection[str] | None = None) -> dict[str, object]:
        """See `Table.take`."""
        return self.table.take(self._rows[rows], names)
