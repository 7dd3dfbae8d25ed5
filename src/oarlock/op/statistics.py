"""Products, variances and log-sum-exps over axes. Sums and means are in `op/reduction.py`."""

import math

import torch

from oarlock.ir.shape_rules import require_axes
from oarlock.op.choice import where
from oarlock.op.comparison import equal
from oarlock.op.complex_parts import conjugated
from oarlock.op.cumulative import cumprod
from oarlock.op.elementwise import multiply, subtract
from oarlock.op.reduction import count_of, reduce_sum_dx, with_axes
from oarlock.op.trusted_operator import operator
from oarlock.op.unary import exp, number_like
from oarlock.registry import Case, GradCheck

__all__ = ["logsumexp", "reduce_prod", "variance"]


@operator(
    "x: number[...s] -> y: number[...s-{axis}]",
    axis_attribute="axis",
    cases=[
        Case(x=[[1.0, 2.0], [3.0, 4.0]], y=24.0),
        Case(x=[[1, 2], [3, 4]], axis=0, keepdim=True, y=[[3, 8]]),
        Case(x=[[[1.0, 2.0], [3.0, 4.0]]], axis=(1, -1), y=[24.0]),
        Case(x=[1.0, 2.0], keepdim=True, y=[2.0]),
        GradCheck(),
        GradCheck(x=(2, 3, 2), axis=(2, 0)),
        GradCheck(x=[[1.0, 0.0, 2.0], [0.0, 3.0, 0.0], [2.0, 0.5, 1.0]], axis=1),
        GradCheck(x=[[1.0, 0.0, 2.0], [3.0, 2.0, -1.0]], keepdim=True),
    ],
)
def reduce_prod(x, *, axis: int | tuple[int, ...] | None = None, keepdim: bool = False):
    """The product over one axis, several, or all if ``axis`` is None; 1 if there are no elements. ``keepdim`` keeps axes with size 1."""
    if x.ndim == 0:
        return torch.prod(x, dtype=x.dtype)
    for each in reversed(require_axes(x.shape, axis)):
        x = torch.prod(x, each, keepdim, dtype=x.dtype)
    return x


@reduce_prod.gradient_program("x")
def reduce_prod_dx(x, dy, *, axis=None, keepdim):
    """``dy`` times the product of all other elements, without a division: cumulative products from both ends of each axis."""
    dx, product = reduce_sum_dx(dy, x, axis=axis, keepdim=keepdim), x
    for each in require_axes(x.shape, axis):
        in_front, behind = (cumprod(product, axis=each, exclusive=True, reverse=reverse) for reverse in (False, True))
        dx = multiply(dx, conjugated(multiply(in_front, behind)))
        product = reduce_prod(product, axis=each, keepdim=True)
    return dx


@operator(
    "x: float[...s] -> y: float[...s-{axis}]",
    axis_attribute="axis",
    cases=[
        Case(x=[[1.0, 3.0], [2.0, 6.0]], axis=1, y=[2.0, 8.0]),
        Case(x=[[1.0, 3.0], [2.0, 6.0]], axis=-1, correction=0.0, keepdim=True, y=[[1.0], [4.0]]),
        Case(x=[[[1.0, 3.0], [5.0, 7.0]]], axis=(1, 2), correction=0.0, y=[5.0]),
        GradCheck(x=(2, 3)),
        GradCheck(x=(2, 3, 2), axis=(2, 0), correction=0.5),
        GradCheck(x=(2, 3), axis=-1, keepdim=True),
    ],
)
def variance(x, *, axis: int | tuple[int, ...] | None = None, keepdim: bool = False, correction: float = 1.0):
    """The variance over axes as in `mean`: squared deviations from the mean, divided by the number of elements minus ``correction``."""
    if not x.numel() or count_of(x.shape, axis) <= correction:  # PyTorch warns there; the result is the same
        return torch.mean(torch.square(_centred(x, axis)), axis, keepdim) * math.inf
    return torch.var(x, axis, correction=correction, keepdim=keepdim)


def _weight(x_shape, axis, correction: float) -> float:
    """Return 2 divided by the divisor of the variance; infinity if that is not positive."""
    left = count_of(x_shape, axis) - correction
    return 2.0 / left if left > 0.0 else math.inf


def _centred(x, axis):
    """Return ``x`` minus its mean over the axes."""
    return x - torch.mean(x, axis, keepdim=True)


@variance.gradient("x", axis_attribute="axis")
def variance_dx(x, dy, *, axis=None, keepdim, correction):
    return with_axes(dy, axis, keepdim) * _centred(x, axis) * _weight(x.shape, axis, correction)


@variance_dx.gradient("dy", axis_attribute="axis")
def variance_dx_ddy(x, ddx, dy_shape, *, axis=None, keepdim, correction):
    return torch.sum(ddx * _centred(x, axis), axis, keepdim) * _weight(x.shape, axis, correction)


@variance_dx.gradient("x", axis_attribute="axis")
def variance_dx_dx(dy, ddx, *, axis=None, keepdim, correction):
    return with_axes(dy, axis, keepdim) * _centred(ddx, axis) * _weight(ddx.shape, axis, correction)


@operator(
    "x: float[...s] -> y: float[...s-{axis}]",
    axis_attribute="axis",
    cases=[
        Case(x=[[0.0, 0.0], [0.0, 1.0986122886681098]], axis=1, y=[0.6931471805599453, 1.3862943611198906]),
        Case(x=[[0.0, 0.0], [0.0, 0.0]], axis=(0, 1), keepdim=True, y=[[1.3862943611198906]]),
        Case(x=[-math.inf, -math.inf], y=-math.inf),
        GradCheck(),
        GradCheck(x=(2, 3, 2), axis=(2, 0)),
        GradCheck(x=(2, 3), axis=-1, keepdim=True),
    ],
)
def logsumexp(x, *, axis: int | tuple[int, ...] | None = None, keepdim: bool = False):
    """``log(sum(exp(x)))`` over axes as in `reduce_sum`, computed stably."""
    return torch.logsumexp(x, require_axes(x.shape, axis), keepdim)


@logsumexp.gradient_program("x")
def logsumexp_dx(x, y, dy, *, axis=None, keepdim):
    """``dy * exp(x - y)``. It is 0 if all elements are -inf, and NaN for elements that are inf."""
    over = {"axis": axis, "keepdim": keepdim}
    finite = where(equal(y, number_like(-math.inf, y)), number_like(0.0, y), y)
    return multiply(reduce_sum_dx(dy, x, **over), exp(subtract(x, reduce_sum_dx(finite, x, **over))))


reduce_prod.declare_edges(
    infinite="the product of the other elements; PyTorch divides the product by the element, which gives NaN",
    nan="the product of the other elements, which may be a number; PyTorch divides the product by the element, which gives NaN",
)
logsumexp.declare_edges(infinite="0 if all elements are -inf, so that impossible events add nothing to a sum; PyTorch's is NaN")
