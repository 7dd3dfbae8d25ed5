"""Order statistics: medians, the k-th smallest element, the mode. Each also returns its index, which receives the gradient."""

import torch

from oarlock.errors import ArgumentError
from oarlock.ir.shape_rules import require_at_most, require_axis
from oarlock.op.selection import reduce_max_dx
from oarlock.op.trusted_operator import operator
from oarlock.registry import Case, GradCheck, Rejects

__all__ = ["kthvalue", "median", "mode", "nanmedian"]


def _picked(function, x, axis: int | None, keepdim: bool):
    """Return the element that `function` selects along an axis, or of all, and its index."""
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
    """The median along ``axis``, or of all if it is None, and its index: the lower of two middle elements. NaN if any element is NaN."""
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
    """The `median` of the elements that are not NaN; NaN if all are."""
    return _picked(torch.nanmedian, x, axis, keepdim)


for _median in (median, nanmedian):
    _median.gradient_programs(
        x=lambda indices, dvalues, x_shape, *, axis=None, keepdim: reduce_max_dx(indices, dvalues, x_shape, axis=axis, keepdim=keepdim)
    )
    _median.declare_edges(
        **dict.fromkeys(
            ("equal", "nan"),
            "over all elements, the gradient goes to the returned index; PyTorch returns none, and shares it between ties",
        )
    )


@operator(
    "x: real[...s] -> values: real[...s-{axis!}], indices: int64[...s-{axis!}]",
    axis_attribute="axis",
    cases=[
        Case(x=[[3.0, 1.0, 2.0], [4.0, 6.0, 5.0]], k=3, values=[3.0, 6.0], indices=[0, 1]),
        Case(x=[[3, 1], [2, 4]], k=1, axis=0, keepdim=True, values=[[2, 1]], indices=[[1, 0]]),
        GradCheck(x=(2, 3, 2), k=2, axis=1),
        Rejects("k is 4, but axis 1 has 3", x=(2, 3), k=4),
        Rejects("k must be at least 1, not 0", x=(2, 3), k=0),
    ],
)
def kthvalue(x, *, k: int, axis: int = -1, keepdim: bool = False):
    """The ``k``-th smallest element along ``axis``, counted from 1, and its index."""
    require_at_most(k, x.shape[axis], "k is {}, but axis {} has {}", k, axis, x.shape[axis])
    return tuple(torch.kthvalue(x, k, axis, keepdim))


@kthvalue.check_shapes
def require_kth(x, *, k, axis, keepdim):
    at = require_axis(x.shape, axis)
    if k < 1:
        raise ArgumentError(f"k must be at least 1, not {k}")
    if x.shape[at] != 0:  # the signature rejects size 0
        require_at_most(k, x.shape[at], "k is {}, but axis {} has {}", k, at, x.shape[at])


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
    """The most frequent element along ``axis``, the smallest on ties, and its last index."""
    return tuple(torch.mode(x, axis, keepdim))


for _of_axis in (kthvalue, mode):
    _of_axis.gradient_programs(
        x=lambda indices, dvalues, x_shape, *, axis, keepdim: reduce_max_dx(indices, dvalues, x_shape, axis=axis, keepdim=keepdim)
    )
