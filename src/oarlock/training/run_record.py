"""A run as its folder tells it, for who looks at it: nothing is locked, changed or run, and whoever wrote the folder is not believed."""

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
_RISING = ("accuracy", "precision", "recall", "f1", "auc", "iou", "score", "r2")  # metrics of which more is better


@dataclass(frozen=True)
class CheckpointRecord:
    """A checkpoint: its step, its folder, its bytes, and whether its files are there in the sizes that its manifest tells."""

    step: int
    path: Path
    bytes: int
    is_whole: bool


@dataclass(frozen=True)
class RunRecord:
    """The words of the folder of a run: `about`, the content of its run.json, its `log`, and its `settings`, those of its config.toml."""

    path: Path
    about: dict[str, Any]
    log: MetricLog = field(repr=False)
    settings: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def read(cls, folder: str | os.PathLike[str], *, untrusted: bool = False, follow: bool = True) -> "RunRecord":
        """Read the folder of a run: finished, still running, or killed. Of an `untrusted` one, no file and no folder may be a link; with
        `follow=False`, no file that is read here.

        Raises MissingFileError where there is none, FormatError for one that does not describe a run, ReadError, and LimitError.
        """
        path = Path(folder)
        if not (path / "run.json").is_file():
            runs = sorted(child.parent.name for child in path.glob("*/run.json"))
            inside = f"{path / runs[0]}, the first of {len(runs)} in it" if runs else None
            raise MissingFileError(f'"{path}" is no folder of a run: it has no run.json', hint=inside)
        inside = path / "checkpoints"
        link = next((folder for folder in (inside, *inside.glob("step-*")) if untrusted and folder.is_symlink()), None)
        if link is not None:
            raise FormatError(f'"{link}" is a symbolic link, which an untrusted folder must not hold', hint="copy the folder, with cp -rL")
        about, settings = _read_about(path, untrusted, follow), _read_settings(path, untrusted, follow)
        return cls(path, about, read_log(path / LOG, untrusted=untrusted, follow=follow), settings)

    @property
    def name(self) -> str:
        """The name of its folder."""
        return self.path.resolve().name or str(self.path)

    @property
    def program_hash(self) -> str:
        """The content hash of its program."""
        return str(self.about["program"])

    @property
    def epochs(self) -> int:
        """How many epochs it is to have: as it was begun, or as it was last gone on with."""
        return next((begun.epochs for begun in reversed(self.log.sessions) if begun.epochs is not None), self.about["training"]["epochs"])

    @property
    def history(self) -> list[EpochRecord]:
        """The epochs that are over."""
        return self.log.epochs

    @property
    def validations(self) -> list[ValidationRecord]:
        """The validations of a run that is validated every so many steps."""
        return self.log.validations

    @property
    def steps(self) -> int:
        """The last step that was logged."""
        return self.log.last_step

    @cached_property
    def state(self) -> str:
        """The word "running", "finished", "failed" for one that stopped by itself, or "stopped" for one that can be resumed."""
        if is_running(self.path):
            return "running"
        if self.log.failed:
            return "failed"
        return "finished" if self.log.is_ended or (bool(self.history) and self.history[-1].epoch >= self.epochs) else "stopped"

    @cached_property
    def checkpoints(self) -> list[CheckpointRecord]:
        """Its checkpoints, the oldest first; the content of their files is not read."""
        try:
            return [_checkpoint(step, path) for step, path in find_checkpoints(self.path / "checkpoints").items()]
        except OSError:
            return []

    @property
    def judged_by(self) -> str | None:
        """The measure by which an epoch is the best: the loss, of the validation where there was one. None where nothing was over yet."""
        labels = [label for record in (*self.history[-1:], *self.validations[-1:]) for label in record.values]
        return next((label for label in ("validation loss", "loss", *labels) if label in labels), None)

    @property
    def best_checkpoint(self) -> CheckpointRecord | None:
        """The checkpoint of the best epoch, where it is kept; else the newest one that is whole."""
        whole = [checkpoint for checkpoint in self.checkpoints if checkpoint.is_whole]
        best = None if self.judged_by is None else self.best(self.judged_by)
        return next((checkpoint for checkpoint in whole if best is not None and checkpoint.step == best.step), whole[-1] if whole else None)

    def best(self, label: str) -> EpochRecord | ValidationRecord | None:
        """The epoch with the least value of a measure, or the greatest where that is better; the first of those that are alike.
        Of a run that is validated every so many steps, one of those validations.
        """
        sign = -1 if higher_is_better(label) else 1
        records = self.validations if self.validations and label.startswith("validation ") else self.history
        found = [record for record in records if not math.isnan(record.values.get(label, math.nan))]
        return min(found, key=lambda record: sign * record.values[label], default=None)


def higher_is_better(label: str) -> bool:
    """Whether more of a measure is better, by the word for it: so it is of an accuracy, and not of a loss."""
    return any(word in label.lower().replace("-", " ").replace("_", " ").split() for word in _RISING)


def _read_about(path: Path, untrusted: bool, follow: bool) -> dict[str, Any]:
    said = f'"{path / "run.json"}" does not describe a run'
    data = read_file(path / "run.json", largest=_LARGEST, limit="file_bytes", untrusted=untrusted, follow=follow)
    try:
        about = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise FormatError(f"{said}: it is no JSON", hint="was it cut short? Another folder begins a new run") from error
    if not isinstance(about, dict) or not isinstance(about.get("program"), str):
        raise FormatError(f"{said}: it names no program")
    training = about.get("training")
    for name in ("batch_size", "epochs"):
        if not isinstance(training, dict) or type(training.get(name)) is not int or not 0 <= training[name] < 2**32:
            raise FormatError(f'{said}: "training" says no "{name}"')
    return about


def _read_settings(path: Path, untrusted: bool, follow: bool) -> dict[str, Any]:
    """The settings of a run; none where they are not there, or cannot be read."""
    with suppress(OarlockError):
        return read_tables(path / "config.toml", untrusted=untrusted, follow=follow)
    return {}


def _checkpoint(step: int, path: Path) -> CheckpointRecord:
    """A checkpoint by the sizes of its files."""
    try:
        sizes = sizes_of(path)
        return CheckpointRecord(step, path, sum(sizes.values()), all(os.path.getsize(path / name) == size for name, size in sizes.items()))
    except (OarlockError, OSError, ValueError, KeyError, TypeError, AttributeError, ArithmeticError, RecursionError):
        return CheckpointRecord(step, path, sum(file.stat().st_size for file in path.iterdir() if file.is_file()), False)
