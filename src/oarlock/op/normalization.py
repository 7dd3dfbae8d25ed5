"""Normalization along the last axis: values of mean 0 and variance 1 in each row."""

from collections.abc import Sequence

import torch

from oarlock.op.elementwise import divide, multiply, negative, subtract
from oarlock.op.matrix import linear_dbias
from oarlock.op.reduction import mean as average
from oarlock.op.reduction import mean_dx, reduce_sum, reduce_to
from oarlock.op.trusted import operator
from oarlock.op.unary import square
from oarlock.registry import Case, GradCheck, Rejects, joint

__all__ = ["layer_norm", "layer_norm_gain_slope", "layer_norm_slope"]

_layer_norm_backward = torch.ops.aten.native_layer_norm_backward.default

_ROWS = [[0.5, -1.0, 2.0], [0.1, 0.7, -0.4]]


@operator(
    "x: float[*b k], gain?: float[k], offset?: float[k] -> y: float[*b k], mean: float[*b 1], rstd: float[*b 1]",
    intermediate=("mean", "rstd"),
    cases=[
        Case(x=[[1.0, 3.0], [0.0, 4.0]], epsilon=0.0, y=[[-1.0, 1.0], [-1.0, 1.0]], mean=[[2.0], [2.0]], rstd=[[1.0], [0.5]]),
        Case(x=[1.0, 3.0], gain=[10.0, 100.0], offset=[1.0, 2.0], epsilon=0.0, y=[-9.0, 102.0], mean=[2.0], rstd=[1.0]),
        GradCheck(x=_ROWS, gain=(3,), offset=(3,)),
        GradCheck(x=[_ROWS, [[1.5, 0.2, 0.4], [-0.3, 0.9, 0.6]]]),
        Rejects("dimension k is 3 in x but 2 in gain", x=(2, 3), gain=(2,)),
    ],
)
def layer_norm(x, gain=None, offset=None, *, epsilon: float = 1e-5):
    """``y = (x - mean) * rstd * gain + offset``, where ``rstd = 1 / sqrt(variance + epsilon)``, both along the last axis.

    Ba, Kiros and Hinton, 2016.
    """
    return torch.native_layer_norm(x, x.shape[-1:], gain, offset, epsilon)


@layer_norm.gradient_program("x")
def layer_norm_dx(x, mean, rstd, dy, gain=None, dmean=None, drstd=None):
    """The slope, and the ways through the statistics, which only a gradient of a gradient takes."""
    dx = layer_norm_slope(x, mean, rstd, dy, gain)
    if dmean is not None:
        dx = dx + mean_dx(dmean, x, axis=-1, keep=True)
    if drstd is not None:
        dx = dx - multiply(mean_dx(multiply(drstd, multiply(rstd, square(rstd))), x, axis=-1, keep=True), subtract(x, mean))
    return dx


@layer_norm.gradient_program("gain")
def layer_norm_dgain(x, mean, rstd, dy, dmean=None, drstd=None):
    return layer_norm_gain_slope(x, mean, rstd, dy)


@layer_norm.gradient_program("offset")
def layer_norm_doffset(dy, dmean=None, drstd=None):
    return linear_dbias(dy)


def _backward(given, x, mean, rstd, gain, wanted: Sequence[bool]):
    """PyTorch's own, which takes the statistics to lie in memory without gaps; of an offset it reads the shape, which is the gain's.

    A list of sizes costs less to hand to it than a part of a shape.
    """
    return _layer_norm_backward(given, x, [x.size(-1)], mean.contiguous(), rstd.contiguous(), gain, gain, wanted)


@operator(
    "x: float[*b k], mean: float[*b 1], rstd: float[*b 1], given: float[*b k] -> slope: sum float[k]",
    cases=[
        Case(x=[[1.0, 3.0], [0.0, 4.0]], mean=[[2.0], [2.0]], rstd=[[1.0], [0.5]], given=[[1.0, 5.0], [2.0, 1.0]], slope=[-3.0, 6.0]),
        GradCheck(x=_ROWS, mean=[[0.5], [0.2]], rstd=[[0.8], [1.7]], given=(2, 3)),
    ],
)
def layer_norm_gain_slope(x, mean, rstd, given):
    """The gradient at the gain, from a gradient ``given`` at the output of ``layer_norm``.

    It is the sum over the rows of ``given * (x - mean) * rstd``.
    """
    unread = x.new_empty(x.shape[-1])
    return _backward(given, x, mean, rstd, unread, [False, True, False])[1]


@layer_norm_gain_slope.gradient_program("x")
def layer_norm_gain_slope_dx(rstd, given, dslope):
    return multiply(multiply(given, dslope), rstd)


@layer_norm_gain_slope.gradient_program("mean")
def layer_norm_gain_slope_dmean(rstd, given, dslope):
    return negative(reduce_sum(multiply(multiply(given, dslope), rstd), axis=-1, keep=True))


@layer_norm_gain_slope.gradient_program("rstd")
def layer_norm_gain_slope_drstd(x, mean, given, dslope):
    return reduce_sum(multiply(multiply(given, dslope), subtract(x, mean)), axis=-1, keep=True)


@layer_norm_gain_slope.gradient_program("given")
def layer_norm_gain_slope_dgiven(x, mean, rstd, dslope):
    return multiply(multiply(subtract(x, mean), rstd), dslope)


@operator(
    "x: float[*b k], mean: float[*b 1], rstd: float[*b 1], given: float[*b k], gain?: float[k] -> slope: float[*b k]",
    cases=[
        Case(x=[[1.0, 3.0]], mean=[[2.0]], rstd=[[1.0]], given=[[1.0, 5.0]], slope=[[0.0, 0.0]]),
        Case(x=[[2.0, 2.0]], mean=[[2.0]], rstd=[[0.5]], given=[[1.0, 5.0]], gain=[1.0, 2.0], slope=[[-2.25, 2.25]]),
        GradCheck(x=_ROWS, mean=[[0.5], [0.2]], rstd=[[0.8], [1.7]], given=(2, 3), gain=(3,)),
        GradCheck(x=_ROWS, mean=[[0.5], [0.2]], rstd=[[0.8], [1.7]], given=(2, 3)),
    ],
)
def layer_norm_slope(x, mean, rstd, given, gain=None):
    """The gradient at x, from a gradient ``given`` at the output of ``layer_norm``, for statistics that are x's.

    With ``g = given * gain`` and ``xhat = (x - mean) * rstd``: ``rstd * (g - mean(g) - xhat * mean(g * xhat))``.
    """
    return _backward(given, x, mean, rstd, gain, [True, False, False])[0]


@layer_norm_slope.gradient_program("given")
def layer_norm_slope_dgiven(x, mean, rstd, dslope, gain=None):
    """The slope is symmetric in ``g`` and what it is contracted with."""
    projected = layer_norm_slope(x, mean, rstd, dslope)
    return projected if gain is None else multiply(projected, gain)


@layer_norm_slope.gradient_program("gain")
def layer_norm_slope_dgain(x, mean, rstd, given, dslope, gain_shape):
    return reduce_to(multiply(given, layer_norm_slope(x, mean, rstd, dslope)), gain_shape)


def _slope_dxhat(x, mean, rstd, given, gain, dslope):
    """The gradient of the slope with respect to ``xhat``."""
    g = given if gain is None else multiply(given, gain)
    xhat = multiply(subtract(x, mean), rstd)
    along_g, along_dslope = (average(multiply(item, xhat), axis=-1, keep=True) for item in (g, dslope))
    return negative(multiply(rstd, multiply(dslope, along_g) + multiply(g, along_dslope)))


@layer_norm_slope.gradient_program("x")
def layer_norm_slope_dx(x, mean, rstd, given, dslope, gain=None):
    return multiply(_slope_dxhat(x, mean, rstd, given, gain, dslope), rstd)


@layer_norm_slope.gradient_program("mean")
def layer_norm_slope_dmean(x, mean, rstd, given, dslope, gain=None):
    return negative(reduce_sum(multiply(_slope_dxhat(x, mean, rstd, given, gain, dslope), rstd), axis=-1, keep=True))


@layer_norm_slope.gradient_program("rstd")
def layer_norm_slope_drstd(x, mean, rstd, given, slope, dslope, gain=None):
    dxhat = _slope_dxhat(x, mean, rstd, given, gain, dslope)
    direct = divide(reduce_sum(multiply(dslope, slope), axis=-1, keep=True), rstd)
    return direct + reduce_sum(multiply(dxhat, subtract(x, mean)), axis=-1, keep=True)


@joint(layer_norm_slope, layer_norm_gain_slope, linear_dbias, names={"dout": "given"})
def layer_norm_backward(x, mean, rstd, given, gain=None):
    """The slopes at x and at the gain, and that at the offset: a sum over rows, as is that of any bias."""
    return _backward(given, x, mean, rstd, x.new_ones(x.shape[-1]) if gain is None else gain, [True, True, True])


@joint(layer_norm_gain_slope, linear_dbias, names={"dout": "given"})
def layer_norm_backward_of_parameters(x, mean, rstd, given):
    unread = x.new_empty(x.shape[-1])
    return _backward(given, x, mean, rstd, unread, [False, True, True])[1:]
