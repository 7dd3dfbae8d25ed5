"""Memory formats of images. Only kernels see them: the logical order of the elements is the same in each format."""

from collections.abc import Sequence
from itertools import pairwise

import torch

__all__ = ["channels_last", "contiguous", "copies", "dense", "empty_as", "in_format_of", "is_channels_last", "lay_as", "lies_as_made"]


def is_channels_last(x: torch.Tensor) -> bool:
    """Return whether ``x`` is channels last, and not contiguous as well."""
    return x.is_contiguous(memory_format=torch.channels_last) and not x.is_contiguous()


def channels_last(x: torch.Tensor) -> torch.Tensor:
    """Return ``x`` in channels-last format, if that is fastest: float32 images on a CPU with oneDNN. Copies if necessary."""
    if is_channels_last(x):
        return x
    if x.ndim != 4 or x.dtype is not torch.float32 or x.device.type != "cpu" or not torch.backends.mkldnn.is_available():
        return x
    n, c, h, w = x.shape
    if c == 1:  # valid in both formats; the strides determine how kernels treat it
        return x.contiguous().as_strided((n, c, h, w), (h * w, 1, w, 1))
    return x.contiguous(memory_format=torch.channels_last)


def contiguous(x: torch.Tensor) -> torch.Tensor:
    """Return images or filters in contiguous format, with standard strides even for axes of size 1, on which kernels rely."""
    n, c, h, w = x.shape
    return x.contiguous().as_strided((n, c, h, w), (c * h * w, h * w, w, 1))


def copies(tensors: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    """Return contiguous copies in new memory."""
    return [tensor.clone(memory_format=torch.contiguous_format) for tensor in tensors]


def dense(x: torch.Tensor) -> torch.Tensor:
    """Return ``x`` without gaps in memory, channels last or contiguous. Copies if necessary."""
    return x if is_channels_last(x) else x.contiguous()


def in_format_of(x: torch.Tensor, like: torch.Tensor) -> torch.Tensor:
    """Return ``x`` in the format of ``like``, for kernels that are slower or copy if formats differ. Copies if necessary."""
    last = is_channels_last(like)
    if is_channels_last(x) is last or not (last or like.is_contiguous()):
        return x
    return x.contiguous(memory_format=torch.channels_last if last else torch.contiguous_format)


def lay_as(x: torch.Tensor, like: torch.Tensor) -> torch.Tensor:
    """Move the elements of ``x`` within its memory into the format of ``like``; return ``x`` unchanged if it does not fill its memory.

    Only valid if no other tensor shares the memory of ``x``.
    """
    if x.ndim != 4 or x.stride() == like.stride() or not (x.is_contiguous() or is_channels_last(x)):
        return x
    values = in_format_of(x, like)
    if values is x or x.untyped_storage().nbytes() != x.nbytes:
        return x
    return x.as_strided_(x.shape, values.stride()).copy_(values)


def empty_as(like: torch.Tensor, shape: Sequence[int], *, last: bool) -> torch.Tensor:
    """Return uninitialized memory with the dtype and device of ``like``; channels last if `last` and it has four axes."""
    if not last or len(shape) != 4:
        return like.new_empty(shape)
    _, c, h, w = shape
    return like.new_empty_strided(shape, (c * h * w, 1, w * c, c))


def lies_as_made(out: torch.Tensor, x: torch.Tensor) -> bool:
    """Return whether `out` has the memory order of a kernel's result for `x`, without gaps; rows of `x` may have gaps between them.

    Otherwise, PyTorch may iterate over the elements in another order and round some of them differently.
    """
    if not out.is_contiguous():
        return False
    return x.is_contiguous() or (x.stride(-1) == 1 and all(before >= after for before, after in pairwise(x.stride())))
