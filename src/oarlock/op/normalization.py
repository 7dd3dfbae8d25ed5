"""Layer normalization: mean 0 and variance 1 along the last axis."""

import torch

from oarlock.op.elementwise import divide, multiply, neg, subtract
from oarlock.op.matrix import linear_dbias
from oarlock.op.reduction import mean as average
from oarlock.op.reduction import mean_dx, reduce_sum, sum_to_shape
from oarlock.op.trusted_operator import operator
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
    """``y = (x - mean) * rstd * scale + bias`` with ``rstd = 1 / sqrt(variance + epsilon)``, along the last axis.

    Ba, Kiros and Hinton, 2016.
    """
    return torch.native_layer_norm(x, x.shape[-1:], scale, bias, epsilon)


@layer_norm.gradient_program("x")
def layer_norm_dx(x, mean, rstd, dy, scale=None, dmean=None, drstd=None):
    """The gradient with respect to ``x``; the paths through the statistics occur only in second-order gradients."""
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
    "x: float[*b k], mean: float[*b 1], rstd: float[*b 1], dy: float[*b k] -> dscale: sum float[k]",
    cases=[Case(x=[[1.0, 3.0], [0.0, 4.0]], mean=[[2.0], [2.0]], rstd=[[1.0], [0.5]], dy=[[1.0, 5.0], [2.0, 1.0]], dscale=[-3.0, 6.0])],
)
def layer_norm_scale_grad(x, mean, rstd, dy):
    """The gradient of `layer_norm` with respect to the scale: the sum of ``dy * (x - mean) * rstd`` over the rows."""
    return row_gradients(dy, x, mean, rstd, None, [False, True, False])[1]


layer_norm_scale_grad.gradient_programs(
    x=lambda rstd, dy, ddscale: multiply(multiply(dy, ddscale), rstd),
    mean=lambda rstd, dy, ddscale: neg(reduce_sum(multiply(multiply(dy, ddscale), rstd), axis=-1, keepdim=True)),
    rstd=lambda x, mean, dy, ddscale: reduce_sum(multiply(multiply(dy, ddscale), subtract(x, mean)), axis=-1, keepdim=True),
    dy=lambda x, mean, rstd, ddscale: multiply(multiply(subtract(x, mean), rstd), ddscale),
)


@operator(
    "x: float[*b k], mean: float[*b 1], rstd: float[*b 1], dy: float[*b k], scale?: float[k] -> dx: float[*b k]",
    cases=[
        Case(x=[[1.0, 3.0]], mean=[[2.0]], rstd=[[1.0]], dy=[[1.0, 5.0]], dx=[[0.0, 0.0]]),
        Case(x=[[2.0, 2.0]], mean=[[2.0]], rstd=[[0.5]], dy=[[1.0, 5.0]], scale=[1.0, 2.0], dx=[[-2.25, 2.25]]),
    ],
)
def layer_norm_grad(x, mean, rstd, dy, scale=None):
    """The gradient of `layer_norm` with respect to ``x``, whose statistics are ``mean`` and ``rstd``.

    With ``g = dy * scale`` and ``xhat = (x - mean) * rstd``: ``rstd * (g - mean(g) - xhat * mean(g * xhat))``.
    """
    return row_gradients(dy, x, mean, rstd, scale, [True, False, False])[0]


@layer_norm_grad.gradient_program("dy")
def layer_norm_grad_ddy(x, mean, rstd, ddx, scale=None):
    """The second-order gradient with respect to ``dy``: the gradient is symmetric in ``g`` and the direction."""
    projected = layer_norm_grad(x, mean, rstd, ddx)
    return projected if scale is None else multiply(projected, scale)


@layer_norm_grad.gradient_program("scale")
def layer_norm_grad_dscale(x, mean, rstd, dy, ddx, scale_shape):
    return sum_to_shape(multiply(dy, layer_norm_grad(x, mean, rstd, ddx)), scale_shape)


def _dxhat(x, mean, rstd, dy, scale, ddx):
    """Return the second-order gradient with respect to ``xhat``."""
    g = dy if scale is None else multiply(dy, scale)
    xhat = multiply(subtract(x, mean), rstd)
    along_g, along_ddx = (average(multiply(item, xhat), axis=-1, keepdim=True) for item in (g, ddx))
    return neg(multiply(rstd, multiply(ddx, along_g) + multiply(g, along_ddx)))


layer_norm_grad.gradient_programs(x=lambda x, mean, rstd, dy, ddx, scale=None: multiply(_dxhat(x, mean, rstd, dy, scale, ddx), rstd))


@layer_norm_grad.gradient_program("mean")
def layer_norm_grad_dmean(x, mean, rstd, dy, ddx, scale=None):
    return neg(reduce_sum(multiply(_dxhat(x, mean, rstd, dy, scale, ddx), rstd), axis=-1, keepdim=True))


@layer_norm_grad.gradient_program("rstd")
def layer_norm_grad_drstd(x, mean, rstd, dy, dx, ddx, scale=None):
    dxhat = _dxhat(x, mean, rstd, dy, scale, ddx)
    direct = divide(reduce_sum(multiply(ddx, dx), axis=-1, keepdim=True), rstd)
    return direct + reduce_sum(multiply(dxhat, subtract(x, mean)), axis=-1, keepdim=True)


@fused_backward(layer_norm_grad, layer_norm_scale_grad, linear_dbias, names={"dout": "dy"})
def layer_norm_backward(x, mean, rstd, dy, scale=None):
    """The gradients with respect to x, the scale and the bias; the latter is the sum of ``dy`` over the rows."""
    return row_gradients(dy, x, mean, rstd, scale, [True, True, True])


@fused_backward(layer_norm_scale_grad, linear_dbias, names={"dout": "dy"})
def layer_norm_backward_of_parameters(x, mean, rstd, dy):
    return row_gradients(dy, x, mean, rstd, None, [False, True, True])[1:]
