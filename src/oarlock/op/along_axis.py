"""Gather and scatter elements at integer positions, along one axis or several.

Negative indices count from the end, as in Python; an index out of range raises an error.
"""

import torch

from oarlock.errors import DTypeError, ShapeError
from oarlock.ir.shape_rules import broadcast_shape, require_axis, require_broadcast, require_numbered
from oarlock.ir.size import Shape, format_shape
from oarlock.op.comparison import equal
from oarlock.op.complex_parts import conjugated
from oarlock.op.creation import full, full_like
from oarlock.op.dtype_conversion import cast
from oarlock.op.elementwise import add, assign, divide, multiply, subtract
from oarlock.op.reduction import sum_to_shape
from oarlock.op.trusted_operator import operator
from oarlock.registry import Case, GradCheck, Rejects
from oarlock.tensor.indexing import indices_along, places_of, take

__all__ = ["index", "index_put", "scatter_along_axis", "take_along_axis"]

_REDUCTIONS = {"add": "sum", "multiply": "prod", "maximum": "amax", "minimum": "amin"}


def indexed_shape(shape: Shape, indices, axes: tuple[int, ...]) -> Shape:
    """Return the shape of `x[indices]`: the index axes replace ``axes`` if these are adjacent, and come first otherwise."""
    if not axes or len(axes) != len(indices) or list(axes) != sorted(set(axes)) or not 0 <= axes[0] <= axes[-1] < len(shape):
        raise ShapeError(f"axes {axes} must be {len(indices)} of the {len(shape)} axes of x, in ascending order")
    taken: Shape = ()
    for number, each in enumerate(indices):
        taken = broadcast_shape(taken, each.shape)
        require_numbered(each.shape, shape[axes[number]], f"axis {axes[number]} of x has the size 0")
    rest = [size for axis, size in enumerate(shape) if axis not in axes]
    front = axes[0] if axes[-1] - axes[0] < len(axes) else 0
    return (*rest[:front], *taken, *rest[front:])


@operator(
    "x: T[...s], *indices: int64 -> y: T[...t]",
    checks_values=True,
    linear_in=("x",),
    cases=[
        Case(x=[[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]], indices=([0, -1, 2], [1, 0, -2]), axes=(0, 1), y=[2.0, 5.0, 5.0]),
        Case(x=[[1, 2, 3], [4, 5, 6]], indices=([[2, 0]],), axes=(1,), y=[[[3, 1]], [[6, 4]]]),
        Case(x=[[[1, 2], [3, 4]]], indices=([0, 0], [1, 0]), axes=(0, 2), y=[[2, 4], [1, 3]]),
        Case(x=[True, False], indices=(1,), axes=(0,), y=False),
        GradCheck(x=(3, 2, 4), indices=([[2, 0], [-1, 2]], [[-1, 1]]), axes=(0, 2)),
        GradCheck(x=(3, 2), indices=([],), axes=(1,)),
        Rejects("index 3 is out of range for axis 0 of size 3", x=(3,), indices=([0, 3],), axes=(0,)),
        Rejects("index -4 is out of range for axis 0 of size 3", x=(3,), indices=([-4],), axes=(0,)),
        Rejects("axes (1, 0) must be 2 of the 2 axes of x, in ascending order", x=(2, 2), indices=([0], [0]), axes=(1, 0)),
        Rejects("[2] and [3] do not broadcast: 2 and 3 are different sizes", x=(2, 2), indices=([0, 0], [0, 0, 0]), axes=(0, 1)),
        Rejects("1 indexes are given, but axis 0 of x has the size 0", x=(0, 2), indices=([0],), axes=(0,)),
    ],
)
def index(x, indices, *, axes: tuple[int, ...]):
    """Index ``axes`` (ascending) by integer tensors, which are broadcast: ``y[i] = x[indices[0][i], indices[1][i]]``.

    As in PyTorch, the index axes replace ``axes`` if these are adjacent, and come first otherwise.
    """
    return take(x, indices, axes)


index.infer_shape(lambda x, indices, *, axes: indexed_shape(x.shape, indices, axes))


@index.gradient("x", checks_values=True)
def index_dx(x_shape, indices, dy, *, axes):
    """The sum of ``dy`` over all reads of each element; 0 for elements that were not read."""
    return torch.ops.aten.index_put_.default(dy.new_zeros(x_shape), indices_along(x_shape, indices, axes), dy, True)


@operator(
    "x: T[...s], values: T[...v], *indices: int64 -> y: T[...s]",
    checks_values=True,
    cases=[
        Case(x=[[1.0, 2.0], [3.0, 4.0]], values=[8.0, 9.0], indices=([0, -1], [1, 0]), axes=(0, 1), y=[[1.0, 8.0], [9.0, 4.0]]),
        Case(x=[1, 2], values=5, indices=([1, 1],), axes=(0,), accumulate=True, y=[1, 12]),
        Case(x=[[True, False]], values=[True], indices=([1],), axes=(1,), y=[[True, True]]),
        GradCheck(x=(3, 2, 4), values=(2, 2), indices=([2, 0], [-1, 1]), axes=(0, 2)),
        GradCheck(x=(3, 2), values=(1,), indices=([2, 0, -1],), axes=(0,), accumulate=True),
        GradCheck(x=(0, 2), values=(), indices=([],), axes=(0,)),
        Rejects("[3] does not broadcast to [2]", x=(4,), values=(3,), indices=([0, 1],), axes=(0,)),
        Rejects("index 4 is out of range for axis 0 of size 4", x=(4,), values=(), indices=([4],), axes=(0,)),
    ],
)
def index_put(x, values, indices, *, axes: tuple[int, ...], accumulate: bool = False):
    """``x`` with ``values``, broadcast, written to the positions that `index` reads, or added to them if ``accumulate``.

    If a position is given twice without ``accumulate``, one of its values is kept, unspecified which. Each of them receives the gradient of
    the position.
    """
    return torch.ops.aten.index_put.default(x, indices_along(x.shape, indices, axes), values, accumulate)


@index_put.check_shapes
def require_values(x, values, indices, *, axes, accumulate):
    require_broadcast(values.shape, indexed_shape(x.shape, indices, axes))


index_put.gradient_programs(
    x=lambda indices, dy, *, axes, accumulate: assign(dy) if accumulate else index_put(dy, _zero(dy), indices, axes=axes),
    values=lambda values_shape, indices, dy, *, axes: sum_to_shape(index(dy, indices, axes=axes), values_shape),
)


def _zero(like):
    return full(shape=(), value=0.0, dtype=like.dtype)


def require_along(x, index, *, axis):
    """Raise ShapeError if ``index`` has another rank than ``x`` or, except along ``axis``, a larger known size."""
    at = require_axis(x.shape, axis)
    others = [pair for number, pair in enumerate(zip(index.shape, x.shape, strict=False)) if number != at]
    if len(index.shape) != len(x.shape) or any(isinstance(one, int) and isinstance(all, int) and one > all for one, all in others):
        sizes = f"index {format_shape(index.shape)} does not fit x {format_shape(x.shape)}"
        raise ShapeError(f"{sizes}: ranks must be equal, and sizes at most those of x, except along axis {axis}")
    require_numbered(index.shape, x.shape[at], f"axis {axis} of x has the size 0")


@operator(
    "x: T[...s], index: int64[...i] -> y: T[...i]",
    checks_values=True,
    cases=[
        Case(x=[[1.0, 2.0], [3.0, 4.0]], index=[[0, 0], [1, -2]], y=[[1.0, 2.0], [3.0, 2.0]], axis=0),
        Case(x=[[1, 2, 3], [4, 5, 6]], index=[[2, 0]], axis=1, y=[[3, 1]]),
        Case(x=[True, False], index=[-1], axis=-1, y=[False]),
        GradCheck(x=(3, 4, 2), index=[[[3, 0], [3, -1]], [[1, 1], [0, 2]]], axis=1),
        GradCheck(x=(3,), index=[], axis=0),
        Rejects("index 2 is out of range for axis 0 of size 2", x=(2,), index=[2], axis=0),
        Rejects("index [2, 3] does not fit x [2, 2]: ranks must be equal", x=(2, 2), index=[[0, 0, 0], [0, 0, 0]], axis=0),
        Rejects("1 indexes are given, but axis 0 of x has the size 0", x=(0,), index=[0], axis=0),
    ],
)
def take_along_axis(x, index, *, axis: int):
    """Gather elements along ``axis``, with separate indices for each row: ``y[i, j] = x[i, index[i, j]]``. ``torch.gather``."""
    return torch.gather(x, axis, places_of(index, x.shape[axis], axis))


take_along_axis.check_shapes(require_along)
take_along_axis.gradient_programs(
    x=lambda x_shape, index, dy, *, axis: scatter_along_axis(_zeros(x_shape, dy), index, dy, axis=axis, reduction="add")
)


def _zeros(like, dtype_of):
    return full_like(like, value=0.0, dtype=dtype_of.dtype)


@operator(
    "x: T[...s], index: int64[...i], values: T[...i] -> y: T[...s]",
    checks_values=True,
    cases=[
        Case(x=[[1.0, 2.0, 3.0]], index=[[2, -3]], values=[[8.0, 9.0]], axis=1, y=[[9.0, 2.0, 8.0]]),
        Case(x=[1, 2], index=[1, 1], values=[5, 6], axis=0, reduction="add", y=[1, 13]),
        Case(x=[3, 2], index=[1, 1], values=[5, 6], axis=0, reduction="multiply", y=[3, 60]),
        Case(x=[3, 2], index=[0, 1], values=[5, 1], axis=0, reduction="maximum", y=[5, 2]),
        Case(x=[3, 2], index=[0, 1], values=[5, 1], axis=0, reduction="minimum", y=[3, 1]),
        *(
            GradCheck(x=(2, 3), index=[[2, 0, 0], [1, 1, 1]], values=(2, 3), axis=1, reduction=reduction)
            for reduction in _REDUCTIONS
        ),
        GradCheck(x=(2, 3), index=[[2, 0], [-1, 1]], values=(2, 2), axis=-1),
        GradCheck(x=(3,), index=[], values=(0,), axis=0),
        Rejects("index 3 is out of range for axis 0 of size 3", x=(3,), index=[3], values=(1,), axis=0),
        Rejects("reduction must be none, add, multiply, maximum or minimum, not mean", x=(3,), index=[2], values=(1,), axis=0,
                reduction="mean"),
        Rejects("x is complex128: complex numbers have no maximum", x=[1j], index=[0], values=[1j], axis=0, reduction="maximum"),
    ],
)  # fmt: skip
def scatter_along_axis(x, index, values, *, axis: int, reduction: str = "none"):
    """``x`` with ``values`` written along ``axis``: ``y[i, index[i, j]] = values[i, j]``. ``torch.scatter``.

    With ``reduction`` ("add", "multiply", "maximum" or "minimum"), the element of ``x`` is combined with all values written to it. Without
    one, if an index repeats, it is unspecified which value is kept. Tied maxima or minima share the gradient evenly.
    """
    places = places_of(index, x.shape[axis], axis)
    if reduction == "none":
        return torch.scatter(x, axis, places, values)
    return torch.scatter_reduce(x, axis, places, values, _REDUCTIONS[reduction])


@scatter_along_axis.check_shapes
def require_reduction(x, index, values, *, axis, reduction):
    if reduction != "none" and reduction not in _REDUCTIONS:
        raise ShapeError(f"reduction must be none, {', '.join(list(_REDUCTIONS)[:-1])} or minimum, not {reduction}")
    if x.dtype.is_complex and reduction in ("maximum", "minimum"):
        raise DTypeError(f"x is {x.dtype}: complex numbers have no {reduction}")
    require_along(x, index, axis=axis)


@scatter_along_axis.gradient_program("x")
def scatter_along_axis_dx(x, index, values, y, dy, *, axis, reduction):
    if reduction == "none":
        return scatter_along_axis(dy, index, full_like(values, value=0.0, dtype=dy.dtype), axis=axis)
    if reduction == "add":
        return assign(dy)
    if reduction == "multiply":
        ones = full_like(x, value=1.0, dtype=dy.dtype)
        return multiply(dy, conjugated(scatter_along_axis(ones, index, values, axis=axis, reduction=reduction)))
    return multiply(*_shares(x, index, values, y, dy, axis)[:2])


@scatter_along_axis.gradient_program("values")
def scatter_along_axis_dvalues(x, index, values, y, dy, *, axis, reduction):
    if reduction in ("none", "add"):
        return take_along_axis(dy, index, axis=axis)
    if reduction != "multiply":
        share, _, chosen = _shares(x, index, values, y, dy, axis)
        return multiply(take_along_axis(share, index, axis=axis), chosen)
    zeros, of_x = _is(values, 0.0), _is(x, 0.0)
    factors = scatter_along_axis(add(x, of_x), index, add(values, zeros), axis=axis, reduction="multiply")
    count = scatter_along_axis(of_x, index, zeros, axis=axis, reduction="add")  # factors equal to 0, which `factors` leaves out
    others = divide(take_along_axis(factors, index, axis=axis), add(values, zeros))
    alone = _is(subtract(take_along_axis(count, index, axis=axis), zeros), 0.0)
    return multiply(multiply(take_along_axis(dy, index, axis=axis), conjugated(others)), alone)


def _is(x, value: float):
    """Return 1 where ``x`` equals ``value`` and 0 elsewhere."""
    return cast(equal(x, full(shape=(), value=value, dtype=x.dtype)), dtype=x.dtype)


def _shares(x, index, values, y, dy, axis: int):
    """Return the gradient share of each tied extreme, and masks of the extremes in ``x`` and in the values."""
    own = cast(equal(x, y), dtype=dy.dtype)
    chosen = cast(equal(values, take_along_axis(y, index, axis=axis)), dtype=dy.dtype)
    return divide(dy, scatter_along_axis(own, index, chosen, axis=axis, reduction="add")), own, chosen


scatter_along_axis.declare_edges(
    **dict.fromkeys(("infinite", "nan"), "a product of the other factors; PyTorch divides the product by the factor, which gives NaN")
)
