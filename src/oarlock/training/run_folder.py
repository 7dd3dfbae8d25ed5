"""The folder of a run: what it is, what it measured, and checkpoints from which it goes on."""

import contextlib
import hashlib
import json
import math
import os
import time
import warnings
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import asdict, dataclass, replace
from io import BytesIO
from pathlib import Path
from typing import IO, Any

import safetensors.torch
import torch

from oarlock.data.program_inputs import Feed
from oarlock.errors import FormatError, MissingFileError, OarlockError, ProgramError, ScopeError, WriteError
from oarlock.io.atomic_write import write_file
from oarlock.io.container import write_container
from oarlock.io.listings import COLUMNS, listing
from oarlock.io.model import Model, values_of
from oarlock.ir.content_hash import content_hash
from oarlock.ir.diff import diff_programs
from oarlock.ir.printer import format_program
from oarlock.ir.program import Program
from oarlock.ir.var import Var
from oarlock.registry.range_check import require_count
from oarlock.runtime.not_finite import describe_range
from oarlock.runtime.recording import slice_of
from oarlock.runtime.scope import Scope
from oarlock.training.checkpoint import (
    find_checkpoints,
    find_latest,
    read_checkpoint,
    remove_checkpoint,
    remove_unfinished,
    write_checkpoint,
)
from oarlock.training.configuration import format_toml
from oarlock.training.description import describe_environment, describe_run
from oarlock.training.metrics import without_means
from oarlock.training.records import EpochRecord, TrainingResult, ValidationRecord
from oarlock.training.sample import sample_of
from oarlock.training.saved_state import SavedState
from oarlock.training.shares import MODEL, Shares, load_checkpoint

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None

__all__ = ["Run", "RunFolder", "is_running", "load_run"]

_ABOUT, _CONFIGURATION, _LOG, _CHECKPOINTS, _LOCK = "run.json", "config.toml", "metrics.jsonl", "checkpoints", "lock"
_STATE = "state.json"
_OPEN: set[str] = set()  # folders of runs of this process, which its lock would let in


@dataclass(frozen=True)
class Run:
    """A folder in which a run is kept: what it is, its settings, its program, what it measured, a few rows of the data, and checkpoints.

    A checkpoint is written after every `save_every` steps, and at the end of each epoch where that is None, beside the training; the newest
    `keep` stay, and the best one by what the run is stopped by. `sample` rows are kept of the validation data, or of the training data if
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


class RunFolder:
    """The folder of one run, locked while it is open. It closes itself as a context manager; the last checkpoint is written by then."""

    def __init__(self, run: Run):
        self.run = run
        self.path = Path(run.folder)
        self.checkpoints = self.path / _CHECKPOINTS
        self.shares = Shares()  # of the state, that each of several workers keeps and saves
        self._writer = ThreadPoolExecutor(1, thread_name_prefix="oarlock checkpoint")
        self._writing: Future[None] | None = None
        self._log: IO[str] | None = None
        self._lock: IO[bytes] | None = None
        self._saved = -1
        self.columns: Mapping[str, Sequence[str]] = {}  # of a table, that inputs are fed from
        self.about: dict[str, Any] = {}  # what the run is, once it has begun
        self._made: list[Path] = []
        self._spelled: dict[str, str] = {}  # labels as JSON has them
        self._program: tuple[object, bytes] | None = None  # that was saved last, and what it was then
        self._is_sampled = run.sample == 0

    def __enter__(self) -> "RunFolder":
        self._made = [path for path in (self.checkpoints, *self.checkpoints.parents) if not path.exists()]
        try:
            self.checkpoints.mkdir(parents=True, exist_ok=True)
            if str(self.path.resolve()) in _OPEN:
                raise BlockingIOError
            self._lock = open(self.path / _LOCK, "ab")
            if fcntl is not None:
                fcntl.lockf(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)  # which children do not inherit, as they do a flock
            _OPEN.add(str(self.path.resolve()))
        except BlockingIOError:
            self._close_lock()
            raise WriteError(
                f'"{self.path}" belongs to a run that another process has not ended', hint="another folder, or wait for it"
            ) from None
        except OSError as error:
            self._close_lock()
            raise WriteError(f'the folder "{self.path}" of the run cannot be written: {error.strerror or error}') from error
        remove_unfinished(self.checkpoints)
        return self

    def __exit__(self, *_: object) -> None:
        try:
            self._wait()
        finally:
            self._writer.shutdown()
            if self._log is not None:
                self._log.close()
            if not (self.path / _ABOUT).exists():
                self._remove()
            self._close_lock()

    def _remove(self) -> None:
        """Remove what was made for a run that did not begin."""
        with contextlib.suppress(OSError):
            if self._made:
                (self.path / _LOCK).unlink()
            for path in self._made:
                path.rmdir()

    def find_saved(self) -> tuple[Model, SavedState] | None:
        """The newest checkpoint that is whole; None for a new run. Raises FormatError where there are some, and none is whole."""
        found = find_latest(self.checkpoints)
        if found is None:
            if find_checkpoints(self.checkpoints):
                raise FormatError(f'no checkpoint in "{self.checkpoints}" is whole', hint="another folder begins a new run")
            return None
        step, files = found
        state = SavedState.from_bytes(files.get(_STATE, b""), f'step {step} in "{self.checkpoints}"')
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
        self._is_sampled = self._is_sampled or any(self.path.glob("sample.*.safetensors"))
        for step, path in find_checkpoints(self.checkpoints).items():
            if step > steps:  # broken, or it would have been gone on from
                remove_checkpoint(path)
        log = self.path / _LOG
        lines = log.read_text(encoding="utf-8", errors="replace").splitlines() if log.exists() else []
        kept = [line for line in lines if _step_of(line) <= steps]
        write_file(log, "".join(f"{line}\n" for line in kept).encode())
        self._log = open(log, "a", encoding="utf-8")  # noqa: SIM115  it is written until the run ends
        assert program.training is not None
        self._write_log({"step": steps, "epochs": program.training.epochs, "environment": describe_environment()})

    def _known(self) -> dict[str, Any]:
        """The entries that stay as the run began: its id, when that was, and the state of the program it was begun with."""
        try:
            held = json.loads((self.path / _ABOUT).read_text(encoding="utf-8"))
            return {name: held[name] for name in ("id", "started", "start") if name in held}
        except (OSError, ValueError, TypeError):
            return {}

    def keep_sample(self, program: Program, part: str, feed: Feed, rows: int) -> None:
        """Keep a few of the `rows` rows of a feed of `program`, in a file that is called by the `part` of the data; once in a run."""
        if self._is_sampled:
            return
        self._is_sampled = True
        kept = sample_of(program, feed, rows, self.run.sample)
        if kept is not None:
            try:
                write_file(self.path / f"sample.{part}.safetensors", kept)
            except OarlockError as error:
                warnings.warn(f"{error.message}. The run goes on", RuntimeWarning, stacklevel=2)

    def step(self, step: int, epoch: int, rows: int, values: Mapping[str, float]) -> None:
        """Log a step: by hand, since a step may take no longer than the encoder of JSON, which is asked where a number is not finite."""
        if not all(map(math.isfinite, values.values())):
            self._write_log({"step": step, "epoch": epoch, "rows": rows, **values})
            return
        for label in values.keys() - self._spelled.keys():
            self._spelled[label] = json.dumps(label)
        numbers = "".join([f"{self._spelled[label]}: {value!r}, " for label, value in values.items()])
        self._write_line(f'{{"step": {step}, "epoch": {epoch}, "rows": {rows}, {numbers}"time": {time.time():.6f}}}')

    def epoch(self, record: EpochRecord | ValidationRecord) -> None:
        """Log an epoch, with what was validated; or a validation in an epoch."""
        self._write_log(asdict(record))
        if self._log is not None:
            with contextlib.suppress(OSError):
                self._log.flush()

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
        self._write_log({"step": step, "ended": True})

    @slice_of("checkpoint", "save a checkpoint")
    def save(self, program: Program, scope: Scope, state: SavedState, *, best: int | None) -> None:
        """Write a checkpoint beside the training: its values are copied here, the rest is done by a thread.

        Where the system refuses, that is warned of, the run goes on, and the checkpoints before it stay. `best` is the step of one to keep.
        """
        if state.steps == self._saved:
            return
        self._wait()
        self._saved = state.steps
        tensors = values_of(program, scope, copied=True, without=self.shares.names)
        if self.columns:
            tensors[COLUMNS] = listing(self.columns)
        shares = self.shares.copied(scope)
        if self._program is None or self._program[0] != (program.serial, program.revision, program.training):
            self._program = (program.serial, program.revision, program.training), program.to_bytes()
        now = replace(state, history=list(state.history), totals=dict(state.totals), validations=list(state.validations))
        self._writing = self._writer.submit(self._write, self._program[1], tensors, shares, now, best)

    @slice_of("beside", "write checkpoints")
    def _write(
        self, program: bytes, tensors: dict[str, torch.Tensor], shares: dict[str, torch.Tensor], state: SavedState, best: int | None
    ) -> None:
        model = BytesIO()
        write_container(model, program, tensors)
        if self._log is not None:
            with contextlib.suppress(OSError, ValueError):
                self._log.flush()
        files = {MODEL: model.getbuffer(), _STATE: state.to_bytes()}
        if self.shares:
            files[self.shares.own_file] = safetensors.torch.save(shares)
        write_checkpoint(self.checkpoints, state.steps, files, parts=self.shares.files[1:])
        found = find_checkpoints(self.checkpoints)
        for step in list(found)[: -self.run.keep]:
            if step != best:
                remove_checkpoint(found[step])

    def _wait(self) -> None:
        """Wait for the checkpoint that is being written; warn of one that could not be."""
        writing, self._writing = self._writing, None
        if writing is not None:
            try:
                writing.result()
            except OarlockError as error:
                self._saved = -1
                warnings.warn(f"{error.message}. The run goes on, and keeps the checkpoints that it has", RuntimeWarning, stacklevel=2)

    def _write_log(self, entry: Mapping[str, Any]) -> None:
        self._write_line(json.dumps({**entry, "time": round(time.time(), 6)}))

    def _write_line(self, line: str) -> None:
        if self._log is not None:
            try:
                self._log.write(line + "\n")
            except OSError as error:
                warnings.warn(f'"{self.path / _LOG}" cannot be written: {error.strerror}. The run goes on', RuntimeWarning, stacklevel=2)
                self._log = None

    def _close_lock(self) -> None:
        if self._lock is not None:
            _OPEN.discard(str(self.path.resolve()))
            self._lock.close()
            self._lock = None


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


def _step_of(line: str) -> float:
    """The step of a line of the log; infinite for one that was cut short."""
    try:
        return float(json.loads(line)["step"])
    except (ValueError, KeyError, TypeError):
        return float("inf")


def load_run(path: Path) -> Model:
    """The training program in the newest whole checkpoint of a run, and its values. Raises MissingFileError where there is none."""
    found = find_latest(path / _CHECKPOINTS)
    if found is None:
        what = "no checkpoint that is whole" if (path / _ABOUT).is_file() else "no run"
        raise MissingFileError(f'the folder "{path}" holds {what}')
    return load_checkpoint(find_checkpoints(path / _CHECKPOINTS)[found[0]])


def is_running(path: Path) -> bool:
    """Whether a process trains the run in the folder `path` now; False where the system has no locks."""
    if str(path.resolve()) in _OPEN:
        return True  # whose lock would be given up by this process as soon as it closed another descriptor of the file
    try:
        with open(path / _LOCK, "rb") as lock:
            if fcntl is not None:
                fcntl.lockf(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    return False
