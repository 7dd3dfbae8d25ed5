"""Parts of a table: the rows for training or for testing."""

from collections.abc import Collection

import numpy

from oarlock.data.table import Table

__all__ = ["PartOfTable", "part_of"]

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
