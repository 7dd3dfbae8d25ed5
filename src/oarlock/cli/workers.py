"""`--workers`: several processes on this machine run one command, which torchrun starts and watches, and which are started again."""

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

Workers = Annotated[
    int, typer.Option("--workers", help="Processes on this machine that train together, each on its part of every minibatch.")
]

_RESTARTS = 3  # of all workers, when one of them has ended


def start_workers(count: int) -> None:
    """Be torchrun, which runs this command by `count` workers, and end as they do; nothing where this is one of them already.

    When a worker ends, torchrun ends the others, and all are started again, a few times: a run in a folder goes on from its last checkpoint
    then. What the first worker refuses, before there is anything to train, it would refuse again, so nothing is started again.
    Several machines are for torchrun itself: `torchrun --nnodes 2 ... -m oarlock -- train ...`, where `--` keeps it from taking our `--run`
    for the beginning of an option of its own. Raises ArgumentError.
    """
    if count < 1:
        raise ArgumentError(f"--workers is a number of processes, not {count}")
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
