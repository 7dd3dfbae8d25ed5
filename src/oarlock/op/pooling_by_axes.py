"""Pooling along one axis (signals) and three (volumes), with the rules of `pooling` along two."""

import torch

from oarlock.errors import ShapeError
from oarlock.op.places import take_places_dx
from oarlock.op.pooling import pooled_shape, pooled_shapes, require_seen
from oarlock.op.trusted_operator import operator
from oarlock.registry import Case, GradCheck, Rejects
from oarlock.tensor.dtype import at_least_single

__all__ = ["average_pool1d", "average_pool3d", "max_pool1d", "max_pool3d"]

Numbers = tuple[int, ...]

_backward2d, _backward3d = torch.ops.aten.avg_pool2d_backward.default, torch.ops.aten.avg_pool3d_backward.default


@operator(
    "x: float[n c! w] -> y: float[n c ow], index: int64[n c ow]",
    intermediate=("index",),
    cases=[
        Case(x=[[[1.0, 3.0, 2.0]]], size=(2,), stride=(2,), ceil_mode=True, y=[[[3.0, 2.0]]], index=[[[1, 2]]]),
        GradCheck(x=(2, 2, 7), size=(2,), stride=(2,), padding=(1,), dilation=(2,)),
        Rejects("a window of 3 does not fit into 2", x=(1, 1, 2), size=(3,), stride=(1,)),
        Rejects("size, stride and padding have one number", x=(1, 1, 2), size=(1, 1), stride=(1,)),
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
    return _backward2d(dy.unsqueeze(2), like_x, size, stride, padding, ceil_mode, count_include_pad, None).squeeze(2)


@operator(
    "x: float[n c! d h w] -> y: float[n c od oh ow]",
    linear_in=("x",),
    cases=[
        Case(x=[[[[[1.0, 3.0, 2.0]]]]], size=(1, 1, 2), stride=(1, 1, 1), y=[[[[[2.0, 2.5]]]]]),
        GradCheck(x=(1, 2, 3, 4, 5), size=(2, 2, 2), stride=(1, 2, 2), padding=(1, 0, 1), ceil_mode=True, count_include_pad=False),
        Rejects("size, stride and padding have three numbers each", x=(1, 1, 2, 2, 2), size=(1, 1), stride=(1, 1, 1)),
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
    dx = _backward3d(wide, wide.new_empty(x_shape), size, stride, padding, ceil_mode, count_include_pad, None)
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
