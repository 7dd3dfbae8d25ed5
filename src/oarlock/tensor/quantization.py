"""Floats as 8-bit integers with scales."""

import torch

from oarlock.tensor.dtype import at_least_single

__all__ = ["least_scale", "quantized", "rounded"]


def least_scale(dtype: torch.dtype) -> float:
    """Return the minimum scale: the smallest normal number; for float16 the smallest subnormal, as its normal ones are large."""
    information = torch.finfo(dtype)
    return information.tiny * information.eps if dtype is torch.float16 else information.tiny


def rounded(values: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
    """Return ``values / scale`` as int8. Quotients in half precision are clipped, as they could round to 128."""
    quotients = torch.div(at_least_single(values), at_least_single(scale)).round_()
    return (quotients if values.dtype.itemsize > 2 else quotients.clamp_(-127.0, 127.0)).to(torch.int8)


def quantized(values: torch.Tensor, axis: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Quantize to int8, with a scale for each index along `axis`: ``values = int8 * scale``, rounded to nearest.

    A scale is the largest absolute value divided by 127, and at least `least_scale`.
    """
    others = [other for other in range(values.dim()) if other != axis % values.dim()]
    scale = (torch.amax(torch.abs(values), others) / 127.0).clamp_min_(least_scale(values.dtype))
    shape = [1] * values.dim()
    shape[axis] = -1
    return rounded(values, scale.reshape(shape)), scale
