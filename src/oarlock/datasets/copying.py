"""Copying: symbols are to be repeated after a delay, a test of memory (Arjovsky, Shah and Bengio, 2016)."""

import numpy

from oarlock.datasets.description import Description
from oarlock.datasets.task import cut, draws

__all__ = ["load", "split"]

DESCRIPTION = Description(
    columns={"x": "int64[n, 40]", "y": "int64[n, 40]"},
    rows={"train": 800, "test": 200, "all": 1000},
    source="generated; the task is from M. Arjovsky, A. Shah and Y. Bengio, 2016: arXiv:1511.06464",
    licence="the licence of Oarlock",
)
_BLANK, _CUE, _FIRST = 0, 1, 2


def load(rows: int = 1000, *, seed: int = 0, length: int = 10, delay: int = 20, symbols: int = 8) -> dict[str, numpy.ndarray]:
    """Return `rows` sequences: x and y, both int64[rows, t], where t is 2 * length + delay.

    x contains `length` symbols, from 2 to symbols + 1, then `delay` blanks, 0, the last of which is the cue 1, then `length` blanks. y
    contains blanks, followed by the symbols. Raises ArgumentError for a size below 1.
    """
    random = draws(seed, rows=rows, length=length, delay=delay, symbols=symbols)
    message = random.integers(_FIRST, _FIRST + symbols, (rows, length))
    x, y = numpy.full((2, rows, 2 * length + delay), _BLANK)
    x[:, :length], y[:, -length:] = message, message
    x[:, length + delay - 1] = _CUE
    return {"x": x, "y": y}


def split(
    seed: int = 0, *, rows: int = 1000, length: int = 10, delay: int = 20, symbols: int = 8
) -> tuple[dict[str, numpy.ndarray], dict[str, numpy.ndarray]]:
    """Return the first 80 % of the rows of `load` for training, and the rest for testing."""
    return cut(load(rows, seed=seed, length=length, delay=delay, symbols=symbols))
