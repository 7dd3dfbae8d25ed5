"""`.pt2` archives: what `torch.export.save` writes, read without running anything that is in them.

PyTorch's own reader unpickles, and evaluates text of the file as Python. This one takes the tensors as bytes, checked against what is
said of them, and gives PyTorch a document of which `archive_document.py` leaves nothing but data.
"""

import io
import json
import math
import os
import zipfile
from collections.abc import Mapping
from pathlib import Path

import torch
from torch.export import ExportedProgram

from oarlock.backend.torch.private import read_dtype, read_exported
from oarlock.errors import FormatError, LimitError, OarlockError
from oarlock.interop.torch.archive_document import clean_document, require_integer
from oarlock.interop.torch.export import quietly
from oarlock.io.files import read_file
from oarlock.proto.limits import Limits
from oarlock.tensor.dtype import from_torch

__all__ = ["read_archive"]

_MOST_ENTRIES = 2**17
_MOST_REPEATED = 2**26  # bytes of elements that stand in the archive once and in tensors often


def read_archive(path: str | os.PathLike[str], *, limits: Limits | None = None, untrusted: bool = False) -> ExportedProgram:
    """The exported program in the archive at `path`. Nothing in it is run or unpickled; the example's inputs in it are not read.

    Raises MissingFileError, ReadError, FormatError or LimitError.
    """
    limits = limits or Limits()
    data = read_file(path, largest=limits.file_bytes, limit="file_bytes", untrusted=untrusted)
    name = Path(path).name
    try:
        with quietly():
            return _read(data, limits)
    except OarlockError as error:
        raise type(error)(f'"{name}": {error.message}', given=error.given, hint=error.hint) from None
    except Exception as error:  # PyTorch takes apart what a stranger may have written, and has no errors of its own for that
        first = next((line.strip() for line in str(error).splitlines() if line.strip()), "")
        raise FormatError(
            f'"{name}" is no archive of an exported program that PyTorch reads', given=[f"{type(error).__name__}: {first}"]
        ) from error


def _read(data: bytes, limits: Limits) -> ExportedProgram:
    entries = _entries(data)
    models = [path for path in entries if path.startswith("models/") and path.endswith(".json")]
    if len(models) != 1:
        raise FormatError(f"it holds {len(models)} exported programs, where one is read")
    name = models[0].removeprefix("models/").removesuffix(".json")
    document = clean_document(_json(entries[models[0]], limits), limits)
    weights = _tensors(entries, "data/weights/", f"{name}_weights_config.json", limits)
    constants = _tensors(entries, "data/constants/", f"{name}_constants_config.json", limits)
    return read_exported(document, weights, constants)


def _entries(data: bytes) -> dict[str, bytes]:
    """The files of the archive by their paths below its folder. They are stored as they are, so they are no larger than it is."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            listed = archive.infolist()
            if len(listed) > _MOST_ENTRIES or sum(item.file_size for item in listed) > len(data):
                raise LimitError("its entries are larger than the archive")
            if any(item.compress_type != zipfile.ZIP_STORED or item.flag_bits & 1 for item in listed):
                raise FormatError("its entries are compressed, which torch.export.save does not do")
            found = {item.filename.partition("/")[2]: archive.read(item) for item in listed}
    except (zipfile.BadZipFile, NotImplementedError, EOFError, ValueError, OverflowError, RuntimeError) as error:
        if isinstance(error, OarlockError):
            raise
        raise FormatError("it is no zip archive, or is cut short", given=[str(error)]) from error
    if len(found) != len(listed):
        raise FormatError("a name stands twice in the archive")
    return found


def _json(data: bytes, limits: Limits) -> object:
    if len(data) > limits.program_bytes:
        raise LimitError(
            f"its model has {len(data):,} bytes, where {limits.program_bytes:,} are allowed", hint="limits=Limits(program_bytes=...)"
        )
    values = data.count(b"{") + data.count(b"[")  # each takes far more in memory than here
    if values > limits.messages or data.count(b",") > limits.messages + limits.texts:
        raise LimitError("its model has too many parts", given=[f"{values:,} objects and lists"], hint="limits=Limits(messages=...)")
    try:
        return json.loads(data.decode("utf-8"))
    except (ValueError, RecursionError) as error:
        raise FormatError("its model is not JSON") from error


def _tensors(entries: Mapping[str, bytes], folder: str, config: str, limits: Limits) -> dict[str, torch.Tensor]:
    """The tensors that a configuration lists, by name; those that share a file share memory, and are together not much more than it."""
    if f"{folder}{config}" not in entries:
        raise FormatError(f"it has no {config}", hint="save it again, with torch.export.save of PyTorch 2.9 or later")
    listed = _json(entries[f"{folder}{config}"], limits)
    listed = listed.get("config") if isinstance(listed, dict) else None
    if not isinstance(listed, dict):
        raise FormatError(f"{config} lists no tensors")
    memory: dict[tuple[str, torch.dtype], torch.Tensor] = {}
    found = {key: _tensor(key, item, entries, folder, memory, limits) for key, item in listed.items()}
    views = {(value.data_ptr(), value.shape, value.stride()): value.numel() * value.element_size() for value in found.values()}
    held = sum(len(data) for path, data in entries.items() if path.startswith(folder))
    if sum(views.values()) > held + _MOST_REPEATED:
        raise LimitError(f"its tensors have {sum(views.values()):,} bytes, of which the archive holds {held:,}")
    return found


def _tensor(
    key: str, item: object, entries: Mapping[str, bytes], folder: str, memory: dict[tuple[str, torch.dtype], torch.Tensor], limits: Limits
) -> torch.Tensor:
    if not isinstance(item, dict) or item.get("use_pickle") is not False or not isinstance(item.get("tensor_meta"), dict):
        raise FormatError(f"{key!r:.80} is pickled, or no tensor", hint="pickles run code of whoever wrote them, and are not read")
    meta, path = item["tensor_meta"], item.get("path_name")
    dtype = read_dtype(require_integer(meta.get("dtype")))
    if from_torch(dtype) is None:
        raise FormatError(f"{key!r:.80} is {str(dtype).removeprefix('torch.')}, which no program holds")
    sizes, strides = ([_number(size) for size in meta.get(part) or ()] for part in ("sizes", "strides"))
    offset = _number(meta.get("storage_offset") or {"as_int": 0})
    data = entries.get(f"{folder}{path}")
    if data is None or len(sizes) != len(strides) or len(sizes) > limits.rank or min([*sizes, *strides, offset]) < 0:
        raise FormatError(f"{key!r:.80} is no tensor that the archive holds")
    count = math.prod(sizes)
    if count > limits.elements or count * dtype.itemsize > limits.tensor_bytes:
        raise LimitError(f"{key!r:.80} has {count:,} elements", hint="limits=Limits(tensor_bytes=...)")
    last = offset + sum((size - 1) * stride for size, stride in zip(sizes, strides, strict=True)) if count else -1
    if last >= len(data) // dtype.itemsize:
        raise FormatError(f"{key!r:.80} is larger than its bytes")
    whole = memory.get((str(path), dtype))
    if whole is None:
        usable = len(data) // dtype.itemsize * dtype.itemsize
        whole = torch.frombuffer(bytearray(data[:usable]), dtype=dtype) if usable else torch.empty(0, dtype=dtype)
        memory[str(path), dtype] = whole
    value = whole.as_strided(sizes, strides, offset) if count else torch.empty(sizes, dtype=dtype)
    if item.get("is_param") is True:
        return torch.nn.Parameter(value, requires_grad=meta.get("requires_grad") is True and dtype.is_floating_point)
    return value


def _number(size: object) -> int:
    return require_integer(size.get("as_int") if isinstance(size, dict) else size)
