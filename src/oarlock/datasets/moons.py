"""Two moons: points of two interleaved half circles, which no line separates."""

import numpy

from oarlock.datasets.description import Description
from oarlock.datasets.task import cut, draws

__all__ = ["load", "split"]

DESCRIPTION = Description(
    columns={"x": "float32[n, 2]", "label": "int64[n]"},
    rows={"train": 800, "test": 200, "all": 1000},
    classes=("upper", "lower"),
    source="generated",
    licence="the licence of Oarlock",
)


def load(rows: int = 1000, *, seed: int = 0, noise: float = 0.1) -> dict[str, numpy.ndarray]:
    """Return `rows` points: x float32[rows, 2], label int64[rows], 0 on the upper moon and 1 on the lower, with equal probability.

    The half circles have radius 1 and centers (0, 0) and (1, 0.5); `noise` is the standard deviation of the added noise. Raises
    ArgumentError for rows below 1.
    """
    random = draws(seed, rows=rows)
    label, angle = random.integers(0, 2, rows), random.uniform(0, numpy.pi, rows)
    side = 1 - 2 * label
    x = numpy.stack([label + side * numpy.cos(angle), 0.5 * label + side * numpy.sin(angle)], 1) + noise * random.normal(size=(rows, 2))
    return {"x": x.astype("float32"), "label": label}


def split(seed: int = 0, *, rows: int = 1000, noise: float = 0.1) -> tuple[dict[str, numpy.ndarray], dict[str, numpy.ndarray]]:
    """Return the first 80 % of the rows of `load` for training, and the rest for testing."""
    return cut(load(rows, seed=seed, noise=noise))
