"""Floats as integers of 8 bits with scales."""

import torch

__all__ = ["quantized"]


def quantized(values: torch.Tensor, axis: int) -> tuple[torch.Tensor, torch.Tensor]:
    """int8 of the shape of `values`, and a scale for each index along `axis`: ``values = int8 * scale``, rounded to the nearest.

    A scale is the largest absolute value over 127, at least the least normal number.
    """
    others = [other for other in range(values.dim()) if other != axis % values.dim()]
    scale = (torch.amax(torch.abs(values), others) / 127.0).clamp_min_(torch.finfo(values.dtype).tiny)
    shape = [1] * values.dim()
    shape[axis] = -1
    return torch.round(values / scale.reshape(shape)).to(torch.int8), scale
