"""Trials in child processes. A child says what it is about to do, so that a signal is that of one trial and one executor."""

import os
import signal
import subprocess
import sys
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import oarlock

__all__ = ["Tally", "run"]

PATH = os.pathsep.join(str(Path(file).parent.parent) for file in (__file__, oarlock.__file__))
SECONDS = 120.0  # of silence, after which a child hangs: a trial takes some milliseconds, on a machine with much else to do
CHECKING = "libc_malloc_debug.so.0"  # the allocator that sees, when memory is freed, whether something was written behind it


@dataclass
class Tally:
    """The outcomes of the trials."""

    trials: int = 0
    uses: int = 0
    signals: int = 0
    guarded: bool = False
    outcomes: Counter[str] = field(default_factory=Counter)
    failures: list[str] = field(default_factory=list)


def run(seed: int, numbers: range, folder: Path) -> Tally:
    """Every trial, by as many children as it takes."""
    tally, begin = Tally(guarded=_checks()), numbers.start
    while begin < numbers.stop:
        report = folder / f"report-{begin}"
        report.touch()
        status = _child(seed, begin, numbers.stop, report, guarded=tally.guarded)
        lines = report.read_text(encoding="utf-8").splitlines()
        begin = _read(lines, tally, seed, begin)
        if status == 0:
            break
        if not any(line.startswith("trial ") for line in lines):
            raise RuntimeError(f"no child runs: {report.with_suffix('.errors').read_text(encoding='utf-8')[-1000:]}")
        if status < 0:
            tally.signals += 1
        what = "is silent" if status == -signal.SIGALRM else signal.Signals(-status).name if status < 0 else f"ends with {status}"
        tally.failures.append(f"--seed {seed} --only {begin}: {what} after: {lines[-1]}")
        begin += 1
    return tally


def _child(seed: int, begin: int, end: int, report: Path, *, guarded: bool) -> int:
    """How a child ended that runs trials [begin, end); SIGALRM where it was silent for too long."""
    command = [sys.executable, "-m", "hostile_values.child", str(seed), str(begin), str(end), str(report)]
    environment = (
        os.environ | {"PYTHONPATH": PATH} | ({"LD_PRELOAD": CHECKING, "GLIBC_TUNABLES": "glibc.malloc.check=3"} if guarded else {})
    )
    with (report.with_suffix(".errors")).open("wb") as errors:
        child = subprocess.Popen(command, env=environment, stdout=errors, stderr=errors)
        size, since = 0, time.monotonic()
        while True:
            try:
                return child.wait(1.0)
            except subprocess.TimeoutExpired:
                pass
            if report.stat().st_size != size:
                size, since = report.stat().st_size, time.monotonic()
            elif time.monotonic() - since > SECONDS:
                child.kill()
                child.wait()
                return -signal.SIGALRM


def _checks() -> bool:
    """Whether there is such an allocator."""
    done = subprocess.run([sys.executable, "-c", ""], env=os.environ | {"LD_PRELOAD": CHECKING}, capture_output=True, check=False)
    return done.returncode == 0 and not done.stderr


def _read(lines: list[str], tally: Tally, seed: int, begin: int) -> int:
    """Count what a child reported; return the number of the trial that it began last."""
    for line in lines:
        word, _, rest = line.partition(" ")
        if word == "uses":
            tally.uses = int(rest)
        elif word == "trial":
            begin = int(rest.partition(" ")[0])
            tally.trials += 1
        elif word == "came":
            tally.outcomes[rest] += 1
        elif word == "failed":
            tally.failures.append(f"--seed {seed} --only {begin}: {rest}")
    return begin
