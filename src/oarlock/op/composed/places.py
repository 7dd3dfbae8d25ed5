"""Elements read, written, filled and combined at indices along an axis, at flat indices, or by a mask.

Indices are int64; negative ones count from the end. An index out of range raises KernelError when the program runs.
"""

import math

from oarlock.errors import ArgumentError, ShapeError
from oarlock.ir.dtype import DType
from oarlock.ir.location import here
from oarlock.ir.shape_rules import broadcast_shape
from oarlock.ir.var import Var
from oarlock.op.along_axis import index as take_at
from oarlock.op.along_axis import index_put, scatter_along_axis
from oarlock.op.choice import maximum, where
from oarlock.op.comparison import equal, greater
from oarlock.op.composed.arithmetic import constant_like
from oarlock.op.composed.composition import composition
from oarlock.op.composed.indexing import subscript
from oarlock.op.composed.shape import broadcast_together, known_shape, require_axis_of, unsqueeze
from oarlock.op.creation import full, full_batch_size_like, full_like
from oarlock.op.cumulative import cumsum
from oarlock.op.dtype_conversion import cast
from oarlock.op.elementwise import divide, floor_divide, multiply, subtract
from oarlock.op.logical import any_
from oarlock.op.manipulation import reshape, reshape_like
from oarlock.op.told_shape import broadcast_to
from oarlock.registry.creator import require_type
from oarlock.suggestions import did_you_mean

__all__ = [
    "index_add", "index_copy", "index_fill", "index_reduce", "index_select", "isin", "masked_fill", "masked_scatter", "masked_select",
    "put", "scatter_reduce", "take",
]  # fmt: skip


def _along(x: Var, index: Var, axis: int, what: str) -> tuple[int, Var]:
    """Return an axis, counted from 0, and the indices as a row. Raises ShapeError."""
    rows = known_shape(index, what)
    at = require_axis_of(x, axis, what, index)
    if len(rows) > 1:
        raise ShapeError(f"{what}: indices must be a row", location=here(), given=[x.describe(), index.describe()])
    return at, index if rows else reshape(index, shape=(1,))


def _filling(x: Var, index: Var, values: Var, axis: int, what: str) -> None:
    """Raise ShapeError unless the values have the shape of ``x`` with the indices in place of the axis."""
    shape = known_shape(x, what)
    wanted = (*shape[:axis], known_shape(index, what)[0], *shape[axis + 1 :])
    if known_shape(values, what) != wanted:
        given = [x.describe(), index.describe(), values.describe()]
        raise ShapeError(f"{what}: values are {list(values.shape or ())}, but must be {list(wanted)}", location=here(), given=given)


@composition
def index_select(x: Var, index: Var, *, axis: int) -> Var:
    """The elements at indices along ``axis``: ``y[i, j] = x[i, index[j]]``."""
    axis, index = _along(x, index, axis, "index_select")
    return take_at(x, [index], axes=(axis,))


@composition
def index_add(x: Var, index: Var, values: Var, *, axis: int, alpha: float = 1.0) -> Var:
    """``x`` with ``alpha`` times ``values`` added at indices along ``axis``; repeated indices add up."""
    axis, index = _along(x, index, axis, "index_add")
    _filling(x, index, values, axis, "index_add")
    weighed = values if alpha == 1.0 else multiply(values, constant_like(alpha, values))
    return index_put(x, weighed, [index], axes=(axis,), accumulate=True)


@composition
def index_copy(x: Var, index: Var, values: Var, *, axis: int) -> Var:
    """``x`` with ``values`` written at indices along ``axis``. If an index repeats, one of its values is kept."""
    axis, index = _along(x, index, axis, "index_copy")
    _filling(x, index, values, axis, "index_copy")
    return index_put(x, values, [index], axes=(axis,))


@composition
def index_fill(x: Var, index: Var, value: Var | float, *, axis: int) -> Var:
    """``x`` with ``value`` written at indices along ``axis``."""
    axis, index = _along(x, index, axis, "index_fill")
    shape = known_shape(x, "index_fill")
    number = value if isinstance(value, Var) else constant_like(value, x)
    if known_shape(number, "index_fill"):
        raise ShapeError("index_fill: value must be one number", location=here(), given=[number.describe()])
    nothing = full_batch_size_like(x, axis=axis, shape=(), value=0.0)
    marks = index_put(nothing, full(shape=(), value=1.0), [index], axes=(0,))  # a repeated index is filled once
    return where(greater(reshape(marks, shape=(shape[axis], *(1 for _ in shape[axis + 1 :]))), constant_like(0.0, marks)), number, x)


_REDUCTIONS = ("sum", "prod", "mean", "amax", "amin")


@composition
def scatter_reduce(x: Var, index: Var, values: Var, *, axis: int, reduction: str, include_self: bool = True) -> Var:
    """``x`` with ``values`` combined at indices along ``axis``, with separate indices for each row.

    ``reduction`` is "sum", "prod", "mean", "amax" or "amin" of all values with the same index and, with ``include_self``, of the element of
    ``x``.
    """
    if reduction not in _REDUCTIONS:
        contract = f"one of {', '.join(_REDUCTIONS)}"
        raise ArgumentError(f"scatter_reduce: no reduction is called {reduction!r:.60}", location=here(), contract=contract,
                            hint=did_you_mean(str(reduction), _REDUCTIONS))  # fmt: skip
    put_at = {"sum": "add", "mean": "add", "prod": "multiply", "amax": "maximum", "amin": "minimum"}[reduction]
    base = x
    if not include_self:
        neutral = full_like(values, value=_neutral(reduction, x.dtype), dtype=x.dtype)
        base = scatter_along_axis(x, index, neutral, axis=axis)
    found = scatter_along_axis(base, index, values, axis=axis, reduction=put_at)
    if reduction != "mean":
        return found
    ones = full_like(values, value=1.0, dtype=x.dtype)
    count = scatter_along_axis(full_like(x, value=float(include_self), dtype=x.dtype), index, ones, axis=axis, reduction="add")
    return (divide if x.dtype.is_floating else floor_divide)(found, maximum(count, constant_like(1.0, count)))


def _neutral(reduction: str, dtype: DType) -> float:
    """Return the neutral element of a reduction."""
    if reduction in ("sum", "mean", "prod"):
        return float(reduction == "prod")
    if dtype.is_floating:
        return -math.inf if reduction == "amax" else math.inf
    low = 0 if dtype is DType.UINT8 else -(2 ** (8 * dtype.itemsize - 1))
    return low if reduction == "amax" else low + 2 ** (8 * dtype.itemsize) - 1


@composition
def index_reduce(x: Var, index: Var, values: Var, *, axis: int, reduction: str, include_self: bool = True) -> Var:
    """`scatter_reduce` of whole slices at indices along ``axis``."""
    axis, index = _along(x, index, axis, "index_reduce")
    _filling(x, index, values, axis, "index_reduce")
    others = [at for at in range(len(known_shape(x, "index_reduce"))) if at != axis]
    numbers = broadcast_to(unsqueeze(index, *others), [values], shape=known_shape(values, "index_reduce"))
    return scatter_reduce(x, numbers, values, axis=axis, reduction=reduction, include_self=include_self)


@composition
def take(x: Var, index: Var) -> Var:
    """The elements at flat indices into ``x``, in the shape of ``index``."""
    return take_at(reshape(x, shape=(-1,)), [index], axes=(0,))


@composition
def put(x: Var, index: Var, values: Var, *, accumulate: bool = False) -> Var:
    """``x`` with ``values`` written at flat indices, or added to them."""
    flat = index_put(reshape(x, shape=(-1,)), reshape_like(values, index), [index], axes=(0,), accumulate=accumulate)
    return reshape_like(flat, x)


def _mask(x: Var, mask: Var, what: str) -> None:
    """Raise ShapeError if a mask and ``x`` do not broadcast, ArgumentError if it is not a mask."""
    mask = require_type(mask, f"{what}: mask")
    if mask.dtype is not DType.BOOL:
        raise ArgumentError(f"{what}: the mask must be bool, not {mask.dtype}", location=here(), given=[mask.describe()])
    try:
        broadcast_shape(known_shape(mask, what), known_shape(x, what))
    except ShapeError as error:
        raise ShapeError(f"{what}: {error.message}", location=here(), given=[x.describe(), mask.describe()]) from None


@composition
def masked_fill(x: Var, mask: Var, value: Var | float) -> Var:
    """``x`` with ``value`` at the true positions of a mask; the two are broadcast."""
    _mask(x, mask, "masked_fill")
    number = value if isinstance(value, Var) else constant_like(value, x)
    if known_shape(number, "masked_fill"):
        raise ShapeError("masked_fill: value must be one number", location=here(), given=[number.describe()])
    return where(mask, number, x)


@composition
def masked_select(x: Var, mask: Var) -> Var:
    """The elements at the true positions of a mask, as a row; the two are broadcast. Their number is known when the program runs."""
    mask = require_type(mask, "masked_select: mask")
    if mask.dtype is not DType.BOOL:
        raise ArgumentError(f"masked_select: the mask must be bool, not {mask.dtype}", location=here(), given=[mask.describe()])
    both, wide = broadcast_together(x, mask)
    rows = [reshape(each, shape=(-1,)) for each in (both, wide)]
    return subscript(rows[0], rows[1])


@composition
def masked_scatter(x: Var, mask: Var, values: Var) -> Var:
    """``x`` with the elements of ``values``, in order, at the true positions of a mask; the two are broadcast.

    Too few values raise KernelError.
    """
    _mask(x, mask, "masked_scatter")
    x, wide = broadcast_together(x, mask)
    flat = reshape(cast(wide, dtype="int64"), shape=(-1,))
    number = subtract(cumsum(flat, axis=0), flat)  # true positions before each
    kept = multiply(number, flat)
    row = reshape(values, shape=(-1,))
    if row.shape == (0,):
        return x
    return where(wide, reshape_like(take_at(row, [kept], axes=(0,)), x), x)


@composition
def isin(x: Var, among: Var) -> Var:
    """Whether each element occurs in ``among``: bool in the shape of ``x``. It compares every pair."""
    return any_(equal(unsqueeze(x, -1), reshape(among, shape=(-1,))), axis=-1)
