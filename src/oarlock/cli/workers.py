"""`--workers`: several processes on this machine run one command, which torchrun starts, watches and starts again."""

import os
import sys
from typing import Annotated

import typer

from oarlock.errors import ArgumentError

__all__ = ["Workers", "start_workers"]

Workers = Annotated[
    int, typer.Option("--workers", help="Processes on this machine that train together, each on its part of every minibatch.")
]

_RESTARTS = 3  # of all workers, when one of them has ended


def start_workers(count: int) -> None:
    """Become torchrun, which runs this command by `count` workers; nothing where this is one of them already.

    When a worker ends, it ends the others and starts all again, a few times: a run in a folder goes on from its last checkpoint then.
    Several machines are for torchrun itself: `torchrun --nnodes 2 ... -m oarlock -- train ...`, where `--` keeps it from taking our `--run`
    for the beginning of an option of its own. Raises ArgumentError.
    """
    if count < 1:
        raise ArgumentError(f"--workers is a number of processes, not {count}")
    if count == 1 or "RANK" in os.environ:
        return
    options = ["--standalone", "--nproc-per-node", str(count), "--max-restarts", str(_RESTARTS)]
    command = [sys.executable, "-m", "torch.distributed.run", *options, "-m", "oarlock", "--", *sys.argv[1:]]
    sys.stdout.flush()
    os.execv(sys.executable, command)  # noqa: S606  the command that was typed, by the same Python
