"""Checkpoints: folders that are there whole, or not at all. They are read here, and written by `checkpoint_writing.py`."""

import contextlib
import hashlib
import json
import os
import re
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import oarlock.training.checkpoint_writing as checkpoint_writing  # `from` would ask the package, which looks for what is like it
from oarlock.errors import FormatError, OarlockError, WriteError
from oarlock.io.files import open_file, open_within, read_file
from oarlock.training.checkpoint_writing import MANIFEST, NAME, PARTS, UNFINISHED

__all__ = [
    "find_checkpoints",
    "find_latest",
    "read_checkpoint",
    "remove_checkpoint",
    "remove_unfinished",
    "require_written",
    "sizes_of",
    "write_part",
]

_LARGEST, _LARGEST_MANIFEST, _LARGEST_LIST = 64 * 2**30, 2**26, 2**20  # bytes: of a file, a manifest, and the list of files in it
_FILES = re.compile(r'\s*\{\s*"files"\s*:\s*')


def find_checkpoints(folder: Path) -> dict[int, Path]:
    """The checkpoints in a folder by their steps, the oldest first; whole ones, or broken since."""
    return {step: Path(path) for step, path in checkpoint_writing.find_checkpoints(str(folder)).items()}


def find_latest(folder: Path) -> tuple[int, dict[str, Any]] | None:
    """The step of the newest checkpoint that is whole, and the state of the run in it; None where there is none."""
    for step, path in reversed(find_checkpoints(folder).items()):
        with contextlib.suppress(OarlockError):
            return step, read_checkpoint(path)
    return None


def read_checkpoint(path: Path) -> dict[str, Any]:
    """The state of the run in a checkpoint. Raises FormatError where it, or a file, is missing or is not what the manifest says."""
    try:
        manifest = json.loads(read_file(path / MANIFEST, largest=_LARGEST_MANIFEST, limit="file_bytes"))
        entries = {str(name): (int(entry["bytes"]), str(entry["sha256"])) for name, entry in manifest["files"].items() if "/" not in name}
        state, digest = manifest["state"], manifest["sha256"]
        is_right = hashlib.sha256(json.dumps(state).encode()).hexdigest() == digest
    except (OarlockError, ValueError, KeyError, TypeError, AttributeError, ArithmeticError, RecursionError, MemoryError) as error:
        raise FormatError(f'"{path}" is no whole checkpoint: its manifest cannot be read') from error
    if not is_right:
        raise FormatError(f'"{path}" is no whole checkpoint: the state in its manifest is not the one that was written')
    named = NAME.fullmatch(path.name)
    if named and int(named[1]) != state.get("steps"):  # a disk without power may have lost what came between
        raise FormatError(f'"{path}" is no whole checkpoint: its manifest is that of step {state.get("steps")}')
    for name, (size, digest) in entries.items():
        try:
            descriptor, actual = open_within(path / name, largest=_LARGEST, limit="file_bytes")
            with open(descriptor, "rb") as file:  # of another size, it is not read
                is_right = actual == size and hashlib.file_digest(file, "sha256").hexdigest() == digest
        except OarlockError as error:
            raise FormatError(f'"{path}" is no whole checkpoint: {error.message}') from error
        except OSError as error:
            raise FormatError(f'"{path}" is no whole checkpoint: "{name}" cannot be read: {error.strerror}') from error
        if not is_right:
            raise FormatError(f'"{path}" is no whole checkpoint: "{name}" is not the file that was written')
    return state


def sizes_of(path: Path) -> dict[str, int]:
    """The files of a checkpoint and their bytes, as the beginning of its manifest has them: the state, which may be long, is not read.

    Raises MissingFileError, FormatError and ReadError, OSError, and ValueError, KeyError, TypeError, AttributeError, ArithmeticError or
    RecursionError where it has not.
    """
    descriptor, _ = open_file(path / MANIFEST)
    with open(descriptor, "rb") as file:
        text = file.read(_LARGEST_LIST).decode(errors="replace")
    begin = _FILES.match(text)
    if begin is None:
        raise ValueError("it does not begin with files")
    entries, _ = json.JSONDecoder().raw_decode(text, begin.end())
    return {name: int(entry["bytes"]) for name, entry in entries.items() if "/" not in name}


def remove_checkpoint(path: Path) -> None:
    """Remove a checkpoint: first its name, so that nobody finds half of it. What the system refuses to remove stays."""
    checkpoint_writing.remove_checkpoint(str(path))


def remove_unfinished(folder: Path, *, parts: bool = True) -> None:
    """Remove what processes left there that were killed while they wrote or removed a checkpoint, `parts` of other workers too.

    Nobody else may be writing.
    """
    if folder.is_dir():
        for name in os.listdir(folder):
            if name.startswith(UNFINISHED) and (parts or not name.startswith(PARTS)):
                shutil.rmtree(folder / name, ignore_errors=True)


def require_written(folder: Path, step: int, answer: Mapping[str, object]) -> None:
    """Raise WriteError where who wrote the checkpoint of a step answers that it was not: which names the reason."""
    if "missing" in answer:
        raise WriteError(
            f'the checkpoint of step {step} in "{folder}" is not written: "{answer["missing"]}" of another worker did not come'
        )
    if "reason" in answer:
        raise WriteError(
            f'the checkpoint "{folder / f"step-{step:09d}"}" cannot be written: {answer["reason"]}',
            hint="make room or get the rights there",
        )


def write_part(folder: Path, step: int, name: str, data: bytes) -> None:
    """Write a file of the checkpoint of a step, which the worker that writes the rest of it waits for. Raises WriteError."""
    try:
        checkpoint_writing.write_part(str(folder), step, name, data)
    except OSError as error:
        raise WriteError(f'"{name}" of the checkpoint of step {step} in "{folder}" cannot be written: {error.strerror or error}') from error
