"""Adaptive pooling: window weights, and the gradient of the mean."""

import torch

__all__ = ["adaptive_average_backward"]


def _shares(length: int, count: int, like: torch.Tensor) -> torch.Tensor:
    """Return the weight of each of `length` elements in each of `count` windows, which may overlap: [count length]."""
    at, number = torch.arange(length, device=like.device), torch.arange(count, device=like.device)[:, None]
    first, end = number * length // count, -((number + 1) * -length // count)
    inside = (first <= at) & (at < end)
    return inside.to(like.dtype) / (end - first)


def adaptive_average_backward(dy: torch.Tensor, x_shape) -> torch.Tensor:
    """Return the gradient of the mean over windows, whose number along each axis is the size of ``dy``: one matrix product per axis."""
    dx = dy
    for axis in range(2, dy.ndim):
        if dy.shape[axis] == 1:
            sizes = [*dx.shape[:axis], x_shape[axis], *dx.shape[axis + 1 :]]
            dx = (dx / x_shape[axis]).expand(sizes)
        else:
            dx = torch.movedim(torch.movedim(dx, axis, -1) @ _shares(x_shape[axis], dy.shape[axis], dy), -1, axis)
    return dx.contiguous() if dx is not dy else dx.clone()
