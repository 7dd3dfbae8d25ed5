"""The folder of a run: what it is, what it measured, and checkpoints from which it goes on."""

import contextlib
import hashlib
import json
import os
import threading
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

import torch

import oarlock.training.checkpoint_writing as checkpoint_writing  # `from` would ask the package, which looks for what is like it
from oarlock.data.program_inputs import Feed
from oarlock.errors import FormatError, MissingFileError, OarlockError, ProgramError, ScopeError, WriteError
from oarlock.io.atomic_write import write_file
from oarlock.io.container import PROGRAM
from oarlock.io.files import read_file
from oarlock.io.listings import as_tensor, listings_of
from oarlock.io.model import Model, values_of
from oarlock.ir.content_hash import content_hash
from oarlock.ir.diff import diff_programs
from oarlock.ir.printer import format_program
from oarlock.ir.program import Program
from oarlock.ir.var import Var
from oarlock.registry.range_check import require_count
from oarlock.runtime.not_finite import describe_range
from oarlock.runtime.recording import note_beside, slice_of
from oarlock.runtime.scope import Scope, frozen_in, lock_of_writing
from oarlock.training.checkpoint import (
    find_checkpoints,
    find_latest,
    read_checkpoint,
    remove_checkpoint,
    remove_unfinished,
    require_written,
)
from oarlock.training.checkpoint_copy import CheckpointCopy
from oarlock.training.checkpoint_process import CheckpointWriter
from oarlock.training.configuration import format_toml
from oarlock.training.description import describe_environment, describe_run
from oarlock.training.folder_lock import LOCK, FolderLock
from oarlock.training.metric_log import LOG
from oarlock.training.metric_log_writing import MetricLogWriter
from oarlock.training.metrics import without_means
from oarlock.training.records import EpochRecord, TrainingResult, ValidationRecord
from oarlock.training.sample import sample_of
from oarlock.training.saved_state import SavedState
from oarlock.training.shares import MODEL, Shares, load_checkpoint

__all__ = ["Run", "RunFolder", "load_run"]

_ABOUT, _CONFIGURATION, _CHECKPOINTS = "run.json", "config.toml", "checkpoints"
_LARGEST_ABOUT = 2**20  # bytes of run.json


@dataclass(frozen=True)
class Run:
    """A folder in which a run is kept: what it is, its settings, its program, what it measured, a few rows of the data, and checkpoints.

    A checkpoint is written at the end of each epoch, and after every `save_every` steps, beside the training; the newest `keep` stay, and
    the best one by what the run is stopped by. `sample` rows are kept of the validation data, or of the training data if
    there is none: `oarlock report` shows what is predicted for them; 0 keeps none. Raises ArgumentError.
    """

    folder: str | os.PathLike[str]
    save_every: int | None = None
    keep: int = 3
    sample: int = 8

    def __post_init__(self) -> None:
        for name, least in (("save_every", 1), ("keep", 1), ("sample", 0)):
            if getattr(self, name) is not None:
                require_count(name, getattr(self, name), least=least)


class _Saved(NamedTuple):
    """A program as it was saved: what tells it from others, what stands in its file whatever it computes, and the variables there."""

    now: object
    fixed: dict[str, torch.Tensor]
    wanted: list[Var]


class RunFolder:
    """The folder of one run, locked while it is open. It closes itself as a context manager; the last checkpoint is written by then."""

    def __init__(self, run: Run):
        self.run = run
        self.path = Path(run.folder)
        self.checkpoints = self.path / _CHECKPOINTS
        self._absolute = os.path.abspath(self.checkpoints)
        self.shares = Shares()  # of the state, that each of several workers keeps and saves
        self._writer = CheckpointWriter(self.path / LOCK)
        self._copy = CheckpointCopy(self._writer)
        self.log = MetricLogWriter(self.path / LOG)
        self._lock = FolderLock(self.path)
        self._saved = -1  # the step of the checkpoint that was begun last
        self.columns: Mapping[str, Sequence[str]] = {}  # of a table, that inputs are fed from
        self.prediction: bytes | None = None  # the program that predicts, where it is known
        self.about: dict[str, Any] = {}  # what the run is, once it has begun
        self._made: list[Path] = []
        self._program: _Saved | None = None  # that was saved last, and what it was then
        self._kinds: dict[str, Any] = {}  # the dtypes and shapes of what was saved last
        self.is_sampled = run.sample == 0

    def __enter__(self) -> "RunFolder":
        self._made = [path for path in (self.checkpoints, *self.checkpoints.parents) if not path.exists()]
        try:
            self.checkpoints.mkdir(parents=True, exist_ok=True)
            self._lock.take()
        except WriteError:  # an OSError too
            raise
        except OSError as error:
            raise WriteError(f'the folder "{self.path}" of the run cannot be written: {error.strerror or error}') from error
        remove_unfinished(self.checkpoints)
        return self

    def __exit__(self, *_: object) -> None:
        try:
            self._wait()
        finally:
            self._writer.close()
            self.log.close()
            if not (self.path / _ABOUT).exists():
                self._remove()
            self._lock.give_back()

    def _remove(self) -> None:
        """Remove what was made for a run that did not begin."""
        with contextlib.suppress(OSError):
            if self._made:
                (self.path / LOCK).unlink()
            for path in self._made:
                path.rmdir()

    def find_saved(self) -> tuple[Model, SavedState] | None:
        """The newest checkpoint that is whole; None for a new run. Raises FormatError where there are some, and none is whole."""
        found = find_latest(self.checkpoints)
        if found is None:
            if find_checkpoints(self.checkpoints):
                raise FormatError(f'no checkpoint in "{self.checkpoints}" is whole', hint="another folder begins a new run")
            return None
        step, held = found
        state = SavedState.from_json(held, f'step {step} in "{self.checkpoints}"')
        self._saved = step
        return load_checkpoint(find_checkpoints(self.checkpoints)[step]), state

    def require_same(self, saved: Program, program: Program) -> None:
        """Raise ProgramError, which names the first difference, where the run in the folder is that of another program."""
        before, now = without_means(saved), without_means(program)
        before.training = now.training = None
        if content_hash(before) != content_hash(now):
            difference = next(iter(diff_programs(before, now)), "")
            raise ProgramError(
                f'"{self.path}" holds a run of another program',
                given=str(difference).splitlines(),
                hint="another folder begins a new run; `oarlock resume` goes on with the one that is there",
            )

    def require_state(self, saved: Model, given: Model | TrainingResult) -> None:
        """Raise ScopeError, which names the first difference, where what is given would be lost: it is neither the state that the run has
        come to, nor that with which it began, as when the command is repeated that began it.
        """
        scope = given.scope if isinstance(given, Model) else given.parameters
        differs = next((var.name for var in _state(saved.program) if not _is_equal(scope.get(var.name), saved.scope[var.name])), None)
        if differs is None or self._known().get("start") == _digest(saved.program, scope):
            return
        raise ScopeError(
            f'"{self.path}" holds a run that has come to another state, and what is given would be lost',
            given=[
                f'"{differs}" given: {describe_range(scope.get(differs))}',
                f'"{differs}" in the folder: {describe_range(saved.scope[differs])}',
            ],
            hint="another folder begins with what is given; the cost in its place goes on with what is in the folder",
        )

    def begin(
        self,
        program: Program,
        *,
        steps: int,
        data: str,
        command: Sequence[str],
        settings: Mapping[str, object],
        start: Scope | None = None,
    ) -> None:
        """Write what the run is, and cut off what was measured after `steps`, from which it goes on; log where it goes on, and when.

        The `command`, which goes on with it, and the `settings` are the latest. A new run of a saved program begins with `start`.
        Raises WriteError.
        """
        if not (self.path / _ABOUT).exists():
            write_file(self.path / "program.txt", format_program(program, source=False).encode())
        known = self._known()
        if not known and start is not None:
            known = {"start": _digest(program, start)}
        self.about = {**describe_run(program, data, command), **known}
        write_file(self.path / _ABOUT, json.dumps(self.about, indent=1).encode())
        write_file(self.path / _CONFIGURATION, format_toml(settings).encode())
        self.is_sampled = self.is_sampled or any(self.path.glob("sample.*.safetensors"))
        for step, path in find_checkpoints(self.checkpoints).items():
            if step > steps:  # broken, or it would have been gone on from
                remove_checkpoint(path)
        self.log.begin(steps)
        assert program.training is not None
        self.log.write({"step": steps, "epochs": program.training.epochs, "environment": describe_environment()})

    def _known(self) -> dict[str, Any]:
        """The entries that stay as the run began: its id, when that was, and the state of the program it was begun with."""
        try:
            held = json.loads(read_file(self.path / _ABOUT, largest=_LARGEST_ABOUT, limit="file_bytes"))
            return {name: held[name] for name in ("id", "started", "start") if name in held}
        except (OarlockError, ValueError, TypeError, RecursionError):
            return {}

    def keep_sample(self, program: Program, part: str, feed: Feed, rows: int) -> None:
        """Keep a few of the `rows` rows of a feed of `program`, in a file that is called by the `part` of the data; once in a run."""
        if self.is_sampled:
            return
        self.is_sampled = True
        kept = sample_of(program, feed, rows, self.run.sample)
        if kept is not None:
            try:
                write_file(self.path / f"sample.{part}.safetensors", kept)
            except OarlockError as error:
                warnings.warn(f"{error.message}. The run goes on", RuntimeWarning, stacklevel=2)

    def epoch(self, record: EpochRecord | ValidationRecord) -> None:
        """Log an epoch, with what was validated; or a validation in an epoch."""
        self.log.write(asdict(record))
        self.log.flush()

    def load(self, step: int) -> Scope | None:
        """The values of the checkpoint of a step, as this worker has them; None where it is not there, or not whole."""
        self._wait()
        path = find_checkpoints(self.checkpoints).get(step)
        if path is None:
            return None
        with contextlib.suppress(OarlockError):
            read_checkpoint(path)
            scope = load_checkpoint(path).scope
            self.shares.take(scope)
            return scope
        return None

    def end(self, step: int) -> None:
        """Log that the run is over: nothing is left to train."""
        self.log.write({"step": step, "ended": True})

    def fail(self, step: int, reason: str) -> None:
        """Log why the run stopped by itself after a step: it would do so again."""
        self.log.write({"step": step, "failed": reason})

    @slice_of("checkpoint", "save a checkpoint")
    def save(self, program: Program, scope: Scope, state: SavedState, *, best: int | None) -> None:
        """Write a checkpoint beside the training: its files are copied here, and written by a process.

        Where the system refuses, that is warned of, the run goes on, and the checkpoints before it stay. `best` is the step of one to keep.
        """
        if state.steps == self._saved:
            return
        self._wait()
        self.log.flush()
        now = program.serial, program.revision, program.training
        if self._program is None or self._program.now != now:
            wanted = [var for var in program.persistables() if var.name not in self.shares.names]
            self._program = _Saved(now, {PROGRAM: as_tensor(program.to_bytes())} | listings_of(self.columns, self.prediction), wanted)
        request = {"folder": self._absolute, "step": state.steps, "keep": self.run.keep, "best": best}
        request |= {"parts": self.shares.files[1:], "to_come": checkpoint_writing.TO_COME, "thread": threading.get_native_id()}
        try:
            with lock_of_writing(scope):
                model = self._program.fixed | self._values(program, scope)
                models = {MODEL: model, self.shares.own_file: self.shares.held(scope)} if self.shares else {MODEL: model}
                self._copy.write(models, state.to_bytes(), request)
        except OSError as error:
            self._warn(f'the checkpoint of step {state.steps} in "{self.checkpoints}" cannot be copied: {error.strerror}')
        else:
            self._saved = state.steps

    def _values(self, program: Program, scope: Scope) -> dict[str, torch.Tensor]:
        """The values of a program where they lie; looked at more closely where they are not of the kinds that were saved before."""
        assert self._program is not None
        found = {var.name: scope.find_var(var.name) for var in self._program.wanted}
        held: dict[str, Any] = {name: variable and variable.held for name, variable in found.items()}
        kinds = {name: (value.dtype, value.shape) if isinstance(value, torch.Tensor) else None for name, value in held.items()}
        if kinds == self._kinds and not frozen_in(scope):
            return held
        values = values_of(program, scope, lent=False, wanted=self._program.wanted)
        self._kinds = {name: (value.dtype, value.shape) for name, value in values.items()}
        return values

    def _wait(self) -> None:
        """Wait for the checkpoint that is being written; warn of one that could not be."""
        answer = self._writer.wait()
        if answer is None:
            return
        if "taken" in answer:
            note_beside("write checkpoints", *answer["taken"])
        try:
            require_written(self.checkpoints, self._saved, answer)
        except OarlockError as error:
            self._saved = -1
            if "ended" in answer:
                remove_unfinished(self.checkpoints, parts=False)
            self._warn(error.message)

    def _warn(self, message: str) -> None:
        warnings.warn(f"{message}. The run goes on, and keeps the checkpoints that it has", RuntimeWarning, stacklevel=3)


def _state(program: Program) -> list[Var]:
    return without_means(program).persistables()


def _is_equal(left: object, right: object) -> bool:
    return isinstance(left, torch.Tensor) and isinstance(right, torch.Tensor) and torch.equal(left.cpu(), right.cpu())


def _digest(program: Program, scope: Scope) -> str:
    """The SHA-256 of the state of a program, in the order of its declaration."""
    found = hashlib.sha256()
    for var in _state(program):
        held = scope.get(var.name)
        if isinstance(held, torch.Tensor):
            found.update(var.name.encode())
            found.update(held.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().tobytes())
    return found.hexdigest()


def load_run(path: Path) -> Model:
    """The training program in the newest whole checkpoint of a run, and its values. Raises MissingFileError where there is none."""
    found = find_latest(path / _CHECKPOINTS)
    if found is None:
        what = "no checkpoint that is whole" if (path / _ABOUT).is_file() else "no run"
        raise MissingFileError(f'the folder "{path}" holds {what}')
    return load_checkpoint(find_checkpoints(path / _CHECKPOINTS)[found[0]])
