"""Table: rows that are read by their numbers, in any order."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence

import numpy

from oarlock.errors import FeedError
from oarlock.runtime.ragged import Ragged

__all__ = ["ColumnTable", "LazyTable", "Table"]


class Table(ABC):
    """Rows with named columns. A subclass says how many there are, what its columns are called, and reads some of the rows.

    The order in which a run reads the rows is its own, so it can be taken up at any of them.
    """

    names: tuple[str, ...]
    """The columns."""

    is_in_memory = False
    """Whether reading rows costs no more than copying them."""

    rounds = False
    """Whether its numbers are rounded to the dtype of an input: those of text have no dtype of their own."""

    numbers: numpy.ndarray | None = None
    """The numbers that its rows have where it is part of another table, int64[n]: those are what errors name. None where it is whole."""

    @abstractmethod
    def __len__(self) -> int:
        """The number of rows."""

    @abstractmethod
    def take(self, rows: numpy.ndarray, names: Collection[str] | None = None) -> dict[str, object]:
        """The rows of these numbers, int64[n], in this order: an array, a `Ragged` or a list of n values for each column.

        Columns that are not among `names` may be left out.
        """

    def whole(self, names: Collection[str] | None = None) -> dict[str, object]:
        """All rows, as they stand; as `take`."""
        return self.take(numpy.arange(len(self)), names)


class ColumnTable(Table):
    """Columns in memory: arrays, rows first, and ragged values, all of one number of rows."""

    is_in_memory = True

    def __init__(self, columns: Mapping[str, numpy.ndarray | Ragged], *, rounds: bool = False):
        self.columns, self.rounds = dict(columns), rounds
        self.names = tuple(self.columns)

    def __len__(self) -> int:
        first = next(iter(self.columns.values()), None)
        return len(first) if isinstance(first, Ragged) or (first is not None and first.ndim) else 0

    def take(self, rows: numpy.ndarray, names: Collection[str] | None = None) -> dict[str, object]:
        """See `Table.take`."""
        return {name: column[rows] for name, column in self.whole(names).items()}  # type: ignore[index]

    def whole(self, names: Collection[str] | None = None) -> dict[str, object]:
        """See `Table.whole`; nothing is copied."""
        return {name: self.column(name) for name in self.names if names is None or name in names}

    def column(self, name: str) -> "numpy.ndarray | Ragged":
        """A column, whole."""
        return self.columns[name]


class LazyTable(ColumnTable):
    """Columns in memory that are converted when they are first read, so that nobody hears of one that is not."""

    def __init__(self, names: Sequence[str], count: int, read: "Callable[[str], numpy.ndarray | Ragged]", *, rounds: bool = False):
        if len(set(names)) < len(names):
            raise FeedError(f'two columns are called "{next(name for name in names if list(names).count(name) > 1)}"')
        super().__init__({}, rounds=rounds)
        self.names, self.count, self.read = tuple(names), count, read

    def __len__(self) -> int:
        return self.count

    def column(self, name: str) -> "numpy.ndarray | Ragged":
        """A column, whole. Raises what its conversion raises."""
        if name not in self.columns:
            self.columns[name] = self.read(name)
        return self.columns[name]
