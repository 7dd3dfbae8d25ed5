"""The largest elements and their indices, and one-hot rows."""

import torch

from oarlock.errors import ShapeError
from oarlock.ir.shape_rules import require_at_most, require_axis, require_equal_numbers, require_numbered
from oarlock.ir.size import format_shape
from oarlock.op.trusted_operator import operator
from oarlock.registry import Case, GradCheck, Rejects
from oarlock.registry.signature import require_size

__all__ = ["argmax", "one_hot", "reduce_max", "top_k"]


@operator(
    "x: real[...s] -> y: int64[...s-{axis!}]",
    axis_attribute="axis",
    cases=[
        Case(x=[[1.0, 3.0, 2.0], [5.0, 5.0, 4.0]], y=[1, 0]),
        Case(x=[[1, 3], [2, 0]], axis=0, y=[1, 0]),
        Case(x=[[1, 3], [2, 0]], axis=0, keepdim=True, y=[[1, 0]]),
    ],
)
def argmax(x, *, axis: int = -1, keepdim: bool = False):
    """The index of the largest element along ``axis``, the first on ties. ``keepdim`` keeps the axis with size 1."""
    return torch.argmax(x, dim=axis, keepdim=keepdim)


@operator(
    "x: real[...s] -> y: real[...s-{axis!}], index: int64[...s-{axis!}]",
    intermediate=("index",),
    aliases=("x",),
    axis_attribute="axis",
    cases=[
        Case(x=[[1.0, 3.0], [4.0, 2.0]], y=4.0, index=2),
        Case(x=[[1.0, 3.0], [4.0, 4.0]], axis=-1, y=[3.0, 4.0], index=[1, 0]),
        Case(x=[[1, 3], [4, 2]], axis=0, keepdim=True, y=[[4, 3]], index=[[1, 0]]),
        Case(x=[[1, 3]], keepdim=True, y=[[3]], index=[[1]]),
        GradCheck(),
        GradCheck(x=(2, 3, 2), axis=1),
        GradCheck(x=(2, 3), axis=-1, keepdim=True),
        GradCheck(x=(0, 3), axis=1),
    ],
)
def reduce_max(x, *, axis: int | None = None, keepdim: bool = False):
    """The largest element along ``axis``, or of all if it is None. On ties the gradient goes to the first.

    ``index`` is its index, for the gradient. ``keepdim`` keeps the axis with size 1.
    """
    return find_along(torch.argmax, x, axis, keepdim)


def find_along(place, x, axis: int | None, keepdim: bool):
    """Return the element along ``axis``, or of all, at the index that ``place`` returns, and that index."""
    if axis is not None:
        index = place(x, dim=axis, keepdim=True)
        y = x.gather(axis, index)
        return (y, index) if keepdim else (y.squeeze(axis), index.squeeze(axis))
    index = place(x)
    y = x.reshape(-1)[index]
    shape = (1,) * x.ndim if keepdim else ()
    return y.reshape(shape), index.reshape(shape)


@reduce_max.gradient("x", axis_attribute="axis")
def reduce_max_dx(index, dy, x_shape, *, axis=None, keepdim):
    """``dy`` at the indices of the largest elements, zeros elsewhere."""
    if axis is None:
        return dy.new_zeros(x_shape).reshape(-1).scatter(0, index.reshape(1), dy.reshape(1)).reshape(x_shape)
    if not keepdim:
        index, dy = index.unsqueeze(axis), dy.unsqueeze(axis)
    return dy.new_zeros(x_shape).scatter(axis, index, dy)


@reduce_max_dx.gradient("dy", aliases=("ddx",), axis_attribute="axis")
def reduce_max_dx_ddy(index, ddx, *, axis=None, keepdim):
    """The elements of ``ddx`` at the positions of the largest elements."""
    if axis is None:
        return ddx.reshape(-1)[index]
    return ddx.gather(axis, index) if keepdim else ddx.gather(axis, index.unsqueeze(axis)).squeeze(axis)


@operator(
    "x: real[...s] -> values: real[...t], indices: int64[...t]",
    axis_attribute="axis=-1",
    cases=[
        Case(x=[[1.0, 3.0, 2.0], [6.0, 4.0, 5.0]], k=2, values=[[3.0, 2.0], [6.0, 5.0]], indices=[[1, 2], [0, 2]]),
        Case(x=[7, 9], k=1, values=[9], indices=[1]),
        Case(x=[[1, 2], [4, 3]], k=2, values=[[2, 1], [4, 3]], indices=[[1, 0], [0, 1]]),
        Case(x=[[1, 2], [4, 3]], k=1, axis=0, values=[[4, 3]], indices=[[1, 1]]),
        Case(x=[[1, 5, 3]], k=2, largest=False, values=[[1, 3]], indices=[[0, 2]]),
        GradCheck(x=(2, 4), k=2),
        GradCheck(x=(3, 2, 2), k=2, axis=-3, largest=False),
        GradCheck(x=(3,), k=3),
        Rejects("k is 4, but the last axis has 3", x=(2, 3), k=4),
        Rejects("k is 3, but axis 0 has 2", x=(2, 3), k=3, axis=0),
        Rejects("k is -1, but a size must be at least 0", x=(2, 3), k=-1),
    ],
)
def top_k(x, *, k: int, axis: int | None = None, largest: bool | None = None):
    """The ``k`` largest elements along ``axis`` (default: the last), descending, and their indices.

    With ``largest=False``, the smallest, ascending. The order of ties is unspecified.
    """
    top_shapes(x, k=k, axis=axis)
    return tuple(torch.topk(x, k, -1 if axis is None else axis, largest is not False))


@top_k.infer_shape
def top_shapes(x, *, k, axis=None, largest=None):
    at = require_axis(x.shape, -1 if axis is None else axis)
    where = "the last axis" if axis is None else f"axis {axis}"
    require_at_most(k, x.shape[at], "k is {}, but {} has {}", k, where, x.shape[at])
    return [(*x.shape[:at], require_size("k", k), *x.shape[at + 1 :])] * 2


@top_k.gradient("x", axis_attribute="axis=-1")
def top_k_dx(indices, dvalues, x_shape, *, axis=None):
    """``dvalues`` at the indices of the values, zeros elsewhere."""
    return dvalues.new_zeros(x_shape).scatter(-1 if axis is None else axis, indices, dvalues)


@top_k_dx.gradient("dvalues", axis_attribute="axis=-1")
def top_k_dx_ddvalues(indices, dvalues_shape, ddx, *, axis=None):
    """The elements of ``ddx`` at the positions of the values."""
    return ddx.gather(-1 if axis is None else axis, indices)


def _require_places(indices, x, axis: int | None) -> None:
    """Raise ShapeError unless `indices` may be positions along an axis of ``x``, with the other axes of ``x``."""
    at = require_axis(x.shape, -1 if axis is None else axis)
    if len(indices.shape) != len(x.shape):
        raise ShapeError(f"indices are {format_shape(indices.shape)}, but x is {format_shape(x.shape)}")
    require_at_most(indices.shape[at], x.shape[at], "{} indices are given along an axis of {}", indices.shape[at], x.shape[at])
    for count, size in zip(indices.shape[:at] + indices.shape[at + 1 :], x.shape[:at] + x.shape[at + 1 :], strict=True):
        require_equal_numbers(count, size, "indices are {}, but x is {}", format_shape(indices.shape), format_shape(x.shape))


top_k_dx.check_shapes(lambda indices, dvalues, x_shape, *, axis=None: _require_places(indices, x_shape, axis))
top_k_dx_ddvalues.check_shapes(lambda indices, dvalues_shape, ddx, *, axis=None: _require_places(indices, ddx, axis))


@operator(
    "ids: int64[*b] -> y: float32[*b {depth}]",
    checks_values=True,
    cases=[
        Case(ids=[2, 0], depth=3, y=[[0.0, 0.0, 1.0], [1.0, 0.0, 0.0]]),
        Case(ids=[[1], [0]], depth=2, y=[[[0.0, 1.0]], [[1.0, 0.0]]]),
        Rejects("id 3 is not one of 0 to 2", ids=[0, 3], depth=3),
        Rejects("id -1 is not one of 0 to 2", ids=[-1], depth=3),
        Rejects("2 indexes are given, but depth is 0", ids=[0, 0], depth=0),
    ],
)
def one_hot(ids, *, depth: int):
    """A row of ``depth`` numbers for each id: 1 at the id, else 0. An id outside of 0 to ``depth - 1`` raises KernelError."""
    wrong = (ids < 0) | (ids >= depth)
    if wrong.any():
        raise ValueError(f"id {int(ids[wrong][0])} is not one of 0 to {depth - 1}")
    return (ids.unsqueeze(-1) == torch.arange(depth, device=ids.device)).float()


one_hot.check_shapes(lambda ids, *, depth: require_numbered(ids.shape, depth, "depth is 0"))
