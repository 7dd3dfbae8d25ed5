"""Sine waves of any frequency, phase and height, of which the next value is to be told."""

import numpy

from oarlock.datasets.description import Description
from oarlock.datasets.task import cut, draws

__all__ = ["load", "split"]

DESCRIPTION = Description(
    columns={"x": "float32[n, 50, 1]", "y": "float32[n, 50, 1]"},
    rows={"train": 800, "test": 200, "all": 1000},
    source="made up",
    licence="that of Oarlock",
)


def load(rows: int = 1000, *, seed: int = 0, length: int = 50, noise: float = 0.0) -> dict[str, numpy.ndarray]:
    """So many waves: x float32[rows, length, 1], and y float32[rows, length, 1], the value after each.

    Periods are from 10 to 50 steps, heights from 0.5 to 1.5; `noise` is the deviation of what is added. Raises ArgumentError for a size
    below 1.
    """
    random = draws(seed, rows=rows, length=length)
    period, phase, height = (random.uniform(*bounds, (rows, 1)) for bounds in ((10, 50), (0, 2 * numpy.pi), (0.5, 1.5)))
    wave = height * numpy.sin(2 * numpy.pi * numpy.arange(length + 1) / period + phase) + noise * random.normal(size=(rows, length + 1))
    wave = wave.astype("float32")[:, :, None]
    return {"x": wave[:, :-1], "y": wave[:, 1:]}


def split(
    seed: int = 0, *, rows: int = 1000, length: int = 50, noise: float = 0.0
) -> tuple[dict[str, numpy.ndarray], dict[str, numpy.ndarray]]:
    """Four fifths of the rows of `load` to train on, and the rest to test on."""
    return cut(load(rows, seed=seed, length=length, noise=noise))
