"""The model file format: a safetensors file, which any safetensors reader can open.

Tensors are stored under the names of their variables, and the program as a uint8 tensor, `oarlock.program`. The metadata key `oarlock`
holds the version of this layout and the SHA-256 of everything else. Reading a file runs no code, imports nothing and follows no paths in
it.
"""

import hashlib
import io
import json
import math
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple, NoReturn

import safetensors
import torch

from oarlock.errors import FormatError, LimitError, ReadError
from oarlock.io.atomic_write import write_file
from oarlock.io.files import open_within
from oarlock.ir.dtype import DType
from oarlock.proto.limits import Limits
from oarlock.tensor.dtype import from_bytes, from_torch, to_torch

__all__ = ["DTYPES", "PROGRAM", "Layout", "as_declared", "as_stored", "lay_out", "read_container", "read_once", "write_container"]

PROGRAM = "oarlock.program"
_VERSION = "1"
_PEEKED = 2**12  # bytes of a file to check first
_NAMES = {
    DType.FLOAT16: "F16",
    DType.BFLOAT16: "BF16",
    DType.FLOAT32: "F32",
    DType.FLOAT64: "F64",
    DType.INT8: "I8",
    DType.INT16: "I16",
    DType.INT32: "I32",
    DType.INT64: "I64",
    DType.UINT8: "U8",
    DType.BOOL: "BOOL",
}
_ORDER = [
    "I64",
    "F64",
    "F32",
    "I32",
    "BF16",
    "F16",
    "I16",
    "I8",
    "U8",
    "BOOL",
]  # the order of tensors in a file, as safetensors writes them
DTYPES = {name: dtype for dtype, name in _NAMES.items()}
"""The dtypes of the tensors of model files, by the names that safetensors gives them.

Complex numbers are stored as F32 or F64 parts with an additional last axis of size 2, because safetensors has no complex128.
"""


def write_container(place: str | os.PathLike[str] | io.BufferedIOBase, program: bytes, tensors: Mapping[str, torch.Tensor]) -> None:
    """Write to an open file, or to a path atomically: a reader finds either the old file or the complete new one.

    Equal contents give equal bytes.
    """
    held = {PROGRAM: torch.frombuffer(bytearray(program), dtype=torch.uint8)}
    held |= {name: as_stored(tensors[name].detach().cpu().contiguous()) for name in tensors}
    digest = _digest({name: _as_item(tensor) for name, tensor in held.items()})
    data = safetensors.serialize({name: _spec(tensor) for name, tensor in held.items()}, {"oarlock": f"{_VERSION} {digest}"})
    if isinstance(place, str | os.PathLike):
        write_file(place, data)
    else:
        place.write(data)


class Layout(NamedTuple):
    """The layout of a tensor file: its `header`, the offset and size of each tensor, and the size of the file.

    For a model, `digest` is the offset of the SHA-256 of the tensors in the header (64 zeros as a placeholder), and `digested` is its
    input: for each tensor, a text, and the offset and size of the tensor.
    """

    header: bytes
    places: dict[str, tuple[int, int]]
    size: int
    digest: int = 0
    digested: Sequence[tuple[str, int, int]] = ()


def lay_out(tensors: Mapping[str, torch.Tensor], *, model: bool = True) -> Layout:
    """Return the layout of the file that `write_container` writes for a program and tensors, or of a file with only tensors.

    `tensors` includes the program. Filling in the layout gives the same bytes, without needing this package or PyTorch.
    """
    items = {name: _described(as_stored(tensor)) for name, tensor in tensors.items()}
    places, entries, end = dict[str, tuple[int, int]](), dict[str, object](), 0
    if model:
        entries["__metadata__"] = {"oarlock": f"{_VERSION} {'0' * 64}"}
    for name in sorted(items, key=lambda name: (_ORDER.index(items[name][0]), name)):
        dtype, shape, size = items[name]
        places[name] = end, size
        entries[name] = {"dtype": dtype, "shape": shape, "data_offsets": [end, end + size]}
        end += size
    text = json.dumps(entries, separators=(",", ":"), ensure_ascii=False).encode()
    text += b" " * (-len(text) % 8)
    header = len(text).to_bytes(8, "little") + text
    places = {name: (len(header) + begin, size) for name, (begin, size) in places.items()}
    digested = [(_digest_line(name, *items[name]), *places[name]) for name in sorted(items)]
    at = header.index(b"0" * 64) if model else 0
    return Layout(header, places, len(header) + end, at, digested if model else ())


def _described(tensor: torch.Tensor) -> tuple[str, list[int], int]:
    """Return the safetensors dtype name of a tensor, its shape, and its size in bytes."""
    dtype = from_torch(tensor.dtype)
    assert dtype is not None, "a scope has only tensors of known dtypes"
    return _NAMES[dtype], list(tensor.shape), tensor.nbytes


def as_stored(tensor: torch.Tensor) -> torch.Tensor:
    """Return a tensor as it is stored in a file: complex numbers as their parts, with an additional last axis."""
    return torch.view_as_real(tensor) if tensor.is_complex() else tensor


def as_declared(tensor: torch.Tensor, dtype: DType) -> torch.Tensor:
    """Return a stored tensor with the dtype of its variable: a last axis of parts becomes complex numbers, other tensors are unchanged."""
    parts = dtype.is_complex and tensor.dtype is to_torch(dtype.real) and tensor.shape[-1:] == (2,)
    return torch.view_as_complex(tensor) if parts else tensor


def read_container(
    path: str | os.PathLike[str] | bytes, *, limits: Limits | None = None, untrusted: bool = False
) -> tuple[bytes, dict[str, torch.Tensor]]:
    """Read the serialized program and the tensors of a file, or of the bytes of one.

    An `untrusted` file must not be a link. The file is read once, through a single descriptor. Raises MissingFileError, ReadError,
    LimitError or FormatError.
    """
    limits = limits or Limits()
    if isinstance(path, bytes):
        name, data = "the model", path
    else:
        name, data = Path(path).name, _read_whole(path, limits, untrusted)
    metadata = _read_metadata(data, name, limits)
    try:
        items = dict(safetensors.deserialize(data))
    except safetensors.SafetensorError as error:
        raise FormatError(f'"{name}" is not a valid safetensors file, or is truncated', given=[str(error)]) from error
    marker = metadata.get("oarlock", "").split(" ")
    if PROGRAM not in items or len(marker) != 2:
        raise FormatError(
            f'"{name}" is a safetensors file, but not a model of Oarlock',
            given=[f"none of its {len(items)} tensors is {PROGRAM}"] if PROGRAM not in items else (),
            hint="use a file written by ol.save_model, which also contains a program",
        )
    if marker[0] != _VERSION:
        raise FormatError(f'"{name}" has layout version {marker[0][:20]}; this Oarlock reads version {_VERSION}')
    if marker[1] != _digest(items):
        raise FormatError(f'"{name}" is damaged: its SHA-256 differs', hint="download or save the file again")
    program = items.pop(PROGRAM)
    if program["dtype"] != "U8" or len(program["shape"]) != 1:  # type: ignore[arg-type]
        raise FormatError(f'"{name}": {PROGRAM} must be one row of U8, not {program["dtype"]} of {len(program["shape"])} dimensions')  # type: ignore[arg-type]
    return bytes(program["data"]), {key: _tensor(item, key, name, limits) for key, item in items.items()}


def _read_whole(path: str | os.PathLike[str], limits: Limits, untrusted: bool) -> bytes:
    """Read a file, or only its beginning if its first 8 bytes are not a valid header length, as in a large sparse file."""
    descriptor, size = open_within(path, largest=limits.file_bytes, limit="file_bytes", untrusted=untrusted)
    try:
        with open(descriptor, "rb") as file:
            begin = file.read(min(size, _PEEKED))
            is_plausible = 0 < int.from_bytes(begin[:8], "little") <= size - 8
            return begin + file.read(size - len(begin)) if is_plausible else begin
    except OSError as error:
        raise ReadError(f'"{os.fspath(path)}" cannot be read: {error.strerror or error}') from error


def _as_item(tensor: torch.Tensor) -> dict[str, object]:
    """Return a tensor in the form that the safetensors reader returns."""
    dtype, shape, _ = _described(tensor)
    data = tensor.reshape(-1).view(torch.uint8).numpy().data if tensor.numel() else b""
    return {"dtype": dtype, "shape": shape, "data": data}


def _spec(tensor: torch.Tensor) -> safetensors.TensorSpec:
    """Return a tensor in the form that the safetensors writer takes. Unlike `safetensors.torch.save`, it lets tensors share memory."""
    name = str(tensor.dtype).removeprefix("torch.")
    return safetensors.TensorSpec(dtype=name, shape=list(tensor.shape), data_ptr=tensor.data_ptr(), data_len=tensor.nbytes)


def _read_metadata(data: bytes, name: str, limits: Limits) -> dict[str, str]:
    """Return the metadata of the header. Other errors in it are left to the safetensors reader."""
    length = int.from_bytes(data[:8], "little")
    if len(data) >= 8 and length > limits.header_bytes and len(data) >= 8 + length:
        raise LimitError(
            f'"{name}" has a header of {length:,} bytes, but the limit is {limits.header_bytes:,}',
            hint="limits=Limits(header_bytes=...)",
        )
    try:
        # Decoded here: for bytes, json would guess an encoding, and import its codec.
        header = json.loads(data[8 : 8 + length].decode("utf-8"), object_pairs_hook=_once) if 8 + length <= len(data) else None
    except _TwiceError:
        raise FormatError(f'"{name}" is not a valid safetensors file, or is truncated', given=["its header has a duplicate name"]) from None
    except (ValueError, RecursionError):
        header = None
    metadata = header.get("__metadata__", {}) if isinstance(header, dict) else {}
    return {key: value for key, value in metadata.items() if isinstance(value, str)} if isinstance(metadata, dict) else {}


def read_once(text: bytes, refused: Callable[[str], Exception]) -> dict[str, object]:
    """Parse a JSON object without duplicate names. Raises `refused(reason)` for anything else."""
    try:
        # Decoded here: for bytes, json would guess an encoding, and import its codec.
        found = json.loads(text.decode("utf-8"), object_pairs_hook=_once, parse_constant=_refuse_constant)
    except _TwiceError:
        raise refused("has a duplicate name") from None
    except (ValueError, RecursionError):
        raise refused("is not JSON") from None
    if not isinstance(found, dict):
        raise refused("is not a JSON object")
    return found


class _TwiceError(ValueError):
    """A duplicate name in a JSON object: readers differ in which value they use."""


def _refuse_constant(text: str) -> NoReturn:
    """Raise ValueError for NaN and infinities, which Python's parser accepts although JSON does not have them."""
    raise ValueError(text)


def _once(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise _TwiceError
    return found


def _digest(items: Mapping[str, Mapping[str, object]]) -> str:
    """Return the SHA-256 of all tensors in name order: name, dtype, shape and bytes of each."""
    digest = hashlib.sha256()
    for name in sorted(items):
        item = items[name]
        data = item["data"]
        digest.update(_digest_line(name, item["dtype"], item["shape"], len(data)).encode())  # type: ignore[arg-type]
        digest.update(data)  # type: ignore[arg-type]
    return digest.hexdigest()


def _digest_line(name: str, dtype: object, shape: Iterable[int], size: int) -> str:
    """Return the text that precedes the bytes of a tensor in the digest."""
    return json.dumps([name, dtype, list(shape), size])


def _tensor(item: Mapping[str, object], key: str, name: str, limits: Limits) -> torch.Tensor:
    dtype = DTYPES.get(str(item["dtype"]))
    if dtype is None:
        raise FormatError(f'"{name}": tensor {json.dumps(key[:80])} has the dtype {item["dtype"]}, which programs do not support')
    shape: list[int] = item["shape"]  # type: ignore[assignment]
    data: bytes = item["data"]  # type: ignore[assignment]
    elements = math.prod(max(size, 1) for size in shape)
    for count, limit in ((len(shape), "rank"), (elements, "elements"), (elements * dtype.itemsize, "tensor_bytes")):
        allowed = getattr(limits, limit)
        if count > allowed:
            what = f"{count:,} {limit.replace('_', ' ')}, but the limit is {allowed:,}"
            raise LimitError(f'"{name}", tensor {json.dumps(key[:80])}: {what}', hint=f"limits=Limits({limit}=...)")
    return from_bytes(data, shape, to_torch(dtype))
