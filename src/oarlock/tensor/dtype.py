"""Conversion between Oarlock's and PyTorch's dtypes."""

from collections.abc import Sequence

import numpy
import torch

from oarlock.ir.dtype import DType

__all__ = ["at_least_single", "from_bytes", "from_torch", "to_torch"]

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
