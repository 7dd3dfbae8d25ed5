"""Convolution and transposed convolution along one, two or three axes."""

from oarlock.errors import ShapeError
from oarlock.ir.shape_rules import count_windows, require_equal_numbers, require_same
from oarlock.ir.size import add, multiply
from oarlock.op.batch_normalization import expand_by_channel
from oarlock.op.manipulation import reshape
from oarlock.op.reduction import broadcast_to_like
from oarlock.op.trusted_operator import operator
from oarlock.registry import Case, GradCheck, Operator, Rejects, fused_backward
from oarlock.tensor.convolution import convolve, convolve_backward, convolve_transposed
from oarlock.tensor.normalization import sum_by_channel

__all__ = ["conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d"]

Steps = tuple[int, ...]


@operator(
    "x: float[n c! h w], filter: float[f! k kh kw], bias?: float[f] -> y: float[n f oh ow]",
    added_later=("dilation", "groups"),
    linear_in=("x", "filter"),
    sensitive_to="place",
    cases=[
        Case(x=[[[[1.0, 2.0], [3.0, 4.0]]]], filter=[[[[1.0, 0.0], [0.0, 1.0]]]], y=[[[[5.0]]]]),
        Case(x=[[[[1.0, 2.0], [3.0, 4.0]]]], filter=[[[[2.0]]]], bias=[0.5], stride=(2, 2), y=[[[[2.5]]]]),
        Case(x=[[[[1.0, 2.0]], [[3.0, 4.0]]]], filter=[[[[2.0]]], [[[3.0]]]], groups=2, y=[[[[2.0, 4.0]], [[9.0, 12.0]]]]),
        GradCheck(x=(2, 3, 5, 4), filter=(4, 3, 3, 2), bias=(4,), stride=(2, 1), padding=(1, 0)),
        GradCheck(x=(1, 2, 3, 3), filter=(2, 2, 3, 3), padding=(1, 1)),
        GradCheck(x=(2, 4, 5, 4), filter=(6, 2, 2, 2), bias=(6,), padding=(0, 1), dilation=(2, 1), groups=2),
        GradCheck(x=(2, 3, 4, 4), filter=(3, 1, 3, 3), padding=(1, 1), groups=3),
        Rejects("a window of 5 does not fit into 4", x=(1, 1, 4, 4), filter=(1, 1, 5, 5)),
        Rejects("a window of 5 does not fit into 4", x=(1, 1, 4, 4), filter=(1, 1, 3, 3), dilation=(2, 2)),
        Rejects("a window of 0 does not fit into 4", x=(1, 1, 4, 4), filter=(1, 1, 2, 0)),
        Rejects("x has size 0, but c must be at least 1", x=(1, 0, 4, 4), filter=(1, 0, 2, 2)),
        Rejects("dimension c is 3 in x but 2 in filter", x=(1, 3, 4, 4), filter=(1, 2, 2, 2)),
        Rejects("4 channels in 2 groups do not fit filters of 4", x=(1, 4, 4, 4), filter=(2, 4, 2, 2), groups=2),
        Rejects("3 filters do not make up 2 groups", x=(1, 4, 4, 4), filter=(3, 2, 2, 2), groups=2),
    ],
)
def conv2d(x, filter, bias=None, *, stride: Steps = (1, 1), padding: Steps = (0, 0), dilation: Steps = (1, 1), groups: int = 1):
    """2D convolution (cross-correlation, as usual in deep learning) of ``n`` images of ``c`` channels with ``f`` filters.

    With several ``groups``, each filter sees only the ``k = c / groups`` channels of its group.
    """
    return convolve(x, filter, bias, stride, padding, dilation, groups)


def _convolved(x, filter, bias=None, *, stride, padding, dilation, groups):
    (n, c, *sizes), (f, k, *windows) = x.shape, filter.shape
    _require_steps(len(sizes), stride=stride, padding=padding, dilation=dilation)
    _require_groups(groups, f, "filters")
    if groups == 1:
        require_same(c, k, "dimension c is {} in x but {} in filter", c, k)
    require_equal_numbers(c, multiply(k, groups), "{} channels in {} groups do not fit filters of {}", c, groups, k)
    return (n, f, *map(count_windows, sizes, windows, stride, padding, dilation))


def _require_steps(axes: int, **steps: Steps) -> None:
    """Raise ShapeError unless each setting has one number per axis."""
    if any(len(each) != axes for each in steps.values()):
        *names, last = steps
        numbers = {1: "one number", 2: "two numbers each, for height and width", 3: "three numbers each, for depth, height and width"}
        raise ShapeError(f"{', '.join(names)} and {last} must have {numbers[axes]}")


def _require_groups(groups: int, count, what: str) -> None:
    """Raise ShapeError unless `count` is a multiple of `groups`."""
    if groups < 1 or (isinstance(count, int) and count % groups):
        raise ShapeError(f"{count} {what} do not make up {groups} groups")


conv2d.infer_shape(_convolved)


@conv2d.gradient("x", sensitive_to="place")
def conv2d_dx(filter, dy, x_shape, *, stride, padding, dilation=(1, 1), groups=1):
    return convolve_backward(dy, None, filter, stride, padding, [True, False, False], dilation, groups, x_shape=x_shape)[0]


@conv2d.gradient("filter", sensitive_to="place")
def conv2d_dfilter(x, dy, filter_shape, *, stride, padding, dilation=(1, 1), groups=1):
    return convolve_backward(dy, x, None, stride, padding, [False, True, False], dilation, groups, filter_shape=filter_shape)[1]


@conv2d.gradient("bias", sensitive_to="layout")
def conv2d_dbias(dy):
    return dy.sum((0, 2, 3))


@fused_backward(conv2d_dx, conv2d_dfilter, conv2d_dbias)
def conv2d_backward(x, filter, dy, *, stride, padding, dilation=(1, 1), groups=1):
    return convolve_backward(dy, x, filter, stride, padding, [True, True, True], dilation, groups)


@fused_backward(conv2d_dx, conv2d_dfilter)
def conv2d_backward_without_bias(x, filter, dy, *, stride, padding, dilation=(1, 1), groups=1):
    return convolve_backward(dy, x, filter, stride, padding, [True, True, False], dilation, groups)[:2]


@fused_backward(conv2d_dfilter, conv2d_dbias)
def conv2d_backward_of_parameters(x, dy, filter_shape, *, stride, padding, dilation=(1, 1), groups=1):
    return convolve_backward(dy, x, None, stride, padding, [False, True, True], dilation, groups, filter_shape=filter_shape)[1:]


conv2d_dbias.gradient_programs(dy=lambda ddbias, dy_shape: broadcast_to_like(reshape(ddbias, shape=(-1, 1, 1)), dy_shape))


@operator(
    "x: float[n c! w], filter: float[f! k kw], bias?: float[f] -> y: float[n f ow]",
    linear_in=("x", "filter"),
    sensitive_to="place",
    cases=[
        Case(x=[[[1.0, 2.0, 4.0]]], filter=[[[1.0, 3.0]]], bias=[0.5], y=[[[7.5, 14.5]]]),
        GradCheck(x=(2, 4, 6), filter=(2, 2, 3), bias=(2,), stride=(2,), padding=(1,), dilation=(2,), groups=2),
        GradCheck(x=(2, 3, 25), filter=(3, 3, 2), bias=(3,)),
        Rejects("a window of 5 does not fit into 4", x=(1, 1, 4), filter=(1, 1, 5)),
        Rejects("stride, padding and dilation must have one number", x=(1, 1, 4), filter=(1, 1, 2), stride=(1, 1)),
    ],
)
def conv1d(x, filter, bias=None, *, stride: Steps = (1,), padding: Steps = (0,), dilation: Steps = (1,), groups: int = 1):
    """1D convolution, of signals; see `conv2d`."""
    return convolve(x, filter, bias, stride, padding, dilation, groups)


@operator(
    "x: float[n c! d h w], filter: float[f! k kd kh kw], bias?: float[f] -> y: float[n f od oh ow]",
    linear_in=("x", "filter"),
    sensitive_to="place",
    cases=[
        Case(x=[[[[[1.0, 2.0]]]]], filter=[[[[[2.0]]]]], bias=[0.5], y=[[[[[2.5, 4.5]]]]]),
        GradCheck(x=(2, 4, 3, 1, 4), filter=(2, 2, 2, 1, 2), bias=(2,), dilation=(2, 1, 3), groups=2),
        GradCheck(x=(2, 2, 3, 3, 4), filter=(3, 2, 2, 1, 1), bias=(3,), stride=(1, 2, 1), padding=(1, 0, 0)),
        Rejects("a window of 5 does not fit into 4", x=(1, 1, 4, 4, 4), filter=(1, 1, 1, 1, 5)),
        Rejects("must have three numbers each, for depth, height and width", x=(1, 1, 4, 4, 4), filter=(1, 1, 1, 1, 1), stride=(1, 1)),
    ],
)
def conv3d(x, filter, bias=None, *, stride: Steps = (1, 1, 1), padding: Steps = (0, 0, 0), dilation: Steps = (1, 1, 1), groups: int = 1):
    """3D convolution, of volumes or sequences of images; see `conv2d`."""
    return convolve(x, filter, bias, stride, padding, dilation, groups)


@operator(
    "x: float[n c! w], filter: float[c k! kw], bias?: float[f] -> y: float[n f ow]",
    linear_in=("x", "filter"),
    sensitive_to="place",
    cases=[
        Case(x=[[[1.0, 2.0]]], filter=[[[1.0, 3.0]]], bias=[0.5], y=[[[1.5, 5.5, 6.5]]]),
        GradCheck(x=(2, 4, 13), filter=(4, 1, 3), bias=(2,), stride=(2,), padding=(1,), output_padding=(1,), dilation=(2,), groups=2),
        Rejects("a transposed convolution of 1 by a window of 1 with padding 1 leaves -1", x=(1, 1, 1), filter=(1, 1, 1), padding=(1,)),
    ],
)
def conv_transpose1d(
    x,
    filter,
    bias=None,
    *,
    stride: Steps = (1,),
    padding: Steps = (0,),
    output_padding: Steps = (0,),
    groups: int = 1,
    dilation: Steps = (1,),
):
    """1D transposed convolution; see `conv_transpose2d`."""
    return convolve_transposed(x, filter, bias, stride, padding, output_padding, dilation, groups)


@operator(
    "x: float[n c! h w], filter: float[c k! kh kw], bias?: float[f] -> y: float[n f oh ow]",
    linear_in=("x", "filter"),
    sensitive_to="place",
    cases=[
        Case(x=[[[[1.0, 2.0]]]], filter=[[[[1.0], [3.0]]]], bias=[0.5], y=[[[[1.5, 2.5], [3.5, 6.5]]]]),
        GradCheck(x=(2, 4, 2, 3), filter=(4, 1, 3, 2), bias=(2,), stride=(2, 1), padding=(1, 0), dilation=(1, 2), groups=2),
        GradCheck(x=(1, 2, 2, 2), filter=(2, 3, 2, 2), stride=(2, 3), output_padding=(1, 2)),
        Rejects("4 channels do not make up 3 groups", x=(1, 4, 2, 2), filter=(4, 2, 2, 2), groups=3),
        Rejects("2 groups give 6 channels, not those of a bias of 3", x=(1, 4, 2, 2), filter=(4, 3, 2, 2), bias=(3,), groups=2),
        Rejects("output_padding 2 must be at least 0 and below stride 2 or dilation 1", x=(1, 1, 2, 2), filter=(1, 1, 2, 2),
                stride=(2, 2), output_padding=(2, 0)),
    ],
)  # fmt: skip
def conv_transpose2d(
    x,
    filter,
    bias=None,
    *,
    stride: Steps = (1, 1),
    padding: Steps = (0, 0),
    output_padding: Steps = (0, 0),
    groups: int = 1,
    dilation: Steps = (1, 1),
):
    """Transposed 2D convolution: each input element adds its multiple of the filter window to the output.

    With several ``groups``, the ``c / groups`` channels of each group produce ``k`` of the ``f = k groups`` output channels.
    ``output_padding`` adds positions at the end: with a stride, inputs of several sizes have convolutions of one size.
    """
    return convolve_transposed(x, filter, bias, stride, padding, output_padding, dilation, groups)


@operator(
    "x: float[n c! d h w], filter: float[c k! kd kh kw], bias?: float[f] -> y: float[n f od oh ow]",
    linear_in=("x", "filter"),
    sensitive_to="place",
    cases=[
        Case(x=[[[[[1.0, 2.0]]]]], filter=[[[[[2.0]]]]], bias=[0.5], y=[[[[[2.5, 4.5]]]]]),
        GradCheck(x=(1, 4, 2, 2, 1), filter=(4, 1, 1, 2, 2), bias=(2,), stride=(2, 1, 1), padding=(0, 1, 0), groups=2),
    ],
)
def conv_transpose3d(
    x,
    filter,
    bias=None,
    *,
    stride: Steps = (1, 1, 1),
    padding: Steps = (0, 0, 0),
    output_padding: Steps = (0, 0, 0),
    groups: int = 1,
    dilation: Steps = (1, 1, 1),
):
    """3D transposed convolution; see `conv_transpose2d`."""
    return convolve_transposed(x, filter, bias, stride, padding, output_padding, dilation, groups)


def _transposed(x, filter, bias=None, *, stride, padding, output_padding, dilation, groups):
    (n, c, *sizes), (_, k, *windows) = x.shape, filter.shape
    _require_steps(len(sizes), stride=stride, padding=padding, output_padding=output_padding, dilation=dilation)
    _require_groups(groups, c, "channels")
    f = multiply(k, groups)
    if bias is not None:
        require_equal_numbers(f, bias.shape[0], "{} groups give {} channels, not those of a bias of {}", groups, f, bias.shape[0])
    return (n, f, *map(_transposed_size, sizes, windows, stride, padding, output_padding, dilation))


def _transposed_size(length, window, stride: int, padding: int, output_padding: int, dilation: int):
    """Return ``(length - 1) stride + dilation (window - 1) + 1 + output_padding - 2 padding``. Raises ShapeError if it is not positive."""
    count_windows(2**32, 1, stride, padding, dilation)  # raises for invalid settings
    if not 0 <= output_padding < max(stride, dilation):
        raise ShapeError(f"output_padding {output_padding} must be at least 0 and below stride {stride} or dilation {dilation}")
    reach = add(multiply(add(length, -1), stride), multiply(add(window, -1), dilation))
    size = add(reach, 1 + output_padding - 2 * padding)
    if 0 in (length, window) or (isinstance(size, int) and size < 1):
        raise ShapeError(f"a transposed convolution of {length} by a window of {window} with padding {padding} leaves {size}")
    return size


def _declare_gradients(forward: Operator) -> None:
    """Declare the gradients of a convolution. It is linear in x and in the filter, so second-order gradients follow."""

    def dx(filter, dy, x_shape, *, stride, padding, dilation, groups):
        return convolve_backward(dy, None, filter, stride, padding, [True, False, False], dilation, groups, x_shape=x_shape)[0]

    def dfilter(x, dy, filter_shape, *, stride, padding, dilation, groups):
        return convolve_backward(dy, x, None, stride, padding, [False, True, False], dilation, groups, filter_shape=filter_shape)[1]

    forward.infer_shape(_convolved)
    _declare(forward, dx, dfilter)


def _declare_gradients_of_transpose(forward: Operator) -> None:
    def dx(filter, dy, x_shape, *, stride, padding, output_padding, dilation, groups):
        wanted = [True, False, False]
        more = {"output_padding": output_padding, "x_shape": x_shape}
        return convolve_backward(dy, None, filter, stride, padding, wanted, dilation, groups, **more)[0]

    def dfilter(x, dy, filter_shape, *, stride, padding, output_padding, dilation, groups):
        wanted = [False, True, False]
        more = {"output_padding": output_padding, "filter_shape": filter_shape}
        return convolve_backward(dy, x, None, stride, padding, wanted, dilation, groups, **more)[1]

    forward.infer_shape(_transposed)
    _declare(forward, dx, dfilter)


def _declare(forward: Operator, dx, dfilter) -> None:
    def dbias(dy):
        return sum_by_channel(dy)

    def dbias_of_signals(dy):
        return sum_by_channel(dy.contiguous())  # so that sums are rounded in the same way for every layout

    by_layout = len(forward.signature.inputs[0].axes or ()) > 3
    for slot, kernel in (("x", dx), ("filter", dfilter), ("bias", dbias if by_layout else dbias_of_signals)):
        kernel.__name__ = kernel.__qualname__ = f"{forward.type}_d{slot}"
        rounding = "place" if slot != "bias" else "layout" if by_layout else None
        gradient = forward.gradient(slot, sensitive_to=rounding)(kernel)
    gradient.gradient_programs(dy=lambda ddbias, dy_shape: expand_by_channel(ddbias, dy_shape))


for _forward in (conv1d, conv3d):
    _declare_gradients(_forward)
for _forward in (conv_transpose1d, conv_transpose2d, conv_transpose3d):
    _declare_gradients_of_transpose(_forward)


conv_transpose1d.declare_edges(
    infinite="PyTorch may choose an algorithm that adds up products in another order: infinity minus infinity is NaN"
)
