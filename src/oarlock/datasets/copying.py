"""Copying: symbols are to be said again after a delay, a task that only memory solves (Arjovsky, Shah and Bengio, 2016)."""

import numpy

from oarlock.datasets.description import Description
from oarlock.datasets.task import cut, draws

__all__ = ["load", "split"]

DESCRIPTION = Description(
    columns={"x": "int64[n, 40]", "y": "int64[n, 40]"},
    rows={"train": 800, "test": 200, "all": 1000},
    source="made up; the task is that of M. Arjovsky, A. Shah and Y. Bengio, 2016: arXiv:1511.06464",
    licence="that of Oarlock",
)
_BLANK, _NOW, _FIRST = 0, 1, 2


def load(rows: int = 1000, *, seed: int = 0, length: int = 10, delay: int = 20, symbols: int = 8) -> dict[str, numpy.ndarray]:
    """So many rows: x and y, both int64[rows, t], where t is 2 * length + delay.

    In x stand `length` symbols, from 2 to symbols + 1, then `delay` blanks, 0, of which the last is a sign, 1, then `length` blanks. In y
    stand blanks, and at the end the symbols. Raises ArgumentError for a size below 1.
    """
    random = draws(seed, rows=rows, length=length, delay=delay, symbols=symbols)
    said = random.integers(_FIRST, _FIRST + symbols, (rows, length))
    x, y = numpy.full((2, rows, 2 * length + delay), _BLANK)
    x[:, :length], y[:, -length:] = said, said
    x[:, length + delay - 1] = _NOW
    return {"x": x, "y": y}


def split(
    seed: int = 0, *, rows: int = 1000, length: int = 10, delay: int = 20, symbols: int = 8
) -> tuple[dict[str, numpy.ndarray], dict[str, numpy.ndarray]]:
    """Four fifths of the rows of `load` to train on, and the rest to test on."""
    return cut(load(rows, seed=seed, length=length, delay=delay, symbols=symbols))
