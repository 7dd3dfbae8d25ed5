"""Sequences with row splits, int64[n+1], the boundaries of n consecutive sequences of elements.

Row splits are untrusted values and are checked before kernels use them: `torch.repeat_interleave` writes wherever lengths point, and
differences of int64 wrap around: the differences of [0, 2**63 - 1, -2**63, -1, 2] are all positive.
"""

import torch

from oarlock.errors import ShapeError
from oarlock.ir.shape_rules import require_same
from oarlock.ir.size import Size, add

__all__ = [
    "cells_of",
    "divisors",
    "ends_of",
    "join",
    "joined_places",
    "lengths_in",
    "longest_of",
    "owners",
    "put_at",
    "require_counted",
    "require_cut",
    "require_splits",
    "sequences_in",
    "sum_each",
    "take_at",
]

# Row splits


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


# Elements


def owners(splits: torch.Tensor, count: int) -> torch.Tensor:
    """Return the sequence number of each of `count` elements, int64[count]. Raises ValueError for invalid row splits."""
    lengths = lengths_in(splits, count)
    return torch.repeat_interleave(torch.arange(len(lengths), device=splits.device), lengths, output_size=count)


def sum_each(x: torch.Tensor, own: torch.Tensor, count: int) -> torch.Tensor:
    """Sum the elements of each of `count` sequences; element i belongs to sequence ``own[i]``."""
    return x.new_zeros((count, *x.shape[1:])).index_add_(0, own, x)


def divisors(splits: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    """Return the divisors for means of sequences, in a shape that broadcasts to their sums."""
    return splits.diff().clamp(min=1).to(x.dtype).reshape(-1, *[1] * (x.ndim - 1))


def take_at(x: torch.Tensor, at: torch.Tensor) -> torch.Tensor:
    """Gather elements of ``x`` at the row numbers ``at``, which has as many dimensions; -1 gives 0."""
    x = x if len(x) else torch.cat([x, x.new_zeros((1, *x.shape[1:]))])  # gather needs at least one row
    return x.gather(0, at.clamp(min=0)).masked_fill(at < 0, 0)


def put_at(values: torch.Tensor, at: torch.Tensor, shape: torch.Size) -> torch.Tensor:
    """Scatter values to their row numbers in zeros of ``shape``, the inverse of ``take_at``."""
    zeros = values.new_zeros((max(1, shape[0]), *shape[1:]))  # scatter needs at least one row
    return zeros.scatter_add_(0, at.clamp(min=0), values.masked_fill(at < 0, 0))[: shape[0]]


def ends_of(splits: torch.Tensor, x_shape: torch.Size, *, last: bool) -> torch.Tensor:
    """Return the row number of the first or last element of each sequence, -1 for an empty one, in a shape for ``take_at``."""
    owners(splits, x_shape[0])  # checks the splits
    at = splits[1:] - 1 if last else splits[:-1]
    at = at.masked_fill(splits.diff() == 0, -1)
    return at.reshape(-1, *[1] * (len(x_shape) - 1)).expand(-1, *x_shape[1:])


def joined_places(splits: list[torch.Tensor], counts: list[int]) -> list[torch.Tensor]:
    """Return the position of each element of each part after joining the i-th sequences of all parts, int64[t] for each part."""
    offset = torch.stack(splits).sum(0)[:-1]
    places = []
    for cut, count in zip(splits, counts, strict=True):
        own = owners(cut, count)
        places.append(torch.arange(count, device=cut.device) + (offset - cut[:-1]).index_select(0, own))
        offset = offset + cut.diff()
    return places


def join(xs: list[torch.Tensor], splits: list[torch.Tensor]) -> torch.Tensor:
    """Join the sequences of all parts, in the order of `joined_places`."""
    places = joined_places(splits, [len(x) for x in xs])
    return torch.cat(xs).index_select(0, torch.argsort(torch.cat(places)))


def cells_of(splits: torch.Tensor, count: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Return row and column of each of `count` elements in padded rows. Raises ValueError for invalid row splits."""
    own = owners(splits, count)
    return own, torch.arange(count, device=splits.device) - splits[:-1].index_select(0, own)


def longest_of(splits: torch.Tensor) -> int:
    """Return the length of the longest sequence. The row splits must be valid."""
    return int(splits.diff().max()) if len(splits) > 1 else 0
