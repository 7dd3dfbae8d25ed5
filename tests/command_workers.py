"""Workers of one command, for tests: processes with the variables that torchrun sets, each with a working folder of its own."""

import os
import socket
from collections.abc import Sequence
from pathlib import Path

from processes import become, end_of, fork

__all__ = ["run_by_workers"]


def run_by_workers(folders: Sequence[Path], *words: str) -> tuple[list[int | None], list[str]]:
    """Run `oarlock WORDS` by a worker in each folder; return how each ended, and what it printed."""
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        port = str(listening.getsockname()[1])
    common = {"WORLD_SIZE": str(len(folders)), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port, "COLUMNS": "120"}
    processes = [
        fork(_run, folder, folder.with_suffix(".printed"), common | {"RANK": str(rank)}, words) for rank, folder in enumerate(folders)
    ]
    return list(end_of(processes)), [folder.with_suffix(".printed").read_text() for folder in folders]


def _run(folder: Path, printed: Path, environment: dict[str, str], words: Sequence[str]) -> None:
    os.chdir(folder)
    become(["oarlock", *words], {**os.environ, **environment}, [printed, printed])
    from oarlock.cli.main import run

    run()
