"""Convolutions: memory formats, the choice of library, workarounds for PyTorch's errors, and convolutions as matrix products.

oneDNN reorders filters before it computes and reorders their gradients afterwards. For images with few positions and large filters, this
takes most of the time, so these convolutions are matrix products. Filters of size 1 x 1 are matrices already. Images and filters are
channels last: a row is the input of a window.
"""

import math
from collections.abc import Callable, Sequence

import torch
from torch.nn.functional import pad

from oarlock.backend.torch.private import has_packed_filters
from oarlock.tensor.memory_format import channels_last, contiguous, empty_as, is_channels_last

__all__ = [
    "choose_gradients",
    "convolve",
    "convolve_backward",
    "convolve_transposed",
    "filter_gradient_by_channel",
    "filter_gradient_by_product",
    "has_long_sums",
    "image_gradient_by_product",
    "is_by_onednn",
    "is_misread",
    "is_product",
    "laid",
    "product_of_windows",
]

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


Steps = Sequence[int]
_Gradient = Callable[[torch.Tensor, torch.Tensor, Sequence[int], Steps, Steps], torch.Tensor]

_FEW_PLACES = 64  # positions of all images together: a product reads filters once, oneDNN reorders them first
_SOME_PLACES = 512  # up to here, oneDNN takes longer to reorder the gradient of filters than to compute it
_PLACES_OF_CHANNELS = 1024
_MANY_WEIGHTS, _SOME_WEIGHTS, _WEIGHTS_OF_A_MATRIX = 2**18, 2**16, 2**14
_WINDOW = 9  # positions of a single-channel filter: up to here, oneDNN has specialized loops for the gradient


# Selection


def is_product(x, filter_shape: Sequence[int], stride: Steps, padding: Steps, dilation: Steps, groups: int) -> bool:
    """Return whether a product is faster than the convolution."""
    weights = math.prod(filter_shape)
    if weights < _WEIGHTS_OF_A_MATRIX or not _is_convolved_by_onednn(x, dilation) or groups != 1 or not x.numel():
        return False
    if _is_matrix(filter_shape, padding):
        return True
    axes = zip(x.shape[2:], filter_shape[2:], stride, padding, strict=True)
    places = x.shape[0] * math.prod((size + 2 * more - window) // step + 1 for size, window, step, more in axes)
    return places <= _FEW_PLACES and weights >= _MANY_WEIGHTS


def choose_gradients(
    dy, x_shape: Sequence[int], filter_shape: Sequence[int], padding: Steps, wanted: Sequence[bool], dilation: Steps, groups: int
) -> tuple[_Gradient | None, _Gradient | None]:
    """Return functions for the gradients of images and filters as products; None for one that is not `wanted` or not faster."""
    if not _is_convolved_by_onednn(dy, dilation) or not dy.numel():
        return None, None
    places, weights, matrix = dy.numel() // dy.shape[1], math.prod(filter_shape), _is_matrix(filter_shape, padding)
    if groups == 1:
        of_x = wanted[0] and (matrix or (places <= _FEW_PLACES and weights >= _MANY_WEIGHTS))
        of_filter = wanted[1] and (matrix or (places <= _SOME_PLACES and weights >= _SOME_WEIGHTS))
        return image_gradient_by_product if of_x else None, filter_gradient_by_product if of_filter else None
    by_channel = groups == x_shape[1] == filter_shape[0] and places <= _PLACES_OF_CHANNELS
    slow = by_channel and math.prod(filter_shape[2:]) > _WINDOW
    return None, filter_gradient_by_channel if wanted[1] and slow else None


def _is_convolved_by_onednn(x: torch.Tensor, dilation: Steps) -> bool:
    single = x.ndim == 4 and x.dtype is torch.float32 and x.is_cpu
    return single and tuple(dilation) == (1, 1) and torch.backends.mkldnn.is_available()


def _is_matrix(filter_shape: Sequence[int], padding: Steps) -> bool:
    return tuple(filter_shape[2:]) == (1, 1) and not any(padding)


# Computation


def product_of_windows(x, filter, bias, stride: Steps, padding: Steps) -> torch.Tensor:
    """Compute the convolution: the windows of ``x`` as rows, times the filters as columns."""
    matrix = _rows_of_filters(filter)
    rows, (n, h, w) = _windows_as_rows(x, filter.shape, stride, padding)
    y = torch.mm(rows, matrix.t()) if bias is None else torch.addmm(bias, rows, matrix.t())
    return _as_images(y, n, h, w)


def filter_gradient_by_product(dy, x, filter_shape: Sequence[int], stride: Steps, padding: Steps) -> torch.Tensor:
    """Return the gradient of the filters: output gradients times the windows."""
    f, c, kh, kw = filter_shape
    rows, _ = _windows_as_rows(x, filter_shape, stride, padding)
    matrix = torch.mm(_places_as_rows(dy).t(), rows)
    return matrix.view(f, c, 1, 1) if kh == kw == 1 else matrix.view(f, kh, kw, c).permute(0, 3, 1, 2)


def image_gradient_by_product(dy, filter, x_shape: Sequence[int], stride: Steps, padding: Steps) -> torch.Tensor:
    """Return the gradient of the images: the sum of the gradients of all windows at each position."""
    (n, c, *sizes), (_, _, *windows) = x_shape, filter.shape
    (oh, ow), rows = dy.shape[2:], torch.mm(_places_as_rows(dy), _rows_of_filters(filter))
    if tuple(windows) == tuple(stride) == (1, 1) and not any(padding):
        return _as_images(rows, n, *sizes)
    h, w = (size + 2 * more for size, more in zip(sizes, padding, strict=True))
    parts, dx = rows.view(n, oh, ow, *windows, c), rows.new_zeros(n, h, w, c)
    for i in range(windows[0]):
        for j in range(windows[1]):
            seen = dx[:, i : i + stride[0] * (oh - 1) + 1 : stride[0], j : j + stride[1] * (ow - 1) + 1 : stride[1]]
            seen += parts[:, :, :, i, j]
    return dx[:, padding[0] : h - padding[0], padding[1] : w - padding[1]].contiguous().permute(0, 3, 1, 2)


def filter_gradient_by_channel(dy, x, filter_shape: Sequence[int], stride: Steps, padding: Steps) -> torch.Tensor:
    """Return the gradient of depthwise filters: sums of products, for one line of each window at a time."""
    _, _, kh, kw = filter_shape
    seen = _windows(x, filter_shape, stride, padding)  # [n oh ow c kh kw]
    dy = dy.permute(0, 2, 3, 1)
    n, oh, ow, c = dy.shape
    products, sums = dy.new_empty(kw, n, oh, ow, c), dy.new_empty(kh, kw, c)
    for line in range(kh):
        torch.mul(seen[..., line, :].permute(4, 0, 1, 2, 3), dy, out=products)
        torch.sum(products.view(kw, n * oh * ow, c), 1, out=sums[line])
    return sums.permute(2, 0, 1).unsqueeze(1)


def _windows(x: torch.Tensor, filter_shape: Sequence[int], stride: Steps, padding: Steps) -> torch.Tensor:
    """Return the elements of each window, [n oh ow c kh kw]: a view of the zero-padded images."""
    lines = x.permute(0, 2, 3, 1)
    if any(padding):
        lines = pad(lines, (0, 0, padding[1], padding[1], padding[0], padding[0]))
    return lines.unfold(1, filter_shape[2], stride[0]).unfold(2, filter_shape[3], stride[1])


def _windows_as_rows(x, filter_shape: Sequence[int], stride: Steps, padding: Steps) -> tuple[torch.Tensor, tuple[int, int, int]]:
    """Return the windows as rows of a matrix, with the channels of a position adjacent, and (images, height, width)."""
    if tuple(filter_shape[2:]) == (1, 1) and not any(padding):
        x = x if tuple(stride) == (1, 1) else x[:, :, :: stride[0], :: stride[1]]
        return _places_as_rows(x), (x.shape[0], x.shape[2], x.shape[3])
    seen = _windows(x, filter_shape, stride, padding)
    n, h, w = seen.shape[:3]
    return seen.permute(0, 1, 2, 4, 5, 3).reshape(n * h * w, -1), (n, h, w)


def _places_as_rows(x: torch.Tensor) -> torch.Tensor:
    """Reshape [n c h w] to [n*h*w c]: a view if the images are channels last."""
    n, c, h, w = x.shape
    return x.reshape(n, c) if h == w == 1 else x.permute(0, 2, 3, 1).reshape(n * h * w, c)


def _rows_of_filters(filter: torch.Tensor) -> torch.Tensor:
    f, c, kh, kw = filter.shape
    return filter.reshape(f, c) if kh == kw == 1 else filter.permute(0, 2, 3, 1).reshape(f, kh * kw * c)


def _as_images(rows: torch.Tensor, n: int, h: int, w: int) -> torch.Tensor:
    """Return rows as channels-last images, one row per position; with contiguous strides for images of one position."""
    return rows.view(n, -1, 1, 1) if h == w == 1 else rows.view(n, h, w, -1).permute(0, 3, 1, 2)
