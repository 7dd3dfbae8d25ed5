"""Profiling the steps that run in a context."""

import contextlib
import os
import statistics
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from typing import Any

import torch

from oarlock.io.atomic_write import write_file
from oarlock.profiling.chrome_trace import trace_of
from oarlock.profiling.tables import format_time, table_of_totals, table_of_waits
from oarlock.profiling.totals import Timed, Total, multiply_adds_of, nest, totals, waits
from oarlock.registry.range_check import require_count
from oarlock.runtime.place import CPUPlace, Place, device_of
from oarlock.runtime.recording import EnoughRecorded, Recorder, recording

__all__ = ["Profile", "measure_peak", "profile"]


class Profile:
    """A profile of steps: the time of each op, line and wait. It prints as a summary with tables, and `save` writes a trace.

    `steps` is the number of recorded steps. `seconds` is the time per step, measured from the end of the previous step, without the
    overhead of recording. All totals are per step. Times of ops are exclusive: ops inside a loop or branch are not counted in it.
    """

    def __init__(self, recorder: Recorder, place: Place | None = None):
        self._recorder = recorder
        self._place = place or CPUPlace()

    @property
    def steps(self) -> int:
        """The number of recorded steps."""
        return self._recorder.recorded

    @property
    def seconds(self) -> float:
        """The time per step, including the time between steps."""
        return self._nanoseconds * 1e-9 / max(1, self.steps)

    @property
    def slowdown(self) -> float | None:
        """The median time of recorded steps divided by that of unrecorded steps before them; None if there were none."""
        recorded = [each.slice.end - each.slice.begin for each in self._timed if each.slice.part.kind == "step"]
        before = self._recorder.before[1:]  # the first step compiles the plan
        if not before or not recorded:
            return None
        return statistics.median(recorded) / statistics.median(before)

    @cached_property
    def peak(self) -> float:
        """The speed of a large product on this machine, in billions of floating-point operations per second, measured on first use."""
        return measure_peak(self._place)

    @property
    def gigaflops(self) -> float:
        """The speed of a whole step, in billions of floating-point operations per second.

        It counts products, convolutions and attention, with two operations per multiply-add.
        """
        count = sum(multiply_adds_of(each.slice) or 0 for each in self._timed if each.slice.part.kind == "op")
        return 2.0 * count / self._nanoseconds if self._nanoseconds else 0.0

    def totals(self, by: str = "operator") -> list[Total]:
        """Return the totals by "operator", source "line" or "block", longest first. Raises ArgumentError."""
        return totals(self._timed, by, self.steps, self.seconds)

    def waits(self) -> dict[str, float]:
        """Return the seconds per step by category; `oarlock.profiling.totals.WAITS` describes the categories."""
        return waits(self._timed, self._recorder.main, self.steps, self._nanoseconds)

    def table(self, by: str = "operator", top: int = 12) -> str:
        """Return a table of the first `top` totals by "operator", "line" or "block". Raises ArgumentError."""
        return table_of_totals(self.totals(by), by, require_count("top", top), self.peak)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the trace as JSON for ui.perfetto.dev or chrome://tracing: nested steps, blocks, iterations and ops.

        Raises WriteError, MissingFileError or ArgumentError, like `ol.save_model`.
        """
        write_file(path, self.trace())

    def trace(self) -> bytes:
        """Return the content of the file that `save` writes."""
        return trace_of(self._timed, self._recorder.begin, self._recorder.main, self._about())

    def report(self, top: int = 12) -> str:
        """Return the summary, and the first `top` operators and lines."""
        if not self.steps:
            return "no steps were recorded"
        return "\n\n".join([self.summary(), self.table("operator", top), self.table("line", top)])

    def __str__(self) -> str:
        return self.report()

    def summary(self) -> str:
        """Return the time per step, its share of arithmetic, the speed, and the time by category."""
        found, slowed = self.waits(), self.slowdown
        share = found["arithmetic"] / self.seconds if self.seconds else 0.0
        threads = torch.get_num_threads()
        median = statistics.median(each.whole for each in self._timed if each.slice.part.kind == "step") * 1e-9
        lines = [
            f"{self.steps} step{'s' * (self.steps != 1)} of {format_time(self.seconds)} each, including the time between steps; "
            f"median step {format_time(median)}, with {threads} thread{'s' * (threads != 1)}",
            f"{share * 100:.0f} % for products, convolutions and attention; {self.gigaflops:,.1f} GFLOP/s overall, "
            f"compared with {self.peak:,.1f} for a large product on this machine",
        ]
        background = [each for each in self._timed if each.slice.part.kind == "beside"]
        for name in dict.fromkeys(each.slice.part.name for each in background):
            taken = sum(each.whole for each in background if each.slice.part.name == name) * 1e-9 / self.steps
            lines.append(f"in the background: {name}, {format_time(taken)} per step")
        if slowed is not None:
            lines.append(f"recording made a step {slowed:.2f} times as long; this overhead is excluded")
        return "\n".join([*lines, "", table_of_waits(found)])

    def _about(self) -> dict[str, Any]:
        about: dict[str, Any] = {"steps": self.steps, "threads": torch.get_num_threads(), "torch": torch.__version__}
        return about | ({} if self.slowdown is None else {"slowdown": round(self.slowdown, 3)})

    @property
    def _nanoseconds(self) -> int:
        return self._recorder.nanoseconds

    @cached_property
    def _timed(self) -> list[Timed]:
        return nest(each for each in self._recorder.slices if each.end <= self._recorder.end or each.thread != self._recorder.main)


@contextmanager
def profile(*, steps: int | None = None, warm_up: int = 0, ends: bool = False, place: Place | None = None) -> Iterator[Profile]:
    """Record the steps of executors, prepared steps and `ol.train` in this context, as a `Profile` to examine afterwards.

        with ol.profile(steps=10, warm_up=3) as profile:
            ol.train(cost, data, optimizer=optimizer)
        print(profile)
        profile.save("trace.json")

    The first `warm_up` steps are skipped, and the next `steps` are recorded, or all. With `ends=True`, the step after those raises
    `oarlock.profiling.EnoughRecorded` before it changes anything, which ends the context. `place` is the device to measure the peak speed
    on. Recording does not change results, and unrecorded steps are not slowed down. On a GPU, recorded steps wait for each op.

    Raises ArgumentError for an invalid number, and if steps are already being recorded.
    """
    if steps is not None:
        require_count("steps", steps)
    require_count("warm_up", warm_up, least=0)
    with contextlib.suppress(EnoughRecorded), recording(steps=steps, warm_up=warm_up, ends=ends) as recorder:
        yield Profile(recorder, place)


_SIZES = {"cpu": (256, 512, 1024), "cuda": (4096, 8192)}


def measure_peak(place: Place, dtype: torch.dtype = torch.float32) -> float:
    """Return the speed of the fastest product of two square matrices, in billions of floating-point operations per second.

    It takes a fifth of a second with the current number of threads. Other load on the machine lowers the result.
    """
    device = device_of(place)
    sizes = _SIZES.get(device.type, (512,))
    return max(_rate(size, dtype, device, seconds=0.2 / len(sizes)) for size in sizes)


def _rate(size: int, dtype: torch.dtype, device: torch.device, *, seconds: float) -> float:
    left, right = (torch.ones((size, size), dtype=dtype, device=device) for _ in range(2))
    fastest, until, runs = float("inf"), time.perf_counter() + seconds, 0
    while runs < 3 or time.perf_counter() < until:
        begin = time.perf_counter()
        torch.mm(left, right)
        if device.type == "cuda":
            torch.cuda.synchronize(device)
        fastest = min(fastest, time.perf_counter() - begin)
        runs += 1
    return 2e-9 * size**3 / fastest
