"""Some of the rows of a table: those to train on, or those to test on."""

from collections.abc import Collection

import numpy

from oarlock.data.table import Table

__all__ = ["PartOfTable", "part_of"]

_SHARE = 5  # every fifth row is tested on


def part_of(table: Table, part: str, seed: int) -> Table:
    """The rows of a table that are drawn by `seed` to "train" on, four fifths of them, or to "test" on, the others; "all" are the table."""
    if part == "all":
        return table
    order = numpy.random.default_rng(seed).permutation(len(table))
    tested = len(table) // _SHARE
    return PartOfTable(table, numpy.sort(order[:tested] if part == "test" else order[tested:]))


class PartOfTable(Table):
    """The rows of another table with these numbers, int64[n], in this order."""

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
