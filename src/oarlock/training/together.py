"""A run of several workers: they begin with one program and one state, and the first of them keeps the folder of the run."""

from collections.abc import Mapping, Sequence

import torch

from oarlock.data.program_inputs import Feed
from oarlock.errors import WorkerError
from oarlock.ir.content_hash import content_hash
from oarlock.ir.diff import diff_programs
from oarlock.ir.program import Program
from oarlock.passes.parallel.rewrite import data_parallel
from oarlock.runtime.scope import Scope
from oarlock.runtime.workers import Workers
from oarlock.training.records import EpochRecord, ValidationRecord
from oarlock.training.run_folder import Run, RunFolder, SavedState

__all__ = ["FollowedFolder", "open_folder", "require_one_start", "shared_by"]


def shared_by(workers: Workers, program: Program) -> Program:
    """The program that each of the workers runs: this one, where it is alone, else a copy that exchanges tensors with the others."""
    if workers.count == 1:
        return program
    copy = program.clone()
    data_parallel(copy)
    return copy


def require_one_start(workers: Workers, program: Program, steps: int) -> None:
    """Raise WorkerError where the workers have not one program, or are not after one step; it names the first difference."""
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
            hint="start the same script, of the same version, on all of them",
        )
    lowest, highest = (int(workers.all_reduce([torch.tensor([steps])], op)[0]) for op in ("min", "max"))
    if lowest != highest:
        raise WorkerError(
            f"the workers go on after different steps: from {lowest} to {highest}",
            hint="the folder of the run is one that all of them read, and holds the checkpoints of one run",
        )


def _program_of(workers: Workers, program: Program, index: int) -> Program:
    """The program of one of the workers, on all of them."""
    written = torch.frombuffer(bytearray(program.to_bytes(source=False)), dtype=torch.uint8)
    sizes = workers.all_gather(torch.tensor([len(written)]), [1] * workers.count, 0)
    sent = written if workers.index == index else torch.zeros(int(sizes[index]), dtype=torch.uint8)
    return Program.from_bytes(workers.broadcast(sent, index).numpy().tobytes())


def open_folder(run: Run, workers: Workers) -> RunFolder:
    """The folder of a run: the first worker keeps it, the others read it."""
    return RunFolder(run) if workers.index == 0 else FollowedFolder(run)


class FollowedFolder(RunFolder):
    """The folder of a run that another worker keeps: it is read where the run begins, and not written."""

    def __enter__(self) -> "FollowedFolder":
        return self

    def __exit__(self, *_: object) -> None:
        self._writer.shutdown()

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
        """Nothing is written: the first worker does."""

    def step(self, step: int, epoch: int, rows: int, values: Mapping[str, float]) -> None:
        """Nothing is written."""

    def epoch(self, record: EpochRecord | ValidationRecord) -> None:
        """Nothing is written."""

    def end(self, step: int) -> None:
        """Nothing is written."""

    def save(self, program: Program, scope: Scope, state: SavedState, *, best: int | None) -> None:
        """Nothing is written."""

    def keep_sample(self, program: Program, part: str, feed: Feed, rows: int) -> None:
        """Nothing is written."""
