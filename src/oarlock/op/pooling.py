"""Max and average pooling of images, and of signals (one axis) and volumes (three) with the same rules."""

import torch

from oarlock.errors import ArgumentError, ShapeError
from oarlock.ir.shape_rules import count_windows, require_numbered
from oarlock.ir.size import format_shape, product
from oarlock.op.trusted_operator import operator
from oarlock.registry import Case, GradCheck, Rejects
from oarlock.registry.value_checks import unchecked
from oarlock.tensor.dtype import at_least_single
from oarlock.tensor.images import require_places
from oarlock.tensor.memory_format import channels_last, dense, empty_as, in_format_of, is_channels_last

__all__ = [
    "average_pool1d",
    "average_pool2d",
    "average_pool3d",
    "global_average_pool2d",
    "max_pool1d",
    "max_pool2d",
    "max_pool3d",
    "pooled_shape",
    "pooled_shapes",
    "require_seen",
    "take_places",
]


Numbers = tuple[int, ...]

_max_pool_backward = torch.ops.aten.max_pool2d_with_indices_backward.default
_average_pool_backward = torch.ops.aten.avg_pool2d_backward.default
_average_pool3d_backward = torch.ops.aten.avg_pool3d_backward.default
_NAMES = {1: "one number", 2: "two numbers each, for height and width", 3: "three numbers each, for depth, height and width"}


def pooled_shape(x, *, size, stride, padding, ceil_mode=False, count_include_pad=True, dilation=None):
    """Return the output shape of a pooling over any number of axes."""
    n, c, *sizes = x.shape
    dilation = (1,) * len(sizes) if dilation is None else dilation
    if not len(size) == len(stride) == len(padding) == len(dilation) == len(sizes):
        raise ArgumentError(f"size, stride and padding must have {_NAMES[len(sizes)]}")
    if any(2 * pad > window for pad, window in zip(padding, size, strict=True)):
        raise ShapeError(f"padding {padding} is more than half of the window {size}")
    windows = zip(sizes, size, stride, padding, dilation, strict=True)
    return (n, c, *(count_windows(*each, ceil_mode=ceil_mode) for each in windows))


def pooled_shapes(x, *, padding, dilation, **how):
    """Return the shapes of the maxima and of their indices."""
    shape = pooled_shape(x, padding=padding, dilation=dilation, **how)
    require_seen(x.shape[2:], padding, dilation)
    return shape, shape


def require_seen(sizes, padding, dilation) -> None:
    """Raise ValueError if a dilated window could step over an axis, from the padding in front to the padding behind.

    PyTorch returns an index out of range for such a window. The kernels call it, too.
    """
    for length, pad, step in zip(sizes, padding, dilation, strict=True):
        if isinstance(length, int) and pad and length < step:
            raise ValueError(f"with dilation {step} and padding {pad}, a window may contain none of {length} elements")


@operator(
    "x: float[n c! h w] -> y: float[n c oh ow], index: int64[n c oh ow]",
    added_later=("dilation", "ceil_mode"),
    intermediate=("index",),
    cases=[
        Case(x=[[[[1.0, 2.0], [3.0, 4.0]]]], size=(2, 2), stride=(2, 2), y=[[[[4.0]]]], index=[[[[3]]]]),
        Case(x=[[[[1.0, 3.0, 2.0]]]], size=(1, 2), stride=(1, 2), ceil_mode=True, y=[[[[3.0, 2.0]]]], index=[[[[1, 2]]]]),
        GradCheck(x=(2, 2, 5, 4), size=(3, 2), stride=(2, 2), padding=(1, 0)),
        GradCheck(x=(2, 2, 6, 5), size=(2, 2), stride=(2, 3), dilation=(2, 1), padding=(1, 0), ceil_mode=True),
        Rejects("a window of 3 does not fit into 2", x=(1, 1, 2, 2), size=(3, 3), stride=(1, 1)),
        Rejects("a window of 3 does not fit into 2", x=(1, 1, 2, 2), size=(2, 2), stride=(1, 1), dilation=(2, 1)),
        Rejects("a window of 0 does not fit into 2", x=(1, 1, 2, 2), size=(0, 1), stride=(1, 1)),
        Rejects("may contain none of 1 elements", x=(1, 1, 1, 3), size=(2, 2), stride=(1, 1), dilation=(2, 1), padding=(1, 0)),
        Rejects("x has size 0, but c must be at least 1", x=(1, 0, 2, 2), size=(1, 1), stride=(1, 1)),
    ],
)
def max_pool2d(
    x,
    *,
    size: Numbers,
    stride: Numbers,
    padding: Numbers = (0, 0),
    dilation: Numbers = (1, 1),
    ceil_mode: bool = False,
):
    """Max pooling: the largest value in each window of each channel; ``index`` is its flat position, for the gradient.

    With ``ceil_mode``, a last window that extends beyond the end counts too.
    """
    require_seen(x.shape[2:], padding, dilation)
    return torch.nn.functional.max_pool2d(x, size, stride, padding, dilation, ceil_mode, return_indices=True)


max_pool2d.infer_shape(pooled_shapes)


@max_pool2d.gradient("x", checks_values=True)
def max_pool2d_dx(index, dy, x_shape, *, size, stride, padding, dilation=(1, 1), ceil_mode=False):
    """The gradient of each window, added at the position of its maximum. Positions must be from 0 to ``h w - 1``."""
    index = require_places(index, x_shape[2:])
    return max_pool2d_dx_unchecked(index, dy, x_shape, size=size, stride=stride, padding=padding, dilation=dilation, ceil_mode=ceil_mode)


@unchecked(max_pool2d_dx, "index", like="x_shape")
def max_pool2d_dx_unchecked(index, dy, x_shape, *, size, stride, padding, dilation=(1, 1), ceil_mode=False):
    """`max_pool2d_dx` without the check of ``index``: PyTorch writes to any position, even out of bounds."""
    like_x = empty_as(dy, x_shape, last=is_channels_last(index))  # PyTorch reads its shape and format only
    dy = in_format_of(dy, index)
    return _max_pool_backward(dy, like_x, size, stride, padding, dilation, ceil_mode, index)


max_pool2d_dx.gradient_programs(dy=lambda ddx, index: take_places(ddx, index))


@operator(
    "x: float[n c! h w] -> y: float[n c oh ow]",
    added_later=("ceil_mode", "count_include_pad"),
    linear_in=("x",),
    cases=[
        Case(x=[[[[1.0, 2.0], [3.0, 4.0]]]], size=(2, 2), stride=(2, 2), y=[[[[2.5]]]]),
        Case(
            x=[[[[1.0, 3.0, 2.0]]]], size=(1, 2), stride=(1, 2), padding=(0, 1), ceil_mode=True, count_include_pad=False, y=[[[[1.0, 2.5]]]]
        ),
        GradCheck(x=(2, 2, 5, 4), size=(3, 2), stride=(2, 2), padding=(1, 0)),
        GradCheck(x=(2, 2, 6, 5), size=(3, 2), stride=(2, 3), padding=(1, 1), ceil_mode=True, count_include_pad=False),
        GradCheck(x=(2, 2, 6, 5), size=(3, 2), stride=(2, 2), padding=(1, 1), ceil_mode=True),
        Rejects("a window of 2 does not fit into 0", x=(1, 1, 0, 2), size=(2, 2), stride=(1, 1), padding=(1, 0)),
    ],
)
def average_pool2d(
    x,
    *,
    size: Numbers,
    stride: Numbers,
    padding: Numbers = (0, 0),
    ceil_mode: bool = False,
    count_include_pad: bool = True,
):
    """Average pooling: the mean of each window of each channel. Without ``count_include_pad``, padding is left out of the mean.

    With ``ceil_mode``, a last window that extends beyond the end counts too, as the mean of its elements.
    """
    return torch.nn.functional.avg_pool2d(x, size, stride, padding, ceil_mode, count_include_pad)


average_pool2d.infer_shape(pooled_shape)


@average_pool2d.gradient("x")
def average_pool2d_dx(dy, x_shape, *, size, stride, padding, ceil_mode=False, count_include_pad=True):
    like_x = empty_as(dy, x_shape, last=is_channels_last(dy))  # PyTorch reads its shape and format only
    return _average_pool_backward(dy, like_x, size, stride, padding, ceil_mode, count_include_pad, None)


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
    """The mean of each channel of each image; NaN if an image is empty."""
    return torch.mean(x, (-2, -1))


@global_average_pool2d.gradient("x")
def global_average_pool2d_dx(dy, x_shape):
    """The gradient of each pixel. It is channels last if images are, which the next convolution needs."""
    return dense(channels_last(share_of(dy, x_shape).expand(x_shape)))


def share_of(dy, x_shape):
    return (dy / (x_shape[-2] * x_shape[-1])).reshape(*dy.shape, 1, 1)


@operator(
    "x: float[n c! w] -> y: float[n c ow], index: int64[n c ow]",
    intermediate=("index",),
    cases=[
        Case(x=[[[1.0, 3.0, 2.0]]], size=(2,), stride=(2,), ceil_mode=True, y=[[[3.0, 2.0]]], index=[[[1, 2]]]),
        GradCheck(x=(2, 2, 7), size=(2,), stride=(2,), padding=(1,), dilation=(2,)),
        Rejects("a window of 3 does not fit into 2", x=(1, 1, 2), size=(3,), stride=(1,)),
        Rejects("size, stride and padding must have one number", x=(1, 1, 2), size=(1, 1), stride=(1,)),
    ],
)
def max_pool1d(x, *, size: Numbers, stride: Numbers, padding: Numbers = (0,), dilation: Numbers = (1,), ceil_mode: bool = False):
    """1D max pooling; see `max_pool2d`."""
    require_seen(x.shape[2:], padding, dilation)
    return torch.nn.functional.max_pool1d(x, size, stride, padding, dilation, ceil_mode, return_indices=True)


@operator(
    "x: float[n c! d h w] -> y: float[n c od oh ow], index: int64[n c od oh ow]",
    intermediate=("index",),
    cases=[
        Case(x=[[[[[1.0, 3.0, 2.0]]]]], size=(1, 1, 2), stride=(1, 1, 1), y=[[[[[3.0, 3.0]]]]], index=[[[[[1, 1]]]]]),
        GradCheck(x=(1, 2, 3, 4, 5), size=(2, 2, 2), stride=(1, 2, 2), padding=(1, 0, 1), dilation=(1, 2, 1), ceil_mode=True),
        Rejects("a window of 3 does not fit into 2", x=(1, 1, 2, 2, 2), size=(3, 1, 1), stride=(1, 1, 1)),
    ],
)
def max_pool3d(x, *, size: Numbers, stride: Numbers, padding: Numbers = (0, 0, 0), dilation: Numbers = (1, 1, 1), ceil_mode: bool = False):
    """3D max pooling; see `max_pool2d`. ``index`` is a flat position in the volume."""
    require_seen(x.shape[2:], padding, dilation)
    return torch.nn.functional.max_pool3d(x, size, stride, padding, dilation, ceil_mode, return_indices=True)


for _pool in (max_pool1d, max_pool3d):
    _pool.infer_shape(pooled_shapes)
    _pool.gradient_programs(x=lambda index, dy, x_shape: take_places_dx(index, dy, x_shape))


@operator(
    "x: float[n c! w] -> y: float[n c ow]",
    linear_in=("x",),
    cases=[
        Case(x=[[[1.0, 3.0, 2.0]]], size=(2,), stride=(2,), ceil_mode=True, y=[[[2.0, 2.0]]]),
        GradCheck(x=(2, 2, 6), size=(3,), stride=(2,), padding=(1,), ceil_mode=True, count_include_pad=False),
        Rejects("padding (2,) is more than half of the window (3,)", x=(1, 1, 4), size=(3,), stride=(1,), padding=(2,)),
    ],
)
def average_pool1d(x, *, size: Numbers, stride: Numbers, padding: Numbers = (0,), ceil_mode: bool = False, count_include_pad: bool = True):
    """1D average pooling; see `average_pool2d`."""
    return torch.nn.functional.avg_pool1d(x, size, stride, padding, ceil_mode, count_include_pad)


@average_pool1d.gradient("x")
def average_pool1d_dx(dy, x_shape, *, size, stride, padding, ceil_mode, count_include_pad):
    like_x = dy.new_empty(x_shape).unsqueeze(2)  # PyTorch reads its shape only
    size, stride, padding = (1, *size), (1, *stride), (0, *padding)
    return _average_pool_backward(dy.unsqueeze(2), like_x, size, stride, padding, ceil_mode, count_include_pad, None).squeeze(2)


@operator(
    "x: float[n c! d h w] -> y: float[n c od oh ow]",
    linear_in=("x",),
    cases=[
        Case(x=[[[[[1.0, 3.0, 2.0]]]]], size=(1, 1, 2), stride=(1, 1, 1), y=[[[[[2.0, 2.5]]]]]),
        GradCheck(x=(1, 2, 3, 4, 5), size=(2, 2, 2), stride=(1, 2, 2), padding=(1, 0, 1), ceil_mode=True, count_include_pad=False),
        Rejects("size, stride and padding must have three numbers each", x=(1, 1, 2, 2, 2), size=(1, 1), stride=(1, 1, 1)),
        Rejects("without padding", x=(1, 1, 2, 2, 1), size=(1, 1, 2), stride=(1, 1, 1), padding=(0, 0, 1)),
    ],
)
def average_pool3d(
    x, *, size: Numbers, stride: Numbers, padding: Numbers = (0, 0, 0), ceil_mode: bool = False, count_include_pad: bool = True
):
    """3D average pooling; see `average_pool2d`."""
    y = torch.nn.functional.avg_pool3d(at_least_single(x), size, stride, padding, ceil_mode, count_include_pad)
    return y.to(x.dtype)  # no variant is derived: PyTorch ignores the strides of `out`


@average_pool3d.gradient("x")
def average_pool3d_dx(dy, x_shape, *, size, stride, padding, ceil_mode, count_include_pad):
    wide = at_least_single(dy)
    dx = _average_pool3d_backward(wide, wide.new_empty(x_shape), size, stride, padding, ceil_mode, count_include_pad, None)
    return dx.to(dy.dtype)  # as above


average_pool1d.infer_shape(pooled_shape)


@average_pool3d.infer_shape
def average_pooled_shape(x, **windows):
    """Return the shape of `average_pool2d`. Along three axes, PyTorch's windows must fit without the padding."""
    shape = pooled_shape(x, **windows)
    for length, window in zip(x.shape[2:], windows["size"], strict=True):
        if isinstance(length, int) and length < window:
            raise ShapeError(f"a window of {window} does not fit into {length} without padding")
    return shape


@operator(
    "x: float[n c ...s], index: int64[n c ...t] -> y: float[n c ...t]",
    linear_in=("x",),
    checks_values=True,
    cases=[
        Case(x=[[[[1.0, 2.0], [3.0, 4.0]]]], index=[[[3, 0, 3]]], y=[[[4.0, 1.0, 4.0]]]),
        GradCheck(x=(1, 2, 2, 3), index=[[[[0, 5, 5]], [[2, 1, 0]]]]),
        Rejects("index 4 is out of range for an image of 2 x 2 positions, numbered from 0", x=(1, 1, 2, 2), index=[[[4]]]),
        Rejects("index -1 is out of range for a signal of 2 positions, numbered from 0", x=(1, 1, 2), index=[[[0, -1]]]),
    ],
)
def take_places(x, index):
    """The values of each channel at the flat positions ``index``, counted from 0 over its axes ``s``."""
    index = require_places(index, x.shape[2:])
    return _by_channel(x).gather(2, _by_channel(index)).reshape(index.shape)


@take_places.check_shapes
def require_some_place(x, index):
    require_numbered(index.shape, product(x.shape[2:]), f"{format_shape(x.shape)} has no place")


@take_places.gradient("x", checks_values=True)
def take_places_dx(index, dy, x_shape):
    """The sum of ``dy`` over all reads of each position."""
    index = require_places(index, x_shape[2:])
    return _by_channel(dy.new_zeros(x_shape)).scatter_add_(2, _by_channel(index), _by_channel(dy)).reshape(x_shape)


def _by_channel(x):
    """Return ``x`` with the elements of each channel in a row. There may be none."""
    return x.reshape(*x.shape[:2], torch.Size(x.shape[2:]).numel())
