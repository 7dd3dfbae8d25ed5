"""Read-only access to a run folder. Takes no lock, runs no code, and treats the contents as untrusted."""

import json
import math
import os
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from oarlock.errors import FormatError, MissingFileError, OarlockError
from oarlock.io.files import read_file
from oarlock.training.checkpoint import find_checkpoints, sizes_of
from oarlock.training.configuration import read_tables
from oarlock.training.folder_lock import is_running
from oarlock.training.metric_log import LOG, MetricLog, read_log
from oarlock.training.records import EpochRecord, ValidationRecord

__all__ = ["CheckpointRecord", "RunRecord", "higher_is_better"]

_LARGEST = 2**20  # bytes of run.json
_RISING = (
    "accuracy",
    "precision",
    "recall",
    "f1",
    "auc",
    "iou",
    "score",
    "r2",
)  # words in the names of metrics that are better when higher


@dataclass(frozen=True)
class CheckpointRecord:
    """A checkpoint: its step, folder and size in bytes, and whether its files exist with the sizes in its manifest."""

    step: int
    path: Path
    bytes: int
    is_whole: bool


@dataclass(frozen=True)
class RunRecord:
    """The contents of a run folder: `about` (run.json), `log` (metrics.jsonl) and `settings` (config.toml)."""

    path: Path
    about: dict[str, Any]
    log: MetricLog = field(repr=False)
    settings: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def read(cls, folder: str | os.PathLike[str], *, untrusted: bool = False, follow: bool = True) -> "RunRecord":
        """Read a run folder: finished, running or interrupted.

        With `untrusted=True`, it must contain no links to files or folders; with `follow=False`, the files that are read must not be
        links. Raises MissingFileError if there is no run, FormatError if its description is invalid, ReadError or LimitError.
        """
        path = Path(folder)
        if not (path / "run.json").is_file():
            runs = sorted(child.parent.name for child in path.glob("*/run.json"))
            inside = f"use a run inside it, such as {path / runs[0]} (the first of {len(runs)})" if runs else None
            raise MissingFileError(f'"{path}" is not a run folder: it has no run.json', hint=inside)
        inside = path / "checkpoints"
        link = next((folder for folder in (inside, *inside.glob("step-*")) if untrusted and folder.is_symlink()), None)
        if link is not None:
            raise FormatError(
                f'"{link}" is a symbolic link, which is not allowed in an untrusted folder', hint="copy the folder with cp -rL"
            )
        about, settings = _read_about(path, untrusted, follow), _read_settings(path, untrusted, follow)
        return cls(path, about, read_log(path / LOG, untrusted=untrusted, follow=follow), settings)

    @property
    def name(self) -> str:
        """The name of the folder."""
        return self.path.resolve().name or str(self.path)

    @property
    def program_hash(self) -> str:
        """The content hash of the program."""
        return str(self.about["program"])

    @property
    def epochs(self) -> int:
        """The number of epochs to train, as of the last start or resumption."""
        return next((begun.epochs for begun in reversed(self.log.sessions) if begun.epochs is not None), self.about["training"]["epochs"])

    @property
    def history(self) -> list[EpochRecord]:
        """The finished epochs."""
        return self.log.epochs

    @property
    def validations(self) -> list[ValidationRecord]:
        """The validations of a run with `validate_every`."""
        return self.log.validations

    @property
    def steps(self) -> int:
        """The last logged step."""
        return self.log.last_step

    @cached_property
    def state(self) -> str:
        """The state of the run: "running", "finished", "failed" (with an error that would recur) or "stopped" (can be resumed)."""
        if is_running(self.path):
            return "running"
        if self.log.failed:
            return "failed"
        return "finished" if self.log.is_ended or (bool(self.history) and self.history[-1].epoch >= self.epochs) else "stopped"

    @cached_property
    def checkpoints(self) -> list[CheckpointRecord]:
        """The checkpoints, oldest first, without reading the contents of their files."""
        try:
            return [_checkpoint(step, path) for step, path in find_checkpoints(self.path / "checkpoints").items()]
        except OSError:
            return []

    @property
    def judged_by(self) -> str | None:
        """The metric that selects the best epoch: the validation loss, else the training loss. None before the first epoch is finished."""
        labels = [label for record in (*self.history[-1:], *self.validations[-1:]) for label in record.values]
        return next((label for label in ("validation loss", "loss", *labels) if label in labels), None)

    @property
    def best_checkpoint(self) -> CheckpointRecord | None:
        """The checkpoint of the best epoch, or the newest intact one if that was not kept."""
        whole = [checkpoint for checkpoint in self.checkpoints if checkpoint.is_whole]
        best = None if self.judged_by is None else self.best(self.judged_by)
        return next((checkpoint for checkpoint in whole if best is not None and checkpoint.step == best.step), whole[-1] if whole else None)

    def best(self, label: str) -> EpochRecord | ValidationRecord | None:
        """Return the epoch with the best value of a metric (the earliest one on ties), or None if there is none.

        For a run with `validate_every`, a validation label selects a validation instead.
        """
        sign = -1 if higher_is_better(label) else 1
        records = self.validations if self.validations and label.startswith("validation ") else self.history
        found = [record for record in records if not math.isnan(record.values.get(label, math.nan))]
        return min(found, key=lambda record: sign * record.values[label], default=None)


def higher_is_better(label: str) -> bool:
    """Return whether higher is better for a metric, judged by its name: true for an accuracy, false for a loss."""
    return any(word in label.lower().replace("-", " ").replace("_", " ").split() for word in _RISING)


def _read_about(path: Path, untrusted: bool, follow: bool) -> dict[str, Any]:
    problem = f'"{path / "run.json"}" does not describe a run'
    data = read_file(path / "run.json", largest=_LARGEST, limit="file_bytes", untrusted=untrusted, follow=follow)
    try:
        about = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise FormatError(f"{problem}: it is not valid JSON", hint="it may be truncated; use another folder to start a new run") from error
    if not isinstance(about, dict) or not isinstance(about.get("program"), str):
        raise FormatError(f'{problem}: it has no valid "program"')
    training = about.get("training")
    for name in ("batch_size", "epochs"):
        if not isinstance(training, dict) or type(training.get(name)) is not int or not 0 <= training[name] < 2**32:
            raise FormatError(f'{problem}: "training" has no valid "{name}"')
    return about


def _read_settings(path: Path, untrusted: bool, follow: bool) -> dict[str, Any]:
    """Return the settings of a run; empty if they are missing or unreadable."""
    with suppress(OarlockError):
        return read_tables(path / "config.toml", untrusted=untrusted, follow=follow)
    return {}


def _checkpoint(step: int, path: Path) -> CheckpointRecord:
    """Return the record of a checkpoint, comparing the sizes of its files with its manifest."""
    try:
        sizes = sizes_of(path)
        return CheckpointRecord(step, path, sum(sizes.values()), all(os.path.getsize(path / name) == size for name, size in sizes.items()))
    except (OarlockError, OSError, ValueError, KeyError, TypeError, AttributeError, ArithmeticError, RecursionError):
        return CheckpointRecord(step, path, sum(file.stat().st_size for file in path.iterdir() if file.is_file()), False)
