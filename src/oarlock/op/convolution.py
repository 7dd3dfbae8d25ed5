"""Convolution of images."""

from oarlock.errors import ShapeError
from oarlock.ir.shape_rules import count_windows
from oarlock.op.manipulation import reshape
from oarlock.op.reduction import broadcast_to_like
from oarlock.op.trusted_operator import operator
from oarlock.registry import Case, GradCheck, Rejects, fused_backward
from oarlock.tensor.convolution import convolve, convolve_backward

__all__ = ["conv2d"]


@operator(
    "x: float[n c! h w], filter: float[f! c kh kw], bias?: float[f] -> y: float[n f oh ow]",
    linear_in=("x", "filter"),
    sensitive_to="place",
    cases=[
        Case(x=[[[[1.0, 2.0], [3.0, 4.0]]]], filter=[[[[1.0, 0.0], [0.0, 1.0]]]], y=[[[[5.0]]]]),
        Case(x=[[[[1.0, 2.0], [3.0, 4.0]]]], filter=[[[[2.0]]]], bias=[0.5], stride=(2, 2), y=[[[[2.5]]]]),
        GradCheck(x=(2, 3, 5, 4), filter=(4, 3, 3, 2), bias=(4,), stride=(2, 1), padding=(1, 0)),
        GradCheck(x=(1, 2, 3, 3), filter=(2, 2, 3, 3), padding=(1, 1)),
        Rejects("a window of 5 does not fit into 4", x=(1, 1, 4, 4), filter=(1, 1, 5, 5)),
        Rejects("a window of 0 does not fit into 4", x=(1, 1, 4, 4), filter=(1, 1, 2, 0)),
        Rejects("x has the size 0, where c is at least 1", x=(1, 0, 4, 4), filter=(1, 0, 2, 2)),
    ],
)
def conv2d(x, filter, bias=None, *, stride: tuple[int, ...] = (1, 1), padding: tuple[int, ...] = (0, 0)):
    """Slide ``f`` filters over ``n`` images of ``c`` channels (a cross-correlation, as everywhere in this field)."""
    return convolve(x, filter, bias, stride, padding)


@conv2d.infer_shape
def conv2d_shape(x, filter, bias=None, *, stride, padding):
    n, _, h, w = x.shape
    f, _, kh, kw = filter.shape
    if len(stride) != 2 or len(padding) != 2:
        raise ShapeError("stride and padding have two numbers each, for height and width")
    return (n, f, count_windows(h, kh, stride[0], padding[0]), count_windows(w, kw, stride[1], padding[1]))


@conv2d.gradient("x", sensitive_to="place")
def conv2d_dx(filter, dy, x_shape, *, stride, padding):
    return convolve_backward(dy, None, filter, stride, padding, [True, False, False], x_shape=x_shape)[0]


@conv2d.gradient("filter", sensitive_to="place")
def conv2d_dfilter(x, dy, filter_shape, *, stride, padding):
    return convolve_backward(dy, x, None, stride, padding, [False, True, False], filter_shape=filter_shape)[1]


@conv2d.gradient("bias", sensitive_to="layout")
def conv2d_dbias(dy):
    return dy.sum((0, 2, 3))


@fused_backward(conv2d_dx, conv2d_dfilter, conv2d_dbias)
def conv2d_backward(x, filter, dy, *, stride, padding):
    return convolve_backward(dy, x, filter, stride, padding, [True, True, True])


@fused_backward(conv2d_dx, conv2d_dfilter)
def conv2d_backward_without_bias(x, filter, dy, *, stride, padding):
    return convolve_backward(dy, x, filter, stride, padding, [True, True, False])[:2]


@fused_backward(conv2d_dfilter, conv2d_dbias)
def conv2d_backward_of_parameters(x, dy, filter_shape, *, stride, padding):
    return convolve_backward(dy, x, None, stride, padding, [False, True, True], filter_shape=filter_shape)[1:]


conv2d_dbias.gradient_programs(dy=lambda ddbias, dy_shape: broadcast_to_like(reshape(ddbias, shape=(-1, 1, 1)), dy_shape))
