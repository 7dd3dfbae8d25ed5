"""Cumulative sums, products, extremes and log-sum-exps along an axis."""

import math

import torch

from oarlock.ir.shape_rules import require_axis
from oarlock.op.along_axis import scatter_along_axis
from oarlock.op.choice import where
from oarlock.op.comparison import greater
from oarlock.op.creation import full_like
from oarlock.op.elementwise import add, neg, subtract
from oarlock.op.rearrangement import flip
from oarlock.op.trusted_operator import operator
from oarlock.op.unary import exp, log, number_like
from oarlock.registry import Case, GradCheck, Rejects
from oarlock.tensor.products import product_slopes, product_tangent, slopes_tangent

__all__ = ["cummax", "cummin", "cumprod", "cumsum", "logcumsumexp"]


@operator(
    "x: number[...s] -> y: number[...s]",
    axis_attribute="axis",
    cases=[
        Case(x=[[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], axis=1, y=[[1.0, 3.0, 6.0], [4.0, 9.0, 15.0]]),
        Case(x=[[1, 2, 3], [4, 5, 6]], axis=0, y=[[1, 2, 3], [5, 7, 9]]),
        Case(x=[1.0, 2.0, 3.0], axis=-1, reverse=True, y=[6.0, 5.0, 3.0]),
        Case(x=[1.0, 2.0, 3.0], axis=0, exclusive=True, y=[0.0, 1.0, 3.0]),
        Case(x=[1.0, 2.0, 3.0], axis=0, exclusive=True, reverse=True, y=[5.0, 3.0, 0.0]),
        GradCheck(x=(2, 3), axis=1),
        GradCheck(x=(3, 2), axis=-2, reverse=True),
        GradCheck(x=(2, 3, 2), axis=1, exclusive=True),
        GradCheck(x=(2, 0), axis=1, exclusive=True),
        Rejects("axis 0 is not an axis of x", x=1.0, axis=0),
    ],
)
def cumsum(x, *, axis: int, exclusive: bool = False, reverse: bool = False):
    """The cumulative sum along ``axis``. ``exclusive`` leaves out the element itself; ``reverse`` starts at the end."""
    return _accumulate(torch.cumsum, x, axis, exclusive, reverse, 0)


@cumsum.check_shapes
def require_along(x, *, axis, exclusive, reverse):
    require_axis(x.shape, axis)


def _accumulate(function, x, axis: int, exclusive: bool, reverse: bool, neutral: int):
    """Apply the cumulative ``function`` along an axis, in the dtype of x. If ``exclusive``, start with the ``neutral`` element."""
    x = x.flip(axis) if reverse else x
    if exclusive and x.shape[axis]:
        x = torch.cat([torch.full_like(x.narrow(axis, 0, 1), neutral), x.narrow(axis, 0, x.shape[axis] - 1)], axis)
    y = function(x, axis, dtype=x.dtype)
    return y.flip(axis) if reverse else y


@cumsum.gradient_program("x")
def cumsum_dx(dy, *, axis, exclusive, reverse):
    """The cumulative sum from the other end: an element is part of its own sum and of all later ones."""
    return cumsum(dy, axis=axis, exclusive=exclusive, reverse=not reverse)


@operator(
    "x: number[...s] -> y: number[...s]",
    axis_attribute="axis",
    cases=[
        Case(x=[[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], axis=1, y=[[1.0, 2.0, 6.0], [4.0, 20.0, 120.0]]),
        Case(x=[[1, 2, 3], [4, 5, 6]], axis=0, y=[[1, 2, 3], [4, 10, 18]]),
        Case(x=[1.0, 2.0, 3.0], axis=-1, reverse=True, y=[6.0, 6.0, 3.0]),
        Case(x=[2.0, 3.0, 4.0], axis=0, exclusive=True, y=[1.0, 2.0, 6.0]),
        GradCheck(x=(2, 3), axis=1),
        GradCheck(x=(3, 2), axis=-2, reverse=True),
        GradCheck(x=(2, 3, 2), axis=1, exclusive=True),
        GradCheck(x=(2, 0), axis=1, exclusive=True, reverse=True),
        GradCheck(x=[[1.0, 0.0, 2.0, 3.0], [0.0, 3.0, 0.0, 2.0], [2.0, 0.5, 1.0, 0.0]], axis=1),
        Rejects("axis 0 is not an axis of x", x=1.0, axis=0),
    ],
)
def cumprod(x, *, axis: int, exclusive: bool = False, reverse: bool = False):
    """The cumulative product along ``axis``; ``exclusive`` and ``reverse`` are as in `cumsum`."""
    return _accumulate(torch.cumprod, x, axis, exclusive, reverse, 1)


cumprod.check_shapes(require_along)


@cumprod.gradient("x", axis_attribute="axis")
def cumprod_dx(x, dy, *, axis, exclusive, reverse):
    return product_slopes(x.conj(), dy, axis, exclusive, reverse)


@cumprod_dx.gradient("dy", axis_attribute="axis")
def cumprod_dx_ddy(x, ddx, *, axis, exclusive, reverse):
    return product_tangent(x, ddx, axis, exclusive, reverse)


@cumprod_dx.gradient("x", axis_attribute="axis")
def cumprod_dx_dx(x, dy, ddx, *, axis, exclusive, reverse):
    return slopes_tangent(x.conj(), dy, ddx.conj(), axis, exclusive, reverse)


@operator(
    "x: real[...s] -> values: real[...s], indices: int64[...s]",
    axis_attribute="axis",
    cases=[
        Case(x=[[1.0, 3.0, 2.0, 3.0]], axis=1, values=[[1.0, 3.0, 3.0, 3.0]], indices=[[0, 1, 1, 3]]),
        Case(x=[3, 4], axis=-1, values=[3, 4], indices=[0, 1]),
        GradCheck(x=(2, 4, 2), axis=1),
        Rejects("axis 0 is not an axis of x", x=1.0, axis=0),
    ],
)
def cummax(x, *, axis: int):
    """The cumulative maximum along ``axis`` and its index, the last one on ties."""
    return tuple(torch.cummax(x, axis))


@operator(
    "x: real[...s] -> values: real[...s], indices: int64[...s]",
    axis_attribute="axis",
    cases=[
        Case(x=[[3.0, 1.0, 2.0, 1.0]], axis=1, values=[[3.0, 1.0, 1.0, 1.0]], indices=[[0, 1, 1, 3]]),
        Case(x=[3, 4], axis=-1, values=[3, 3], indices=[0, 0]),
        GradCheck(x=(2, 4, 2), axis=1),
        Rejects("axis 0 is not an axis of x", x=1.0, axis=0),
    ],
)
def cummin(x, *, axis: int):
    """The cumulative minimum along ``axis`` and its index, the last one on ties."""
    return tuple(torch.cummin(x, axis))


def _extreme_dx(indices, dvalues, *, axis):
    """Add the gradient of each extreme to the element that it came from."""
    return scatter_along_axis(full_like(dvalues, value=0.0, dtype=dvalues.dtype), indices, dvalues, axis=axis, reduction="add")


def require_one_axis(x, *, axis):
    require_axis(x.shape, axis)


for _extreme in (cummax, cummin):
    _extreme.check_shapes(require_one_axis)
    _extreme.gradient_programs(x=_extreme_dx)


@operator(
    "x: float[...s] -> y: float[...s]",
    axis_attribute="axis",
    cases=[
        Case(x=[[0.0, 0.0, math.log(2.0)]], axis=1, y=[[0.0, math.log(2.0), math.log(4.0)]]),
        Case(x=[-math.inf, 1000.0], axis=-1, y=[-math.inf, 1000.0]),
        GradCheck(x=(2, 4, 2), axis=1),
        Rejects("axis 0 is not an axis of x", x=1.0, axis=0),
    ],
)
def logcumsumexp(x, *, axis: int):
    """``log(cumsum(exp(x)))`` along ``axis``, computed stably."""
    return torch.logcumsumexp(x, axis)


logcumsumexp.check_shapes(require_one_axis)


@logcumsumexp.gradient_program("x")
def logcumsumexp_dx(x, y, dy, *, axis):
    """The sum of ``dy exp(x - y)`` over an element and all later ones, in log space: positive terms minus negative ones."""
    return subtract(_shares(x, y, dy, axis), _shares(x, y, neg(dy), axis))


def _shares(x, y, dy, axis: int):
    zero = number_like(0.0, dy)
    some = greater(dy, zero)
    amounts = subtract(log(where(some, dy, number_like(1.0, dy))), where(some, y, zero))
    held = flip(where(some, amounts, number_like(-math.inf, dy)), axes=(axis,))
    return exp(add(flip(logcumsumexp(held, axis=axis), axes=(axis,)), x))


cumprod.declare_edges(
    **dict.fromkeys(
        ("infinite", "nan"),
        "a sum of products of the other elements; PyTorch divides the product by the element, which is NaN for infinity",
    )
)
