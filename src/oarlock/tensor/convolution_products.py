"""Convolutions as matrix products, for sizes at which a library's overhead exceeds the convolution itself.

oneDNN reorders filters before it computes and reorders their gradients afterwards. For images with few positions and large filters, this
takes most of the time. Filters of size 1 x 1 are matrices already. Images and filters are channels last: a row is the input of a window.
"""

import math
from collections.abc import Callable, Sequence

import torch
from torch.nn.functional import pad

__all__ = [
    "choose_gradients",
    "filter_gradient_by_channel",
    "filter_gradient_by_product",
    "image_gradient_by_product",
    "is_product",
    "product_of_windows",
]

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
