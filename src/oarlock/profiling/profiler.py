"""The profile of what runs in a context."""

import contextlib
import os
import statistics
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from typing import Any

import torch

from oarlock.errors import ArgumentError
from oarlock.io.atomic_write import write_file
from oarlock.ir.location import here
from oarlock.profiling.chrome_trace import trace_of
from oarlock.profiling.machine import measure_peak
from oarlock.profiling.tables import said_time, table_of_totals, table_of_waits
from oarlock.profiling.totals import Timed, Total, multiply_adds_of, nest, totals, waits
from oarlock.runtime.place import CPUPlace, Place
from oarlock.runtime.recording import EnoughRecorded, Recorder, recording

__all__ = ["Profile", "profile"]


class Profile:
    """The profile of some steps: how long each op, line and wait takes. Its text is a summary and tables; `save` writes a trace.

    `steps` were recorded; `seconds` are those of one, from the end of the step before to its own, without what recording took. All sums are
    per step. Times of ops are their own: what stands inside a loop or a branch counts there.
    """

    def __init__(self, recorder: Recorder, place: Place | None = None):
        self._recorder = recorder
        self._place = place or CPUPlace()

    @property
    def steps(self) -> int:
        """The number of steps that were recorded."""
        return self._recorder.recorded

    @property
    def seconds(self) -> float:
        """The time of one step, and of what lies between it and the next."""
        return self._nanoseconds * 1e-9 / max(1, self.steps)

    @property
    def slowdown(self) -> float | None:
        """The median of the steps that were recorded by that of those before, which ran without a clock; None where there were none."""
        recorded = [each.slice.end - each.slice.begin for each in self._timed if each.slice.part.kind == "step"]
        before = self._recorder.before[1:]  # the first step makes the plan
        if not before or not recorded:
            return None
        return statistics.median(recorded) / statistics.median(before)

    @cached_property
    def peak(self) -> float:
        """Billions of floating point operations a second of a large product on this machine, measured when it is first asked for."""
        return measure_peak(self._place)

    @property
    def gigaflops(self) -> float:
        """Billions of floating point operations a second, over all of a step: products, convolutions and attention, two a multiply-add."""
        count = sum(multiply_adds_of(each.slice) or 0 for each in self._timed if each.slice.part.kind == "op")
        return 2.0 * count / self._nanoseconds if self._nanoseconds else 0.0

    def totals(self, by: str = "operator") -> list[Total]:
        """The sums by "operator", by "line" of the author's or by "block", the longest first. Raises ArgumentError."""
        return totals(self._timed, by, self.steps, self.seconds)

    def waits(self) -> dict[str, float]:
        """The seconds of a step by what takes them: `oarlock.profiling.totals.WAITS` says what the names stand for."""
        return waits(self._timed, self._recorder.main, self.steps, self._nanoseconds)

    def table(self, by: str = "operator", top: int = 12) -> str:
        """The first `top` sums by "operator", "line" or "block", as a table. Raises ArgumentError."""
        if not isinstance(top, int) or top < 1:
            raise ArgumentError(f"top is a whole number from 1, not {top!r:.60}", location=here())
        return table_of_totals(self.totals(by), by, top, self.peak)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the trace as JSON, for ui.perfetto.dev or chrome://tracing: steps, blocks, trips and ops, one inside the other.

        Raises WriteError, MissingFileError or ArgumentError, as `ol.save_model` does.
        """
        write_file(path, self.trace())

    def trace(self) -> bytes:
        """The content of the file that `save` writes."""
        return trace_of(self._timed, self._recorder.begin, self._recorder.main, self._about())

    def report(self, top: int = 12) -> str:
        """The summary, what a step waits for, and the first `top` operators and lines."""
        if not self.steps:
            return "no step was recorded"
        return "\n\n".join([self.summary(), self.table("operator", top), self.table("line", top)])

    def __str__(self) -> str:
        return self.report()

    def summary(self) -> str:
        """The time of a step, how much of that is arithmetic and how fast, and what it waits for."""
        found, slowed = self.waits(), self.slowdown
        share = found["arithmetic"] / self.seconds if self.seconds else 0.0
        threads = torch.get_num_threads()
        median = statistics.median(each.whole for each in self._timed if each.slice.part.kind == "step") * 1e-9
        lines = [
            f"{self.steps} step{'s' * (self.steps != 1)} of {said_time(self.seconds)} each, with what lies between them; "
            f"the median step takes {said_time(median)}, with {threads} thread{'s' * (threads != 1)}",
            f"{share * 100:.0f} % of it products, convolutions and attention; {self.gigaflops:,.1f} GFLOP/s over all, "
            f"of {self.peak:,.1f} for a large product on this machine",
        ]
        beside = [each for each in self._timed if each.slice.part.kind == "beside"]
        for name in dict.fromkeys(each.slice.part.name for each in beside):
            taken = sum(each.whole for each in beside if each.slice.part.name == name) * 1e-9 / self.steps
            lines.append(f"beside it, in another thread or process: {name}, {said_time(taken)} for each step")
        if slowed is not None:
            lines.append(f"recording made a step {slowed:.2f} times as long; its own time is left out")
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
    """Record what executors, prepared steps and `ol.train` run in this context: a `Profile`, to look at after it.

        with ol.profile(steps=10, warm_up=3) as profile:
            ol.train(cost, data, optimizer=optimizer)
        print(profile)
        profile.save("trace.json")

    The first `warm_up` steps are left out, and recorded are so many `steps` after them, or all. With `ends`, the step after those raises
    `oarlock.profiling.EnoughRecorded` before it changes anything, which ends the context. `place` is where the peak is measured. What is
    computed is the same, bit for bit; steps that are not recorded are as fast as without a profile. At a GPU, steps wait for each op.

    Raises ArgumentError for a number that is none, and where somebody records already.
    """
    for name, value, least in (("steps", 1 if steps is None else steps, 1), ("warm_up", warm_up, 0)):
        if not isinstance(value, int) or isinstance(value, bool) or value < least:
            raise ArgumentError(f"{name} is a whole number from {least}, not {value!r:.60}", location=here())
    with contextlib.suppress(EnoughRecorded), recording(steps=steps, warm_up=warm_up, ends=ends) as recorder:
        yield Profile(recorder, place)
