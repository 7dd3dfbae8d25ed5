"""Inner products of any length, added in parts to round like pairwise summation."""

import torch

__all__ = ["dot_by_parts"]


_PART = 4096  # elements that each of some tens of SIMD lanes may add sequentially and still round like pairwise summation


def dot_by_parts(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """Return the sum of ``x * y`` over all elements, which must have at least four bytes and be on a CPU."""
    x, y = x.reshape(-1), y.reshape(-1)
    return torch.dot(x, y) if x.numel() < 32 * _PART else _sum_of_parts(x, y)


def _sum_of_parts(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    whole = x.numel() // _PART * _PART
    parts = torch.bmm(x[:whole].view(-1, 1, _PART), y[:whole].view(-1, 1, _PART).mT)  # a column view would be slow in PyTorch
    total = torch.sum(parts)
    return total if whole == x.numel() else total + torch.sum(x[whole:] * y[whole:])
