"""Reading single tensors of any safetensors file; the rest of the file is not read.

Elements are read directly into their final memory. Memory-mapping the file would need twice the memory, because tensors are copied to
aligned memory, and would crash the process if the file were truncated meanwhile.
"""

import io
import json
import math
import os
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, TypeGuard

import torch

from oarlock.errors import FormatError, LimitError, ReadError
from oarlock.io.container import DTYPES, read_once
from oarlock.io.files import open_file
from oarlock.ir.dtype import DType
from oarlock.ir.size import format_shape
from oarlock.proto.limits import Limits
from oarlock.tensor.dtype import to_torch

__all__ = ["TensorEntry", "TensorFile"]

_DTYPES = {**DTYPES, "C64": DType.COMPLEX64}
_CHUNK = 2**30  # bytes; some systems read at most 2**31 at once


class TensorEntry(NamedTuple):
    """A tensor of a file: its dtype as spelled in the file, its shape, and the range of its bytes."""

    dtype: str
    shape: tuple[int, ...]
    begin: int
    end: int

    @property
    def known_dtype(self) -> DType | None:
        """The dtype, or None if programs do not support it."""
        return _DTYPES.get(self.dtype)

    @property
    def type_text(self) -> str:
        """The type as text, such as `float32[2, 3]`."""
        return f"{self.known_dtype or self.dtype}{format_shape(self.shape)}"


@dataclass
class TensorFile:
    """An open safetensors file; a `with` block closes it. `entries` are its tensors by name, in file order."""

    name: str
    entries: dict[str, TensorEntry]
    limits: Limits
    _file: io.FileIO
    _data_begin: int

    @classmethod
    def open(cls, path: str | os.PathLike[str], *, limits: Limits | None = None, untrusted: bool = False) -> "TensorFile":
        """Open a file and read its header. An `untrusted` file must not be a link.

        Raises MissingFileError, ReadError, LimitError, or FormatError for an invalid safetensors file. In a valid one, every byte after
        the header belongs to exactly one tensor, whose size matches its shape.
        """
        limits, name = limits or Limits(), Path(path).name
        descriptor, status = open_file(path, untrusted=untrusted)
        file = io.FileIO(descriptor)
        try:
            header, begin = _read_header(file, status.st_size, name, limits)
            return cls(name, _read_entries(header, status.st_size - begin, name, limits), limits, file, begin)
        except BaseException:
            file.close()
            raise

    def __enter__(self) -> "TensorFile":
        return self

    def __exit__(self, *raised: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def read(self, name: str) -> torch.Tensor:
        """Read a tensor into its own memory. Raises FormatError for an unsupported dtype, LimitError or ReadError."""
        entry = self.entries[name]
        dtype = entry.known_dtype
        if dtype is None:
            raise FormatError(f'"{self.name}": tensor {json.dumps(name[:80])} has the dtype {entry.dtype}, which programs do not support')
        elements = math.prod(max(size, 1) for size in entry.shape)
        for count, limit in ((elements, "elements"), (elements * dtype.itemsize, "tensor_bytes")):
            _require_within(count, limit, f'"{self.name}", tensor {json.dumps(name[:80])}', self.limits)
        tensor = torch.empty(entry.shape, dtype=to_torch(dtype))
        if entry.end > entry.begin:
            _fill(tensor.reshape(-1).view(torch.uint8).numpy().data, self._file, self._data_begin + entry.begin, self.name)
            if dtype is DType.BOOL and bool((tensor.view(torch.uint8) > 1).any()):
                raise FormatError(f'"{self.name}": tensor {json.dumps(name[:80])} is BOOL, but has bytes other than 0 and 1')
        return tensor


def _read_header(file: io.FileIO, size: int, name: str, limits: Limits) -> tuple[dict[str, object], int]:
    """Return the parsed header and the offset of the tensors."""
    prefix = bytearray(8)
    if size >= 8:
        _fill(memoryview(prefix), file, 0, name)
    length = int.from_bytes(prefix, "little")
    if size < 8 or length > size - 8:
        raise _no_safetensors(name, f"its first 8 bytes announce a header of {length:,} bytes, but only {max(size - 8, 0):,} follow")
    _require_within(length, "header_bytes", f'"{name}", its header', limits)
    text = bytearray(length)
    _fill(memoryview(text), file, 8, name)
    return read_once(bytes(text), lambda fault: _no_safetensors(name, f"its header {fault}")), 8 + length


def _read_entries(header: dict[str, object], size: int, name: str, limits: Limits) -> dict[str, TensorEntry]:
    """Return the tensors of a header. Raises FormatError unless they are contiguous up to the end of the file."""
    entries = {key: _read_entry(key, value, name, limits) for key, value in header.items() if key != "__metadata__"}
    ordered = dict(sorted(entries.items(), key=lambda item: (item[1].begin, item[1].end)))
    end = 0
    for key, entry in ordered.items():
        if entry.begin != end:
            where = f"begins at byte {entry.begin:,}, but the one before it ends at {end:,}"
            raise _no_safetensors(name, f"tensor {json.dumps(key[:80])} {where}")
        end = entry.end
    if end != size:
        raise _no_safetensors(name, f"its tensors need {end:,} bytes, but {size:,} follow the header")
    return ordered


def _read_entry(key: str, value: object, name: str, limits: Limits) -> TensorEntry:
    fields = value if isinstance(value, dict) else {}
    dtype, shape, offsets = (fields.get(field) for field in ("dtype", "shape", "data_offsets"))
    if not isinstance(dtype, str) or not _are_sizes(shape) or not _are_sizes(offsets) or len(offsets) != 2:
        raise _no_safetensors(name, f"tensor {json.dumps(key[:80])} is not described by a dtype, a shape and two offsets")
    begin, end = offsets
    _require_within(len(shape), "rank", f'"{name}", tensor {json.dumps(key[:80])}', limits)
    known = _DTYPES.get(dtype)
    if end < begin or (known is not None and math.prod(shape) * known.itemsize != end - begin):
        raise _no_safetensors(name, f"tensor {json.dumps(key[:80])}, {dtype[:20]}{shape}, does not fit bytes {begin:,} to {end:,}")
    return TensorEntry(dtype[:20], tuple(shape), begin, end)


def _are_sizes(value: object) -> TypeGuard[list[int]]:
    return isinstance(value, list) and all(type(item) is int and 0 <= item < 2**63 for item in value)


def _fill(view: memoryview, file: io.FileIO, offset: int, name: str) -> None:
    """Fill `view` with the contents of a file from `offset` on. Raises ReadError if the file ends early or the system refuses."""
    done = 0
    try:
        file.seek(offset)
        while done < len(view):
            count = file.readinto(view[done : done + _CHUNK])
            if not count:
                raise ReadError(f'"{name}" was truncated while it was read', hint="download the file again")
            done += count
    except ReadError:  # also an OSError
        raise
    except OSError as error:
        raise ReadError(f'"{name}" cannot be read: {error.strerror}') from error


def _require_within(count: int, limit: str, where: str, limits: Limits) -> None:
    allowed = getattr(limits, limit)
    if count > allowed:
        what = f"{count:,} {'dimensions' if limit == 'rank' else limit.replace('_', ' ')}, but the limit is {allowed:,}"
        raise LimitError(f"{where}: {what}", hint=f"limits=Limits({limit}=...)")


def _no_safetensors(name: str, why: str) -> FormatError:
    return FormatError(f'"{name}" is not a valid safetensors file, or is truncated', given=[why])
