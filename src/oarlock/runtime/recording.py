"""The recording of what runs: slices of time, one inside the other. Nothing is recorded unless somebody asks.

`recorder` is None, and whoever could be recorded looks at it once: a step, not an op. What is recorded is what an op takes, beside what
its recording takes, which is noted too.
"""

import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

import torch

from oarlock.errors import ArgumentError
from oarlock.ir.location import Location, here
from oarlock.ir.operation import Op
from oarlock.ir.var import Var

__all__ = ["EnoughRecorded", "Part", "Recorder", "Slice", "each", "note_beside", "recording", "slice_of"]

_PROCESS = 0  # in place of a thread, none of which has this number
_Item = TypeVar("_Item")
Begun = tuple[int, int]
"""The clock, in nanoseconds, and what recording took until then."""


@dataclass(frozen=True)
class Part:
    """The matter of a slice: a step, an op, a block or one of its trips, the feed, or what a training loop waits for.

    `kind` is "step", "op", "block", "feed", "data", "checkpoint" or "beside"; the last is what another thread does meanwhile. Of an op,
    `vars` are those whose values are looked at, first so many `results`, then what it has read. `is_kept` tells of results in memory that
    the plan keeps from run to run. Without an `op`, an op stands for several.
    """

    kind: str
    name: str
    op: Op | None = None
    location: Location | None = None
    vars: tuple[Var, ...] = ()
    results: int = 0
    is_kept: bool = False


class Slice(NamedTuple):
    """A slice of time: from `begin` to `end`, in nanoseconds, of which recording what is inside took `lost`; in which thread.

    Of an op, the shapes of its values, None of what is no tensor, and how many bytes its results take that lie nowhere else.
    """

    part: Part
    begin: int
    end: int
    lost: int
    thread: int
    shapes: tuple[tuple[int, ...] | None, ...] = ()
    made: int = 0
    detail: str = ""


class EnoughRecorded(BaseException):
    """Raised before a step, where what was asked for is recorded."""


class Recorder:
    """Records `steps` steps after the first `warm_up`, or all until it is stopped; with `ends`, the next step raises EnoughRecorded.

    What is recorded begins where the last step of the warm-up ends, and ends with a step: so what lies between steps is there as often
    as they are. That last step has a clock beside each op already (`has_clocks`), which makes what is needed for it.
    """

    def __init__(self, *, steps: int | None, warm_up: int, ends: bool = False):
        self.slices: list[Slice] = []
        self.lost = 0
        self.done = 0  # steps
        self.recorded = 0
        self.is_on = not warm_up
        self.has_clocks = warm_up <= 1
        self._lost_before = self._lost_at_end = 0
        self.begin = self.end = time.perf_counter_ns()
        self.before: list[int] = []  # what each step of the warm-up took
        self._steps, self._warm_up, self._ends = steps, warm_up, ends
        self.main = threading.get_ident()

    def begun(self) -> Begun:
        """The moment at which a slice begins."""
        return time.perf_counter_ns(), self.lost

    def note(self, begun: Begun, part: Part, values: Sequence[Any] = (), detail: str = "", end: int | None = None) -> None:
        """Note a slice that ends now, or that ended at `end`."""
        end = time.perf_counter_ns() if end is None else end
        if not self.is_on:
            return
        shapes = tuple([tuple(value.shape) if isinstance(value, torch.Tensor) else None for value in values])
        made = 0
        if part.results and not part.is_kept:
            read = {_memory(value) for value in values[part.results :] if isinstance(value, torch.Tensor)}
            for value in values[: part.results]:
                if isinstance(value, torch.Tensor) and _memory(value) not in read:
                    made += value.numel() * value.element_size()
        thread = threading.get_ident()
        self.slices.append(Slice(part, begun[0], end, self.lost - begun[1] if thread == self.main else 0, thread, shapes, made, detail))
        if thread == self.main:
            self.lost += time.perf_counter_ns() - end

    def begin_step(self) -> Begun:
        """The moment at which a step begins. Raises EnoughRecorded, before anything is changed."""
        if self._ends and self.is_over:
            raise EnoughRecorded
        return self.begun()

    def end_step(self, begun: Begun, training: bool) -> None:
        """Count a step that has ended, and note it."""
        now = time.perf_counter_ns()
        self.done += 1
        if self.is_on:
            self.recorded += 1
            self.note(begun, Part("step", "training step" if training else "step"), detail=str(self.done), end=now)
            self._lost_at_end, self.end = self.lost, time.perf_counter_ns()
            self.is_on = not self.is_over
            self.has_clocks = self.is_on
        elif not self.recorded:
            if not self.has_clocks:
                self.before.append(now - begun[0])
            self.has_clocks = self.done + 1 >= self._warm_up
            if self.done >= self._warm_up:
                self.is_on = True
                self._lost_before = self.lost
                self.begin = self.end = time.perf_counter_ns()

    @property
    def nanoseconds(self) -> int:
        """The time that was recorded, without that of recording."""
        return max(0, self.end - self.begin - self._lost_at_end + self._lost_before)

    @contextmanager
    def left_out(self) -> Iterator[None]:
        """Count what is done in this context as recording."""
        begin = time.perf_counter_ns()
        yield
        self.lost += time.perf_counter_ns() - begin

    @property
    def is_over(self) -> bool:
        """Whether all steps were recorded that were asked for."""
        return self._steps is not None and self.recorded >= self._steps


recorder: Recorder | None = None
"""The one that records this process now."""


@contextmanager
def recording(*, steps: int | None, warm_up: int, ends: bool = False) -> Iterator[Recorder]:
    """Record what runs in this context. Raises ArgumentError where somebody does already."""
    global recorder
    if recorder is not None:
        raise ArgumentError("what runs is recorded already", location=here(), hint="end one profile before another begins")
    recorder = made = Recorder(steps=steps, warm_up=warm_up, ends=ends)
    try:
        yield made
    finally:
        recorder = None
        made.is_on = made.has_clocks = False


@contextmanager
def slice_of(kind: str, name: str) -> Iterator[None]:
    """Record what is done in this context as one slice, where somebody records."""
    found = recorder
    if found is None:
        yield
        return
    begun = found.begun()
    yield
    found.note(begun, Part(kind, name))


def note_beside(name: str, begin: int, end: int) -> None:
    """Record what another process did beside the steps, by the same clock, where somebody records."""
    if recorder is not None and recorder.is_on:
        recorder.slices.append(Slice(Part("beside", name), begin, end, 0, _PROCESS))


def each(kind: str, name: str, items: Iterator[_Item]) -> Iterator[_Item]:
    """`items`, and of each a slice for how long it was waited for, where somebody records as this begins."""
    return items if recorder is None else _recorded(kind, name, items)


def _recorded(kind: str, name: str, items: Iterator[_Item]) -> Iterator[_Item]:
    while True:
        with slice_of(kind, name):
            try:
                item = next(items)
            except StopIteration:
                return
        yield item


def _memory(value: torch.Tensor) -> int:
    """The address of the memory of a tensor; a number of its own where nobody may ask."""
    try:
        return value.untyped_storage().data_ptr()
    except (RuntimeError, NotImplementedError):
        return id(value)
