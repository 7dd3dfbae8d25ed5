"""The minimum along an axis, and extremes over several axes, for which ties share the gradient. `reduce_max` is in `op/selection.py`."""

import torch

from oarlock.op.comparison import equal
from oarlock.op.dtype_conversion import cast
from oarlock.op.elementwise import divide, multiply
from oarlock.op.reduction import reduce_sum, reduce_sum_dx
from oarlock.op.selection import find_along, reduce_max_dx
from oarlock.op.trusted_operator import operator
from oarlock.registry import Case, GradCheck

__all__ = ["amax", "amin", "argmin", "reduce_min"]


@operator(
    "x: real[...s] -> y: int64[...s-{axis!}]",
    axis_attribute="axis",
    cases=[
        Case(x=[[2.0, 1.0, 3.0], [4.0, 4.0, 5.0]], y=[1, 0]),
        Case(x=[[1, 3], [2, 0]], axis=0, keepdim=True, y=[[0, 1]]),
    ],
)
def argmin(x, *, axis: int = -1, keepdim: bool = False):
    """The index of the smallest element along ``axis``, the first on ties. ``keepdim`` keeps the axis with size 1."""
    return torch.argmin(x, dim=axis, keepdim=keepdim)


@operator(
    "x: real[...s] -> y: real[...s-{axis!}], index: int64[...s-{axis!}]",
    intermediate=("index",),
    aliases=("x",),
    axis_attribute="axis",
    cases=[
        Case(x=[[3.0, 1.0], [2.0, 4.0]], y=1.0, index=1),
        Case(x=[[3.0, 1.0], [4.0, 4.0]], axis=-1, y=[1.0, 4.0], index=[1, 0]),
        Case(x=[[1, 3], [4, 2]], axis=0, keepdim=True, y=[[1, 2]], index=[[0, 1]]),
        GradCheck(),
        GradCheck(x=(2, 3, 2), axis=1),
        GradCheck(x=(2, 3), axis=-1, keepdim=True),
    ],
)
def reduce_min(x, *, axis: int | None = None, keepdim: bool = False):
    """The smallest element along ``axis``, or of all if it is None. On ties the gradient goes to the first. See `reduce_max`."""
    return find_along(torch.argmin, x, axis, keepdim)


reduce_min.gradient_programs(
    x=lambda index, dy, x_shape, *, axis=None, keepdim: reduce_max_dx(index, dy, x_shape, axis=axis, keepdim=keepdim)
)


@operator(
    "x: real[...s] -> y: real[...s-{axis!}]",
    axis_attribute="axis",
    cases=[
        Case(x=[[[1.0, 3.0], [4.0, 2.0]]], axis=(1, 2), y=[4.0]),
        Case(x=[[1, 3], [4, 2]], axis=0, keepdim=True, y=[[4, 3]]),
        Case(x=[[1.0, 3.0]], keepdim=True, y=[[3.0]]),
        GradCheck(),
        GradCheck(x=(2, 3, 2), axis=(2, 0)),
        GradCheck(x=(2, 3), axis=-1, keepdim=True),
    ],
)
def amax(x, *, axis: int | tuple[int, ...] | None = None, keepdim: bool = False):
    """The largest element over one axis, several, or all if ``axis`` is None. Ties share the gradient evenly."""
    return torch.amax(x, () if axis is None else axis, keepdim)


@operator(
    "x: real[...s] -> y: real[...s-{axis!}]",
    axis_attribute="axis",
    cases=[
        Case(x=[[[1.0, 3.0], [4.0, 2.0]]], axis=(1, 2), y=[1.0]),
        Case(x=[[1, 3], [4, 2]], axis=0, keepdim=True, y=[[1, 2]]),
        Case(x=[[1.0, 3.0]], keepdim=True, y=[[1.0]]),
        GradCheck(),
        GradCheck(x=(2, 3, 2), axis=(2, 0)),
        GradCheck(x=(2, 3), axis=-1, keepdim=True),
    ],
)
def amin(x, *, axis: int | tuple[int, ...] | None = None, keepdim: bool = False):
    """The smallest element over one axis, several, or all if ``axis`` is None. Ties share the gradient evenly."""
    return torch.amin(x, () if axis is None else axis, keepdim)


def _shared(x, y, dy, *, axis=None, keepdim):
    """Return ``dy`` shared evenly by the elements that equal ``y``."""
    over = {"axis": axis, "keepdim": keepdim}
    chosen = cast(equal(x, reduce_sum_dx(y, x, **over)), dtype=dy.dtype)
    return multiply(chosen, reduce_sum_dx(divide(dy, reduce_sum(chosen, **over)), x, **over))


amax.gradient_programs(x=_shared)
amin.gradient_programs(x=_shared)
