"""Sequences with row splits: the sequence of each element, and its position in other layouts.

Row splits are int64[n+1] and untrusted values: `owners`, and all functions based on it, raise ValueError for invalid ones.
"""

import torch

from oarlock.tensor.splits import lengths_in

__all__ = ["cells_of", "divisors", "ends_of", "join", "joined_places", "longest_of", "owners", "put_at", "sum_each", "take_at"]


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
