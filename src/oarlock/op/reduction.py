"""Sums, means, and broadcasting with its gradient. Other reductions are in `op/statistics.py` and `op/extremes.py`."""

import math

import torch

from oarlock.ir.shape_rules import require_axes, require_broadcast
from oarlock.ir.var import Var
from oarlock.op.trusted_operator import operator
from oarlock.registry import Case, GradCheck, Rejects

__all__ = ["broadcast_to_like", "fit_to", "mean", "reduce_sum", "same_shape", "sum_to_shape"]


def same_shape(x: Var, y: Var) -> bool:
    """Return whether two variables are known to have one shape for all inputs."""
    return x.shape is not None and x.shape == y.shape


@operator(
    "x: inexact[...r], like: shape[...s] -> y: sum inexact[...s]",
    aliases=("x",),
    cases=[
        Case(x=[[1.0, 2.0], [3.0, 4.0]], like=[0.0, 0.0], y=[4.0, 6.0]),
        Case(x=[[1.0, 2.0], [3.0, 4.0]], like=[[0.0], [0.0]], y=[[3.0], [7.0]]),
        Case(x=[1.0, 2.0], like=[0.0, 0.0], y=[1.0, 2.0]),
        GradCheck(x=(3, 2), like=(2,)),
        Rejects("[2] does not broadcast to [3, 1]", x=(3, 1), like=(2,)),
    ],
)
def sum_to_shape(x, like):
    """Sum ``x`` to the shape of ``like``, which broadcasts to that of ``x``: the gradient of broadcasting."""
    return x.sum_to_size(like)


sum_to_shape.check_shapes(lambda x, like: require_broadcast(like.shape, x.shape))
sum_to_shape.gradient_programs(x=lambda x_shape, dy: broadcast_to_like(dy, x_shape))


def fit_to(dz: Var, x: Var) -> Var:
    """Return ``dz`` summed to the shape of ``x``; ``dz`` itself, without an op, if the shapes are known to be equal."""
    return dz if same_shape(dz, x) else sum_to_shape(dz, x)


@operator(
    "x: inexact[...r], like: shape[...s] -> y: inexact[...s]",
    aliases=("x",),
    cases=[
        Case(x=[1.0, 2.0], like=[[0.0, 0.0], [0.0, 0.0]], y=[[1.0, 2.0], [1.0, 2.0]]),
        Case(x=[1.0, 2.0], like=[[0.0, 0.0]], y=[[1.0, 2.0]]),
        GradCheck(x=(2,), like=(3, 2)),
        Rejects("[2, 2, 3] does not broadcast to [2, 3]", x=(2, 2, 3), like=(2, 3)),
        Rejects("[3] does not broadcast to [3, 1]", x=(3,), like=(3, 1)),
    ],
)
def broadcast_to_like(x, like):
    """Broadcast ``x`` to the shape of ``like``."""
    return x.expand(like).contiguous()


broadcast_to_like.check_shapes(lambda x, like: require_broadcast(x.shape, like.shape))
broadcast_to_like.gradient_programs(x=lambda x_shape, dy: sum_to_shape(dy, x_shape))


@operator(
    "x: number[...s] -> y: number[...s-{axis}]",
    linear_in=("x",),
    axis_attribute="axis",
    cases=[
        Case(x=[[1.0, 2.0], [3.0, 4.0]], y=10.0),
        Case(x=[[1.0, 2.0], [3.0, 4.0]], axis=-1, y=[3.0, 7.0]),
        Case(x=[[1.0, 2.0], [3.0, 4.0]], axis=0, keepdim=True, y=[[4.0, 6.0]]),
        Case(x=[[[1.0, 2.0]], [[3.0, 4.0]]], axis=(0, -1), y=[10.0]),
        Case(x=[[1, 2], [3, 4]], axis=1, y=[3, 7]),
        GradCheck(x=(2, 3), axis=1),
        GradCheck(x=(2, 1), axis=-1),
        GradCheck(x=(2, 3, 2), axis=(2, 0)),
        GradCheck(x=(2, 3, 2), axis=(-1, 1), keepdim=True),
        GradCheck(),
        Rejects("axis (1, -1) names one axis twice", x=(2, 3), axis=(1, -1)),
        Rejects("axis () names no axis; None stands for all of them", x=(2, 3), axis=()),
    ],
)
def reduce_sum(x, *, axis: int | tuple[int, ...] | None = None, keepdim: bool = False):
    """The sum over one axis, several, or all if ``axis`` is None. ``keepdim`` keeps axes with size 1. Integers wrap around."""
    return torch.sum(x, axis, keepdim, dtype=x.dtype)


@reduce_sum.gradient("x", aliases=("dy",), axis_attribute="axis")
def reduce_sum_dx(dy, x_shape, *, axis=None, keepdim):
    if axis is None and dy.is_cpu:
        return dy.new_full(x_shape, dy.item())
    return with_axes(dy, axis, keepdim).expand(x_shape).contiguous()


@operator(
    "x: inexact[...s] -> y: inexact[...s-{axis}]",
    linear_in=("x",),
    axis_attribute="axis",
    cases=[
        Case(x=[[1.0, 2.0], [3.0, 6.0]], y=3.0),
        Case(x=[[1.0, 2.0], [3.0, 6.0]], axis=0, y=[2.0, 4.0]),
        Case(x=[[[1.0, 2.0], [3.0, 6.0]]], axis=(1, 2), y=[3.0]),
        GradCheck(),
        GradCheck(x=(2, 3), axis=0, keepdim=True),
        GradCheck(x=(2, 3, 2), axis=(0, 2)),
    ],
)
def mean(x, *, axis: int | tuple[int, ...] | None = None, keepdim: bool = False):
    """The mean over one axis, several, or all if ``axis`` is None; NaN if there are no elements."""
    return torch.mean(x, axis, keepdim)


@mean.gradient("x", axis_attribute="axis")
def mean_dx(dy, x_shape, *, axis=None, keepdim):
    if axis is None and dy.is_cpu:
        return dy.new_full(x_shape, share_of(dy, x_shape))
    return with_axes(dy / count_of(x_shape, axis), axis, keepdim).expand(x_shape).contiguous()


def share_of(dy, x_shape) -> float:
    """Return ``dy`` divided by the number of elements, as a number, not a tensor. Without elements, it is not used."""
    return dy.item() / (torch.Size(x_shape).numel() or 1)


def count_of(x_shape, axis: int | tuple[int, ...] | None) -> int:
    """Return the number of elements in each sum over these axes."""
    return math.prod(x_shape[each] for each in require_axes(x_shape, axis))


def with_axes(dy, axis: int | tuple[int, ...] | None, keepdim: bool):
    """Return ``dy`` with the reduced axes as size 1, so that it broadcasts to ``x``."""
    if axis is None or keepdim:
        return dy
    if isinstance(axis, int):
        return dy.unsqueeze(axis)
    rank = dy.ndim + len(axis)
    for each in sorted(each % rank for each in axis):
        dy = dy.unsqueeze(each)
    return dy
