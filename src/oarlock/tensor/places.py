"""Checks of indices that number the positions of an image."""

from collections.abc import Sequence

import torch

__all__ = ["require_places"]

_LARGE = {1: "a signal", 2: "an image", 3: "a volume"}


def require_places(index: torch.Tensor, sizes: Sequence[int]) -> torch.Tensor:
    """Return ``index`` after checking that it is in range for an image of these sizes. Raises ValueError.

    On a GPU, indices are clamped instead, to avoid waiting for the device.
    """
    count = torch.Size(sizes).numel()
    if not index.is_cpu:
        return index.clamp(0, max(0, count - 1))
    if index.numel():
        low, high = (int(end) for end in torch.aminmax(index))
        if low < 0 or high >= count:
            size = " x ".join(map(str, sizes))
            what = _LARGE.get(len(sizes), "an array")
            raise ValueError(f"index {low if low < 0 else high} is out of range for {what} of {size} positions, numbered from 0")
    return index
