"""Sorting, search in sorted rows, distinct elements and counts, positions of true elements."""

import torch

from oarlock.errors import DTypeError
from oarlock.ir.shape_rules import require_axis
from oarlock.op.along_axis import scatter_along_axis
from oarlock.op.creation import full_like
from oarlock.op.trusted_operator import operator
from oarlock.registry import Case, GradCheck, Rejects
from oarlock.registry.value_sizes import predict_size

__all__ = ["argwhere", "bincount", "searchsorted", "sort", "unique"]


@operator(
    "x: T[...s] -> values: T[...s], indices: int64[...s]",
    axis_attribute="axis",
    cases=[
        Case(x=[[3.0, 1.0, 2.0]], values=[[1.0, 2.0, 3.0]], indices=[[1, 2, 0]]),
        Case(x=[[1, 5], [3, 5]], axis=0, descending=True, values=[[3, 5], [1, 5]], indices=[[1, 0], [0, 1]]),
        Case(x=[True, False, True], values=[False, True, True], indices=[1, 0, 2]),
        GradCheck(x=(2, 4)),
        GradCheck(x=(4, 2), axis=0, descending=True),
        GradCheck(x=(0,)),
        Rejects("axis 1 is not an axis of x, which has 1 dimensions", x=(3,), axis=1),
        Rejects("x is complex128: complex numbers have no order", x=[1j]),
    ],
)
def sort(x, *, axis: int = -1, descending: bool = False):
    """The elements along ``axis`` in ascending order, or ``descending``, and their indices. The sort is stable. NaN is the largest."""
    return tuple(torch.sort(x, stable=True, dim=axis, descending=descending))


@sort.check_shapes
def require_sorted_axis(x, *, axis, descending):
    if x.dtype.is_complex:
        raise DTypeError(f"x is {x.dtype}: complex numbers have no order")
    require_axis(x.shape, axis)


sort.gradient_programs(
    x=lambda indices, dvalues, *, axis: scatter_along_axis(
        full_like(dvalues, value=0.0, dtype=dvalues.dtype), indices, dvalues, axis=axis, reduction="add"
    )
)


@operator(
    "sorted: real[*b n], x: real[*b m] -> y: int64[*b m]",
    cases=[
        Case(sorted=[[1.0, 3.0, 3.0], [0.0, 1.0, 2.0]], x=[[3.0, 0.0], [9.0, 1.0]], y=[[1, 0], [3, 1]]),
        Case(sorted=[1, 3, 3], x=[3], right=True, y=[3]),
    ],
)
def searchsorted(sorted, x, *, right: bool = False):
    """The index at which each element would be inserted into an ascending row of ``sorted``: before equal ones, or
    after them if ``right``.
    """
    return torch.searchsorted(sorted.contiguous(), x.contiguous(), right=right)


@operator(
    "x: real[...s] -> values: real[?], inverse: int64[...s], counts: int64[?]",
    cases=[
        Case(x=[[3.0, 1.0], [3.0, 2.0]], values=[1.0, 2.0, 3.0], inverse=[[2, 0], [2, 1]], counts=[1, 1, 2]),
        Case(x=[], values=[], inverse=[], counts=[]),
        Case(x=7, values=[7], inverse=0, counts=[1]),
    ],
)
def unique(x):
    """The distinct elements, ascending; the index among them of each element; their counts. It has no gradient.

    To propagate a gradient, gather or scatter by ``inverse``.
    """
    return torch.unique(x, sorted=True, return_inverse=True, return_counts=True)


unique.infer_shape(lambda x: [("?count",), x.shape, ("?count",)])
unique.no_gradient("x")
predict_size(unique)(lambda x: torch.unique(x).numel())


@operator(
    "x: int64[...s] -> y: int64[?]",
    checks_values=True,
    cases=[
        Case(x=[1, 3, 1], y=[0, 2, 0, 1]),
        Case(x=[[0], [1]], least=4, y=[1, 1, 0, 0]),
        Case(x=[], y=[]),
        Rejects("-1 is negative", x=[2, -1]),
    ],
)
def bincount(x, *, least: int = 0):
    """The count of each number from 0 to the largest, or to ``least - 1`` if that is larger."""
    count_numbers(x, least=least)
    return torch.bincount(x.flatten(), minlength=max(0, least))


@predict_size(bincount)
def count_numbers(x, *, least):
    """Return how many numbers are counted. Raises ValueError for a negative number."""
    if x.numel() and int(x.min()) < 0:
        raise ValueError(f"{int(x.min())} is negative; only numbers from 0 are counted")
    return max(0, least, int(x.max()) + 1 if x.numel() else 0)


@operator(
    "condition: bool[...s] -> y: int64[? r]",
    cases=[
        Case(condition=[[True, False], [True, True]], y=[[0, 0], [1, 0], [1, 1]]),
        Case(condition=[False, True], y=[[1]]),
        Case(condition=True, y=[[]]),
    ],
)
def argwhere(condition):
    """The indices of the true elements, in order: a row per element, with one index per axis."""
    return torch.argwhere(condition)


argwhere.infer_shape(lambda condition: ("?", len(condition.shape)))
predict_size(argwhere)(lambda condition: int(condition.count_nonzero()))
