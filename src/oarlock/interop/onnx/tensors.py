"""Tensors of a model: types and sizes are checked immediately, elements are read on first use."""

import math
import sys
from collections.abc import Callable, Sequence
from typing import Any

import torch

from oarlock.errors import FormatError, LimitError
from oarlock.interop.onnx.element_types import DTYPES, NAMES
from oarlock.interop.onnx.external_data import ExternalFiles, find_region
from oarlock.ir.dtype import DType
from oarlock.proto.limits import Limits
from oarlock.tensor.dtype import from_bytes, to_torch

__all__ = ["TensorReader", "UnknownElementTypeError"]

_FIELDS = {DType.FLOAT32: "float_data", DType.FLOAT64: "double_data", DType.INT64: "int64_data"}  # others: int32_data
_EXTERNAL = 1


class UnknownElementTypeError(Exception):
    """A tensor of an unsupported type."""


class TensorReader:
    """Reads the tensors of one model, with at most `limits.parameter_bytes` in total."""

    def __init__(self, files: ExternalFiles, limits: Limits):
        self.files = files
        self.limits = limits
        self.total = 0

    def open(self, tensor: Any, what: str) -> tuple[DType, tuple[int, ...], Callable[[], torch.Tensor]]:
        """Return the dtype and the shape of a TensorProto, and a function that reads its elements.

        Raises FormatError if the number of bytes does not match shape and type, LimitError, or UnknownElementTypeError.
        """
        dtype = DTYPES.get(tensor.data_type)
        if tensor.data_type not in NAMES:
            raise FormatError(f"{what} has the unknown element type {tensor.data_type}")
        if dtype is None:
            raise UnknownElementTypeError(NAMES[tensor.data_type])
        shape = tuple(tensor.dims)
        self._require_allowed(shape, dtype, what)
        if tensor.HasField("segment"):
            raise FormatError(f"{what} is a segment of a tensor, which is not supported")
        count = math.prod(shape)
        size = count * dtype.itemsize
        if tensor.data_location == _EXTERNAL:
            location, offset = find_region(tensor, size, self.files)
            return dtype, shape, lambda: _from_bytes(self.files.read(location, offset, size), shape, dtype)
        if tensor.HasField("raw_data"):
            if len(tensor.raw_data) != size:
                raise FormatError(f"{what} has {len(tensor.raw_data):,} bytes, but {dtype}{list(shape)} needs {size:,}")
            return dtype, shape, lambda: _from_bytes(tensor.raw_data, shape, dtype)
        numbers = getattr(tensor, _FIELDS.get(dtype, "int32_data"))
        if len(numbers) != count:
            raise FormatError(f"{what} has {len(numbers):,} elements, but {dtype}{list(shape)} needs {count:,}")
        return dtype, shape, lambda: _from_numbers(numbers, shape, dtype, what)

    def _require_allowed(self, shape: tuple[int, ...], dtype: DType, what: str) -> None:
        if any(size < 0 for size in shape):
            raise FormatError(f"{what} has a negative size: {list(shape[:16])}")
        elements = math.prod(max(size, 1) for size in shape)
        for count, limit in ((len(shape), "rank"), (elements, "elements"), (elements * dtype.itemsize, "tensor_bytes")):
            self._require(count, limit, what)
        self.total += math.prod(shape) * dtype.itemsize
        self._require(self.total, "parameter_bytes", what)

    def _require(self, count: int, limit: str, what: str) -> None:
        allowed = getattr(self.limits, limit)
        if count > allowed:
            raise LimitError(
                f"{what}: {count:,} {limit.replace('_', ' ')}, where {allowed:,} are allowed", hint=f"limits=Limits({limit}=...)"
            )


def _from_bytes(data: bytes | bytearray, shape: tuple[int, ...], dtype: DType) -> torch.Tensor:
    if dtype is DType.BOOL:
        return from_bytes(data, shape, torch.uint8) != 0  # type: ignore[arg-type]
    return from_bytes(data, shape, to_torch(dtype))  # type: ignore[arg-type]


def _from_numbers(numbers: Sequence[float], shape: tuple[int, ...], dtype: DType, what: str) -> torch.Tensor:
    """Convert elements stored as protobuf numbers. Elements of two bytes are stored as the integer of their bits."""
    if dtype in (DType.FLOAT16, DType.BFLOAT16):
        if any(not 0 <= number < 2**16 for number in numbers):
            raise FormatError(f"{what} has an element that is not a valid {dtype}")
        bits = b"".join(int(number).to_bytes(2, sys.byteorder) for number in numbers)
        return (
            torch.frombuffer(bytearray(bits), dtype=to_torch(dtype)).reshape(shape) if bits else torch.zeros(shape, dtype=to_torch(dtype))
        )
    if dtype is DType.BOOL:
        return torch.tensor([number != 0 for number in numbers], dtype=torch.bool).reshape(shape)
    if not dtype.is_floating and not all(dtype.holds(number) for number in numbers):
        raise FormatError(f"{what} has an element that is not a valid {dtype}")
    return torch.tensor(list(numbers), dtype=to_torch(dtype)).reshape(shape)
