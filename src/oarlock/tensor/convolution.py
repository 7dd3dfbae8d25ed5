"""Convolutions: memory formats, the choice of library, and workarounds for PyTorch's errors."""

import math
from collections.abc import Sequence

import torch

from oarlock.backend.torch.private import has_packed_filters
from oarlock.tensor.convolution_products import choose_gradients, is_product, product_of_windows
from oarlock.tensor.memory_format import channels_last, contiguous, empty_as, is_channels_last

__all__ = ["convolve", "convolve_backward", "convolve_transposed", "has_long_sums", "is_by_onednn", "is_misread", "laid"]

_SMALL_IMAGE = 20480  # elements
_LONG_SUM = 1024  # products; from here on, oneDNN adds them one by one for channels-last images, and by blocks for contiguous ones

_convolution_backward = torch.ops.aten.convolution_backward.default


def convolve(x, filter, bias, stride: Sequence[int], padding: Sequence[int], dilation: Sequence[int] = (1, 1), groups: int = 1):
    """Convolve images in the fastest memory format."""
    if x.ndim == 3:
        x, filter = x.unsqueeze(2), filter.unsqueeze(2)
        return convolve(x, filter, bias, (1, *stride), (0, *padding), (1, *dilation), groups).squeeze(2)
    if x.ndim == 5:
        return torch.conv3d(x, filter, bias, stride, padding, dilation, groups)
    if is_product(x, filter.shape, stride, padding, dilation, groups):
        return product_of_windows(channels_last(x), channels_last(filter), bias, stride, padding)
    if has_long_sums(x, filter.shape) or is_misread(x, filter, stride, padding, dilation):
        return torch.conv2d(contiguous(x), contiguous(filter), bias, stride, padding, dilation, groups)
    return torch.conv2d(laid(x), channels_last(filter), bias, stride, padding, dilation, groups)


def convolve_transposed(x, filter, bias, stride, padding, output_padding, dilation, groups: int) -> torch.Tensor:
    """Compute the transposed convolution in the fastest memory format."""
    if x.ndim == 3:
        x, filter = x.unsqueeze(2), filter.unsqueeze(2)
        return convolve_transposed(x, filter, bias, (1, *stride), (0, *padding), (0, *output_padding), (1, *dilation), groups).squeeze(2)
    return torch.convolution(channels_last(x), channels_last(filter), bias, stride, padding, dilation, True, output_padding, groups)


def convolve_backward(
    dy,
    x,
    filter,
    stride: Sequence[int],
    padding: Sequence[int],
    wanted: Sequence[bool],
    dilation: Sequence[int] = (1, 1),
    groups: int = 1,
    *,
    output_padding: Sequence[int] | None = None,
    x_shape=(),
    filter_shape=(),
):
    """Return the gradients of ``x``, ``filter`` and the bias that are `wanted`, or None.

    With `output_padding`, they are the gradients of a transposed convolution. A tensor that no wanted gradient depends on may be replaced
    by its shape, as PyTorch only reads its shape and format.
    """
    x_shape, filter_shape = (x_shape if x is None else x.shape), (filter_shape if filter is None else filter.shape)
    of_x = of_filter = dx = dfilter = None
    if output_padding is None:
        of_x, of_filter = choose_gradients(dy, x_shape, filter_shape, padding, wanted, dilation, groups)
    if of_x is not None or of_filter is not None:
        dy = channels_last(dy)
    if of_x is not None:
        assert filter is not None
        dx = of_x(dy, channels_last(filter), x_shape, stride, padding)
    if of_filter is not None:
        assert x is not None
        dfilter = of_filter(dy, channels_last(x), filter_shape, stride, padding)
    left = [wanted[0] and dx is None, wanted[1] and dfilter is None, wanted[2]]
    if not any(left[:2]) and any(wanted[:2]):
        return dx, dfilter, dy.sum((0, 2, 3)) if left[2] else None
    transposed = output_padding is not None
    are_long = not transposed and has_long_sums(dy, filter_shape)
    dy = contiguous(dy) if are_long else channels_last(dy)
    last = is_channels_last(dy)
    x = empty_as(dy, x_shape, last=last) if x is None else contiguous(x) if are_long else laid(x)
    filter = empty_as(dy, filter_shape, last=last) if filter is None else contiguous(filter) if are_long else channels_last(filter)
    more = output_padding if transposed else (0,) * len(stride)
    found = _convolution_backward(dy, x, filter, [dy.shape[1]], stride, padding, dilation, transposed, more, groups, left)
    return found[0] if dx is None else dx, _usual(found[1]) if dfilter is None else dfilter, found[2]


def _usual(dfilter):
    """Return channels-last filters unchanged if their format is unambiguous, otherwise contiguous ones."""
    return dfilter if dfilter is None or dfilter.ndim != 4 or is_channels_last(dfilter) else contiguous(dfilter)


def is_misread(x, filter, stride, padding, dilation: Sequence[int] = (1, 1)) -> bool:
    """Return whether oneDNN reads beyond channels-last images of one channel and returns invalid values.

    In PyTorch 2.13, this happens if only one window fits horizontally but the stride is larger than 1.
    """
    if stride[1] == 1 or x.shape[1] > 1:
        return False
    return (x.shape[3] + 2 * padding[1] - dilation[1] * (filter.shape[3] - 1) - 1) // stride[1] == 0


def has_long_sums(x: torch.Tensor, filter_shape: Sequence[int]) -> bool:
    """Return whether images like ``x`` are convolved in contiguous format.

    For long sums, the contiguous kernel rounds like PyTorch and more accurately than the channels-last one, in the same time.
    """
    if x.ndim != 4 or x.dtype is not torch.float32 or not x.is_cpu or not torch.backends.mkldnn.is_available():
        return False
    return math.prod(filter_shape[1:]) >= _LONG_SUM and math.prod(filter_shape[2:]) > 1


def laid(x):
    """Return ``x`` in channels-last format, except a contiguous single channel, which is valid in both formats."""
    return x if x.shape[1] == 1 and x.is_contiguous() else channels_last(x)


def is_by_onednn(x, filter, groups: int = 1) -> bool:
    """Return whether `torch.conv2d` uses oneDNN, for filters larger than 1 x 1; small single images are convolved as a matrix product."""
    n, c, h, w = x.shape
    large = n > 1 or h * w * c > _SMALL_IMAGE or (filter.shape[2] > 3 and filter.shape[3] > 3) or groups > 1
    return large and x.dtype is torch.float32 and has_packed_filters()
