"""Elements that order picks: medians, the k-th smallest, the most frequent. Each gives where it stood too, which its gradient goes to."""

import torch

from oarlock.errors import ArgumentError
from oarlock.ir.shape_rules import require_at_most, require_axis
from oarlock.op.selection import reduce_max_dx
from oarlock.op.trusted_operator import operator
from oarlock.registry import Case, GradCheck, Rejects

__all__ = ["kthvalue", "median", "mode", "nanmedian"]


def _picked(function, x, axis: int | None, keepdim: bool):
    """The element that a function picks along an axis, or of all, and its place."""
    if axis is not None:
        return tuple(function(x, axis, keepdim))
    shape = (1,) * x.ndim if keepdim else ()
    value, index = function(x.reshape(-1), 0, False)
    return value.reshape(shape), index.reshape(shape)


@operator(
    "x: real[...s] -> values: real[...s-{axis!}], indices: int64[...s-{axis!}]",
    axis_attribute="axis",
    cases=[
        Case(x=[[3.0, 1.0, 2.0], [4.0, 6.0, 5.0]], axis=1, values=[2.0, 5.0], indices=[2, 2]),
        Case(x=[[3, 1], [2, 4]], keepdim=True, values=[[2]], indices=[[2]]),
        GradCheck(),
        GradCheck(x=(2, 3, 2), axis=1),
        GradCheck(x=(2, 4), axis=-1, keepdim=True),
    ],
)
def median(x, *, axis: int | None = None, keepdim: bool = False):
    """The median along ``axis``, of all where it is None, the lower one of two, and its place; NaN where one element is."""
    return _picked(torch.median, x, axis, keepdim)


@operator(
    "x: real[...s] -> values: real[...s-{axis!}], indices: int64[...s-{axis!}]",
    axis_attribute="axis",
    cases=[
        Case(x=[[3.0, 1.0], [4.0, 6.0]], axis=1, values=[1.0, 4.0], indices=[1, 0]),
        Case(x=[[3, 1], [2, 4]], keepdim=True, values=[[2]], indices=[[2]]),
        GradCheck(),
        GradCheck(x=(2, 3, 2), axis=1),
    ],
)
def nanmedian(x, *, axis: int | None = None, keepdim: bool = False):
    """The `median` of what is no NaN; NaN where all is."""
    return _picked(torch.nanmedian, x, axis, keepdim)


for _median in (median, nanmedian):
    _median.gradient_programs(
        x=lambda indices, dvalues, x_shape, *, axis=None, keepdim: reduce_max_dx(indices, dvalues, x_shape, axis=axis, keepdim=keepdim)
    )
    _median.declare_edges(
        **dict.fromkeys(
            ("equal", "nan"),
            "of all elements, the gradient goes to the place that is given; PyTorch gives none, and shares it between equal ones",
        )
    )


@operator(
    "x: real[...s] -> values: real[...s-{axis!}], indices: int64[...s-{axis!}]",
    axis_attribute="axis",
    cases=[
        Case(x=[[3.0, 1.0, 2.0], [4.0, 6.0, 5.0]], k=3, values=[3.0, 6.0], indices=[0, 1]),
        Case(x=[[3, 1], [2, 4]], k=1, axis=0, keepdim=True, values=[[2, 1]], indices=[[1, 0]]),
        GradCheck(x=(2, 3, 2), k=2, axis=1),
        Rejects("k is 4, where axis 1 has 3", x=(2, 3), k=4),
        Rejects("k is 0, where it is at least 1", x=(2, 3), k=0),
    ],
)
def kthvalue(x, *, k: int, axis: int = -1, keepdim: bool = False):
    """The ``k``-th smallest element along ``axis``, counted from 1, and its place."""
    require_at_most(k, x.shape[axis], "k is {}, where axis {} has {}", k, axis, x.shape[axis])
    return tuple(torch.kthvalue(x, k, axis, keepdim))


@kthvalue.check_shapes
def require_kth(x, *, k, axis, keepdim):
    at = require_axis(x.shape, axis)
    if k < 1:
        raise ArgumentError(f"k is {k}, where it is at least 1")
    if x.shape[at] != 0:  # which the signature refuses
        require_at_most(k, x.shape[at], "k is {}, where axis {} has {}", k, at, x.shape[at])


@operator(
    "x: real[...s] -> values: real[...s-{axis!}], indices: int64[...s-{axis!}]",
    axis_attribute="axis",
    cases=[
        Case(x=[[3.0, 1.0, 1.0], [4.0, 4.0, 5.0]], values=[1.0, 4.0], indices=[2, 1]),
        Case(x=[[3, 1], [3, 4]], axis=0, keepdim=True, values=[[3, 1]], indices=[[1, 0]]),
        GradCheck(x=(2, 3, 2), axis=1),
    ],
)
def mode(x, *, axis: int = -1, keepdim: bool = False):
    """The most frequent element along ``axis``, the smallest of several, and the last place where it stands."""
    return tuple(torch.mode(x, axis, keepdim))


for _of_axis in (kthvalue, mode):
    _of_axis.gradient_programs(
        x=lambda indices, dvalues, x_shape, *, axis, keepdim: reduce_max_dx(indices, dvalues, x_shape, axis=axis, keepdim=keepdim)
    )
