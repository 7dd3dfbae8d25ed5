"""Convolution of images."""

from collections.abc import Sequence

import torch

from oarlock.backend.torch.private import has_packed_filters
from oarlock.errors import ShapeError
from oarlock.ir import size
from oarlock.op.reduction import broadcast_to_like
from oarlock.op.shaping import reshape
from oarlock.op.trusted import operator
from oarlock.registry import Case, GradCheck, Rejects, fused_backward
from oarlock.tensor.memory_format import channels_last, contiguous, empty_as, is_channels_last

__all__ = ["conv2d", "window_size"]

_SMALL_IMAGE = 20480  # elements

_convolution_backward = torch.ops.aten.convolution_backward.default


def window_size(length: size.Size, window: size.Size, stride: int, padding: int) -> size.Size:
    """How many windows fit: ``(length + 2 padding - window) // stride + 1``. Raises ShapeError where none does."""
    if stride < 1 or padding < 0:
        raise ShapeError(f"stride {stride} must be at least 1 and padding {padding} at least 0")
    room = size.add(size.add(length, 2 * padding), size.multiply(window, -1))
    if isinstance(room, int) and room < 0:
        raise ShapeError(f"a window of {window} does not fit into {length} with padding {padding}")
    return size.add(size.floor_divide(room, stride), 1)


@operator(
    "x: float[n c h w], filter: float[f c kh kw], bias?: float[f] -> y: float[n f oh ow]",
    linear_in=("x", "filter"),
    sensitive_to="place",
    cases=[
        Case(x=[[[[1.0, 2.0], [3.0, 4.0]]]], filter=[[[[1.0, 0.0], [0.0, 1.0]]]], y=[[[[5.0]]]]),
        Case(x=[[[[1.0, 2.0], [3.0, 4.0]]]], filter=[[[[2.0]]]], bias=[0.5], stride=(2, 2), y=[[[[2.5]]]]),
        GradCheck(x=(2, 3, 5, 4), filter=(4, 3, 3, 2), bias=(4,), stride=(2, 1), padding=(1, 0)),
        GradCheck(x=(1, 2, 3, 3), filter=(2, 2, 3, 3), padding=(1, 1)),
        Rejects("a window of 5 does not fit into 4", x=(1, 1, 4, 4), filter=(1, 1, 5, 5)),
    ],
)
def conv2d(x, filter, bias=None, *, stride: tuple[int, ...] = (1, 1), padding: tuple[int, ...] = (0, 0)):
    """Slide ``f`` filters over ``n`` images of ``c`` channels (a cross-correlation, as everywhere in this field)."""
    if is_misread(x, filter, stride, padding):
        return torch.conv2d(contiguous(x), contiguous(filter), bias, stride, padding)
    return torch.conv2d(laid(x), channels_last(filter), bias, stride, padding)


def is_misread(x, filter, stride, padding) -> bool:
    """Whether oneDNN reads beyond images of one channel that are told to lie channels last, and returns what it finds there.

    So it does in PyTorch 2.13 where one window fits sideways, though windows are more than one step apart.
    """
    return stride[1] > 1 and x.shape[1] == 1 and (x.shape[3] + 2 * padding[1] - filter.shape[3]) // stride[1] == 0


def laid(x):
    """``x`` as `channels_last` has it, where that says more than the filter beside it does: one channel lies in either format."""
    return x if x.shape[1] == 1 and x.is_contiguous() else channels_last(x)


def is_by_onednn(x, filter) -> bool:
    """Whether `torch.conv2d` would call oneDNN too, for filters of more than one place: small single images it convolves by a product."""
    n, c, h, w = x.shape
    large = n > 1 or h * w * c > _SMALL_IMAGE or (filter.shape[2] > 3 and filter.shape[3] > 3)
    return large and x.dtype is torch.float32 and has_packed_filters()


@conv2d.infer_shape
def conv2d_shape(x, filter, bias=None, *, stride, padding):
    n, _, h, w = x.shape
    f, _, kh, kw = filter.shape
    if len(stride) != 2 or len(padding) != 2:
        raise ShapeError("stride and padding have two numbers each, for height and width")
    return (n, f, window_size(h, kh, stride[0], padding[0]), window_size(w, kw, stride[1], padding[1]))


@conv2d.gradient("x", sensitive_to="place")
def conv2d_dx(filter, dy, x_shape, *, stride, padding):
    return _backward(dy, None, filter, stride, padding, [True, False, False], x_shape=x_shape)[0]


@conv2d.gradient("filter", sensitive_to="place")
def conv2d_dfilter(x, dy, filter_shape, *, stride, padding):
    return _backward(dy, x, None, stride, padding, [False, True, False], filter_shape=filter_shape)[1]


def _backward(dy, x, filter, stride: Sequence[int], padding: Sequence[int], wanted: Sequence[bool], *, x_shape=(), filter_shape=()):
    """The gradients of ``x``, ``filter`` and the bias, as far as they are `wanted`.

    PyTorch reads only the shape, and the format, of what no wanted gradient depends on: there the shape may stand for the tensor.
    """
    dy = channels_last(dy)
    last = is_channels_last(dy)
    x = empty_as(dy, x_shape, last=last) if x is None else laid(x)
    filter = empty_as(dy, filter_shape, last=last) if filter is None else channels_last(filter)
    dx, dfilter, dbias = _convolution_backward(dy, x, filter, [filter.shape[0]], stride, padding, (1, 1), False, (0, 0), 1, wanted)
    return dx, dfilter if dfilter is None or is_channels_last(dfilter) else contiguous(dfilter), dbias


@conv2d.gradient("bias", sensitive_to="layout")
def conv2d_dbias(dy):
    return dy.sum((0, 2, 3))


@fused_backward(conv2d_dx, conv2d_dfilter, conv2d_dbias)
def conv2d_backward(x, filter, dy, *, stride, padding):
    return _backward(dy, x, filter, stride, padding, [True, True, True])


@fused_backward(conv2d_dx, conv2d_dfilter)
def conv2d_backward_without_bias(x, filter, dy, *, stride, padding):
    return _backward(dy, x, filter, stride, padding, [True, True, False])[:2]


@fused_backward(conv2d_dfilter, conv2d_dbias)
def conv2d_backward_of_parameters(x, dy, filter_shape, *, stride, padding):
    return _backward(dy, x, None, stride, padding, [False, True, True], filter_shape=filter_shape)[1:]


conv2d_dbias.gradient_programs(dy=lambda ddbias, dy_shape: broadcast_to_like(reshape(ddbias, shape=(-1, 1, 1)), dy_shape))
