"""Parts of a tensor that workers have, one after another along an axis."""

from collections.abc import Sequence
from typing import Literal

__all__ = ["Reduction", "bounds_of"]

Reduction = Literal["sum", "max", "min"]


def bounds_of(counts: Sequence[int], index: int) -> tuple[int, int]:
    """Where the part of worker `index` begins and ends, where `counts` says how much each worker has."""
    start = sum(counts[:index])
    return start, start + counts[index]
