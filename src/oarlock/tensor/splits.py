"""Row splits, int64[n+1]: the boundaries of n consecutive sequences of elements.

They are untrusted values and are checked here before kernels use them: `torch.repeat_interleave` writes wherever lengths point, and
differences of int64 wrap around: the differences of [0, 2**63 - 1, -2**63, -1, 2] are all positive.
"""

import torch

from oarlock.errors import ShapeError
from oarlock.ir.shape_rules import require_same
from oarlock.ir.size import Size, add

__all__ = ["lengths_in", "require_counted", "require_cut", "require_splits", "sequences_in"]


def require_splits(splits: torch.Tensor, count: int) -> None:
    """Raise ValueError unless the row splits of `count` elements begin with 0, never decrease and end at `count`."""
    if not len(splits) or bool((splits[0] != 0) | (splits[1:] < splits[:-1]).any() | (splits[-1] != count)):
        raise ValueError(
            f"row splits of {count} elements must begin with 0, never decrease and end at {count}, unlike {splits.tolist()!r:.60}"
        )


def lengths_in(splits: torch.Tensor, count: int) -> torch.Tensor:
    """Return the length of each sequence, int64[n]. Raises ValueError for invalid row splits."""
    require_splits(splits, count)
    return splits[1:] - splits[:-1]


def sequences_in(splits) -> Size:
    """Return the number of sequences for row splits of this type: n for int64[n+1]. Raises ShapeError."""
    count = add((splits.shape or (1,))[0], -1)
    if isinstance(count, int) and count < 0:
        raise ShapeError("splits is empty, but n sequences have n+1 splits")
    return count


def require_cut(x, splits) -> None:
    """Raise ShapeError if there are elements but no sequences."""
    if sequences_in(splits) == 0:
        count = (x.shape or (0,))[0]
        require_same(count, 0, "x has {} elements, but splits has 0 sequences", count)


def require_counted(name: str, rows: Size, count: Size) -> None:
    """Raise ValueError if the number of rows of an input is known to differ from the number of sequences. Kernels call this, too."""
    require_same(rows, count, "{} has {} rows, but splits has {} sequences", name, rows, count)
