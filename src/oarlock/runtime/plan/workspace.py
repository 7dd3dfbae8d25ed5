"""Memory for what loops stack, and its steps: held from one run to the next where no value of a run can lie in it any more."""

from collections.abc import Sequence
from math import prod

import torch

__all__ = ["Buffer", "GrowingBuffer", "Growth", "Workspace", "as_byte", "fill"]

_Key = tuple[object, ...]

_SMALL = 4096  # bytes of a step: to copy these takes a third of the time that it takes to make a view of them


class Buffer:
    """Memory for a value of each trip: the `whole`, and its `steps`, views that are made once."""

    __slots__ = ("_columns", "_steps", "key", "whole")

    def __init__(self, whole: torch.Tensor, key: _Key):
        self.whole = whole
        self.key = key
        self._steps: tuple[torch.Tensor, ...] | None = None
        self._columns: dict[tuple[int, int], tuple[torch.Tensor, ...]] = {}

    @property
    def steps(self) -> tuple[torch.Tensor, ...]:
        """The part of each trip."""
        if self._steps is None:
            self._steps = self.whole.unbind(0)
        return self._steps

    def columns(self, start: int, stop: int) -> tuple[torch.Tensor, ...]:
        """The same of some columns, the last axis from `start` to `stop`."""
        if (start, stop) not in self._columns:
            self._columns[start, stop] = self.whole[..., start:stop].unbind(0)
        return self._columns[start, stop]

    def stack(self, values: list[torch.Tensor]) -> None:
        """Copy one value to each step. What a kernel leaves at the processor is brought to the place of the run."""
        if values and values[0].device == self.whole.device:
            torch.stack(values, out=self.whole)
        elif values:
            self.whole.copy_(torch.stack(values))


class Growth:
    """How much memory a stack of a `while` begins with: as much as was filled before, for trips are often as many."""

    def __init__(self, dtype: torch.dtype):
        self.dtype = dtype
        self.expected = 8


class GrowingBuffer(Buffer):
    """Memory for any number of values. Twice as much is taken where it is full, so every value is copied about once at most.

    `whole` and `steps` are there once it is `filled`.
    """

    __slots__ = ("_destinations", "_growth", "_memory", "_poison", "_used")

    def __init__(self, memory: torch.Tensor, key: _Key, growth: Growth, poison: bool | int = False):
        super().__init__(memory, key)
        self._growth = growth
        self._poison = poison
        self._memory, self._destinations = memory, memory.unbind(0)
        self._used = 0

    def next_destination(self) -> torch.Tensor:
        """Where the next value is computed."""
        if self._used == len(self._destinations):
            self._grow()
        self._used += 1
        return self._destinations[self._used - 1]

    def filled(self) -> None:
        """No more values come."""
        used, self._used = self._used, 0
        self._growth.expected = max(used, 1)
        if self._steps is None or len(self._steps) != used:  # where as many came before, it did not grow
            self.whole, self._steps = self._memory[:used], self._destinations[:used]
            self._columns.clear()

    @property
    def is_much_too_large(self) -> bool:
        """Whether it has room for four times what was filled last."""
        return len(self._destinations) > 4 * max(len(self.steps), 8)

    def _grow(self) -> None:
        memory = self._memory.new_empty((2 * len(self._destinations), *self._memory.shape[1:]))
        if self._poison is not False:
            fill(memory, as_byte(self._poison))
        memory[: self._used].copy_(self._memory)
        self._memory, self._destinations = memory, memory.unbind(0)


class Workspace:
    """The buffers of one run at a time.

    A plan gives a buffer back after the last line that reads anything in it; whoever takes one of that type and those sizes afterwards,
    in that run or the next, gets it with its steps. What was not given back is no longer here: a run failed, or returns a value in it.
    What a run did not take is let go of when it ends: of sizes that change from run to run, the latest are held. With `poison`, a buffer
    is filled when it is taken, as `Executor` says.
    """

    def __init__(self, device: torch.device, poison: bool | int = False):
        self._device = device
        self._poison = poison
        self._before: dict[_Key, list[Buffer]] = {}  # given back in the run before
        self._idle: dict[_Key, list[Buffer]] = {}  # given back in this one

    def take(self, dtype: torch.dtype, *sizes: int) -> Buffer:
        """A buffer of `sizes`, whose first is the number of trips, to be given back."""
        key = (dtype, *sizes)
        return self._held(key) or self.make(*key)

    def take_growing(self, growth: Growth, *sizes: int) -> GrowingBuffer:
        """The same for a number of trips that nobody knows, each of `sizes`."""
        held = self._held((growth, *sizes))
        return held if isinstance(held, GrowingBuffer) else self.make_growing(growth, *sizes)

    def make(self, dtype: torch.dtype, *sizes: int) -> Buffer:
        """A buffer that is new, and is not given back."""
        return Buffer(self._filled(torch.empty(sizes, dtype=dtype, device=self._device)), (dtype, *sizes))

    def make_growing(self, growth: Growth, *sizes: int) -> GrowingBuffer:
        """The same for a number of trips that nobody knows."""
        memory = self._filled(torch.empty((growth.expected, *sizes), dtype=growth.dtype, device=self._device))
        return GrowingBuffer(memory, (growth, *sizes), growth, self._poison)

    def borrow(self, dtype: torch.dtype, *sizes: int) -> Buffer:
        """A buffer to be returned, as a value that others may hold: one of small steps is held, and it is copied then."""
        return (self.take if _step_bytes(dtype, sizes) <= _SMALL else self.make)(dtype, *sizes)

    def export(self, buffer: Buffer) -> torch.Tensor:
        """The value in a buffer that was borrowed, in memory that is not ours. Nobody reads anything in the buffer any more."""
        if _step_bytes(buffer.whole.dtype, buffer.whole.shape) > _SMALL:
            return buffer.whole
        self.give_back(buffer)
        return buffer.whole.clone()

    def give_back(self, *buffers: Buffer) -> None:
        """Nobody reads anything in these any more."""
        for buffer in buffers:
            if not (isinstance(buffer, GrowingBuffer) and buffer.is_much_too_large):
                self._idle.setdefault(buffer.key, []).append(buffer)

    def end_run(self) -> None:
        """Let go of what the run did not take."""
        self._before, self._idle = self._idle, {}

    def _filled(self, memory: torch.Tensor) -> torch.Tensor:
        if self._poison is not False:
            fill(memory, as_byte(self._poison))
        return memory

    def _held(self, key: _Key) -> Buffer | None:
        held = self._idle.get(key) or self._before.get(key)
        return held.pop() if held else None


def as_byte(poison: bool | int) -> int | None:
    """The byte of the option `poison`; None for True, which stands for NaN."""
    return None if poison is True else int(poison)


def fill(memory: torch.Tensor, byte: int | None) -> None:
    """Overwrite a tensor with `byte`; with None, with NaN and the least integers. A bool stays, which has no other values."""
    if memory.dtype is torch.bool or not memory.numel():
        return
    if byte is not None:
        memory.copy_(torch.full((memory.itemsize,), byte, dtype=torch.uint8).view(memory.dtype)[0])
    elif memory.is_floating_point() or memory.is_complex():
        memory.fill_(float("nan"))
    else:
        memory.fill_(torch.iinfo(memory.dtype).min)


def _step_bytes(dtype: torch.dtype, sizes: Sequence[int]) -> int:
    return dtype.itemsize * prod(sizes[1:])
