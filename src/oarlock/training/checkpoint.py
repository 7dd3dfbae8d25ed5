"""Reading checkpoints, which are folders that exist completely or not at all. `checkpoint_writing.py` writes them."""

import contextlib
import hashlib
import json
import os
import re
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import oarlock.training.checkpoint_writing as checkpoint_writing  # `from` would trigger the package's `__getattr__`
from oarlock.errors import FormatError, OarlockError, WriteError
from oarlock.io.files import open_file, open_within, read_file
from oarlock.training.checkpoint_writing import MANIFEST, NAME, PARTS, UNFINISHED
from oarlock.training.records import EpochRecord, ValidationRecord

__all__ = [
    "SavedState",
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
    """Return the checkpoints in a folder by step, oldest first; some may be damaged."""
    return {step: Path(path) for step, path in checkpoint_writing.find_checkpoints(str(folder)).items()}


def find_latest(folder: Path) -> tuple[int, dict[str, Any]] | None:
    """Return the step of the newest intact checkpoint and the state of the run in it, or None if there is none."""
    for step, path in reversed(find_checkpoints(folder).items()):
        with contextlib.suppress(OarlockError):
            return step, read_checkpoint(path)
    return None


def read_checkpoint(path: Path) -> dict[str, Any]:
    """Verify a checkpoint, and return the state of the run in it. Raises FormatError if a file is missing or differs from the manifest."""
    try:
        manifest = json.loads(read_file(path / MANIFEST, largest=_LARGEST_MANIFEST, limit="file_bytes"))
        entries = {str(name): (int(entry["bytes"]), str(entry["sha256"])) for name, entry in manifest["files"].items() if "/" not in name}
        state, digest = manifest["state"], manifest["sha256"]
        is_right = hashlib.sha256(json.dumps(state).encode()).hexdigest() == digest
    except (OarlockError, ValueError, KeyError, TypeError, AttributeError, ArithmeticError, RecursionError, MemoryError) as error:
        raise FormatError(f'the checkpoint "{path}" is damaged: its manifest cannot be read') from error
    if not is_right:
        raise FormatError(f'the checkpoint "{path}" is damaged: the state in its manifest has a wrong checksum')
    named = NAME.fullmatch(path.name)
    if named and int(named[1]) != state.get("steps"):  # possible after a power failure
        raise FormatError(f'the checkpoint "{path}" is damaged: its manifest belongs to step {state.get("steps")}')
    for name, (size, digest) in entries.items():
        try:
            descriptor, actual = open_within(path / name, largest=_LARGEST, limit="file_bytes")
            with open(descriptor, "rb") as file:  # read only if the size matches
                is_right = actual == size and hashlib.file_digest(file, "sha256").hexdigest() == digest
        except OarlockError as error:
            raise FormatError(f'the checkpoint "{path}" is damaged: {error.message}') from error
        except OSError as error:
            raise FormatError(f'the checkpoint "{path}" is damaged: "{name}" cannot be read: {error.strerror}') from error
        if not is_right:
            raise FormatError(f'the checkpoint "{path}" is damaged: "{name}" has a wrong size or checksum')
    return state


def sizes_of(path: Path) -> dict[str, int]:
    """Return the files of a checkpoint and their sizes in bytes.

    Only the beginning of the manifest is read, not the state, which may be long. Raises MissingFileError, FormatError, ReadError or
    OSError; ValueError, KeyError, TypeError, AttributeError, ArithmeticError or RecursionError for a malformed manifest.
    """
    descriptor, _ = open_file(path / MANIFEST)
    with open(descriptor, "rb") as file:
        text = file.read(_LARGEST_LIST).decode(errors="replace")
    begin = _FILES.match(text)
    if begin is None:
        raise ValueError("the manifest does not begin with its files")
    entries, _ = json.JSONDecoder().raw_decode(text, begin.end())
    return {name: int(entry["bytes"]) for name, entry in entries.items() if "/" not in name}


def remove_checkpoint(path: Path) -> None:
    """Remove a checkpoint. It is renamed first, so readers never see a partial checkpoint. Errors of the system are ignored."""
    checkpoint_writing.remove_checkpoint(str(path))


def remove_unfinished(folder: Path, *, parts: bool = True) -> None:
    """Remove files left by processes that were killed while they wrote or removed a checkpoint, with `parts` also those of other workers.

    No other process may be writing.
    """
    if folder.is_dir():
        for name in os.listdir(folder):
            if name.startswith(UNFINISHED) and (parts or not name.startswith(PARTS)):
                shutil.rmtree(folder / name, ignore_errors=True)


def require_written(folder: Path, step: int, answer: Mapping[str, object]) -> None:
    """Raise WriteError if the writer's answer reports that the checkpoint of `step` was not written."""
    if "missing" in answer:
        raise WriteError(f'the checkpoint of step {step} in "{folder}" was not written: another worker did not write "{answer["missing"]}"')
    if "reason" in answer:
        raise WriteError(
            f'the checkpoint "{folder / f"step-{step:09d}"}" cannot be written: {answer["reason"]}',
            hint="free disk space, or check the permissions",
        )


def write_part(folder: Path, step: int, name: str, data: bytes) -> None:
    """Write a worker's file of the checkpoint of `step`; the worker that writes the checkpoint waits for it. Raises WriteError."""
    try:
        checkpoint_writing.write_part(str(folder), step, name, data)
    except OSError as error:
        raise WriteError(f'"{name}" of the checkpoint of step {step} in "{folder}" cannot be written: {error.strerror or error}') from error


@dataclass(frozen=True)
class SavedState:
    """The progress and metrics in a checkpoint: the finished epochs, and the sums of the current one.

    `per_epoch` is the number of batches per epoch, if known; `is_ended`: whether `on_epoch` ended the run.
    """

    steps: int
    history: list[EpochRecord]
    rows: int
    totals: dict[str, float]
    per_epoch: int | None
    is_ended: bool
    validations: list[ValidationRecord] = field(default_factory=list)

    def to_bytes(self) -> bytes:
        """Return the state as JSON. The text of each record is cached, because the history grows and checkpoints delay training."""
        held = {name: value for name, value in vars(self).items() if name not in ("history", "validations")}
        history, validations = (", ".join([record.text for record in records]) for records in (self.history, self.validations))
        return f'{{"history": [{history}], "validations": [{validations}], {json.dumps(held)[1:]}'.encode()

    @classmethod
    def from_json(cls, held: dict[str, Any], where: str) -> "SavedState":
        """Return the state from parsed JSON. Raises FormatError, which mentions `where` it was."""
        try:
            history = [EpochRecord(**record) for record in held["history"]]
            validations = [ValidationRecord(**record) for record in held["validations"]]
            return cls(**{**held, "history": history, "validations": validations})
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise FormatError(f"the state of the checkpoint of {where} cannot be read") from error
