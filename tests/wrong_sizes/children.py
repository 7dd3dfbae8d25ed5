"""Trials in child processes, in two fillings of free memory: what they report, and which trial a signal is of."""

import contextlib
import json
import os
import selectors
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import oarlock
from wrong_sizes.judging import program_text
from wrong_sizes.trial import draw, write
from wrong_sizes.uses import SlotAxis

__all__ = ["Finding", "Running", "Tally", "count", "run"]

PATH = os.pathsep.join(str(Path(file).parent.parent) for file in (__file__, oarlock.__file__))
FILLINGS = (85, 170)
SECONDS = 90.0  # of silence, after which a child hangs
BATCH = 24
CHECKING = "libc_malloc_debug.so.0"  # the allocator that sees, when memory is released, whether something was written behind it


@dataclass
class Finding:
    """Something wrong, of a trial."""

    kind: str
    detail: str
    number: int
    name: str
    axis: SlotAxis
    text: str = ""


@dataclass
class Tally:
    """The outcomes of the trials."""

    seed: int
    only: str | None = None
    trials: int = 0
    outcomes: Counter[str] = field(default_factory=Counter)
    reached: Counter[SlotAxis] = field(default_factory=Counter)
    ran: Counter[SlotAxis] = field(default_factory=Counter)
    findings: list[Finding] = field(default_factory=list)
    processor_seconds: float = 0.0


@dataclass
class _Report:
    """The report of a child on one trial; `ended` is the signal or the status of a child that ended in it."""

    number: int
    name: str
    axis: SlotAxis
    last: str = ""
    judged: dict[str, Any] | None = None
    broken: str = ""
    ended: str = ""


class _Parents:
    """One process for each filling, from which children are forked."""

    def __init__(self, seed: int, only: str | None, folder: Path):
        self.seed, self.only, self.folder = seed, only, folder
        self.count = 0
        self.selector = selectors.DefaultSelector()
        self.processes = [self._start(byte) for byte in FILLINGS]

    def _start(self, byte: int) -> subprocess.Popen[bytes]:
        environment = os.environ | {"PYTHONPATH": PATH, "MALLOC_PERTURB_": str(byte), "OMP_NUM_THREADS": "1"}
        if _checks():
            environment |= {"LD_PRELOAD": CHECKING, "GLIBC_TUNABLES": "glibc.malloc.check=3"}
        with (self.folder / f"errors-{byte}").open("wb") as errors:
            process = subprocess.Popen(
                [sys.executable, "-m", "wrong_sizes.child"], env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors
            )
        assert process.stdout is not None
        os.set_blocking(process.stdout.fileno(), False)
        self.selector.register(process.stdout, selectors.EVENT_READ)
        return process

    def fork(self, numbers: Sequence[int]) -> list[Path]:
        """Let a child of each process run some trials; return their reports."""
        self.count += 1
        reports = [self.folder / f"report-{self.count}-{byte}" for byte in FILLINGS]
        for process, report in zip(self.processes, reports, strict=True):
            report.touch()
            assert process.stdin is not None
            process.stdin.write("\t".join([str(self.seed), self.only or "", str(report), *map(str, numbers)]).encode() + b"\n")
            process.stdin.flush()
        return reports

    def ended(self) -> Iterator[tuple[Path, int]]:
        """The reports of children that have ended since, and how. Waits a little."""
        for key, _ in self.selector.select(0.5):
            lines = os.read(key.fd, 65536).decode().splitlines()
            if not lines:
                errors = "\n".join((self.folder / f"errors-{byte}").read_text()[-1500:] for byte in FILLINGS)
                raise RuntimeError(f"no child runs: {errors}")
            for line in lines:
                word, _, rest = line.partition("\t")
                if word == "ended":  # libraries print too
                    report, _, status = rest.partition("\t")
                    yield Path(report), int(status)

    def close(self) -> float:
        """End the processes; return the processor time that they and their children took."""
        before = os.times()
        for process in self.processes:
            with contextlib.suppress(BrokenPipeError):
                process.stdin.close()  # type: ignore[union-attr]
            process.wait()
            process.stdout.close()  # type: ignore[union-attr]
        after = os.times()
        return after.children_user + after.children_system - before.children_user - before.children_system


def run(
    seed: int,
    numbers: Sequence[int],
    folder: Path,
    *,
    only: str | None = None,
    processes: int = 2,
    note: Callable[[int], None] = lambda _: None,
) -> Tally:
    """Run trials in children, `processes` at a time. `note` is told how many trials have ended."""
    parents = _Parents(seed, only, folder)
    tally = Tally(seed, only)
    batches = [list(numbers[at : at + BATCH]) for at in range(0, len(numbers), BATCH)]
    running: dict[Path, Running] = {}
    at_once = max(1, processes // len(FILLINGS))
    try:
        while batches or running:
            while batches and len(running) < len(FILLINGS) * at_once:
                _begin(parents, batches.pop(0), running)
            for report, status in parents.ended():
                running[report].status = status
            _end_silent(running)
            for each in {id(child.pair): child.pair for child in running.values()}.values():
                if all(child.status is not None for child in each):
                    for child in each:
                        del running[child.report]
                    batches[:0] = count(tally, each)
                    note(tally.trials)
    finally:
        tally.processor_seconds = parents.close()
    return tally


@dataclass
class Running:
    """A child that runs trials, and how it ended."""

    report: Path
    numbers: list[int]
    status: int | None = None
    size: int = 0
    since: float = field(default_factory=time.monotonic)
    pair: "list[Running]" = field(default_factory=list)


def _begin(parents: _Parents, numbers: list[int], running: dict[Path, Running]) -> None:
    pair = [Running(report, numbers) for report in parents.fork(numbers)]
    for child in pair:
        child.pair = pair
        running[child.report] = child


def _end_silent(running: dict[Path, Running]) -> None:
    """End children that have said nothing for long."""
    for child in running.values():
        size = child.report.stat().st_size
        if size != child.size:
            child.size, child.since = size, time.monotonic()
        elif child.status is None and time.monotonic() - child.since > SECONDS:
            first = child.report.read_text().partition("\n")[0]
            child.since = time.monotonic()
            with contextlib.suppress(ProcessLookupError, ValueError, IndexError):
                os.kill(int(json.loads(first)[1]["pid"]), signal.SIGALRM)


def count(tally: Tally, pair: Sequence[Running]) -> list[list[int]]:
    """Count what both children of a pair reported; return the trials that are still to run, in batches."""
    reports = [_read(child) for child in pair]
    numbers = pair[0].numbers
    died = [each[-1] for each, child in zip(reports, pair, strict=True) if child.status and each]
    if any(child.status for child in pair) and not died:
        raise RuntimeError(f"a child ended with {[child.status for child in pair]} before it ran a trial")
    if died and len(numbers) > 1:  # which of them wrote where it should not, each tells alone
        last = max(numbers.index(each.number) for each in died)
        rest = [numbers[last + 1 :]] if numbers[last + 1 :] else []
        return [*([number] for number in numbers[: last + 1]), *rest]
    by_number = [{each.number: each for each in found} for found in reports]
    for number in numbers:
        _judge(tally, [found[number] for found in by_number if number in found])
    return []


def _judge(tally: Tally, both: Sequence[_Report]) -> None:
    first = both[0]
    tally.trials += 1
    tally.reached[first.axis] += 1

    def find(kind: str, detail: str, text: str = "") -> None:
        if not text:
            trial = draw(tally.seed, first.number, tally.only)
            with contextlib.suppress(oarlock.OarlockError):
                text = program_text(trial, write(trial))
        tally.findings.append(Finding(kind, detail, first.number, first.name, first.axis, text))

    ended = [each for each in both if each.ended]
    if ended:
        tally.outcomes["ended by a signal"] += 1
        find("signal", f"{ended[0].ended} in: {ended[0].last}")
        return
    if any(each.broken for each in both):
        find("foreign error", next(each.broken for each in both if each.broken))
        return
    judged = [each.judged for each in both if each.judged is not None]
    tally.outcomes[judged[0]["outcome"]] += 1
    tally.ran[first.axis] += judged[0]["outcome"] != "refused when written"
    text = next((each["text"] for each in judged if each["text"]), "")
    for kind, detail in {kind: detail for each in judged for kind, detail in each["findings"]}.items():
        find(kind, detail, text)
    if len(judged) == 2 and judged[0]["digests"] != judged[1]["digests"]:
        names = [name for name, digest in judged[0]["digests"].items() if judged[1]["digests"].get(name) != digest]
        find("filling", f"by {', '.join(names)}", text)


def _read(child: Running) -> list[_Report]:
    """The trials that a child reported, the one in which it ended last."""
    reports: list[_Report] = []
    for line in child.report.read_text(encoding="utf-8").splitlines():
        word, values = json.loads(line)
        if word == "trial":
            reports.append(_Report(values["number"], values["name"], SlotAxis(*values["axis"])))
        elif word == "begin":
            reports[-1].last = values["what"]
        elif word == "judged":
            reports[-1].judged = values
        elif word == "broken":
            reports[-1].broken = values["text"]
    child.report.unlink()
    if child.status and reports:
        reports[-1].ended = signal.Signals(-child.status).name if child.status < 0 else f"status {child.status}"
        if child.status == -signal.SIGALRM:
            reports[-1].ended = f"silence of {SECONDS:g} s"
    return reports


def _checks() -> bool:
    """Whether there is an allocator that checks."""
    done = subprocess.run([sys.executable, "-c", ""], env=os.environ | {"LD_PRELOAD": CHECKING}, capture_output=True, check=False)
    return done.returncode == 0 and not done.stderr
