"""Inner products of any length, which are added up in parts so that they round like a sum in pairs."""

import torch

__all__ = ["dot_by_parts"]


_PART = 4096  # elements that each lane of a processor may add up one by one, of some tens: few enough to round like a sum in pairs


def dot_by_parts(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """The sum of all ``x * y``, of at least four bytes each on a CPU."""
    x, y = x.reshape(-1), y.reshape(-1)
    return torch.dot(x, y) if x.numel() < 32 * _PART else _sum_of_parts(x, y)


def _sum_of_parts(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    whole = x.numel() // _PART * _PART
    parts = torch.bmm(x[:whole].view(-1, 1, _PART), y[:whole].view(-1, 1, _PART).mT)  # a view as a column takes PyTorch's slow way
    total = torch.sum(parts)
    return total if whole == x.numel() else total + torch.sum(x[whole:] * y[whole:])
