"""Places of images, by their numbers: an index that anyone may have given is looked at before a kernel trusts it."""

from collections.abc import Sequence

import torch

__all__ = ["require_places"]

_LARGE = {1: "a signal", 2: "an image", 3: "a volume"}


def require_places(index: torch.Tensor, sizes: Sequence[int]) -> torch.Tensor:
    """``index``, of which each is a place of an image of these sizes. Raises ValueError. A GPU is not asked, which is
    to wait for it: places far out count as the nearest there.
    """
    count = torch.Size(sizes).numel()
    if not index.is_cpu:
        return index.clamp(0, max(0, count - 1))
    if index.numel():
        low, high = (int(end) for end in torch.aminmax(index))
        if low < 0 or high >= count:
            size = " x ".join(map(str, sizes))
            what = _LARGE.get(len(sizes), "what lies there")
            raise ValueError(f"index {low if low < 0 else high} is none of the {size} places of {what}, numbered from 0")
    return index
