"""Images as columns of patches (im2col), and back (col2im): each is the gradient of the other."""

import math

import torch

from oarlock.errors import ArgumentError, ShapeError
from oarlock.ir.shape_rules import count_windows
from oarlock.ir.size import Size, floor_divide, multiply
from oarlock.op.trusted_operator import operator
from oarlock.registry import Case, GradCheck, Rejects

__all__ = ["fold", "unfold"]

Steps = tuple[int, ...]


def _windows(height, width, size: Steps, stride: Steps, padding: Steps, dilation: Steps) -> Size:
    """Return the number of windows in an image. Raises ArgumentError or ShapeError for invalid settings."""
    if not len(size) == len(stride) == len(padding) == len(dilation) == 2:
        raise ArgumentError("size, stride, padding and dilation must have two numbers each, for height and width")
    if min(padding) < 0:
        raise ShapeError(f"padding must be at least 0, not {padding}")
    return multiply(*map(count_windows, (height, width), size, stride, padding, dilation))


@operator(
    "x: float[n c! h w] -> y: float[n k l]",
    linear_in=("x",),
    cases=[
        Case(x=[[[[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]]], size=(2, 2), y=[[[1.0, 2.0], [2.0, 3.0], [4.0, 5.0], [5.0, 6.0]]]),
        GradCheck(x=(2, 2, 4, 5), size=(2, 3), stride=(2, 1), padding=(1, 0), dilation=(1, 2)),
        Rejects("a window of 3 does not fit into 2", x=(1, 1, 2, 2), size=(3, 1)),
        Rejects("size, stride, padding and dilation must have two numbers each", x=(1, 1, 2, 2), size=(1,)),
    ],
)
def unfold(x, *, size: Steps, dilation: Steps = (1, 1), padding: Steps = (0, 0), stride: Steps = (1, 1)):
    """The patches of an image under sliding windows, as columns of ``k`` numbers: channel by channel, row by row (im2col)."""
    return torch.nn.functional.unfold(x, size, dilation, padding, stride)


@unfold.infer_shape
def unfolded_shape(x, *, size, stride, padding, dilation):
    n, c, height, width = x.shape
    columns = _windows(height, width, size, stride, padding, dilation)
    return (n, multiply(c, math.prod(size)), columns)


@unfold.gradient("x")
def unfold_dx(dy, x_shape, *, size, stride, padding, dilation):
    return torch.nn.functional.fold(dy, x_shape[2:], size, dilation, padding, stride)


@operator(
    "x: float[n k! l] -> y: float[n c h w]",
    linear_in=("x",),
    cases=[
        Case(x=[[[1.0, 2.0], [3.0, 4.0]]], shape=(1, 3), size=(1, 2), y=[[[[1.0, 5.0, 4.0]]]]),
        GradCheck(x=(2, 8, 6), shape=(3, 4), size=(2, 2)),
        GradCheck(x=(2, 3, 4), shape=(2, 2), size=(1, 1)),
        GradCheck(x=(1, 4, 4), shape=(3, 3), size=(2, 1), stride=(2, 2), padding=(1, 0)),
        Rejects("columns of 3 numbers are not patches of 2 by 2", x=(1, 3, 1), shape=(2, 2), size=(2, 2)),
        Rejects("x has 2 columns, but an image of 2 by 2 has 1 windows", x=(1, 4, 2), shape=(2, 2), size=(2, 2)),
        Rejects("shape must have two numbers, for height and width", x=(1, 4, 2), shape=(2,), size=(2, 2)),
    ],
)
def fold(x, *, shape: Steps, size: Steps, dilation: Steps = (1, 1), padding: Steps = (0, 0), stride: Steps = (1, 1)):
    """Images of ``shape`` as sums of patches, one per column: the transpose of `unfold` (col2im)."""
    return torch.nn.functional.fold(x, shape, size, dilation, padding, stride)


@fold.infer_shape
def folded_shape(x, *, shape, size, stride, padding, dilation):
    if len(shape) != 2:
        raise ArgumentError("shape must have two numbers, for height and width")
    n, numbers, columns = x.shape
    windows = _windows(shape[0], shape[1], size, stride, padding, dilation)
    if isinstance(columns, int) and columns != windows:
        raise ShapeError(f"x has {columns} columns, but an image of {shape[0]} by {shape[1]} has {windows} windows")
    channels = floor_divide(numbers, math.prod(size))
    if isinstance(numbers, int) and multiply(channels, math.prod(size)) != numbers:
        raise ShapeError(f"columns of {numbers} numbers are not patches of {size[0]} by {size[1]}")
    return (n, channels, *shape)


@fold.gradient("x")
def fold_dx(dy, x_shape, *, shape, size, stride, padding, dilation):
    return torch.nn.functional.unfold(dy, size, dilation, padding, stride)
