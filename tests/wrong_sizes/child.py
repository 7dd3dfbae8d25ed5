"""The parent of children that run trials: it has imported all, was started with a filling for free memory, and forks.

It reads lines `seed report number number ...` and answers `ended report status` when such a child has ended.
"""

import contextlib
import gc
import json
import os
import resource
import select
import sys
import traceback
from pathlib import Path

import torch

from wrong_sizes.judging import judge
from wrong_sizes.trial import draw
from wrong_sizes.uses import positions

__all__ = ["main"]

ADDRESS_SPACE = 6 * 2**30  # so that a wrong size is refused memory, and does not take it


def main() -> None:
    """Fork a child for each line until there are no more."""
    byte = int(os.environ["MALLOC_PERTURB_"])
    torch.set_num_threads(1)
    positions()
    gc.collect()
    gc.freeze()
    running: dict[int, str] = {}
    opened, waiting = True, b""
    while opened or running:
        ready = select.select([0] if opened else [], [], [], 0.005 if running else None)[0]
        if ready:
            data = os.read(0, 65536)
            opened, waiting = bool(data), waiting + data
            *lines, waiting = waiting.split(b"\n")
            for line in lines:
                seed, only, report, *numbers = line.decode().split("\t")
                pid = os.fork()
                if pid == 0:
                    _run(int(seed), only or None, Path(report), [*map(int, numbers)], byte)
                running[pid] = report
        for pid in list(running):
            if os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None:
                status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
                os.write(1, f"ended\t{running.pop(pid)}\t{status}\n".encode())


def _run(seed: int, only: str | None, report: Path, numbers: list[int], byte: int) -> None:
    """Run trials in a child, and end it."""
    try:
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        resource.setrlimit(resource.RLIMIT_AS, (ADDRESS_SPACE, ADDRESS_SPACE))
        out = os.open(report, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, 1)
        os.dup2(null, 2)

        def say(word: str, **values: object) -> None:
            os.write(out, (json.dumps([word, values]) + "\n").encode())

        for number in numbers:
            trial = draw(seed, number, only)
            say("trial", pid=os.getpid(), number=number, name=str(trial), axis=trial.axis)
            try:
                judged = judge(trial, byte, lambda what: say("begin", what=what))
            except Exception:
                say("broken", text=traceback.format_exc()[-1500:])
                continue
            say("judged", outcome=judged.outcome, findings=judged.findings, digests=judged.digests, text=judged.text)
            with contextlib.suppress(Exception):
                gc.collect()  # memory that is released is checked
        os._exit(0)
    except BaseException:
        os._exit(3)


if __name__ == "__main__":
    main()
    sys.exit(0)
