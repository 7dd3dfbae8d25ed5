"""Parts of a tensor that workers have: one after another along an axis, or equal shares of all elements."""

from collections.abc import Sequence
from typing import Literal

import torch

__all__ = ["Reduction", "bounds_of", "join_shares", "share_of", "share_size", "split_shares"]

Reduction = Literal["sum", "max", "min"]


def bounds_of(counts: Sequence[int], index: int) -> tuple[int, int]:
    """Where the part of worker `index` begins and ends, where `counts` says how much each worker has."""
    start = sum(counts[:index])
    return start, start + counts[index]


def share_size(elements: int, workers: int) -> int:
    """How many elements each share has: as many as the first, of which no worker has more."""
    return -(-elements // workers)


def split_shares(tensor: torch.Tensor, workers: int) -> torch.Tensor:
    """The shares of all workers, [workers, k]: the elements in their order, and zeros where the last shares are not full."""
    flat, size = tensor.reshape(-1), share_size(tensor.numel(), workers)
    missing = workers * size - flat.numel()
    return (torch.cat([flat, flat.new_zeros(missing)]) if missing else flat).view(workers, size)


def share_of(tensor: torch.Tensor, workers: int, index: int) -> torch.Tensor:
    """The share of worker `index`, [k], as a tensor of its own."""
    flat, size = tensor.reshape(-1), share_size(tensor.numel(), workers)
    own = flat[index * size : (index + 1) * size]
    return own.clone() if len(own) == size else torch.cat([own, own.new_zeros(size - len(own))])


def join_shares(shares: torch.Tensor, shape: Sequence[int]) -> torch.Tensor:
    """The tensor of a shape whose shares these are, [workers, k]: a tensor of its own."""
    elements = 1
    for size in shape:
        elements *= size
    return shares.reshape(-1)[:elements].reshape(tuple(shape)).clone()
