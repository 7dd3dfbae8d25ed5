"""Spirals: points on intertwined spiral arms, with a harder boundary than two moons."""

import numpy

from oarlock.datasets.description import Description
from oarlock.datasets.task import cut, draws

__all__ = ["load", "split"]

DESCRIPTION = Description(
    columns={"x": "float32[n, 2]", "label": "int64[n]"},
    rows={"train": 800, "test": 200, "all": 1000},
    classes=("arm 0", "arm 1", "arm 2"),
    source="generated",
    licence="the licence of Oarlock",
)


def load(rows: int = 1000, *, seed: int = 0, arms: int = 3, turns: float = 0.75, noise: float = 0.03) -> dict[str, numpy.ndarray]:
    """Return `rows` points: x float32[rows, 2] within about 1 of the center, label int64[rows], the number of the arm.

    Each arm makes `turns` turns from center to end; `noise` is the standard deviation of the added noise. Raises ArgumentError for a size
    below 1.
    """
    random = draws(seed, rows=rows, arms=arms)
    label, radius = random.integers(0, arms, rows), random.uniform(0.05, 1, rows)
    angle = 2 * numpy.pi * (turns * radius + label / arms)
    x = radius[:, None] * numpy.stack([numpy.cos(angle), numpy.sin(angle)], 1) + noise * random.normal(size=(rows, 2))
    return {"x": x.astype("float32"), "label": label}


def split(
    seed: int = 0, *, rows: int = 1000, arms: int = 3, turns: float = 0.75, noise: float = 0.03
) -> tuple[dict[str, numpy.ndarray], dict[str, numpy.ndarray]]:
    """Return the first 80 % of the rows of `load` for training, and the rest for testing."""
    return cut(load(rows, seed=seed, arms=arms, turns=turns, noise=noise))
