"""Sine waves of random frequency, phase and height; the task is to predict the next value."""

import numpy

from oarlock.datasets.description import Description
from oarlock.datasets.task import cut, draws

__all__ = ["load", "split"]

DESCRIPTION = Description(
    columns={"x": "float32[n, 50, 1]", "y": "float32[n, 50, 1]"},
    rows={"train": 800, "test": 200, "all": 1000},
    source="generated",
    licence="the licence of Oarlock",
)


def load(rows: int = 1000, *, seed: int = 0, length: int = 50, noise: float = 0.0) -> dict[str, numpy.ndarray]:
    """Return `rows` waves: x float32[rows, length, 1], and y float32[rows, length, 1], the following value of each.

    Periods are from 10 to 50 steps, heights from 0.5 to 1.5; `noise` is the standard deviation of the added noise. Raises ArgumentError for
    a size below 1.
    """
    random = draws(seed, rows=rows, length=length)
    period, phase, height = (random.uniform(*bounds, (rows, 1)) for bounds in ((10, 50), (0, 2 * numpy.pi), (0.5, 1.5)))
    wave = height * numpy.sin(2 * numpy.pi * numpy.arange(length + 1) / period + phase) + noise * random.normal(size=(rows, length + 1))
    wave = wave.astype("float32")[:, :, None]
    return {"x": wave[:, :-1], "y": wave[:, 1:]}


def split(
    seed: int = 0, *, rows: int = 1000, length: int = 50, noise: float = 0.0
) -> tuple[dict[str, numpy.ndarray], dict[str, numpy.ndarray]]:
    """Return the first 80 % of the rows of `load` for training, and the rest for testing."""
    return cut(load(rows, seed=seed, length=length, noise=noise))
