"""Floats as integers of 8 bits with scales."""

import torch

from oarlock.tensor.dtype import at_least_single

__all__ = ["least_scale", "quantized", "rounded"]


def least_scale(dtype: torch.dtype) -> float:
    """The least number that a scale may be: the least normal one, of float16 the least of all, for its normal ones are large."""
    information = torch.finfo(dtype)
    return information.tiny * information.eps if dtype is torch.float16 else information.tiny


def rounded(values: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
    """``values / scale`` as int8. Quotients in half precision would be rounded to 128, which int8 does not hold."""
    quotients = torch.div(at_least_single(values), at_least_single(scale)).round_()
    return (quotients if values.dtype.itemsize > 2 else quotients.clamp_(-127.0, 127.0)).to(torch.int8)


def quantized(values: torch.Tensor, axis: int) -> tuple[torch.Tensor, torch.Tensor]:
    """int8 of the shape of `values`, and a scale for each index along `axis`: ``values = int8 * scale``, rounded to the nearest.

    A scale is the largest absolute value over 127, at least `least_scale`.
    """
    others = [other for other in range(values.dim()) if other != axis % values.dim()]
    scale = (torch.amax(torch.abs(values), others) / 127.0).clamp_min_(least_scale(values.dtype))
    shape = [1] * values.dim()
    shape[axis] = -1
    return rounded(values, scale.reshape(shape)), scale
