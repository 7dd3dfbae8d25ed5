"""Rows into minibatches, in an order that the seed and the epoch tell."""

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy

from oarlock.errors import ArgumentError, FeedError
from oarlock.ir.program import Program
from oarlock.ir.size import Size
from oarlock.ir.variable import Var
from oarlock.runtime import random

__all__ = ["Batches"]


@dataclass(frozen=True)
class Batches:
    """A dict of arrays, cut into minibatches; the last of an epoch may be smaller.

    Which rows make up a batch depends on the seed, the epoch and the batch size alone, so a run can be taken
    up at any step.
    """

    arrays: dict[str, numpy.ndarray]
    batch_size: int
    seed: int

    @classmethod
    def of(cls, data: Mapping[str, object], program: Program, batch_size: int) -> "Batches":
        """The arrays of `data` that `program` is fed. Raises FeedError where one is missing, or rows differ or are none."""
        if not isinstance(data, Mapping):
            raise ArgumentError(f"a data set is a dict of arrays, not {type(data).__name__}")
        arrays = {var.name: numpy.asarray(data[var.name]) for var in program.main.inputs if var.name in data}
        rows = {name: len(array) if array.ndim else 0 for name, array in arrays.items()}
        given = [f'"{name}" has {count} rows' for name, count in rows.items()]
        if len(set(rows.values())) > 1:
            raise FeedError("the arrays of the data set have different numbers of rows", given=given)
        symbols = {size for var in program.main.inputs if var.name in arrays for size in (var.shape or ())[:1]}
        missing = [var for var in program.main.inputs if var.name not in arrays and not _stands_alone(var, symbols)]
        if missing:
            raise FeedError(
                f'the data set has no "{missing[0].name}"',
                location=missing[0].location,
                given=[f"it has {', '.join(map(str, data)) or 'nothing'}"],
                hint="rows are shuffled together, and the value that it carries would not be: put it into the data set"
                if missing[0].initializer
                else None,
            )
        if 0 in rows.values():
            raise FeedError("the data set has no rows", given=given)
        return cls(arrays, batch_size, program.seed)

    @property
    def rows(self) -> int:
        return len(next(iter(self.arrays.values()))) if self.arrays else 1

    @property
    def per_epoch(self) -> int:
        """Minibatches in one pass over the data."""
        return math.ceil(self.rows / self.batch_size)

    def order(self, epoch: int) -> numpy.ndarray:
        """The rows in the order of this epoch, from 0: int64[rows]."""
        keys = random.uniform((self.rows,), random.key_of(self.seed, "order", epoch)).numpy()
        return numpy.argsort(keys, kind="stable")

    def batch(self, order: numpy.ndarray, number: int) -> dict[str, numpy.ndarray]:
        """Minibatch `number`, from 0, of an epoch in `order`."""
        chosen = order[number * self.batch_size : (number + 1) * self.batch_size]
        return {name: array[chosen] for name, array in self.arrays.items()}


def _stands_alone(var: Var, symbols: set[Size]) -> bool:
    """Whether an input may keep the value that it carries, while the rows of the inputs led by `symbols` are shuffled."""
    leading = var.shape[0] if var.shape else None
    return var.initializer is not None and not (isinstance(leading, str) and leading in symbols)
