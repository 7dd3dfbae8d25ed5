"""Jobs of several workers: one that nothing happens to, and others, one of whose workers fails; and what is wrong with how these end."""

import json
import os
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from random import Random

import numpy

from oarlock.training.run_folder import load_run

__all__ = ["Failure", "draw", "end_of", "fault_of", "steps_in"]

_SCRIPT = Path(__file__).with_name("script.py")
_STEPS = 18  # of 2 epochs of 1,347 rows, 150 at a time
_SECONDS = 180.0  # for a job
_LATE = 60.0  # seconds, after which torchrun has ended what was left of a job that is over


@dataclass(frozen=True)
class Failure:
    """A worker, by its number, is sent a signal, "kill" or "stop": after the "step" of a number, or in that file of its "save"s."""

    how: str = "none"
    worker: int = 0
    where: str = "step"
    number: int = 0

    def __str__(self) -> str:
        place = f"after step {self.number}" if self.where == "step" else f"in file {self.number} of its saves"
        return f"{self.how} worker {self.worker} {place}"


def draw(random: Random, how: str, workers: int, *, in_shares: bool) -> Failure:
    """A failure of one of the workers; where others than the first write files too, also in a save of theirs."""
    worker = random.randrange(workers)
    if random.random() < 0.5 and (worker == 0 or in_shares):
        return Failure(how, worker, "save", random.randint(1, 12 if worker == 0 else 8))
    return Failure(how, worker, "step", random.randint(1, _STEPS - 1))


def end_of(folder: Path, failure: Failure, workers: int, *, in_shares: bool) -> str:
    """Run a job in a folder; return what is wrong with how it ended, nothing where all is well.

    It leaves no process behind, and so no port, which a process has open.
    """
    words = [str(folder), failure.how, str(failure.worker), failure.where, str(failure.number), *(["shares"] if in_shares else [])]
    job = subprocess.Popen(
        [sys.executable, "-m", "oarlock", "train", "--workers", str(workers), "--plain", str(_SCRIPT), *words],
        env=os.environ | {"OMP_NUM_THREADS": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    )
    try:
        printed, _ = job.communicate(timeout=_SECONDS)
    except subprocess.TimeoutExpired:
        fault = f"the job did not end in {_SECONDS:.0f} s"
    else:
        fault = "" if job.returncode == 0 else f"the job ended with {job.returncode}:\n{printed[-2000:]}"
    until = time.monotonic() + (0.0 if fault else _LATE)
    while (left := _processes_of(folder)) and time.monotonic() < until:
        time.sleep(0.2)
    for process in left:
        os.kill(process, 9)
    if fault or left:
        return fault or f"processes were left behind: {left}"
    if failure.how != "none" and not folder.with_suffix(".failed").exists():
        return "the worker did not fail"
    return ""


def fault_of(folder: Path, unbroken: Path) -> str:
    """The difference between the runs in two folders: in the bits of what was trained, or in what was logged."""
    expected, found = load_run(unbroken).scope, load_run(folder).scope
    names = [name for name in expected if numpy.asarray(expected[name]).tobytes() != numpy.asarray(found[name]).tobytes()]
    if names or len(list(expected)) != len(list(found)):
        return f"other bits: {names}"
    if steps_in(folder) != steps_in(unbroken):
        return "the log differs"
    left = [path.name for path in (folder / "checkpoints").iterdir() if path.name.startswith(".")]
    return f"{left[0]} was left behind" if left else ""


def steps_in(folder: Path) -> list[dict]:
    """The steps and epochs that a run has logged, but for when that was."""
    lines = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    return [{name: value for name, value in line.items() if name != "time"} for line in lines if "environment" not in line]


def _processes_of(folder: Path) -> list[int]:
    """The processes, but this one, of whose command the folder is a word."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = path.read_bytes().split(b"\0")
        except OSError:  # it has ended
            continue
        if os.fsencode(folder) in words and int(path.parent.name) != os.getpid():
            found.append(int(path.parent.name))
    return found
