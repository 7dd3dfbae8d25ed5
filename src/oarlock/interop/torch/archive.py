"""Read `.pt2` archives, the files of `torch.export.save`, without running anything in them.

PyTorch's own reader unpickles objects and evaluates text of the file as Python. This reader loads the tensors as raw bytes, checked against
their metadata, and gives PyTorch a document that `archive_document.py` has reduced to plain data.
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
from oarlock.interop.torch.export import suppress_output
from oarlock.io.files import read_file
from oarlock.proto.limits import Limits
from oarlock.tensor.dtype import from_torch

__all__ = ["read_archive"]

_MOST_ENTRIES = 2**17
_MOST_REPEATED = 2**26  # bytes of elements that tensors may repeat beyond the archive's own bytes


def read_archive(path: str | os.PathLike[str], *, limits: Limits | None = None, untrusted: bool = False) -> ExportedProgram:
    """Read the exported program in the archive at `path`.

    Nothing in the file is run or unpickled; its example inputs are not read. Raises MissingFileError, ReadError, FormatError or LimitError.
    """
    limits = limits or Limits()
    data = read_file(path, largest=limits.file_bytes, limit="file_bytes", untrusted=untrusted)
    name = Path(path).name
    try:
        with suppress_output():
            return _read(data, limits)
    except OarlockError as error:
        raise type(error)(f'"{name}": {error.message}', given=error.given, hint=error.hint) from None
    except Exception as error:  # PyTorch has no exception type of its own for a malformed, possibly malicious file
        first = next((line.strip() for line in str(error).splitlines() if line.strip()), "")
        raise FormatError(
            f'"{name}" is not a readable archive of an exported program', given=[f"{type(error).__name__}: {first}"]
        ) from error


def _read(data: bytes, limits: Limits) -> ExportedProgram:
    entries = _entries(data)
    models = [path for path in entries if path.startswith("models/") and path.endswith(".json")]
    if len(models) != 1:
        raise FormatError(f"it holds {len(models)} exported programs, expected 1")
    name = models[0].removeprefix("models/").removesuffix(".json")
    document = clean_document(_json(entries[models[0]], limits), limits)
    weights = _tensors(entries, "data/weights/", f"{name}_weights_config.json", limits)
    constants = _tensors(entries, "data/constants/", f"{name}_constants_config.json", limits)
    return read_exported(document, weights, constants)


def _entries(data: bytes) -> dict[str, bytes]:
    """Return the archive's files by path, relative to its top folder.

    Entries must be uncompressed, so they cannot exceed the archive's size.
    """
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
        raise FormatError("it is not a zip archive, or it is truncated", given=[str(error)]) from error
    if len(found) != len(listed):
        raise FormatError("the archive has duplicate names")
    return found


def _json(data: bytes, limits: Limits) -> object:
    if len(data) > limits.program_bytes:
        raise LimitError(
            f"its model has {len(data):,} bytes; the limit is {limits.program_bytes:,}", hint="limits=Limits(program_bytes=...)"
        )
    values = data.count(b"{") + data.count(b"[")  # each one takes far more memory once parsed
    if values > limits.messages or data.count(b",") > limits.messages + limits.texts:
        raise LimitError("its model has too many parts", given=[f"{values:,} objects and lists"], hint="limits=Limits(messages=...)")
    try:
        return json.loads(data.decode("utf-8"))
    except (ValueError, RecursionError) as error:
        raise FormatError("its model is not JSON") from error


def _tensors(entries: Mapping[str, bytes], folder: str, config: str, limits: Limits) -> dict[str, torch.Tensor]:
    """Load the tensors listed in a configuration, by name. Tensors in one file share memory; their total size is bounded."""
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
        raise LimitError(f"its tensors take {sum(views.values()):,} bytes, but the archive holds only {held:,}")
    return found


def _tensor(
    key: str, item: object, entries: Mapping[str, bytes], folder: str, memory: dict[tuple[str, torch.dtype], torch.Tensor], limits: Limits
) -> torch.Tensor:
    if not isinstance(item, dict) or item.get("use_pickle") is not False or not isinstance(item.get("tensor_meta"), dict):
        raise FormatError(f"{key!r:.80} is pickled or is not a tensor", hint="pickles can run arbitrary code, so they are not read")
    meta, path = item["tensor_meta"], item.get("path_name")
    dtype = read_dtype(require_integer(meta.get("dtype")))
    if from_torch(dtype) is None:
        raise FormatError(f"{key!r:.80} has the unsupported dtype {str(dtype).removeprefix('torch.')}")
    sizes, strides = ([_number(size) for size in meta.get(part) or ()] for part in ("sizes", "strides"))
    offset = _number(meta.get("storage_offset") or {"as_int": 0})
    data = entries.get(f"{folder}{path}")
    if data is None or len(sizes) != len(strides) or len(sizes) > limits.rank or min([*sizes, *strides, offset]) < 0:
        raise FormatError(f"{key!r:.80} is not a valid tensor of the archive")
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
