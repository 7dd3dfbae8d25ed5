"""The tensors in a model: their types and sizes checked at once, their elements read when they are asked for."""

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

_FIELDS = {DType.FLOAT32: "float_data", DType.FLOAT64: "double_data", DType.INT64: "int64_data"}  # the others: int32_data
_EXTERNAL = 1


class UnknownElementTypeError(Exception):
    """A tensor of a type that we have none of; what a program would need of it is not known."""


class TensorReader:
    """Reads the tensors of one model. All together they have at most `limits.parameter_bytes`."""

    def __init__(self, files: ExternalFiles, limits: Limits):
        self.files = files
        self.limits = limits
        self.total = 0

    def open(self, tensor: Any, what: str) -> tuple[DType, tuple[int, ...], Callable[[], torch.Tensor]]:
        """The dtype and the shape of `tensor`, a TensorProto, and a function that reads it.

        Raises FormatError where its bytes are not as many as its shape and type need, LimitError, UnknownElementTypeError.
        """
        dtype = DTYPES.get(tensor.data_type)
        if tensor.data_type not in NAMES:
            raise FormatError(f"{what} has the element type {tensor.data_type}, which ONNX does not have")
        if dtype is None:
            raise UnknownElementTypeError(NAMES[tensor.data_type])
        shape = tuple(tensor.dims)
        self._require_allowed(shape, dtype, what)
        if tensor.HasField("segment"):
            raise FormatError(f"{what} is a segment of a tensor, which no model holds")
        count = math.prod(shape)
        size = count * dtype.itemsize
        if tensor.data_location == _EXTERNAL:
            location, offset = find_region(tensor, size, self.files)
            return dtype, shape, lambda: _from_bytes(self.files.read(location, offset, size), shape, dtype)
        if tensor.HasField("raw_data"):
            if len(tensor.raw_data) != size:
                raise FormatError(f"{what} has {len(tensor.raw_data):,} bytes, where {dtype}{list(shape)} has {size:,}")
            return dtype, shape, lambda: _from_bytes(tensor.raw_data, shape, dtype)
        numbers = getattr(tensor, _FIELDS.get(dtype, "int32_data"))
        if len(numbers) != count:
            raise FormatError(f"{what} has {len(numbers):,} elements, where {dtype}{list(shape)} has {count:,}")
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
    """Elements that stand as numbers of protobuf, those of two bytes as the number that their bits are."""
    if dtype in (DType.FLOAT16, DType.BFLOAT16):
        if any(not 0 <= number < 2**16 for number in numbers):
            raise FormatError(f"{what} has an element that is no {dtype}")
        bits = b"".join(int(number).to_bytes(2, sys.byteorder) for number in numbers)
        return (
            torch.frombuffer(bytearray(bits), dtype=to_torch(dtype)).reshape(shape) if bits else torch.zeros(shape, dtype=to_torch(dtype))
        )
    if dtype is DType.BOOL:
        return torch.tensor([number != 0 for number in numbers], dtype=torch.bool).reshape(shape)
    if not dtype.is_floating and not all(dtype.holds(number) for number in numbers):
        raise FormatError(f"{what} has an element that is no {dtype}")
    return torch.tensor(list(numbers), dtype=to_torch(dtype)).reshape(shape)
