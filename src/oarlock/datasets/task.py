"""Parts that made-up tasks share: the numbers that they are drawn from, and rows divided in two."""

from collections.abc import Mapping

import numpy

from oarlock.registry.range_check import require_count

__all__ = ["cut", "draws"]


def draws(seed: int, **sizes: int) -> numpy.random.Generator:
    """Random numbers that follow from `seed`. Raises ArgumentError where one of `sizes` is below 1."""
    for name, size in sizes.items():
        require_count(name, size)
    return numpy.random.default_rng(seed % 2**64)


def cut(data: Mapping[str, numpy.ndarray]) -> tuple[dict[str, numpy.ndarray], dict[str, numpy.ndarray]]:
    """The first four fifths of the rows, and the rest: one row was drawn like another."""
    place = len(next(iter(data.values()))) * 4 // 5
    return {name: column[:place] for name, column in data.items()}, {name: column[place:] for name, column in data.items()}
