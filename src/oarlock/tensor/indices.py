"""Index tensors, checked before PyTorch's kernels use them; not all of these check."""

from collections.abc import Sequence

import torch

__all__ = ["indices_along", "places_of", "take"]

_take = torch.ops.aten.index.Tensor


def places_of(index: torch.Tensor, count: int, axis: int) -> torch.Tensor:
    """Return nonnegative indices for an axis of size `count`; negative ones count from the end.

    Raises ValueError if one is out of range.
    """
    if index.numel() == 0:
        return index
    low, high = (int(end) for end in torch.aminmax(index))
    if low < -count or high >= count:
        raise ValueError(f"index {low if low < -count else high} is out of range for axis {axis} of size {count}")
    return index if low >= 0 else torch.where(index < 0, index + count, index)


def take(x: torch.Tensor, indices: Sequence[torch.Tensor], axes: Sequence[int]) -> torch.Tensor:
    """Gather elements of `x` at indices along `axes`. Raises ValueError if one is out of range."""
    if not x.is_cpu or not x.numel():  # PyTorch does not check indices into an empty tensor
        return _take(x, indices_along(x.shape, indices, axes))
    try:  # on a CPU, PyTorch checks each index itself
        return _take(x, _by_axis(indices, axes))
    except IndexError:
        indices_along(x.shape, indices, axes)
        raise


def indices_along(x_shape: Sequence[int], indices: Sequence[torch.Tensor], axes: Sequence[int]) -> list[torch.Tensor | None]:
    """Return checked indices by axis, None for axes that are taken whole. Raises ValueError if one is out of range."""
    return _by_axis([places_of(index, x_shape[axis], axis) for axis, index in zip(axes, indices, strict=True)], axes)


def _by_axis(indices: Sequence[torch.Tensor], axes: Sequence[int]) -> list[torch.Tensor | None]:
    found: list[torch.Tensor | None] = [None] * (axes[-1] + 1)
    for axis, index in zip(axes, indices, strict=True):
        found[axis] = index
    return found
