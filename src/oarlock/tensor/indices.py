"""Numbers that say where: checked before a kernel of PyTorch, which trusts some of them, reads or writes there."""

from collections.abc import Sequence

import torch

__all__ = ["indices_along", "places_of", "take"]

_take = torch.ops.aten.index.Tensor


def places_of(index: torch.Tensor, count: int, axis: int) -> torch.Tensor:
    """The numbers of places along an axis of `count`, from 0. Negative ones count from the end. Raises ValueError for what is no place."""
    if index.numel() == 0:
        return index
    low, high = (int(end) for end in torch.aminmax(index))
    if low < -count or high >= count:
        raise ValueError(f"index {low if low < -count else high} is asked for, where axis {axis} has the size {count}")
    return index if low >= 0 else torch.where(index < 0, index + count, index)


def take(x: torch.Tensor, indices: Sequence[torch.Tensor], axes: Sequence[int]) -> torch.Tensor:
    """The elements of `x` at places along `axes`. Raises as `places_of` does."""
    if not x.is_cpu or not x.numel():  # of nothing, PyTorch looks at no number
        return _take(x, indices_along(x.shape, indices, axes))
    try:  # PyTorch looks at each number anyway, on the host
        return _take(x, _by_axis(indices, axes))
    except IndexError:
        indices_along(x.shape, indices, axes)
        raise


def indices_along(x_shape: Sequence[int], indices: Sequence[torch.Tensor], axes: Sequence[int]) -> list[torch.Tensor | None]:
    """Indices by axis, None for those that are taken whole, as PyTorch takes them. Raises as `places_of` does."""
    return _by_axis([places_of(index, x_shape[axis], axis) for axis, index in zip(axes, indices, strict=True)], axes)


def _by_axis(indices: Sequence[torch.Tensor], axes: Sequence[int]) -> list[torch.Tensor | None]:
    found: list[torch.Tensor | None] = [None] * (axes[-1] + 1)
    for axis, index in zip(axes, indices, strict=True):
        found[axis] = index
    return found
