"""Row splits: where the elements of sequences, one sequence after another, are cut. `int64[n+1]` cut n sequences.

They are values, so anyone's: what a kernel is told by them is checked here first. PyTorch writes `torch.repeat_interleave` wherever
lengths say, and differences of int64 wrap around: those of [0, 2**63 - 1, -2**63, -1, 2] are all positive.
"""

import torch

from oarlock.errors import ShapeError
from oarlock.ir.shape_rules import require_same
from oarlock.ir.size import Size, add

__all__ = ["lengths_in", "require_counted", "require_cut", "require_splits", "sequences_in"]


def require_splits(splits: torch.Tensor, count: int) -> None:
    """Raise ValueError for what does not cut `count` elements: row splits begin with 0, never fall and end at `count`."""
    if not len(splits) or bool((splits[0] != 0) | (splits[1:] < splits[:-1]).any() | (splits[-1] != count)):
        raise ValueError(f"row splits of {count} elements begin with 0, never fall and end at {count}, unlike {splits.tolist()!r:.60}")


def lengths_in(splits: torch.Tensor, count: int) -> torch.Tensor:
    """How many of `count` elements each sequence has, int64[n]. Raises ValueError as `require_splits`."""
    require_splits(splits, count)
    return splits[1:] - splits[:-1]


def sequences_in(splits) -> Size:
    """How many sequences row splits of this type cut: n of int64[n+1]. Raises ShapeError."""
    count = add((splits.shape or (1,))[0], -1)
    if isinstance(count, int) and count < 0:
        raise ShapeError("splits has no number, where n sequences have n+1")
    return count


def require_cut(x, splits) -> None:
    """Raises ShapeError where there are elements, and no sequence that they could belong to."""
    if sequences_in(splits) == 0:
        count = (x.shape or (0,))[0]
        require_same(count, 0, "x has {} elements, where splits cut 0 sequences", count)


def require_counted(name: str, rows: Size, count: Size) -> None:
    """Raises ValueError where rows that a name stands for, one of each sequence, are known not to be as many. Kernels call it, too."""
    require_same(rows, count, "{} has {} rows, where splits cut {} sequences", name, rows, count)
