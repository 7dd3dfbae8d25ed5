"""`--workers`: several processes on this machine that run one command, started and restarted by torchrun."""

import os
import sys
import tempfile
from pathlib import Path
from typing import Annotated

import typer

from oarlock.errors import ArgumentError
from oarlock.runtime.workers import is_worker
from oarlock.training.sent_model import REFUSED

__all__ = ["Workers", "start_workers"]

Workers = Annotated[int, typer.Option("--workers", help="Number of processes on this machine; each trains on its part of every batch.")]

_RESTARTS = 3  # of all workers, after one of them failed


def start_workers(count: int) -> None:
    """Run this command in `count` workers with torchrun, and exit when they do. Does nothing in a worker or for a single one.

    If a worker fails, torchrun ends the others, and all are restarted, up to three times; a run in a folder resumes from its last
    checkpoint. Errors that the first worker reports before training begins would recur, so they cause no restart. For several machines,
    use torchrun directly: `torchrun --nnodes 2 ... -m oarlock -- train ...`, where `--` stops torchrun from parsing our `--run` as an
    abbreviation of its own option. Raises ArgumentError if `count` is below 1.
    """
    if count < 1:
        raise ArgumentError(f"--workers must be at least 1, not {count}")
    if count == 1 or is_worker():
        return
    from torch.distributed.elastic.multiprocessing.errors import ChildFailedError
    from torch.distributed.run import main

    with tempfile.TemporaryDirectory(prefix="oarlock-workers-") as folder:
        refused = Path(folder) / "refused"
        os.environ[REFUSED] = str(refused)
        for left in reversed(range(_RESTARTS + 1)):
            try:
                main(["--standalone", "--nproc-per-node", str(count), "-m", "oarlock", "--", *sys.argv[1:]])
                sys.exit(0)
            except ChildFailedError:
                if refused.exists():
                    sys.exit(1)
                if not left:
                    raise
