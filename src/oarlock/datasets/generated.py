"""Tasks generated from a seed: copying, addition, sorting, moons, spirals and waves."""

import numpy

from oarlock.datasets.data_set import Description, GeneratedDataSet, Rows
from oarlock.datasets.text import Vocabulary
from oarlock.registry.range_check import require_count

__all__ = ["addition", "copying", "moons", "sorting", "spirals", "waves"]

_LICENCE = "the licence of Oarlock"
_ROWS = {"train": 800, "test": 200, "all": 1000}


class Copying(GeneratedDataSet):
    """Copying: symbols are to be repeated after a delay, a test of memory (Arjovsky, Shah and Bengio, 2016)."""

    name = "copying"
    DESCRIPTION = Description(
        columns={"x": "int64[n, 40]", "y": "int64[n, 40]"},
        rows=_ROWS,
        source="generated; the task is from M. Arjovsky, A. Shah and Y. Bengio, 2016: arXiv:1511.06464",
        licence=_LICENCE,
    )

    def load(self, rows: int = 1000, *, seed: int = 0, length: int = 10, delay: int = 20, symbols: int = 8) -> Rows:
        """Return `rows` sequences: x and y, both int64[rows, t], where t is 2 * length + delay.

        x contains `length` symbols, from 2 to symbols + 1, then `delay` blanks, 0, the last of which is the cue 1, then `length` blanks. y
        contains blanks, followed by the symbols. Raises ArgumentError for a size below 1.
        """
        random = self._random(seed, rows=rows, length=length, delay=delay, symbols=symbols)
        blank, cue, first = 0, 1, 2
        message = random.integers(first, first + symbols, (rows, length))
        x, y = numpy.full((2, rows, 2 * length + delay), blank)
        x[:, :length], y[:, -length:] = message, message
        x[:, length + delay - 1] = cue
        return {"x": x, "y": y}


class Addition(GeneratedDataSet):
    """Addition: sequence-to-sequence sums of numbers written in digits, "012+345" and "0357"."""

    name = "addition"
    DESCRIPTION = Description(
        columns={"x": "int64[n, 7]", "y": "int64[n, 4]"},
        rows=_ROWS,
        source="generated; the task is from W. Zaremba and I. Sutskever, 2014: arXiv:1410.4615",
        licence=_LICENCE,
    )
    vocabulary = Vocabulary("0123456789+")
    """The digits, numbered by their values, and the plus sign."""

    def load(self, rows: int = 1000, *, seed: int = 0, digits: int = 3) -> Rows:
        """Return `rows` sums of two numbers of `digits` digits: x int64[rows, 2 * digits + 1], y int64[rows, digits + 1].

        Numbers have leading zeros. `vocabulary.decode` converts them to text. Raises ArgumentError for a size below 1, or for more than 18
        digits, the limit of int64.
        """
        require_count("digits", digits, most=18)
        terms = self._random(seed, rows=rows, digits=digits).integers(0, 10**digits, (2, rows))
        sign = numpy.full((rows, 1), len(self.vocabulary) - 1)
        return {
            "x": numpy.concatenate([_to_digits(terms[0], digits), sign, _to_digits(terms[1], digits)], 1),
            "y": _to_digits(terms.sum(0), digits + 1),
        }


def _to_digits(numbers: numpy.ndarray, digits: int) -> numpy.ndarray:
    """Return the digits of numbers, int64[n digits], most significant first."""
    return numbers[:, None] // 10 ** numpy.arange(digits - 1, -1, -1) % 10


class Sorting(GeneratedDataSet):
    """Sorting: rows of integers, and the same integers in order."""

    name = "sorting"
    DESCRIPTION = Description(
        columns={"x": "int64[n, 8]", "y": "int64[n, 8]"},
        rows=_ROWS,
        source="generated",
        licence=_LICENCE,
    )

    def load(self, rows: int = 1000, *, seed: int = 0, length: int = 8, numbers: int = 16) -> Rows:
        """Return `rows` rows of `length` integers from 0 to numbers - 1: x int64[rows, length] unsorted, y int64[rows, length] sorted.

        Raises ArgumentError for a size below 1.
        """
        x = self._random(seed, rows=rows, length=length, numbers=numbers).integers(0, numbers, (rows, length))
        return {"x": x, "y": numpy.sort(x, axis=1)}


class Moons(GeneratedDataSet):
    """Two moons: points of two interleaved half circles, which no line separates."""

    name = "moons"
    DESCRIPTION = Description(
        columns={"x": "float32[n, 2]", "label": "int64[n]"},
        rows=_ROWS,
        classes=("upper", "lower"),
        source="generated",
        licence=_LICENCE,
    )

    def load(self, rows: int = 1000, *, seed: int = 0, noise: float = 0.1) -> Rows:
        """Return `rows` points: x float32[rows, 2], label int64[rows], 0 on the upper moon and 1 on the lower, with equal probability.

        The half circles have radius 1 and centers (0, 0) and (1, 0.5); `noise` is the standard deviation of the added noise. Raises
        ArgumentError for rows below 1.
        """
        random = self._random(seed, rows=rows)
        label, angle = random.integers(0, 2, rows), random.uniform(0, numpy.pi, rows)
        side = 1 - 2 * label
        x = numpy.stack([label + side * numpy.cos(angle), 0.5 * label + side * numpy.sin(angle)], 1) + noise * random.normal(size=(rows, 2))
        return {"x": x.astype("float32"), "label": label}


class Spirals(GeneratedDataSet):
    """Spirals: points on intertwined spiral arms, with a harder boundary than two moons."""

    name = "spirals"
    DESCRIPTION = Description(
        columns={"x": "float32[n, 2]", "label": "int64[n]"},
        rows=_ROWS,
        classes=("arm 0", "arm 1", "arm 2"),
        source="generated",
        licence=_LICENCE,
    )

    def load(self, rows: int = 1000, *, seed: int = 0, arms: int = 3, turns: float = 0.75, noise: float = 0.03) -> Rows:
        """Return `rows` points: x float32[rows, 2] within about 1 of the center, label int64[rows], the number of the arm.

        Each arm makes `turns` turns from center to end; `noise` is the standard deviation of the added noise. Raises ArgumentError for a
        size below 1.
        """
        random = self._random(seed, rows=rows, arms=arms)
        label, radius = random.integers(0, arms, rows), random.uniform(0.05, 1, rows)
        angle = 2 * numpy.pi * (turns * radius + label / arms)
        x = radius[:, None] * numpy.stack([numpy.cos(angle), numpy.sin(angle)], 1) + noise * random.normal(size=(rows, 2))
        return {"x": x.astype("float32"), "label": label}


class Waves(GeneratedDataSet):
    """Sine waves of random frequency, phase and height; the task is to predict the next value."""

    name = "waves"
    DESCRIPTION = Description(
        columns={"x": "float32[n, 50, 1]", "y": "float32[n, 50, 1]"},
        rows=_ROWS,
        source="generated",
        licence=_LICENCE,
    )

    def load(self, rows: int = 1000, *, seed: int = 0, length: int = 50, noise: float = 0.0) -> Rows:
        """Return `rows` waves: x float32[rows, length, 1], and y float32[rows, length, 1], the following value of each.

        Periods are from 10 to 50 steps, heights from 0.5 to 1.5; `noise` is the standard deviation of the added noise. Raises ArgumentError
        for a size below 1.
        """
        random = self._random(seed, rows=rows, length=length)
        period, phase, height = (random.uniform(*bounds, (rows, 1)) for bounds in ((10, 50), (0, 2 * numpy.pi), (0.5, 1.5)))
        wave = height * numpy.sin(2 * numpy.pi * numpy.arange(length + 1) / period + phase) + noise * random.normal(size=(rows, length + 1))
        wave = wave.astype("float32")[:, :, None]
        return {"x": wave[:, :-1], "y": wave[:, 1:]}


copying, addition, sorting, moons, spirals, waves = Copying(), Addition(), Sorting(), Moons(), Spirals(), Waves()
