"""Tables: rows that can be read by number, in any order."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence

import numpy

from oarlock.errors import FeedError
from oarlock.runtime.ragged import Ragged

__all__ = ["ColumnTable", "LazyTable", "Table"]


class Table(ABC):
    """Rows with named columns. A subclass defines the number of rows and the names of columns, and reads rows by number.

    A run chooses the order of rows itself, so it can resume at any row.
    """

    names: tuple[str, ...]
    """The names of the columns."""

    is_in_memory = False
    """Whether the rows are in memory, so that reading only copies them."""

    rounds = False
    """Whether floats may be rounded to the dtype of an input, as for text files, whose numbers have no dtype."""

    numbers: numpy.ndarray | None = None
    """For part of another table, the row numbers there, int64[n], for error messages. None for a whole table."""

    @abstractmethod
    def __len__(self) -> int:
        """Return the number of rows."""

    @abstractmethod
    def take(self, rows: numpy.ndarray, names: Collection[str] | None = None) -> dict[str, object]:
        """Return the `rows`, int64[n], in this order: for each column an array, a `Ragged` or a list of n values.

        Columns that are not in `names` may be omitted.
        """

    def whole(self, names: Collection[str] | None = None) -> dict[str, object]:
        """Return all rows in their own order, like `take`."""
        return self.take(numpy.arange(len(self)), names)


class ColumnTable(Table):
    """Columns in memory, arrays with the rows on the first axis or ragged values, with equal numbers of rows."""

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
        """See `Table.whole`. The result shares memory with the columns."""
        return {name: self.column(name) for name in self.names if names is None or name in names}

    def column(self, name: str) -> "numpy.ndarray | Ragged":
        """Return a whole column."""
        return self.columns[name]


class LazyTable(ColumnTable):
    """Columns in memory that are converted when they are first read, so that unused columns cannot cause errors."""

    def __init__(self, names: Sequence[str], count: int, read: "Callable[[str], numpy.ndarray | Ragged]", *, rounds: bool = False):
        if len(set(names)) < len(names):
            raise FeedError(f'two columns are called "{next(name for name in names if list(names).count(name) > 1)}"')
        super().__init__({}, rounds=rounds)
        self.names, self.count, self.read = tuple(names), count, read

    def __len__(self) -> int:
        return self.count

    def column(self, name: str) -> "numpy.ndarray | Ragged":
        """Return a whole column. Raises the errors of its conversion."""
        if name not in self.columns:
            self.columns[name] = self.read(name)
        return self.columns[name]
