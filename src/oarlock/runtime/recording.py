"""Recording of execution times, as nested slices. Inactive by default.

`recorder` is None unless recording is active, and is checked once per step, not per op. The overhead of recording is measured and
subtracted.
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

_PROCESS = 0  # in place of a thread number; no thread has it
_Item = TypeVar("_Item")
Begun = tuple[int, int]
"""The time in nanoseconds, and the total recording overhead so far."""


@dataclass(frozen=True)
class Part:
    """The subject of a slice: a step, an op, a block, a loop iteration, the feed, or a wait of the training loop.

    `kind` is "step", "op", "block", "feed", "data", "checkpoint" or "beside" (concurrent work of another thread). For an op, `vars` are the
    variables whose values are recorded: the first `results` are outputs, the others inputs. `is_kept` means that the plan reuses the memory
    of the results in each run. A part of kind "op" without `op` covers several ops.
    """

    kind: str
    name: str
    op: Op | None = None
    location: Location | None = None
    vars: tuple[Var, ...] = ()
    results: int = 0
    is_kept: bool = False


class Slice(NamedTuple):
    """A time span from `begin` to `end` in nanoseconds, in one thread; `lost` of it is recording overhead of nested slices.

    For an op, `shapes` are the shapes of its values (None for non-tensors), and `made` the bytes newly allocated for its results.
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
    """Raised before a step if the requested number of steps is recorded."""


class Recorder:
    """Records `steps` steps after `warm_up` steps, or until it is stopped; with `ends`, the next step raises EnoughRecorded.

    Recording starts when the last warm-up step ends and stops at the end of a step, so time between steps is included once per step.
    `has_clocks` is set one step early, so that compiling a plan with clocks is not recorded.
    """

    def __init__(self, *, steps: int | None, warm_up: int, ends: bool = False):
        self.slices: list[Slice] = []
        self.lost = 0
        self.done = 0  # in steps
        self.recorded = 0
        self.is_on = not warm_up
        self.has_clocks = warm_up <= 1
        self._lost_before = self._lost_at_end = 0
        self.begin = self.end = time.perf_counter_ns()
        self.before: list[int] = []  # duration of each warm-up step
        self._steps, self._warm_up, self._ends = steps, warm_up, ends
        self.main = threading.get_ident()

    def begun(self) -> Begun:
        """Return the start mark of a slice."""
        return time.perf_counter_ns(), self.lost

    def note(self, begun: Begun, part: Part, values: Sequence[Any] = (), detail: str = "", end: int | None = None) -> None:
        """Record a slice that ends now, or at `end`."""
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
        """Return the start mark of a step. Raises EnoughRecorded, before any state is changed."""
        if self._ends and self.is_over:
            raise EnoughRecorded
        return self.begun()

    def end_step(self, begun: Begun, training: bool) -> None:
        """Count a finished step and record it."""
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
        """The recorded time, without recording overhead."""
        return max(0, self.end - self.begin - self._lost_at_end + self._lost_before)

    @contextmanager
    def left_out(self) -> Iterator[None]:
        """Count the time spent in this context as recording overhead."""
        begin = time.perf_counter_ns()
        yield
        self.lost += time.perf_counter_ns() - begin

    @property
    def is_over(self) -> bool:
        """Whether all requested steps are recorded."""
        return self._steps is not None and self.recorded >= self._steps


recorder: Recorder | None = None
"""The active recorder of this process, or None."""


@contextmanager
def recording(*, steps: int | None, warm_up: int, ends: bool = False) -> Iterator[Recorder]:
    """Record everything that runs in this context. Raises ArgumentError if a recording is already active."""
    global recorder
    if recorder is not None:
        raise ArgumentError("this process is already being profiled", location=here(), hint="end one profile before starting another")
    recorder = made = Recorder(steps=steps, warm_up=warm_up, ends=ends)
    try:
        yield made
    finally:
        recorder = None
        made.is_on = made.has_clocks = False


@contextmanager
def slice_of(kind: str, name: str) -> Iterator[None]:
    """Record this context as one slice, if recording is active."""
    found = recorder
    if found is None:
        yield
        return
    begun = found.begun()
    yield
    found.note(begun, Part(kind, name))


def note_beside(name: str, begin: int, end: int) -> None:
    """Record concurrent work of another process, timed by the same clock, if recording is active."""
    if recorder is not None and recorder.is_on:
        recorder.slices.append(Slice(Part("beside", name), begin, end, 0, _PROCESS))


def each(kind: str, name: str, items: Iterator[_Item]) -> Iterator[_Item]:
    """Return `items`; if recording is active, the wait for each item becomes a slice."""
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
    """Return the address of a tensor's memory, or a unique number if it is unavailable."""
    try:
        return value.untyped_storage().data_ptr()
    except (RuntimeError, NotImplementedError):
        return id(value)
