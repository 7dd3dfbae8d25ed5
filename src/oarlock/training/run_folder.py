"""The run folder: description, metrics, and checkpoints from which the run resumes."""

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

import numpy
import safetensors.torch
import torch

import oarlock.training.checkpoint_writing as checkpoint_writing  # `from` would trigger the package's `__getattr__`
from oarlock.data.program_inputs import Feed, ProgramInputs
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
from oarlock.runtime.ragged import Ragged
from oarlock.runtime.recording import note_beside, slice_of
from oarlock.runtime.scope import Scope, frozen_in, lock_of_writing
from oarlock.training.checkpoint import (
    SavedState,
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
from oarlock.training.metric_log import LOG, MetricLogWriter
from oarlock.training.metrics import without_means
from oarlock.training.records import EpochRecord, TrainingResult, ValidationRecord
from oarlock.training.shares import MODEL, Shares, load_checkpoint

__all__ = ["Run", "RunFolder", "load_run", "sample_of"]

_ABOUT, _CONFIGURATION, _CHECKPOINTS = "run.json", "config.toml", "checkpoints"
_LARGEST_ABOUT = 2**20  # bytes of run.json


@dataclass(frozen=True)
class Run:
    """A run folder: description, settings, program, metrics, a few rows of the data, and checkpoints.

    A checkpoint is written in the background at the end of each epoch, and after every `save_every` steps. The newest `keep` checkpoints
    are kept, and the best one if there is early stopping. `sample` rows of the validation data, or of the training data without it, are
    stored so that `oarlock report` can show predictions; 0 stores none. Raises ArgumentError.
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
    """The last saved program: its identity, the fixed tensors of its file, and the variables to save."""

    now: object
    fixed: dict[str, torch.Tensor]
    wanted: list[Var]


class RunFolder:
    """An open run folder, locked for this process. Use it as a context manager: leaving it waits for the last checkpoint."""

    def __init__(self, run: Run):
        self.run = run
        self.path = Path(run.folder)
        self.checkpoints = self.path / _CHECKPOINTS
        self._absolute = os.path.abspath(self.checkpoints)
        self.shares = Shares()  # of the state that is split among the workers
        self._writer = CheckpointWriter(self.path / LOCK)
        self._copy = CheckpointCopy(self._writer)
        self.log = MetricLogWriter(self.path / LOG)
        self._lock = FolderLock(self.path)
        self._saved = -1  # the step of the latest checkpoint
        self.columns: Mapping[str, Sequence[str]] = {}  # of the table, by input
        self.prediction: bytes | None = None  # the prediction program, if known
        self.about: dict[str, Any] = {}  # the description of the run, after `begin`
        self._made: list[Path] = []
        self._program: _Saved | None = None  # of the latest checkpoint
        self._kinds: dict[str, Any] = {}  # the dtypes and shapes of the latest checkpoint
        self.is_sampled = run.sample == 0

    def __enter__(self) -> "RunFolder":
        self._made = [path for path in (self.checkpoints, *self.checkpoints.parents) if not path.exists()]
        try:
            self.checkpoints.mkdir(parents=True, exist_ok=True)
            self._lock.take()
        except WriteError:  # also an OSError
            raise
        except OSError as error:
            raise WriteError(f'the run folder "{self.path}" cannot be written: {error.strerror or error}') from error
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
            self._lock.release()

    def _remove(self) -> None:
        """Remove the folders created for a run that did not start."""
        with contextlib.suppress(OSError):
            if self._made:
                (self.path / LOCK).unlink()
            for path in self._made:
                path.rmdir()

    def find_saved(self) -> tuple[Model, SavedState] | None:
        """Load the newest intact checkpoint, or return None for a new run. Raises FormatError if all checkpoints are damaged."""
        found = find_latest(self.checkpoints)
        if found is None:
            if find_checkpoints(self.checkpoints):
                raise FormatError(f'all checkpoints in "{self.checkpoints}" are damaged', hint="use another folder to start a new run")
            return None
        step, held = found
        state = SavedState.from_json(held, f'step {step} in "{self.checkpoints}"')
        self._saved = step
        return load_checkpoint(find_checkpoints(self.checkpoints)[step]), state

    def require_same(self, saved: Program, program: Program) -> None:
        """Raise ProgramError, with the first difference, if the folder contains a run of another program."""
        before, now = without_means(saved), without_means(program)
        before.training = now.training = None
        if content_hash(before) != content_hash(now):
            difference = next(iter(diff_programs(before, now)), "")
            raise ProgramError(
                f'"{self.path}" contains a run of another program',
                given=str(difference).splitlines(),
                hint="use another folder to start a new run, or `oarlock resume` to continue the existing one",
            )

    def require_state(self, saved: Model, given: Model | TrainingResult) -> None:
        """Raise ScopeError, with the first difference, if the given state would be lost.

        It must equal the current state of the run, or its initial state (when the original command is repeated).
        """
        scope = given.scope if isinstance(given, Model) else given.parameters
        differs = next((var.name for var in _state(saved.program) if not _is_equal(scope.get(var.name), saved.scope[var.name])), None)
        if differs is None or self._known().get("start") == _digest(saved.program, scope):
            return
        raise ScopeError(
            f'"{self.path}" contains a run in another state, and the given state would be lost',
            given=[
                f'"{differs}" given: {describe_range(scope.get(differs))}',
                f'"{differs}" in the folder: {describe_range(saved.scope[differs])}',
            ],
            hint="use another folder to start from the given state, or pass the cost instead to continue the run in the folder",
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
        """Write the description of the run, discard metrics logged after `steps`, and log the start or resumption.

        The `command` that resumes it and the `settings` replace earlier ones. `start` is the initial state of a new run of a saved
        program. Raises WriteError.
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
            if step > steps:  # damaged, or the run would resume from it
                remove_checkpoint(path)
        self.log.begin(steps)
        assert program.training is not None
        self.log.write({"step": steps, "epochs": program.training.epochs, "environment": describe_environment()})

    def _known(self) -> dict[str, Any]:
        """Return the entries of an existing run that do not change: its id, start time, and a digest of its initial state."""
        try:
            held = json.loads(read_file(self.path / _ABOUT, largest=_LARGEST_ABOUT, limit="file_bytes"))
            return {name: held[name] for name in ("id", "started", "start") if name in held}
        except (OarlockError, ValueError, TypeError, RecursionError):
            return {}

    def keep_sample(self, program: Program, part: str, feed: Feed, rows: int) -> None:
        """Store a few of the `rows` rows of a feed of `program` in a file named by the `part` of the data; once per run."""
        if self.is_sampled:
            return
        self.is_sampled = True
        kept = sample_of(program, feed, rows, self.run.sample)
        if kept is not None:
            try:
                write_file(self.path / f"sample.{part}.safetensors", kept)
            except OarlockError as error:
                warnings.warn(f"{error.message}. Training continues", RuntimeWarning, stacklevel=2)

    def epoch(self, record: EpochRecord | ValidationRecord) -> None:
        """Log an epoch, or a validation within an epoch."""
        self.log.write(asdict(record))
        self.log.flush()

    def load(self, step: int) -> Scope | None:
        """Return the values of the checkpoint of a step, sharded for this worker, or None if it is missing or damaged."""
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
        """Log that the run is finished."""
        self.log.write({"step": step, "ended": True})

    def fail(self, step: int, reason: str) -> None:
        """Log the reason why the run stopped after `step`; resuming it would stop there again."""
        self.log.write({"step": step, "failed": reason})

    @slice_of("checkpoint", "save a checkpoint")
    def save(self, program: Program, scope: Scope, state: SavedState, *, best: int | None) -> None:
        """Write a checkpoint in the background: its files are copied here, and written by another process.

        If the system refuses, training continues with a warning, and earlier checkpoints are kept. `best` is the step of a checkpoint to
        keep.
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
        """Return the values of a program without copying.

        They are validated only if a dtype or shape differs from the previous checkpoint.
        """
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
        """Wait for the checkpoint that is being written, and warn if it failed."""
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
        warnings.warn(f"{message}. Training continues, and earlier checkpoints are kept", RuntimeWarning, stacklevel=3)


def _state(program: Program) -> list[Var]:
    return without_means(program).persistables()


def _is_equal(left: object, right: object) -> bool:
    return isinstance(left, torch.Tensor) and isinstance(right, torch.Tensor) and torch.equal(left.cpu(), right.cpu())


def _digest(program: Program, scope: Scope) -> str:
    """Return the SHA-256 of the state of a program, in declaration order."""
    found = hashlib.sha256()
    for var in _state(program):
        held = scope.get(var.name)
        if isinstance(held, torch.Tensor):
            found.update(var.name.encode())
            found.update(held.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().tobytes())
    return found.hexdigest()


def load_run(path: Path) -> Model:
    """Load the training program and values of the newest intact checkpoint of a run. Raises MissingFileError if there is none."""
    found = find_latest(path / _CHECKPOINTS)
    if found is None:
        what = "no intact checkpoint" if (path / _ABOUT).is_file() else "no run"
        raise MissingFileError(f'the folder "{path}" contains {what}')
    return load_checkpoint(find_checkpoints(path / _CHECKPOINTS)[found[0]])


_LARGEST = 4 * 2**20  # bytes of all rows; fewer rows are kept to stay below


def sample_of(program: Program, feed: Feed, rows: int, count: int) -> bytes | None:
    """Return up to `count` of the `rows` rows of a feed, evenly spaced, as a safetensors file; None if there are none or they do not fit.

    Columns are named by their inputs, and row splits by the names of theirs.
    """
    count = min(count, rows) if feed else 0
    while count:
        tensors = _taken(program, feed, numpy.linspace(0, rows - 1, count).round().astype("int64"))
        if sum(tensor.nbytes for tensor in tensors.values()) <= _LARGEST:
            return safetensors.torch.save(tensors)
        count //= 2
    return None


def _taken(program: Program, feed: Mapping[str, "numpy.ndarray | Ragged"], chosen: numpy.ndarray) -> dict[str, torch.Tensor]:
    splits, found = ProgramInputs.of(program).splits, {}
    for name, column in feed.items():
        taken = column[chosen] if isinstance(column, Ragged) or column.ndim else column  # a scalar belongs to all rows
        if isinstance(taken, Ragged):
            found |= dict(zip([name, *splits[name]], [taken.values, *taken.splits], strict=True))
        else:
            found[name] = taken
    return {name: torch.from_numpy(numpy.array(value, order="C")) for name, value in found.items()}
