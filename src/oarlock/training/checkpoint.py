"""Checkpoints: folders that are there whole, or not at all."""

import contextlib
import hashlib
import json
import os
import re
import secrets
import shutil
import time
from collections.abc import Collection, Mapping
from pathlib import Path

from oarlock.errors import FormatError, OarlockError, WriteError
from oarlock.io.files import read_file

__all__ = ["find_checkpoints", "find_latest", "read_checkpoint", "remove_checkpoint", "remove_unfinished", "write_checkpoint", "write_part"]

_MANIFEST = "manifest.json"
_NAME = re.compile(r"step-(\d{1,18})")
_UNFINISHED = ".unfinished-"
_ABOUT = ".manifest"  # after the name of a part, whose entry it holds
_LARGEST = 64 * 2**30  # bytes of a file
_TO_COME = 20.0  # seconds for the parts of other workers, once all else is written: less than an exchange waits for a worker


def write_checkpoint(folder: Path, step: int, files: "Mapping[str, bytes | memoryview]", *, parts: Collection[str] = ()) -> Path:
    """Write `files` as the checkpoint of a step: into a folder of another name, each to the disk, and last a manifest with their sizes and
    SHA-256; only then does the folder get its name. `parts` are files that other workers write of it (`write_part`), which are waited for.

    Whatever ends this early leaves no checkpoint of this step, and those before it as they are. One that is there already stays. Raises
    WriteError where the system refuses: no room, no rights, a disk that does not take what it is given; and where a part does not come.
    """
    final = folder / f"step-{step:09d}"
    if final.exists():
        return final
    temporary = folder / f"{_UNFINISHED}{secrets.token_hex(8)}"
    manifest = {name: _entry(data) for name, data in files.items()}
    try:
        os.mkdir(temporary)
        for name, data in files.items():
            _write(temporary / name, data)
        manifest |= _take_parts(folder, step, temporary, parts)
        _write(temporary / _MANIFEST, json.dumps(manifest, indent=1).encode())
        _sync_folder(temporary)
        os.rename(temporary, final)
        _sync_folder(folder)
    except OSError as error:
        shutil.rmtree(temporary, ignore_errors=True)
        raise WriteError(
            f'the checkpoint "{final}" cannot be written: {error.strerror or error}', hint="make room or get the rights there"
        ) from error
    except BaseException:
        shutil.rmtree(temporary, ignore_errors=True)
        raise
    finally:
        if parts:
            shutil.rmtree(_folder_of_parts(folder, step), ignore_errors=True)
    return final


def write_part(folder: Path, step: int, name: str, data: bytes) -> None:
    """Write a file of the checkpoint of a step, which the worker that writes the rest of it waits for. Raises WriteError."""
    parts = _folder_of_parts(folder, step)
    try:
        parts.mkdir(exist_ok=True)
        _write(parts / name, data)
        about = parts / f"{name}{_ABOUT}"
        _write(about.with_suffix(".new"), json.dumps(_entry(data)).encode())
        os.rename(about.with_suffix(".new"), about)
    except OSError as error:
        raise WriteError(f'"{name}" of the checkpoint of step {step} in "{folder}" cannot be written: {error.strerror or error}') from error


def _folder_of_parts(folder: Path, step: int) -> Path:
    return folder / f"{_UNFINISHED}parts-{step:09d}"


def _take_parts(folder: Path, step: int, into: Path, names: Collection[str]) -> dict[str, dict[str, object]]:
    """Move the parts of other workers into the folder of the checkpoint; return their entries of the manifest."""
    parts, found = _folder_of_parts(folder, step), {}
    until = time.monotonic() + _TO_COME
    for name in names:
        while not (parts / f"{name}{_ABOUT}").exists():
            if time.monotonic() > until:
                raise WriteError(f'the checkpoint of step {step} in "{folder}" is not written: "{name}" of another worker did not come')
            time.sleep(0.005)
        found[name] = json.loads((parts / f"{name}{_ABOUT}").read_bytes())
        os.rename(parts / name, into / name)
    return found


def _entry(data: bytes | memoryview) -> dict[str, object]:
    return {"bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}


def find_checkpoints(folder: Path) -> dict[int, Path]:
    """The checkpoints in a folder by their steps, the oldest first; whole ones, or broken since."""
    if not folder.is_dir():
        return {}
    with os.scandir(folder) as entries:
        found = {int(match[1]): entry.name for entry in entries if (match := _NAME.fullmatch(entry.name)) and entry.is_dir()}
    return {step: folder / found[step] for step in sorted(found)}


def find_latest(folder: Path) -> tuple[int, dict[str, bytes]] | None:
    """The step and the files of the newest checkpoint whose manifest is right; None where there is none."""
    for step, path in reversed(find_checkpoints(folder).items()):
        with contextlib.suppress(OarlockError):
            return step, read_checkpoint(path)
    return None


def read_checkpoint(path: Path) -> dict[str, bytes]:
    """The files of a checkpoint, by name. Raises FormatError where one is missing, or is not what the manifest says."""
    try:
        manifest = json.loads(read_file(path / _MANIFEST, largest=2**20, limit="file_bytes"))
        names = {str(name): (int(entry["bytes"]), str(entry["sha256"])) for name, entry in manifest.items() if "/" not in name}
    except (OarlockError, ValueError, KeyError, TypeError, AttributeError, ArithmeticError, RecursionError) as error:
        raise FormatError(f'"{path}" is no whole checkpoint: its manifest cannot be read') from error
    files = {}
    for name, (size, digest) in names.items():
        try:
            data = read_file(path / name, largest=_LARGEST, limit="file_bytes")
        except OarlockError as error:
            raise FormatError(f'"{path}" is no whole checkpoint: {error.message}') from error
        if len(data) != size or hashlib.sha256(data).hexdigest() != digest:
            raise FormatError(f'"{path}" is no whole checkpoint: "{name}" is not the file that was written')
        files[name] = data
    return files


def remove_checkpoint(path: Path) -> None:
    """Remove a checkpoint: first its name, so that nobody finds half of it. What the system refuses to remove stays."""
    with contextlib.suppress(OSError):
        gone = f"{path.parent}{os.sep}{_UNFINISHED}{secrets.token_hex(8)}"
        os.rename(path, gone)
        _remove_folder(gone)


def _remove_folder(path: str) -> None:
    """Remove a folder of files, as far as the system lets us: by few calls, since a run trains beside them."""
    try:
        for name in os.listdir(path):
            os.unlink(f"{path}{os.sep}{name}")
        os.rmdir(path)
    except OSError:  # somebody's folder stands in it
        shutil.rmtree(path, ignore_errors=True)


def remove_unfinished(folder: Path) -> None:
    """Remove what processes left there that were killed while they wrote or removed a checkpoint. Nobody else may be writing."""
    if folder.is_dir():
        for path in folder.iterdir():
            if path.name.startswith(_UNFINISHED):
                shutil.rmtree(path, ignore_errors=True)


def _write(path: Path, data: bytes | memoryview) -> None:
    with open(path, "xb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def _sync_folder(folder: Path) -> None:
    if os.name == "posix":
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
