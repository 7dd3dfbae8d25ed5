"""Tensors of a model: element types, values in the model, and values in external files.

Types and sizes are checked immediately, elements are read on first use. Only files in the model's folder are ever opened.
"""

import errno
import math
import os
import re
import stat
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch

from oarlock.errors import ArgumentError, FormatError, LimitError, MissingFileError, ReadError
from oarlock.ir.dtype import DType
from oarlock.proto.limits import Limits
from oarlock.tensor.dtype import from_bytes, to_torch

__all__ = ["DTYPES", "NAMES", "NUMBERS", "ExternalFiles", "TensorReader", "UnknownElementTypeError", "find_region"]

# Element types


NAMES = {
    1: "float", 2: "uint8", 3: "int8", 4: "uint16", 5: "int16", 6: "int32", 7: "int64", 8: "string", 9: "bool", 10: "float16", 11: "double",
    12: "uint32", 13: "uint64", 14: "complex64", 15: "complex128", 16: "bfloat16", 17: "float8e4m3fn", 18: "float8e4m3fnuz",
    19: "float8e5m2", 20: "float8e5m2fnuz", 21: "uint4", 22: "int4", 23: "float4e2m1", 24: "float8e8m0", 25: "uint2", 26: "int2",
}  # fmt: skip

DTYPES = {
    1: DType.FLOAT32,
    2: DType.UINT8,
    3: DType.INT8,
    5: DType.INT16,
    6: DType.INT32,
    7: DType.INT64,
    9: DType.BOOL,
    10: DType.FLOAT16,
    11: DType.FLOAT64,
    16: DType.BFLOAT16,
}

NUMBERS = {dtype: number for number, dtype in DTYPES.items()}


# External files


_PARTS = re.compile(r"[^/\\:\0]{1,255}(?:/[^/\\:\0]{1,255}){0,15}")
_NUMBER = re.compile(r"[0-9]{1,18}")


def find_region(tensor: object, size: int, folder: "ExternalFiles") -> tuple[str, int]:
    """Return the file and the offset of an external tensor of `size` bytes. Raises FormatError for an invalid entry."""
    entries: dict[str, str] = {}
    for entry in tensor.external_data:  # type: ignore[attr-defined]
        if entry.key in entries:
            raise FormatError(f'"{tensor.name[:80]}": external data has {entry.key[:80]!r} twice')  # type: ignore[attr-defined]
        entries[entry.key] = entry.value
    name = tensor.name[:80]  # type: ignore[attr-defined]
    location, offset, length = entries.get("location", ""), entries.get("offset", "0"), entries.get("length", str(size))
    if not _PARTS.fullmatch(location) or any(part in (".", "..") or part != part.strip() for part in location.split("/")):
        raise FormatError(f'"{name}": external data has the location {location[:80]!r}, which is not a path in the model folder')
    if not _NUMBER.fullmatch(offset) or not _NUMBER.fullmatch(length):
        raise FormatError(f'"{name}": external data has the invalid offset {offset[:40]!r} or length {length[:40]!r}')
    if int(length) != size:
        raise FormatError(f'"{name}": external data has {int(length):,} bytes, but its shape and type need {size:,}')
    there = folder.size_of(location)
    if int(offset) + size > there:
        raise FormatError(f'"{name}": external data ends at byte {int(offset) + size:,} of {location[:80]!r}, which has {there:,} bytes')
    return location, int(offset)


class ExternalFiles:
    """The files of one folder. Symbolic links are rejected. A file is opened again for each tensor.

    With `untrusted`, hard links are rejected too: they could point to any file that this process can read.
    """

    def __init__(self, folder: Path, *, untrusted: bool = False):
        self.folder = folder
        self._untrusted = untrusted
        self._sizes: dict[str, int] = {}

    def size_of(self, location: str) -> int:
        """Return the size of the file at `location` in bytes. Raises MissingFileError, FormatError or ReadError."""
        if location not in self._sizes:
            descriptor = self._open(location)
            try:
                self._sizes[location] = os.fstat(descriptor).st_size
            finally:
                os.close(descriptor)
        return self._sizes[location]

    def read(self, location: str, offset: int, size: int) -> bytearray:
        """Read `size` bytes from `offset`. Raises the errors of `size_of`, and FormatError if the file has become shorter."""
        descriptor = self._open(location)
        try:
            data = bytearray(size)
            with open(descriptor, "rb", closefd=False) as file:
                file.seek(offset)
                count = file.readinto(data)
        except OSError as error:
            raise ReadError(f'"{location[:80]}" cannot be read: {error.strerror}') from error
        finally:
            os.close(descriptor)
        if count != size:
            raise FormatError(f'"{location[:80]}" is truncated')
        return data

    def _open(self, location: str) -> int:
        """Open a regular file folder by folder, rejecting links; return its descriptor."""
        if os.open not in os.supports_dir_fd or not hasattr(os, "O_NOFOLLOW"):
            raise ArgumentError(
                "external data cannot be opened safely on this system, which has no O_NOFOLLOW", hint="save the model as one file"
            )
        *folders, name = location.split("/")
        flags = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY
        opened = []
        try:
            opened.append(os.open(self.folder, flags | os.O_DIRECTORY))
            for folder in folders:
                opened.append(os.open(folder, flags | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=opened[-1]))
            descriptor = os.open(name, flags | os.O_NOFOLLOW, dir_fd=opened[-1])
        except FileNotFoundError:
            raise MissingFileError(f'external data is missing: there is no file "{location[:80]}" in the model folder') from None
        except OSError as error:
            if error.errno in (errno.ELOOP, errno.EMLINK, errno.ENOTDIR):
                raise FormatError(
                    f'external data: "{location[:80]}" is a link or reached through one', hint="copy the file into the model folder"
                ) from None
            raise ReadError(f'"{location[:80]}" cannot be opened: {error.strerror}') from error
        finally:
            for each in opened:
                os.close(each)
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            os.close(descriptor)
            raise FormatError(f'external data: "{location[:80]}" is not a file')
        if self._untrusted and status.st_nlink != 1:
            os.close(descriptor)
            raise FormatError(
                f'external data: "{location[:80]}" has {status.st_nlink} hard links, which is not allowed for untrusted files',
                hint="copy the file, or import the model without untrusted if you trust it",
            )
        return descriptor


# Values


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
            message = f"{what}: {count:,} {limit.replace('_', ' ')}, but the limit is {allowed:,}"
            raise LimitError(message, hint=f"limits=Limits({limit}=...)")


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
