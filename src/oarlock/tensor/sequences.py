"""Elements of sequences by the row splits that cut them: which sequence each is of, and where each stands in another layout.

Row splits are int64[n+1], and values, so anyone's: `owners`, and what is computed of it, raises ValueError for bad ones.
"""

import torch

from oarlock.tensor.splits import lengths_in

__all__ = ["cells_of", "divisors", "ends_of", "join", "joined_places", "longest_of", "owners", "put_at", "sum_each", "take_at"]


def owners(splits: torch.Tensor, count: int) -> torch.Tensor:
    """The number of the sequence that each of `count` elements belongs to, int64[count]. Raises ValueError for bad row splits."""
    lengths = lengths_in(splits, count)
    return torch.repeat_interleave(torch.arange(len(lengths), device=splits.device), lengths, output_size=count)


def sum_each(x: torch.Tensor, own: torch.Tensor, count: int) -> torch.Tensor:
    """The sum of the elements of each of `count` sequences, where element i is of sequence ``own[i]``."""
    return x.new_zeros((count, *x.shape[1:])).index_add_(0, own, x)


def divisors(splits: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    """By what the sums of sequences are divided, in a shape that broadcasts to them."""
    return splits.diff().clamp(min=1).to(x.dtype).reshape(-1, *[1] * (x.ndim - 1))


def take_at(x: torch.Tensor, at: torch.Tensor) -> torch.Tensor:
    """The element of ``x`` that ``at`` numbers, for each place of ``at`` that has as many dimensions; 0 where it is -1."""
    x = x if len(x) else torch.cat([x, x.new_zeros((1, *x.shape[1:]))])  # so that there is an element to look at
    return x.gather(0, at.clamp(min=0)).masked_fill(at < 0, 0)


def put_at(values: torch.Tensor, at: torch.Tensor, shape: torch.Size) -> torch.Tensor:
    """Zeros in ``shape``, with each of the values at the element that ``at`` numbers: the opposite of ``take_at``."""
    zeros = values.new_zeros((max(1, shape[0]), *shape[1:]))  # as above
    return zeros.scatter_add_(0, at.clamp(min=0), values.masked_fill(at < 0, 0))[: shape[0]]


def ends_of(splits: torch.Tensor, x_shape: torch.Size, *, last: bool) -> torch.Tensor:
    """The number of the first or last element of each sequence, -1 for none, in a shape for ``take_at``."""
    owners(splits, x_shape[0])  # refuses bad splits
    at = splits[1:] - 1 if last else splits[:-1]
    at = at.masked_fill(splits.diff() == 0, -1)
    return at.reshape(-1, *[1] * (len(x_shape) - 1)).expand(-1, *x_shape[1:])


def joined_places(splits: list[torch.Tensor], counts: list[int]) -> list[torch.Tensor]:
    """Where each element of each part stands once sequence i of every part has been joined, int64[t] for each part."""
    offset = torch.stack(splits).sum(0)[:-1]
    places = []
    for cut, count in zip(splits, counts, strict=True):
        own = owners(cut, count)
        places.append(torch.arange(count, device=cut.device) + (offset - cut[:-1]).index_select(0, own))
        offset = offset + cut.diff()
    return places


def join(xs: list[torch.Tensor], splits: list[torch.Tensor]) -> torch.Tensor:
    """The elements of all parts where `joined_places` puts them."""
    places = joined_places(splits, [len(x) for x in xs])
    return torch.cat(xs).index_select(0, torch.argsort(torch.cat(places)))


def cells_of(splits: torch.Tensor, count: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Row and column of each of `count` elements in padded rows. Raises ValueError for bad row splits."""
    own = owners(splits, count)
    return own, torch.arange(count, device=splits.device) - splits[:-1].index_select(0, own)


def longest_of(splits: torch.Tensor) -> int:
    """The length of the longest sequence that row splits cut, which are in order."""
    return int(splits.diff().max()) if len(splits) > 1 else 0
