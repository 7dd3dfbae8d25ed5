"""What the loops and branches of a plan call: they step through sequences and stack results exactly as the kernels do."""

from collections.abc import Callable, Sequence

import torch

from oarlock.ir.attribute import Sizes
from oarlock.ir.size import evaluate, names_in
from oarlock.ir.variable import Var
from oarlock.op.control.ragged_rows import RaggedRows
from oarlock.op.control.recurrence import is_by_row, require_one_length
from oarlock.op.control.repetition import require_trips
from oarlock.op.stacks import Stack, leaves, stack
from oarlock.op.torch_dtype import to_torch

__all__ = [
    "GrowingSpaces",
    "RaggedRows",
    "grown",
    "is_by_row",
    "poison",
    "require_trips",
    "settle",
    "size_of",
    "size_of_steps",
    "sizes_in",
    "space",
    "stack",
    "steps_of",
    "zeros",
]


def steps_of(*sequences: Stack) -> list[Sequence[Stack]]:
    """The steps of each sequence. Raises ValueError for sequences of different lengths."""
    require_one_length(sequences)
    return [sequence.unbind(0) if isinstance(sequence, torch.Tensor) else sequence for sequence in sequences]


def size_of(value: Stack, axis: int, known: int) -> int:
    """How large `value` is along an axis; what is `known` where it is uneven, and only its trips could tell."""
    return value.shape[axis] if isinstance(value, torch.Tensor) else len(value) if axis == 0 else known


def size_of_steps(steps: Sequence[Stack], axis: int, known: int) -> int:
    """The same for what the steps of ragged sequences would be joined to."""
    return sum(map(len, steps)) if axis == 0 else size_of(steps[0], axis, known) if steps else known


def zeros(device: torch.device, *numbers: int, var: Var, symbols: tuple[str, ...], leading: tuple[int, ...]) -> torch.Tensor:
    """Zeros of the declared type of `var` after `leading` sizes, where `symbols` are `numbers`; a name that nothing tells counts as 0."""
    sizes = {**dict.fromkeys((name for size in var.shape or () for name in names_in(size)), 0), **dict(zip(symbols, numbers, strict=True))}
    shape = [evaluate(size, sizes) or 0 for size in var.shape or ()]
    return torch.zeros((*leading, *shape), dtype=to_torch(var.dtype), device=device)


def grown(memory: torch.Tensor, initial: torch.Tensor, count: int) -> torch.Tensor:
    """A memory of the first rows, with what the next ones begin as, up to `count` rows."""
    return memory if len(memory) == count else torch.cat([memory, initial[len(memory) : count]])


def settle(final: torch.Tensor, memory: torch.Tensor, count: int) -> torch.Tensor:
    """The rows of a memory that go on, the first `count`; those of the others are final, and are kept in `final`."""
    rows = len(memory)
    if rows == count:
        return memory
    final[count:rows] = memory[count:]
    return memory[:count]


def space(device: torch.device, count: int, *numbers: int, var: Var, symbols: tuple[str, ...], skip: int) -> torch.Tensor:
    """Memory for `count` values of the declared type of `var`, where `symbols` are `numbers`; without its first `skip` sizes."""
    sizes = dict(zip(symbols, numbers, strict=True))
    return torch.empty((count, *(evaluate(size, sizes) for size in (var.shape or ())[skip:])), dtype=to_torch(var.dtype), device=device)  # type: ignore[arg-type]


class GrowingSpaces:
    """Spaces for what the trips of a `while` compute: each begins as large as the one before had to be, for trips are often as many."""

    def __init__(self, allocate: Callable[..., torch.Tensor]):
        self.allocate = allocate
        self.expected = 8

    def __call__(self, first: torch.Tensor | None, device: torch.device, *numbers: int) -> "GrowingSpace":
        """A space that is empty, or holds what was there `first`."""
        space = GrowingSpace(self, (device, *numbers))
        if first is not None:
            space.place().copy_(first)
        return space


class GrowingSpace:
    """Memory for any number of values. Twice as much is taken where it is full, so every value is copied about once at most."""

    def __init__(self, spaces: GrowingSpaces, sizes: tuple):
        self._spaces, self._sizes = spaces, sizes
        self._memory = spaces.allocate(sizes[0], spaces.expected, *sizes[1:])
        self._places = self._memory.unbind(0)
        self._used = 0

    def place(self) -> torch.Tensor:
        """Where the next value is computed."""
        if self._used == len(self._places):
            self._grow()
        self._used += 1
        return self._places[self._used - 1]

    def filled(self) -> torch.Tensor:
        """All values."""
        self._spaces.expected = max(self._used, 1)
        return self._memory[: self._used]

    def _grow(self) -> None:
        memory = self._spaces.allocate(self._sizes[0], 2 * self._used, *self._sizes[1:])
        memory[: self._used].copy_(self._memory)
        self._memory, self._places = memory, memory.unbind(0)


def sizes_in(numbers: torch.Tensor) -> Sizes:
    """A shape that is given by a variable."""
    return Sizes(numbers.tolist())


def poison(value: Stack) -> None:
    """Spoil memory that nobody reads any more, so that whoever does will show it: NaN, and numbers far out."""
    for tensor in leaves(value):
        if tensor.dtype is not torch.bool:
            tensor.fill_(float("nan") if tensor.is_floating_point() else torch.iinfo(tensor.dtype).min)
