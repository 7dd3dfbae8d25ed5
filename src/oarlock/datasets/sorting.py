"""Sorting: rows of integers, and the same integers in order."""

import numpy

from oarlock.datasets.description import Description
from oarlock.datasets.task import cut, draws

__all__ = ["load", "split"]

DESCRIPTION = Description(
    columns={"x": "int64[n, 8]", "y": "int64[n, 8]"},
    rows={"train": 800, "test": 200, "all": 1000},
    source="generated",
    licence="the licence of Oarlock",
)


def load(rows: int = 1000, *, seed: int = 0, length: int = 8, numbers: int = 16) -> dict[str, numpy.ndarray]:
    """Return `rows` rows of `length` integers from 0 to numbers - 1: x int64[rows, length] unsorted, y int64[rows, length] sorted.

    Raises ArgumentError for a size below 1.
    """
    x = draws(seed, rows=rows, length=length, numbers=numbers).integers(0, numbers, (rows, length))
    return {"x": x, "y": numpy.sort(x, axis=1)}


def split(
    seed: int = 0, *, rows: int = 1000, length: int = 8, numbers: int = 16
) -> tuple[dict[str, numpy.ndarray], dict[str, numpy.ndarray]]:
    """Return the first 80 % of the rows of `load` for training, and the rest for testing."""
    return cut(load(rows, seed=seed, length=length, numbers=numbers))
