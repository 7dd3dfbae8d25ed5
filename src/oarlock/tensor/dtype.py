"""Conversion between Oarlock's and PyTorch's dtypes, and quantization to 8-bit integers."""

from collections.abc import Sequence

import numpy
import torch

from oarlock.ir.dtype import DType

__all__ = ["at_least_single", "from_bytes", "from_torch", "least_scale", "quantized", "rounded", "to_torch"]

_TO_TORCH = {
    DType.FLOAT16: torch.float16,
    DType.BFLOAT16: torch.bfloat16,
    DType.FLOAT32: torch.float32,
    DType.FLOAT64: torch.float64,
    DType.INT8: torch.int8,
    DType.INT16: torch.int16,
    DType.INT32: torch.int32,
    DType.INT64: torch.int64,
    DType.UINT8: torch.uint8,
    DType.BOOL: torch.bool,
    DType.COMPLEX64: torch.complex64,
    DType.COMPLEX128: torch.complex128,
}
_FROM_TORCH = {theirs: ours for ours, theirs in _TO_TORCH.items()}


def to_torch(dtype: DType) -> torch.dtype:
    return _TO_TORCH[dtype]


def from_torch(dtype: torch.dtype) -> DType | None:
    """Return the DType of a PyTorch dtype; None if it is not supported, such as float8_e5m2."""
    return _FROM_TORCH.get(dtype)


def from_bytes(data: bytes, shape: Sequence[int], dtype: torch.dtype) -> torch.Tensor:
    """Create a tensor from elements in row-major order, little-endian, in new, aligned memory."""
    tensor = torch.empty(shape, dtype=dtype)
    if data:
        tensor.reshape(-1).view(torch.uint8).numpy()[:] = numpy.frombuffer(data, numpy.uint8)
    return tensor


def at_least_single(x: torch.Tensor) -> torch.Tensor:
    """Return half precision as float32, and other floats unchanged, for long sums and decompositions."""
    return x.float() if x.element_size() < 4 else x


# Quantization


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
