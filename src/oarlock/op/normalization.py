"""Normalization along the last axis: values of mean 0 and variance 1 in each row."""

import torch

from oarlock.op.elementwise import divide, multiply, neg, subtract
from oarlock.op.matrix import linear_dbias
from oarlock.op.reduction import mean as average
from oarlock.op.reduction import mean_dx, reduce_sum, sum_to_shape
from oarlock.op.trusted import operator
from oarlock.op.unary import square
from oarlock.registry import Case, fused_backward
from oarlock.tensor.normalization import row_gradients

__all__ = ["layer_norm", "layer_norm_grad", "layer_norm_scale_grad"]


@operator(
    "x: float[*b k], scale?: float[k], bias?: float[k] -> y: float[*b k], mean: float[*b 1], rstd: float[*b 1]",
    intermediate=("mean", "rstd"),
    cases=[
        Case(x=[[1.0, 3.0], [0.0, 4.0]], epsilon=0.0, y=[[-1.0, 1.0], [-1.0, 1.0]], mean=[[2.0], [2.0]], rstd=[[1.0], [0.5]]),
        Case(x=[1.0, 3.0], scale=[10.0, 100.0], bias=[1.0, 2.0], epsilon=0.0, y=[-9.0, 102.0], mean=[2.0], rstd=[1.0]),
    ],
)
def layer_norm(x, scale=None, bias=None, *, epsilon: float = 1e-5):
    """``y = (x - mean) * rstd * scale + bias``, where ``rstd = 1 / sqrt(variance + epsilon)``, both along the last axis.

    Ba, Kiros and Hinton, 2016.
    """
    return torch.native_layer_norm(x, x.shape[-1:], scale, bias, epsilon)


@layer_norm.gradient_program("x")
def layer_norm_dx(x, mean, rstd, dy, scale=None, dmean=None, drstd=None):
    """The slope, and the ways through the statistics, which only a gradient of a gradient takes."""
    dx = layer_norm_grad(x, mean, rstd, dy, scale)
    if dmean is not None:
        dx = dx + mean_dx(dmean, x, axis=-1, keepdim=True)
    if drstd is not None:
        dx = dx - multiply(mean_dx(multiply(drstd, multiply(rstd, square(rstd))), x, axis=-1, keepdim=True), subtract(x, mean))
    return dx


layer_norm.gradient_programs(
    scale=lambda x, mean, rstd, dy, dmean=None, drstd=None: layer_norm_scale_grad(x, mean, rstd, dy),
    bias=lambda dy, dmean=None, drstd=None: linear_dbias(dy),
)


@operator(
    "x: float[*b k], mean: float[*b 1], rstd: float[*b 1], given: float[*b k] -> slope: sum float[k]",
    cases=[Case(x=[[1.0, 3.0], [0.0, 4.0]], mean=[[2.0], [2.0]], rstd=[[1.0], [0.5]], given=[[1.0, 5.0], [2.0, 1.0]], slope=[-3.0, 6.0])],
)
def layer_norm_scale_grad(x, mean, rstd, given):
    """The gradient at the scale, from a gradient ``given`` at the output of ``layer_norm``.

    It is the sum over the rows of ``given * (x - mean) * rstd``.
    """
    return row_gradients(given, x, mean, rstd, None, [False, True, False])[1]


layer_norm_scale_grad.gradient_programs(
    x=lambda rstd, given, dslope: multiply(multiply(given, dslope), rstd),
    mean=lambda rstd, given, dslope: neg(reduce_sum(multiply(multiply(given, dslope), rstd), axis=-1, keepdim=True)),
    rstd=lambda x, mean, given, dslope: reduce_sum(multiply(multiply(given, dslope), subtract(x, mean)), axis=-1, keepdim=True),
    given=lambda x, mean, rstd, dslope: multiply(multiply(subtract(x, mean), rstd), dslope),
)


@operator(
    "x: float[*b k], mean: float[*b 1], rstd: float[*b 1], given: float[*b k], scale?: float[k] -> slope: float[*b k]",
    cases=[
        Case(x=[[1.0, 3.0]], mean=[[2.0]], rstd=[[1.0]], given=[[1.0, 5.0]], slope=[[0.0, 0.0]]),
        Case(x=[[2.0, 2.0]], mean=[[2.0]], rstd=[[0.5]], given=[[1.0, 5.0]], scale=[1.0, 2.0], slope=[[-2.25, 2.25]]),
    ],
)
def layer_norm_grad(x, mean, rstd, given, scale=None):
    """The gradient at x, from a gradient ``given`` at the output of ``layer_norm``, for statistics that are x's.

    With ``g = given * scale`` and ``xhat = (x - mean) * rstd``: ``rstd * (g - mean(g) - xhat * mean(g * xhat))``.
    """
    return row_gradients(given, x, mean, rstd, scale, [True, False, False])[0]


@layer_norm_grad.gradient_program("given")
def layer_norm_grad_dgiven(x, mean, rstd, dslope, scale=None):
    """The slope is symmetric in ``g`` and what it is contracted with."""
    projected = layer_norm_grad(x, mean, rstd, dslope)
    return projected if scale is None else multiply(projected, scale)


@layer_norm_grad.gradient_program("scale")
def layer_norm_grad_dscale(x, mean, rstd, given, dslope, scale_shape):
    return sum_to_shape(multiply(given, layer_norm_grad(x, mean, rstd, dslope)), scale_shape)


def _slope_dxhat(x, mean, rstd, given, scale, dslope):
    """The gradient of the slope with respect to ``xhat``."""
    g = given if scale is None else multiply(given, scale)
    xhat = multiply(subtract(x, mean), rstd)
    along_g, along_dslope = (average(multiply(item, xhat), axis=-1, keepdim=True) for item in (g, dslope))
    return neg(multiply(rstd, multiply(dslope, along_g) + multiply(g, along_dslope)))


layer_norm_grad.gradient_programs(
    x=lambda x, mean, rstd, given, dslope, scale=None: multiply(_slope_dxhat(x, mean, rstd, given, scale, dslope), rstd)
)


@layer_norm_grad.gradient_program("mean")
def layer_norm_grad_dmean(x, mean, rstd, given, dslope, scale=None):
    return neg(reduce_sum(multiply(_slope_dxhat(x, mean, rstd, given, scale, dslope), rstd), axis=-1, keepdim=True))


@layer_norm_grad.gradient_program("rstd")
def layer_norm_grad_drstd(x, mean, rstd, given, slope, dslope, scale=None):
    dxhat = _slope_dxhat(x, mean, rstd, given, scale, dslope)
    direct = divide(reduce_sum(multiply(dslope, slope), axis=-1, keepdim=True), rstd)
    return direct + reduce_sum(multiply(dxhat, subtract(x, mean)), axis=-1, keepdim=True)


@fused_backward(layer_norm_grad, layer_norm_scale_grad, linear_dbias, names={"dout": "given"})
def layer_norm_backward(x, mean, rstd, given, scale=None):
    """The slopes at x and at the scale, and that at the bias: a sum over rows, as is that of any bias."""
    return row_gradients(given, x, mean, rstd, scale, [True, True, True])


@fused_backward(layer_norm_scale_grad, linear_dbias, names={"dout": "given"})
def layer_norm_backward_of_parameters(x, mean, rstd, given):
    return row_gradients(given, x, mean, rstd, None, [False, True, True])[1:]
