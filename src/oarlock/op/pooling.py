"""Pooling of images."""

import torch

from oarlock.errors import ArgumentError, ShapeError
from oarlock.ir.shape_rules import count_windows
from oarlock.op.trusted_operator import operator
from oarlock.registry import Case, GradCheck, Rejects
from oarlock.registry.own_values import unchecked
from oarlock.tensor.memory_format import channels_last, dense, empty_as, in_format_of, is_channels_last

__all__ = ["average_pool2d", "global_average_pool2d", "max_pool2d"]

_max_pool_backward = torch.ops.aten.max_pool2d_with_indices_backward.default
_average_pool_backward = torch.ops.aten.avg_pool2d_backward.default


def _pooled(x, *, size, stride, padding):
    if not len(size) == len(stride) == len(padding) == 2:
        raise ArgumentError("size, stride and padding have two numbers each, for height and width")
    if any(2 * pad > window for pad, window in zip(padding, size, strict=True)):
        raise ShapeError(f"padding {padding} is more than half of the window {size}")
    n, c, h, w = x.shape
    return (n, c, count_windows(h, size[0], stride[0], padding[0]), count_windows(w, size[1], stride[1], padding[1]))


@operator(
    "x: float[n c! h w] -> y: float[n c oh ow], index: int64[n c oh ow]",
    intermediate=("index",),
    cases=[
        Case(x=[[[[1.0, 2.0], [3.0, 4.0]]]], size=(2, 2), stride=(2, 2), y=[[[[4.0]]]], index=[[[[3]]]]),
        GradCheck(x=(2, 2, 5, 4), size=(3, 2), stride=(2, 2), padding=(1, 0)),
        Rejects("a window of 3 does not fit into 2", x=(1, 1, 2, 2), size=(3, 3), stride=(1, 1)),
        Rejects("a window of 0 does not fit into 2", x=(1, 1, 2, 2), size=(0, 1), stride=(1, 1)),
        Rejects("x has the size 0, where c is at least 1", x=(1, 0, 2, 2), size=(1, 1), stride=(1, 1)),
    ],
)
def max_pool2d(x, *, size: tuple[int, ...], stride: tuple[int, ...], padding: tuple[int, ...] = (0, 0)):
    """The largest value in each window of each channel; ``index`` is where it stood, for the gradient."""
    return torch.nn.functional.max_pool2d(x, size, stride, padding, return_indices=True)


@max_pool2d.infer_shape
def max_pool2d_shapes(x, *, size, stride, padding):
    shape = _pooled(x, size=size, stride=stride, padding=padding)
    return shape, shape


@max_pool2d.gradient("x", checks_values=True)
def max_pool2d_dx(index, dy, x_shape, *, size, stride, padding):
    """Each window's gradient goes to where its largest value stood, which must be a place of the image: 0 to ``h w - 1``."""
    h, w = x_shape[2:]
    return max_pool2d_dx_unchecked(_inside(index, h, w), dy, x_shape, size=size, stride=stride, padding=padding)


@unchecked(max_pool2d_dx, "index", like="x_shape")
def max_pool2d_dx_unchecked(index, dy, x_shape, *, size, stride, padding):
    """PyTorch writes wherever an index says."""
    like_x = empty_as(dy, x_shape, last=is_channels_last(index))  # of which PyTorch reads the shape and the format
    dy = in_format_of(dy, index)
    return _max_pool_backward(dy, like_x, size, stride, padding, (1, 1), False, index)


def _inside(index, h: int, w: int):
    """``index``, of which each is a place of h rows of w. Raises ValueError; a GPU is not asked, which is to wait for it: places far out
    count as the nearest there.
    """
    if not index.is_cpu:
        return index.clamp(0, max(0, h * w - 1))
    if index.numel():
        low, high = (int(end) for end in torch.aminmax(index))
        if low < 0 or high >= h * w:
            raise ValueError(f"index {low if low < 0 else high} is none of the {h} x {w} places of an image, numbered from 0")
    return index


@operator(
    "x: float[n c! h w] -> y: float[n c oh ow]",
    linear_in=("x",),
    cases=[
        Case(x=[[[[1.0, 2.0], [3.0, 4.0]]]], size=(2, 2), stride=(2, 2), y=[[[[2.5]]]]),
        GradCheck(x=(2, 2, 5, 4), size=(3, 2), stride=(2, 2), padding=(1, 0)),
        Rejects("a window of 2 does not fit into 0", x=(1, 1, 0, 2), size=(2, 2), stride=(1, 1), padding=(1, 0)),
    ],
)
def average_pool2d(x, *, size: tuple[int, ...], stride: tuple[int, ...], padding: tuple[int, ...] = (0, 0)):
    """The mean of each window of each channel; padding counts as zeros."""
    return torch.nn.functional.avg_pool2d(x, size, stride, padding)


average_pool2d.infer_shape(_pooled)


@average_pool2d.gradient("x")
def average_pool2d_dx(dy, x_shape, *, size, stride, padding):
    like_x = empty_as(dy, x_shape, last=is_channels_last(dy))  # of which PyTorch reads the shape and the format
    return _average_pool_backward(dy, like_x, size, stride, padding, False, True, None)


@operator(
    "x: float[*b h w] -> y: float[*b]",
    linear_in=("x",),
    sensitive_to="layout",
    cases=[
        Case(x=[[[[1.0, 2.0], [3.0, 6.0]], [[0.0, 0.0], [0.0, 1.0]]]], y=[[3.0, 0.25]]),
        Case(x=[[1.0, 3.0]], y=2.0),
    ],
)
def global_average_pool2d(x):
    """The mean of each channel of each image. The mean of nothing is NaN."""
    return torch.mean(x, (-2, -1))


@global_average_pool2d.gradient("x")
def global_average_pool2d_dx(dy, x_shape):
    """Each pixel's share: channels last where images are, as convolutions will ask for it."""
    return dense(channels_last(share_of(dy, x_shape).expand(x_shape)))


def share_of(dy, x_shape):
    return (dy / (x_shape[-2] * x_shape[-1])).reshape(*dy.shape, 1, 1)
