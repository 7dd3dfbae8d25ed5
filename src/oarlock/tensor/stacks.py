"""Stacks: what the trips of a loop, or the run of a branch, have returned.

A stack is a tensor with a row per trip. Where a value has another size in each trip - the rows that took a branch, the
trips of a loop inside - it is a list of tensors instead, an *uneven* stack: nothing is padded or copied. What users return
is even, which `oarlock.layer` sees to; uneven stacks go from a forward loop to its gradient loop, which reads them step by step.
"""

from collections.abc import Iterator

import torch

__all__ = ["Stack", "add_stacks", "brought", "leaves", "stack"]

Stack = torch.Tensor | list["Stack"]


def stack(values: list[Stack]) -> Stack:
    """One or more values, one per trip, as a stack."""
    first = values[0]
    if isinstance(first, torch.Tensor) and all(isinstance(value, torch.Tensor) and value.shape == first.shape for value in values):
        return torch.stack(values)  # type: ignore[arg-type]
    return values


def add_stacks(left: Stack, right: Stack) -> Stack:
    """The sum of two stacks whose trips have equal sizes."""
    if isinstance(left, list):
        return [add_stacks(*pair) for pair in zip(left, right, strict=True)]
    return left + right  # type: ignore[operator]


def brought(held: Stack, device: torch.device) -> Stack:
    """A stack at `device`: itself where it lies there."""
    return [brought(item, device) for item in held] if isinstance(held, list) else held.to(device)


def leaves(held: Stack) -> Iterator[torch.Tensor]:
    """The tensors of a stack: itself where it is even."""
    if isinstance(held, list):
        for item in held:
            yield from leaves(item)
    else:
        yield held
