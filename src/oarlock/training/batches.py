"""Rows into minibatches, in an order that the seed and the epoch tell."""

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy
import torch

from oarlock.errors import ArgumentError, FeedError, OarlockError
from oarlock.ir.dtype import DType
from oarlock.ir.program import Program
from oarlock.ir.size import names_in
from oarlock.ir.var import Var
from oarlock.runtime import random
from oarlock.runtime.ragged import Ragged
from oarlock.runtime.ragged_feed import as_ragged
from oarlock.runtime.value import describe_value, find_dense_form, read_as, to_numpy

__all__ = ["Batches", "rows_of"]


@dataclass(frozen=True)
class Batches:
    """A dict of arrays and of ragged values, cut into minibatches; the last of an epoch may be smaller.

    Which rows make up a batch depends on the seed, the epoch and the batch size alone, so a run can be taken
    up at any step.
    """

    arrays: dict[str, numpy.ndarray | Ragged]
    batch_size: int
    seed: int

    @classmethod
    def of(cls, data: Mapping[str, object], program: Program, batch_size: int) -> "Batches":
        """The columns of `data` that `program` is fed. Raises FeedError where one is missing, or rows differ or are none."""
        if not isinstance(data, Mapping):
            raise ArgumentError(f"a data set is a dict of arrays, not {type(data).__name__}")
        every = program.ragged_inputs()
        ragged = {var: levels for var, levels in every.items() if var.name in data}
        cuts = {splits for levels in ragged.values() for splits in levels}
        arrays = {var.name: _column(var, ragged.get(var, []), data) for var in program.main.inputs if var.name in data and var not in cuts}
        rows = {name: len(array) if isinstance(array, Ragged) or array.ndim else 0 for name, array in arrays.items()}
        given = [f'"{name}" has {count} rows' for name, count in rows.items()]
        if len(set(rows.values())) > 1:
            raise FeedError("the arrays of the data set have different numbers of rows", given=given)
        fed = [var for var in program.main.inputs if var.name in arrays or var in cuts]
        symbols = {name for var in fed for size in (var.shape or ())[:1] for name in names_in(size)}
        missing = [var for var in program.main.inputs if var not in fed and not _stands_alone(var, symbols)]
        if missing:
            lacks = next((var for var, levels in every.items() if missing[0] in levels), missing[0])
            raise FeedError(
                f'the data set has no "{lacks.name}"',
                location=lacks.location,
                given=[f"it has {', '.join(map(str, data)) or 'nothing'}"],
                hint="rows are shuffled together, and the value that it carries would not be: put it into the data set"
                if lacks.initializer
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

    def batch(self, order: numpy.ndarray, number: int) -> "dict[str, numpy.ndarray | Ragged]":
        """Minibatch `number`, from 0, of an epoch in `order`."""
        chosen = order[number * self.batch_size : (number + 1) * self.batch_size]
        return {name: array[chosen] for name, array in self.arrays.items()}


def rows_of(feed: Mapping[str, numpy.ndarray | Ragged]) -> int:
    """How many rows a minibatch has; 1, of equal weight, where the inputs carry their values."""
    return len(next(iter(feed.values()))) if feed else 1


def _column(var: Var, levels: list[Var], data: Mapping[str, object]) -> numpy.ndarray | Ragged:
    """The rows of an input. The elements of a ragged one and its row splits may stand apart."""
    value = data[var.name]
    if isinstance(value, Ragged) and not levels:
        return value  # which feeding refuses
    if not levels:
        return _read(var, value)
    if not isinstance(value, Ragged) and all(splits.name in data for splits in levels):
        value = Ragged(value, tuple(data[splits.name] for splits in levels))  # type: ignore[arg-type]
    return as_ragged(var, value, len(levels))


def _read(var: Var, value: object) -> numpy.ndarray:
    """An array; lists of Python's numbers in the declared dtype, as a feed takes them. Raises FeedError."""
    if isinstance(value, torch.Tensor) and (form := find_dense_form(value)) is not None:
        raise FeedError(
            f'"{var.name}" must be {var.type_text}, not {describe_value(value)}',
            location=var.location,
            hint=f"dense tensors are computed with: {form}",
        )
    first = value
    while isinstance(first, list | tuple) and first:
        first = first[0]
    if not isinstance(first, bool | int | float) or var.dtype is DType.BFLOAT16:  # which NumPy lacks
        return numpy.asarray(value)
    try:
        return to_numpy(read_as(value, var.dtype))
    except OarlockError as error:
        raise FeedError(f'"{var.name}": {error.message}', location=var.location) from None


def _stands_alone(var: Var, symbols: set[str]) -> bool:
    """Whether an input may keep the value that it carries, while the rows of the inputs led by `symbols` are shuffled."""
    leading = var.shape[0] if var.shape else 0
    return var.initializer is not None and not names_in(leading) & symbols
