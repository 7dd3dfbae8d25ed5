"""Stacks: the results of all iterations of a loop, or of a branch.

A stack is a tensor with a row per iteration. If the values differ in size between iterations, such as the rows that took a branch or the
iterations of an inner loop, it is a list of tensors instead, an *uneven* stack, without padding or copies. Results of users are always
even, which `oarlock.layer` ensures; uneven stacks go from a forward loop to its gradient loop, which reads them step by step.
"""

from collections.abc import Iterator

import torch

__all__ = ["Stack", "add_stacks", "brought", "leaves", "stack"]

Stack = torch.Tensor | list["Stack"]


def stack(values: list[Stack]) -> Stack:
    """Return a stack of one or more values, one per iteration."""
    first = values[0]
    if isinstance(first, torch.Tensor) and all(isinstance(value, torch.Tensor) and value.shape == first.shape for value in values):
        return torch.stack(values)  # type: ignore[arg-type]
    return values


def add_stacks(left: Stack, right: Stack) -> Stack:
    """Add two stacks whose iterations have equal sizes."""
    if isinstance(left, list):
        return [add_stacks(*pair) for pair in zip(left, right, strict=True)]
    return left + right  # type: ignore[operator]


def brought(held: Stack, device: torch.device) -> Stack:
    """Move a stack to `device`; return it unchanged if it is there."""
    return [brought(item, device) for item in held] if isinstance(held, list) else held.to(device)


def leaves(held: Stack) -> Iterator[torch.Tensor]:
    """Iterate over the tensors of a stack."""
    if isinstance(held, list):
        for item in held:
            yield from leaves(item)
    else:
        yield held
