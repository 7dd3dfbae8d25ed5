"""RMS normalization: values divided by their root mean square along the last axis."""

import torch

from oarlock.op.elementwise import multiply, neg
from oarlock.op.matrix import linear_dbias
from oarlock.op.reduction import mean as average
from oarlock.op.reduction import mean_dx, reduce_sum
from oarlock.op.trusted_operator import operator
from oarlock.op.unary import square
from oarlock.registry import Case, GradCheck, fused_backward

__all__ = ["rms_norm", "rms_norm_grad", "rms_norm_scale_grad"]


@operator(
    "x: float[*b k], scale?: float[k] -> y: float[*b k], rstd: float[*b 1]",
    intermediate=("rstd",),
    cases=[
        Case(x=[[3.0, 4.0], [0.0, 1.0]], epsilon=0.0, y=[[3 / 12.5**0.5, 4 / 12.5**0.5], [0.0, 2**0.5]], rstd=[[12.5**-0.5], [2**0.5]]),
        Case(x=[1.0, 1.0], scale=[10.0, 100.0], epsilon=3.0, y=[5.0, 50.0], rstd=[0.5]),
        GradCheck(),
    ],
)
def rms_norm(x, scale=None, *, epsilon: float = 1e-5):
    """``y = x * rstd * scale`` with ``rstd = 1 / sqrt(mean(x**2) + epsilon)``, along the last axis.

    Zhang and Sennrich, 2019.
    """
    along, share = _sums(x * x)
    rstd = torch.rsub(along, epsilon, alpha=-share).rsqrt_()
    y = x * rstd
    return y if scale is None else y.mul_(scale), rstd


@rms_norm.gradient_program("x")
def rms_norm_dx(x, rstd, dy, scale=None, drstd=None):
    """The gradient with respect to ``x``; the path through the statistic occurs only in second-order gradients."""
    dx = rms_norm_grad(x, rstd, dy, scale)
    if drstd is None:
        return dx
    return dx - multiply(mean_dx(multiply(drstd, multiply(rstd, square(rstd))), x, axis=-1, keepdim=True), x)


rms_norm.gradient_programs(scale=lambda x, rstd, dy, drstd=None: rms_norm_scale_grad(x, rstd, dy))


@operator(
    "x: float[*b k], rstd: float[*b 1], dy: float[*b k] -> dscale: sum float[k]",
    cases=[Case(x=[[1.0, 3.0], [0.0, 4.0]], rstd=[[1.0], [0.5]], dy=[[1.0, 5.0], [2.0, 1.0]], dscale=[1.0, 17.0])],
)
def rms_norm_scale_grad(x, rstd, dy):
    """The gradient of `rms_norm` with respect to the scale: the sum of ``dy * x * rstd`` over the rows."""
    return _sum_of_rows(dy * (x * rstd))


rms_norm_scale_grad.gradient_programs(
    x=lambda rstd, dy, ddscale: multiply(multiply(dy, ddscale), rstd),
    rstd=lambda x, dy, ddscale: reduce_sum(multiply(multiply(dy, ddscale), x), axis=-1, keepdim=True),
    dy=lambda x, rstd, ddscale: multiply(multiply(x, rstd), ddscale),
)


@operator(
    "x: float[*b k], rstd: float[*b 1], dy: float[*b k], scale?: float[k] -> dx: float[*b k]",
    sensitive_to="place",
    cases=[
        Case(x=[[1.0, 3.0]], rstd=[[0.5]], dy=[[1.0, 5.0]], dx=[[-0.5, -0.5]]),
        Case(x=[[1.0, 3.0]], rstd=[[0.5]], dy=[[1.0, 5.0]], scale=[2.0, 0.0], dx=[[0.875, -0.375]]),
    ],
)
def rms_norm_grad(x, rstd, dy, scale=None):
    """The gradient of `rms_norm` with respect to ``x``, whose statistic is ``rstd``.

    With ``g = dy * scale``: ``rstd * (g - x * rstd**2 * mean(g * x))``.
    """
    normal = x * rstd
    return _projected(dy, dy * normal, normal, rstd, scale)


def _projected(dy, of_scale, normal, rstd, scale):
    """Return ``rstd * (g - normal * mean(g * normal))``, with ``g = dy * scale``, ``normal = x * rstd``, ``of_scale = dy * normal``."""
    along, share = _sums(of_scale, scale)
    return torch.addcmul(dy if scale is None else dy * scale, normal, along, value=-share).mul_(rstd)


def _sums(x, scale=None):
    """Return a number for each row of ``x * scale`` and the factor that makes it the mean: the sum, if the dtype can hold it."""
    k = x.shape[-1]
    if x.element_size() < 4:  # sums may overflow
        return (x if scale is None else x * scale).mean(-1, keepdim=True), 1.0
    rows = torch.Size(x.shape[:-1])
    sums = x.sum(-1, keepdim=True) if scale is None else torch.mv(x.reshape(rows.numel(), k), scale).view(*rows, 1)
    return sums, 1 / max(1, k)


def _sum_of_rows(x):
    """Return the sum over the rows; zeros if there are none."""
    return x.reshape(torch.Size(x.shape[:-1]).numel(), x.shape[-1]).sum(0)


def _weighed(dy, scale):
    return dy if scale is None else multiply(dy, scale)


@rms_norm_grad.gradient_program("dy")
def rms_norm_grad_ddy(x, rstd, ddx, scale=None):
    """The second-order gradient with respect to ``dy``: the gradient is symmetric in ``g`` and the direction."""
    return _weighed(rms_norm_grad(x, rstd, ddx), scale)


rms_norm_grad.gradient_programs(scale=lambda x, rstd, dy, ddx: linear_dbias(multiply(dy, rms_norm_grad(x, rstd, ddx))))


@rms_norm_grad.gradient_program("x")
def rms_norm_grad_dx(x, rstd, dy, ddx, scale=None):
    g = _weighed(dy, scale)
    along_g, along_ddx = (average(multiply(each, x), axis=-1, keepdim=True) for each in (g, ddx))
    return neg(multiply(multiply(rstd, square(rstd)), multiply(g, along_ddx) + multiply(ddx, along_g)))


@rms_norm_grad.gradient_program("rstd")
def rms_norm_grad_drstd(x, rstd, dy, ddx, scale=None):
    g = _weighed(dy, scale)
    along_g = average(multiply(g, x), axis=-1, keepdim=True)
    through = multiply(multiply(square(rstd), along_g), reduce_sum(multiply(ddx, x), axis=-1, keepdim=True))
    return reduce_sum(multiply(ddx, g), axis=-1, keepdim=True) - 3.0 * through


@fused_backward(rms_norm_grad, rms_norm_scale_grad)
def rms_norm_backward(x, rstd, dy, scale=None):
    """Both gradients, with little extra memory."""
    normal = x * rstd
    of_scale = dy * normal
    return _projected(dy, of_scale, normal, rstd, scale), _sum_of_rows(of_scale)


rms_norm_grad.declare_edges(
    infinite="products and sums are in another order than PyTorch's: infinity times 0, and infinity minus infinity, are NaN"
)
