"""Sorting: rows of whole numbers, and the same in order."""

import numpy

from oarlock.datasets.description import Description
from oarlock.datasets.task import cut, draws

__all__ = ["load", "split"]

DESCRIPTION = Description(
    columns={"x": "int64[n, 8]", "y": "int64[n, 8]"},
    rows={"train": 800, "test": 200, "all": 1000},
    source="made up",
    licence="that of Oarlock",
)


def load(rows: int = 1000, *, seed: int = 0, length: int = 8, numbers: int = 16) -> dict[str, numpy.ndarray]:
    """So many rows of `length` numbers from 0 to numbers - 1: x int64[rows, length] as they come, y int64[rows, length] in rising order.

    Raises ArgumentError for a size below 1.
    """
    x = draws(seed, rows=rows, length=length, numbers=numbers).integers(0, numbers, (rows, length))
    return {"x": x, "y": numpy.sort(x, axis=1)}


def split(
    seed: int = 0, *, rows: int = 1000, length: int = 8, numbers: int = 16
) -> tuple[dict[str, numpy.ndarray], dict[str, numpy.ndarray]]:
    """Four fifths of the rows of `load` to train on, and the rest to test on."""
    return cut(load(rows, seed=seed, length=length, numbers=numbers))
