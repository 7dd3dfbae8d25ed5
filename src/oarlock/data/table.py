"""Table: rows that are read by their numbers, in any order."""

from abc import ABC, abstractmethod
from collections.abc import Mapping

import numpy

from oarlock.runtime.ragged import Ragged

__all__ = ["ColumnTable", "Table"]


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

    @abstractmethod
    def __len__(self) -> int:
        """The number of rows."""

    @abstractmethod
    def take(self, rows: numpy.ndarray) -> dict[str, object]:
        """The rows of these numbers, int64[n], in this order: an array, a `Ragged` or a list of n values for each column."""

    def whole(self) -> dict[str, object]:
        """All rows, as they stand."""
        return self.take(numpy.arange(len(self)))


class ColumnTable(Table):
    """Columns in memory: arrays, rows first, and ragged values, all of one number of rows."""

    is_in_memory = True

    def __init__(self, columns: Mapping[str, numpy.ndarray | Ragged], *, rounds: bool = False):
        self.columns, self.rounds = dict(columns), rounds
        self.names = tuple(self.columns)

    def __len__(self) -> int:
        return len(next(iter(self.columns.values()))) if self.columns else 0

    def take(self, rows: numpy.ndarray) -> dict[str, object]:
        """See `Table.take`."""
        return {name: column[rows] for name, column in self.columns.items()}

    def whole(self) -> dict[str, object]:
        """See `Table.whole`; nothing is copied."""
        return dict(self.columns)
