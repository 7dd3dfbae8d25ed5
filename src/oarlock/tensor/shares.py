"""The parts of a tensor that workers hold: consecutive parts along an axis, or equal shares of all elements."""

from collections.abc import Sequence
from typing import Literal

import torch

__all__ = ["Reduction", "bounds_of", "join_shares", "share_of", "share_size", "split_shares"]

Reduction = Literal["sum", "max", "min"]


def bounds_of(counts: Sequence[int], index: int) -> tuple[int, int]:
    """Return the start and the end of the part of worker `index`, if worker i has ``counts[i]`` rows."""
    start = sum(counts[:index])
    return start, start + counts[index]


def share_size(elements: int, workers: int) -> int:
    """Return the number of elements per share, rounded up."""
    return -(-elements // workers)


def split_shares(tensor: torch.Tensor, workers: int) -> torch.Tensor:
    """Return the shares of all workers, [workers, k]: the elements in order, padded with zeros."""
    flat, size = tensor.reshape(-1), share_size(tensor.numel(), workers)
    missing = workers * size - flat.numel()
    return (torch.cat([flat, flat.new_zeros(missing)]) if missing else flat).view(workers, size)


def share_of(tensor: torch.Tensor, workers: int, index: int) -> torch.Tensor:
    """Return the share of worker `index`, [k], as a new tensor."""
    flat, size = tensor.reshape(-1), share_size(tensor.numel(), workers)
    own = flat[index * size : (index + 1) * size]
    return own.clone() if len(own) == size else torch.cat([own, own.new_zeros(size - len(own))])


def join_shares(shares: torch.Tensor, shape: Sequence[int]) -> torch.Tensor:
    """Return the tensor of the given shape that these shares, [workers, k], make up, as a new tensor."""
    elements = 1
    for size in shape:
        elements *= size
    return shares.reshape(-1)[:elements].reshape(tuple(shape)).clone()
