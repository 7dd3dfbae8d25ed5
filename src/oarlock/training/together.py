"""Training with several workers: they start with the same program and state, and the first of them writes the run folder."""

from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor

import safetensors.torch
import torch

from oarlock.data.program_inputs import Feed
from oarlock.errors import OarlockError, ProgramError, WorkerError
from oarlock.io.model import Model
from oarlock.ir.content_hash import content_hash
from oarlock.ir.diff import diff_programs
from oarlock.ir.program import Program
from oarlock.passes.parallel.input_rows import placements_of_inputs
from oarlock.passes.parallel.rewrite import data_parallel
from oarlock.passes.parallel.sharded_optimizer import shard_optimizer as keep_shares
from oarlock.runtime.scope import Scope
from oarlock.runtime.workers import Workers
from oarlock.training.checkpoint import SavedState, write_part
from oarlock.training.folder_lock import wait_for_writer
from oarlock.training.records import EpochRecord, TrainingResult, ValidationRecord
from oarlock.training.run_folder import Run, RunFolder
from oarlock.training.shares import Shares

__all__ = ["FollowedFolder", "broadcast", "open_folder", "require_one_start", "shared_by"]

_PART = 2**26  # bytes per exchange, each of which has the timeout of the connection


def shared_by(workers: Workers, program: Program, *, shard_optimizer: bool = False, sync_batch_norm: bool = True) -> tuple[Program, Shares]:
    """Return the program for a worker and the state that is split among workers.

    For a single worker, the program is unchanged; otherwise it is a copy that exchanges tensors with the others. Raises ProgramError for
    an input whose rows are not on its first axis, because the first axis of the data is divided among the workers.
    """
    if workers.count == 1:
        return program, Shares()
    copy = program.clone()
    inside = [(var, placed) for var, placed in placements_of_inputs(copy).items() if placed.by_rows and placed.axis]
    if inside:
        var, placed = inside[0]
        raise ProgramError(
            f'the rows of "{var.name}" are on axis {placed.axis}, but ol.train divides the first axis of the data among the workers',
            location=var.location,
            given=[var.describe()],
            hint="declare the input with its rows on the first axis, and transpose it in the program",
        )
    data_parallel(copy, sync_batch_norm=sync_batch_norm)
    return copy, Shares(workers, keep_shares(copy, workers=workers.count) if shard_optimizer else {})


def require_one_start(workers: Workers, program: Program, steps: int) -> None:
    """Raise WorkerError, with the first difference, if the workers have different programs or are at different steps."""
    if workers.count == 1:
        return
    own = torch.frombuffer(bytearray.fromhex(content_hash(program)), dtype=torch.uint8)
    hashes = workers.all_gather(own, [len(own)] * workers.count, 0).view(workers.count, -1)
    other = next((index for index in range(workers.count) if not bool((hashes[index] == hashes[0]).all())), None)
    if other is not None:
        first, second = (_program_of(workers, program, index) for index in (0, other))
        difference = next(iter(diff_programs(first, second)), "another order")
        raise WorkerError(
            "the workers were given different programs",
            given=[f"worker 0 and worker {other}: {difference}"],
            hint="start the same version of the same script on all of them",
        )
    lowest, highest = workers.least(steps), -workers.least(-steps)
    if lowest != highest:
        raise WorkerError(
            f"the workers would resume after different steps, from {lowest} to {highest}",
            hint="use a run folder that all workers can read, with the checkpoints of a single run",
        )


def _program_of(workers: Workers, program: Program, index: int) -> Program:
    """Return the program of one worker, on all workers."""
    return Program.from_bytes(broadcast(workers, program.to_bytes(source=False), root=index))


def broadcast(workers: Workers, data: bytes = b"", *, root: int = 0) -> bytes:
    """Broadcast `data` of worker `root` to all workers, and return it. The data of the others is ignored."""
    size = int(workers.broadcast(torch.tensor([len(data)]), root))
    if workers.index == root:
        for start in range(0, size, _PART):
            workers.broadcast(torch.frombuffer(bytearray(data[start : start + _PART]), dtype=torch.uint8), root)
        return data
    parts = [torch.empty(min(_PART, size - start), dtype=torch.uint8) for start in range(0, size, _PART)]
    return b"".join(workers.broadcast(part, root).numpy().tobytes() for part in parts)


def open_folder(run: Run, workers: Workers) -> RunFolder:
    """Return the run folder of a worker: the first one writes it, the others read it."""
    return RunFolder(run) if workers.index == 0 else FollowedFolder(run)


class FollowedFolder(RunFolder):
    """A run folder written by the first worker: this worker reads it at the start, and writes only its own shares."""

    def __init__(self, run: Run):
        super().__init__(run)
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="oarlock checkpoint")
        self._writing: Future[None] | None = None

    def __enter__(self) -> "FollowedFolder":
        wait_for_writer(self.path)
        return self

    def __exit__(self, *_: object) -> None:
        try:
            self._wait()
        finally:
            self._thread.shutdown()

    def require_state(self, saved: Model, given: Model | TrainingResult) -> None:
        """Do nothing: the first worker compares the state."""

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
        """Do nothing: the first worker writes the description."""

    def step(self, step: int, epoch: int, rows: int, values: Mapping[str, float]) -> None:
        """Do nothing: the first worker logs steps."""

    def epoch(self, record: EpochRecord | ValidationRecord) -> None:
        """Do nothing: the first worker logs epochs."""

    def end(self, step: int) -> None:
        """Do nothing: the first worker logs the end."""

    def save(self, program: Program, scope: Scope, state: SavedState, *, best: int | None) -> None:
        """Write the shares of this worker in the background."""
        if self.shares and state.steps != self._saved:
            self._wait()
            self._saved = state.steps
            self._writing = self._thread.submit(self._write_shares, state.steps, self.shares.copied(scope))

    def _wait(self) -> None:
        """Wait for the shares that are being written, and warn if that failed."""
        writing, self._writing = self._writing, None
        if writing is not None:
            try:
                writing.result()
            except OarlockError as error:
                self._saved = -1
                self._warn(error.message)

    def _write_shares(self, step: int, shares: dict[str, torch.Tensor]) -> None:
        write_part(self.checkpoints, step, self.shares.own_file, safetensors.torch.save(shares))

    def keep_sample(self, program: Program, part: str, feed: Feed, rows: int) -> None:
        """Do nothing: the first worker stores the sample."""
