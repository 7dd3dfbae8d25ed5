"""Functions that the loops and branches of a plan call: they step through sequences and stack results exactly as the kernels do."""

from collections.abc import Sequence

import torch

from oarlock.ir.attribute import Sizes
from oarlock.ir.size import Shape, evaluate, names_in
from oarlock.ir.var import Var
from oarlock.op.control.active_rows import active_rows, is_by_row, require_rows, told_elsewhere
from oarlock.op.control.conditional import require_ran
from oarlock.op.control.ragged_rows import RaggedRows
from oarlock.op.control.recurrent_loop import require_one_length, segments_of
from oarlock.op.control.while_loop import require_trips
from oarlock.registry.attributes import substitute_numbers
from oarlock.runtime.plan.workspace import fill
from oarlock.tensor.dtype import to_torch
from oarlock.tensor.stacks import Stack, leaves, stack

__all__ = [
    "RaggedRows",
    "active_rows",
    "evaluated",
    "grown",
    "is_by_row",
    "numbers_told",
    "poison",
    "require_ran",
    "require_rows",
    "require_trips",
    "segments_of",
    "settle",
    "size_of",
    "size_of_steps",
    "sizes_in",
    "stack",
    "steps_of",
    "told_elsewhere",
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
    shape = [max(evaluate(size, sizes) or 0, 0) for size in var.shape or ()]
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


def evaluated(*numbers: int, size: str, names: tuple[str, ...]) -> int | None:
    """The number that `size` is, where `names` are `numbers`."""
    return evaluate(size, dict(zip(names, numbers, strict=True)))


def sizes_in(numbers: torch.Tensor) -> Sizes:
    """A shape that is given by a variable."""
    return Sizes(numbers.tolist())


def numbers_told(sizes: Sizes, shapes: tuple[Shape, ...], *given: torch.Size) -> Sizes:
    """The sizes of an attribute, as inputs of the shapes `given` tell them; see `oarlock.registry.attributes`."""
    return substitute_numbers(sizes, shapes, given)


def poison(value: Stack | None, byte: int | None = None) -> None:
    """Overwrite memory that is not read any more with `byte`, by default with NaN and the least integers: a later read shows.

    A value that the last trip of a loop has left out is None.
    """
    for tensor in () if value is None else leaves(value):
        fill(tensor, byte)
