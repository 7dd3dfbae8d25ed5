"""Helpers of generated tasks: random numbers, and splits of rows."""

from collections.abc import Mapping

import numpy

from oarlock.registry.range_check import require_count

__all__ = ["cut", "draws"]


def draws(seed: int, **sizes: int) -> numpy.random.Generator:
    """Return a random generator for `seed`. Raises ArgumentError if one of `sizes` is below 1."""
    for name, size in sizes.items():
        require_count(name, size)
    return numpy.random.default_rng(seed % 2**64)


def cut(data: Mapping[str, numpy.ndarray]) -> tuple[dict[str, numpy.ndarray], dict[str, numpy.ndarray]]:
    """Return the first 80 % of the rows, and the rest, for rows drawn independently."""
    place = len(next(iter(data.values()))) * 4 // 5
    return {name: column[:place] for name, column in data.items()}, {name: column[place:] for name, column in data.items()}
