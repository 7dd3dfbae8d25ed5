"""Addition: sequence-to-sequence sums of numbers written in digits, "012+345" and "0357"."""

import numpy

from oarlock.datasets.description import Description
from oarlock.datasets.task import cut, draws
from oarlock.datasets.text import Vocabulary
from oarlock.registry.range_check import require_count

__all__ = ["load", "split", "vocabulary"]

DESCRIPTION = Description(
    columns={"x": "int64[n, 7]", "y": "int64[n, 4]"},
    rows={"train": 800, "test": 200, "all": 1000},
    source="generated; the task is from W. Zaremba and I. Sutskever, 2014: arXiv:1410.4615",
    licence="the licence of Oarlock",
)

vocabulary = Vocabulary("0123456789+")
"""The digits, numbered by their values, and the plus sign."""

_MOST_DIGITS = 18  # of int64


def load(rows: int = 1000, *, seed: int = 0, digits: int = 3) -> dict[str, numpy.ndarray]:
    """Return `rows` sums of two numbers of `digits` digits, with leading zeros: x int64[rows, 2 * digits + 1], y int64[rows, digits + 1].

    `vocabulary.decode` converts them to text. Raises ArgumentError for a size below 1, or for more than 18 digits.
    """
    require_count("digits", digits, most=_MOST_DIGITS)
    terms = draws(seed, rows=rows, digits=digits).integers(0, 10**digits, (2, rows))
    sign = numpy.full((rows, 1), len(vocabulary) - 1)
    return {
        "x": numpy.concatenate([_to_digits(terms[0], digits), sign, _to_digits(terms[1], digits)], 1),
        "y": _to_digits(terms.sum(0), digits + 1),
    }


def split(seed: int = 0, *, rows: int = 1000, digits: int = 3) -> tuple[dict[str, numpy.ndarray], dict[str, numpy.ndarray]]:
    """Return the first 80 % of the rows of `load` for training, and the rest for testing."""
    return cut(load(rows, seed=seed, digits=digits))


def _to_digits(numbers: numpy.ndarray, digits: int) -> numpy.ndarray:
    """Return the digits of numbers, int64[n digits], most significant first."""
    return numbers[:, None] // 10 ** numpy.arange(digits - 1, -1, -1) % 10
