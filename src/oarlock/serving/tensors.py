"""Tensors as JSON and as bytes, with the datatypes of the Open Inference Protocol. Input is untrusted."""

import json
import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy
import torch

from oarlock.errors import FeedError
from oarlock.ir.dtype import DType
from oarlock.tensor.dtype import from_bytes, to_torch

__all__ = [
    "DATATYPES",
    "datatype_of",
    "from_json",
    "from_raw",
    "json_pieces",
    "least_bytes",
    "lists_and_numbers",
    "nested_json_pieces",
    "nested_shape",
    "raw_pieces",
    "to_json",
    "to_raw",
]

DATATYPES = {
    "BOOL": DType.BOOL,
    "UINT8": DType.UINT8,
    "INT8": DType.INT8,
    "INT16": DType.INT16,
    "INT32": DType.INT32,
    "INT64": DType.INT64,
    "FP16": DType.FLOAT16,
    "BF16": DType.BFLOAT16,
    "FP32": DType.FLOAT32,
    "FP64": DType.FLOAT64,
}
_NAMES = {dtype: name for name, dtype in DATATYPES.items()}
_SPECIAL = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}  # spelled as in protobuf's JSON; JSON has no such numbers
_MOST_AXES = 16
_PIECE = 2**14  # numbers and lists written per piece
_PIECE_BYTES = 2**18


def datatype_of(dtype: DType) -> str:
    """Return the protocol's name of a dtype: "FP32"."""
    return _NAMES[dtype]


def from_json(name: str, data: object, shape: Sequence[int], dtype: DType) -> torch.Tensor:
    """Return a tensor of this `shape` from flat or nested lists in row-major order. Raises FeedError for invalid data."""
    flat = _flatten(name, data, shape)
    kinds = set(map(type, flat))
    taken = {bool} if dtype is DType.BOOL else {int, float, str} if dtype.is_floating else {int}
    if not kinds <= taken or (str in kinds and not {item for item in flat if type(item) is str} <= _SPECIAL.keys()):
        odd = next(item for item in flat if type(item) not in taken or (type(item) is str and item not in _SPECIAL))
        raise FeedError(f'"{name}" must contain {dtype} data, not {odd!r:.40}')
    special = [(place, _SPECIAL[item]) for place, item in enumerate(flat) if isinstance(item, str)] if str in kinds else []
    if special:
        flat = [0.0 if isinstance(item, str) else item for item in flat]
    try:
        if dtype.is_floating:
            wide = torch.from_numpy(numpy.array(flat, dtype=numpy.float64))
            read = wide.to(to_torch(dtype))
            if not bool(torch.isfinite(read).all()):
                largest = float(wide[~torch.isfinite(read)][0])
                number = f"{largest!r}" if math.isfinite(largest) else "a number"
                raise FeedError(f'"{name}": {number} is out of range for {dtype}')
            for place, number in special:
                read[place] = number
        else:
            wide = numpy.array(flat, dtype=bool if dtype is DType.BOOL else numpy.int64)
            if wide.size and not (dtype.holds(int(wide.min())) and dtype.holds(int(wide.max()))):
                raise OverflowError
            read = torch.from_numpy(wide).to(to_torch(dtype))
    except OverflowError:
        raise FeedError(f'"{name}": a number is out of range for {dtype}') from None
    return read.reshape(list(shape))


def least_bytes(dtype: DType, *, is_binary: bool) -> int:
    """Return the minimum size of an element in an answer: its itemsize, or the shortest number with a comma, `0.0,`."""
    return dtype.itemsize if is_binary else 4 if dtype.is_floating else 5 if dtype is DType.BOOL else 2


def nested_shape(data: object) -> list[int]:
    """Return the shape of nested lists, from the first item of each. Other items may have other lengths."""
    shape: list[int] = []
    while isinstance(data, list) and len(shape) < _MOST_AXES:
        shape.append(len(data))
        data = data[0] if data else None
    return shape


def _flatten(name: str, data: object, shape: Sequence[int]) -> list[object]:
    """Return the elements of `data`. Raises FeedError if it does not match `shape`."""
    count = math.prod(shape)
    if not isinstance(data, list):
        data = [data] if not shape else None
    if not isinstance(data, list):
        raise FeedError(f'"{name}" needs a list as data')
    level: list[Any] = data
    if len(shape) > 1 and data and isinstance(data[0], list):
        if len(data) != shape[0]:
            raise _not_so(name, shape)
        for size in shape[1:]:
            if not all(type(item) is list and len(item) == size for item in level):
                raise _not_so(name, shape)
            level = [element for item in level for element in item]
    if len(level) != count:
        raise FeedError(f'"{name}" of shape {list(shape)} needs {count:,} elements, but has {len(level):,}')
    return level


def _not_so(name: str, shape: Sequence[int]) -> FeedError:
    return FeedError(f'"{name}" has shape {list(shape)}, but its data is nested differently')


def to_json(tensor: torch.Tensor) -> list[object]:
    """Return the elements of a tensor in row-major order, for JSON. Floats have enough digits to restore the same bits."""
    flat = tensor.reshape(-1)
    if tensor.is_floating_point():
        flat = flat.double()
        if not bool(torch.isfinite(flat).all()):
            return [item if math.isfinite(item) else _spelled(item) for item in flat.tolist()]
    return flat.tolist()


def json_pieces(tensor: torch.Tensor) -> Iterator[str]:
    """Yield the elements of a tensor, in row-major order, as one JSON list in pieces of bounded size."""
    flat = tensor.reshape(-1)
    yield "["
    for start in range(0, len(flat), _PIECE):
        text = json.dumps(to_json(flat[start : start + _PIECE]), separators=(",", ":"))
        yield ("," if start else "") + text[1:-1]
    yield "]"


def nested_json_pieces(tensor: torch.Tensor) -> Iterator[str]:
    """Yield a tensor as nested JSON lists, in pieces of bounded size."""
    if lists_and_numbers(tensor.shape) <= _PIECE:
        yield json.dumps(_nested(to_json(tensor), list(tensor.shape)))
        return
    rows = max(1, _PIECE // lists_and_numbers(tensor.shape[1:]))
    yield "["
    for start in range(0, len(tensor), rows):
        if start:
            yield ", "
        if rows == 1:
            yield from nested_json_pieces(tensor[start])
        else:
            part = tensor[start : start + rows]
            yield json.dumps(_nested(to_json(part), list(part.shape)))[1:-1]
    yield "]"


def lists_and_numbers(shape: Sequence[int]) -> int:
    """Return the number of elements of a shape; an empty list counts as one."""
    count = 1
    for size in shape:
        if not size:
            break
        count *= size
    return count


def _nested(flat: list[object], shape: list[int]) -> object:
    if not shape:
        return flat[0]
    for axis in range(len(shape) - 1, 0, -1):
        size, count = shape[axis], math.prod(shape[:axis])
        flat = [flat[number * size : (number + 1) * size] for number in range(count)]
    return flat


def _spelled(number: float) -> str:
    return "NaN" if number != number else "Infinity" if number > 0 else "-Infinity"


def from_raw(name: str, data: bytes, shape: Sequence[int], dtype: DType) -> torch.Tensor:
    """Return a tensor from its bytes, in row-major order, little-endian. Raises FeedError if their number does not match `shape`."""
    count = math.prod(shape) * dtype.itemsize
    if len(data) != count:
        raise FeedError(f'"{name}", {dtype}{list(shape)}, needs {count:,} bytes, but has {len(data):,}')
    tensor = from_bytes(data, list(shape), to_torch(dtype))
    if dtype is DType.BOOL and bool((tensor.view(torch.uint8) > 1).any()):
        raise FeedError(f'"{name}" must contain bool data, but a byte is neither 0 nor 1')
    return tensor


def to_raw(tensor: torch.Tensor) -> bytes:
    """Return the bytes of a tensor, in row-major order, little-endian."""
    return b"".join(raw_pieces(tensor))


def raw_pieces(tensor: torch.Tensor) -> Iterator[bytes]:
    """Yield the bytes of a tensor, in row-major order, little-endian, in pieces of bounded size."""
    data = tensor.contiguous().reshape(-1).view(torch.uint8).numpy() if tensor.numel() else numpy.empty(0, numpy.uint8)
    for start in range(0, len(data), _PIECE_BYTES):
        yield data[start : start + _PIECE_BYTES].tobytes()
