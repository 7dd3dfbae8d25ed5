"""How the elements of images lie in memory. Only kernels know: a tensor has the same elements, in the same order, either way."""

from collections.abc import Sequence
from itertools import pairwise

import torch

__all__ = ["channels_last", "contiguous", "copies", "dense", "empty_as", "in_format_of", "is_channels_last", "lay_as", "lies_as_made"]


def is_channels_last(x: torch.Tensor) -> bool:
    """Whether the channels of each place of an image stand side by side, and it is no question which format that is."""
    return x.is_contiguous(memory_format=torch.channels_last) and not x.is_contiguous()


def channels_last(x: torch.Tensor) -> torch.Tensor:
    """``x`` in the format in which PyTorch convolves single precision fastest on a CPU; as it is elsewhere. Copied where it must be."""
    if is_channels_last(x):
        return x
    if x.ndim != 4 or x.dtype is not torch.float32 or x.device.type != "cpu" or not torch.backends.mkldnn.is_available():
        return x
    n, c, h, w = x.shape
    if c == 1:  # which lies in either format, and which it is told by the strides alone
        return x.contiguous().as_strided((n, c, h, w), (h * w, 1, w, 1))
    return x.contiguous(memory_format=torch.channels_last)


def contiguous(x: torch.Tensor) -> torch.Tensor:
    """Images, or filters, in the usual order, with the usual strides where a size is 1 too, so that kernels see them lie as others do."""
    n, c, h, w = x.shape
    return x.contiguous().as_strided((n, c, h, w), (c * h * w, h * w, w, 1))


def copies(tensors: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    """Copies in the usual order, which nobody else has."""
    return [tensor.clone(memory_format=torch.contiguous_format) for tensor in tensors]


def dense(x: torch.Tensor) -> torch.Tensor:
    """``x`` in either format, without gaps in its memory. Copied where it must be."""
    return x if is_channels_last(x) else x.contiguous()


def in_format_of(x: torch.Tensor, like: torch.Tensor) -> torch.Tensor:
    """``x`` in the format of ``like``, for kernels that are slow, or copy, where formats differ. Copied where it must be."""
    last = is_channels_last(like)
    if is_channels_last(x) is last or not (last or like.is_contiguous()):
        return x
    return x.contiguous(memory_format=torch.channels_last if last else torch.contiguous_format)


def lay_as(x: torch.Tensor, like: torch.Tensor) -> torch.Tensor:
    """``x``, whose elements have moved within its memory into the format of ``like``; as it was, where it does not fill that memory.

    Only for an ``x`` that is known to be alone: another tensor in that memory would see its elements move.
    """
    if x.ndim != 4 or x.stride() == like.stride() or not (x.is_contiguous() or is_channels_last(x)):
        return x
    values = in_format_of(x, like)
    if values is x or x.untyped_storage().nbytes() != x.nbytes:
        return x
    return x.as_strided_(x.shape, values.stride()).copy_(values)


def empty_as(like: torch.Tensor, shape: Sequence[int], *, last: bool) -> torch.Tensor:
    """Memory of which nothing is known, with the dtype and the place of ``like``; channels last if `last` and it has four axes."""
    if not last or len(shape) != 4:
        return like.new_empty(shape)
    _, c, h, w = shape
    return like.new_empty_strided(shape, (c * h * w, 1, w * c, c))


def lies_as_made(out: torch.Tensor, x: torch.Tensor) -> bool:
    """Whether `out` lies in memory as what a kernel makes of `x` would: in its order, without gaps. There may be gaps between rows of `x`.

    Elsewhere PyTorch may go over the elements in another order, some of them one by one, and round those differently.
    """
    if not out.is_contiguous():
        return False
    return x.is_contiguous() or (x.stride(-1) == 1 and all(before >= after for before, after in pairwise(x.stride())))
