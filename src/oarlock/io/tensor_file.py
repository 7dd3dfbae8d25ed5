"""A safetensors file of anybody's: what tensors it holds, and one of them when it is asked for. The rest of it is never read.

Elements are read into the memory in which they stay. A mapping of the file would hold them twice, since memory of ours begins where
kernels read it fastest, and would end the process when somebody cuts the file meanwhile.
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
_CHUNK = 2**30  # bytes; some systems read no more at once than 2**31


class TensorEntry(NamedTuple):
    """A tensor of a file: its dtype as the file spells it, its shape, and where its bytes begin and end."""

    dtype: str
    shape: tuple[int, ...]
    begin: int
    end: int

    @property
    def known_dtype(self) -> DType | None:
        """The dtype; None for one that no program holds."""
        return _DTYPES.get(self.dtype)

    @property
    def type_text(self) -> str:
        """`float32[2, 3]`."""
        return f"{self.known_dtype or self.dtype}{format_shape(self.shape)}"


@dataclass
class TensorFile:
    """An open safetensors file; a `with` block closes it. `entries` are its tensors by name, in the order of their bytes."""

    name: str
    entries: dict[str, TensorEntry]
    limits: Limits
    _file: io.FileIO
    _data_begin: int

    @classmethod
    def open(cls, path: str | os.PathLike[str], *, limits: Limits | None = None, untrusted: bool = False) -> "TensorFile":
        """Open a file and read its header. An `untrusted` one must be no link.

        Raises MissingFileError, ReadError, LimitError, and FormatError for a file that is not laid out as safetensors lays out: every
        byte after the header belongs to one tensor, whose size is that of its shape.
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
        """Close the file; nothing is read from it afterwards."""
        self._file.close()

    def read(self, name: str) -> torch.Tensor:
        """One of its tensors, in memory of its own. Raises FormatError for a dtype that no program holds, LimitError, ReadError."""
        entry = self.entries[name]
        dtype = entry.known_dtype
        if dtype is None:
            raise FormatError(f'"{self.name}": tensor {json.dumps(name[:80])} has the dtype {entry.dtype}, which no program holds')
        elements = math.prod(max(size, 1) for size in entry.shape)
        for count, limit in ((elements, "elements"), (elements * dtype.itemsize, "tensor_bytes")):
            _require_within(count, limit, f'"{self.name}", tensor {json.dumps(name[:80])}', self.limits)
        tensor = torch.empty(entry.shape, dtype=to_torch(dtype))
        if entry.end > entry.begin:
            _fill(tensor.reshape(-1).view(torch.uint8).numpy().data, self._file, self._data_begin + entry.begin, self.name)
            if dtype is DType.BOOL and bool((tensor.view(torch.uint8) > 1).any()):
                raise FormatError(f'"{self.name}": tensor {json.dumps(name[:80])} is BOOL, and holds bytes other than 0 and 1')
        return tensor


def _read_header(file: io.FileIO, size: int, name: str, limits: Limits) -> tuple[dict[str, object], int]:
    """The header as JSON, and where the tensors begin."""
    prefix = bytearray(8)
    if size >= 8:
        _fill(memoryview(prefix), file, 0, name)
    length = int.from_bytes(prefix, "little")
    if size < 8 or length > size - 8:
        raise _no_safetensors(name, f"its first 8 bytes say that {length:,} bytes of header follow, where it has {max(size - 8, 0):,}")
    _require_within(length, "header_bytes", f'"{name}", its header', limits)
    text = bytearray(length)
    _fill(memoryview(text), file, 8, name)
    return read_once(bytes(text), lambda fault: _no_safetensors(name, f"its header {fault}")), 8 + length


def _read_entries(header: dict[str, object], size: int, name: str, limits: Limits) -> dict[str, TensorEntry]:
    """The tensors that a header lists. Raises FormatError where they are not one after another, up to the end of the file."""
    entries = {key: _read_entry(key, value, name, limits) for key, value in header.items() if key != "__metadata__"}
    ordered = dict(sorted(entries.items(), key=lambda item: (item[1].begin, item[1].end)))
    end = 0
    for key, entry in ordered.items():
        if entry.begin != end:
            where = f"begins at byte {entry.begin:,}, where the one before it ends at {end:,}"
            raise _no_safetensors(name, f"tensor {json.dumps(key[:80])} {where}")
        end = entry.end
    if end != size:
        raise _no_safetensors(name, f"its tensors take {end:,} bytes, where {size:,} follow the header")
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
        raise _no_safetensors(name, f"tensor {json.dumps(key[:80])}, {dtype[:20]}{shape}, lies in bytes {begin:,} to {end:,}")
    return TensorEntry(dtype[:20], tuple(shape), begin, end)


def _are_sizes(value: object) -> TypeGuard[list[int]]:
    return isinstance(value, list) and all(type(item) is int and 0 <= item < 2**63 for item in value)


def _fill(view: memoryview, file: io.FileIO, offset: int, name: str) -> None:
    """Fill `view` with what a file holds from `offset` on. Raises ReadError where it ends before, or the system refuses."""
    done = 0
    try:
        file.seek(offset)
        while done < len(view):
            count = file.readinto(view[done : done + _CHUNK])
            if not count:
                raise ReadError(f'"{name}" was cut while it was read', hint="fetch the file again")
            done += count
    except ReadError:  # an OSError too
        raise
    except OSError as error:
        raise ReadError(f'"{name}" cannot be read: {error.strerror}') from error


def _require_within(count: int, limit: str, where: str, limits: Limits) -> None:
    allowed = getattr(limits, limit)
    if count > allowed:
        what = f"{count:,} {'dimensions' if limit == 'rank' else limit.replace('_', ' ')}, where {allowed:,} are allowed"
        raise LimitError(f"{where}: {what}", hint=f"limits=Limits({limit}=...)")


def _no_safetensors(name: str, why: str) -> FormatError:
    return FormatError(f'"{name}" is not a safetensors file, or is cut short', given=[why])
