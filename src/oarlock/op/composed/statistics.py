"""Statistics composed of sums and sorting: quantiles, sums and means without NaN, covariances, extremes."""

import math
from collections.abc import Sequence

from oarlock.errors import ArgumentError, ShapeError
from oarlock.ir.location import here
from oarlock.ir.var import Var
from oarlock.op.along_axis import take_along_axis
from oarlock.op.choice import maximum, minimum, where
from oarlock.op.comparison import not_equal
from oarlock.op.composed.arithmetic import constant_like
from oarlock.op.composed.axes import moveaxis
from oarlock.op.composed.composition import composition
from oarlock.op.composed.diagonals import diag
from oarlock.op.composed.shape import known_shape, unsqueeze
from oarlock.op.creation import full
from oarlock.op.dtype_conversion import cast
from oarlock.op.elementwise import add, clip, divide, multiply, subtract
from oarlock.op.extremes import amax, amin
from oarlock.op.logical import any_, logical_not
from oarlock.op.manipulation import concat, reshape
from oarlock.op.matrix import linear, matrix_transpose
from oarlock.op.reduction import mean, reduce_sum
from oarlock.op.rounding import ceil, floor, isnan, round_
from oarlock.op.sorting import sort
from oarlock.op.told_shape import broadcast_to, size
from oarlock.op.unary import sqrt
from oarlock.suggestions import did_you_mean

__all__ = ["aminmax", "corrcoef", "count_nonzero", "cov", "nanmean", "nanquantile", "nansum", "quantile"]

Axes = int | tuple[int, ...] | None

_BETWEEN = ("linear", "lower", "higher", "midpoint", "nearest")


@composition
def nansum(x: Var, *, axis: Axes = None, keepdim: bool = False) -> Var:
    """The sum of the elements that are not NaN."""
    return reduce_sum(where(isnan(x), constant_like(0.0, x), x), axis=axis, keepdim=keepdim)


@composition
def nanmean(x: Var, *, axis: Axes = None, keepdim: bool = False) -> Var:
    """The mean of the elements that are not NaN; NaN if all are."""
    count = reduce_sum(cast(logical_not(isnan(x)), dtype=x.dtype), axis=axis, keepdim=keepdim)
    return divide(nansum(x, axis=axis, keepdim=keepdim), count)


@composition
def count_nonzero(x: Var, *, axis: Axes = None) -> Var:
    """The number of elements that are not 0, or are true: int64."""
    return reduce_sum(cast(x if x.dtype.value == "bool" else not_equal(x, constant_like(0.0, x)), dtype="int64"), axis=axis)


@composition
def aminmax(x: Var, *, axis: Axes = None, keepdim: bool = False) -> tuple[Var, Var]:
    """The smallest and the largest element, as in `amin` and `amax`."""
    return amin(x, axis=axis, keepdim=keepdim), amax(x, axis=axis, keepdim=keepdim)


@composition
def quantile(
    x: Var, q: Var | float | Sequence[float], *, axis: int | None = None, keepdim: bool = False, interpolation: str = "linear"
) -> Var:
    """The ``q`` quantile along ``axis``, or of all elements if it is None; NaN if any element is NaN.

    ``interpolation`` between two elements is "linear", "lower", "higher", "nearest" or "midpoint". Several ``q`` are along a new first axis
    of the result. Raises ArgumentError for a number outside of 0 to 1; a variable is clipped.
    """
    found = _quantile(x, q, axis, keepdim, interpolation, "quantile")
    unknown = any_(isnan(x), axis=axis, keepdim=keepdim)
    return where(unknown, constant_like(math.nan, x), found)


@composition
def nanquantile(
    x: Var, q: Var | float | Sequence[float], *, axis: int | None = None, keepdim: bool = False, interpolation: str = "linear"
) -> Var:
    """The `quantile` of the elements that are not NaN; NaN if all are."""
    return _quantile(x, q, axis, keepdim, interpolation, "nanquantile")


def _quantile(x: Var, q: Var | float | Sequence[float], axis: int | None, keepdim: bool, interpolation: str, what: str) -> Var:
    if interpolation not in _BETWEEN:
        contract = f"one of {', '.join(_BETWEEN)}"
        raise ArgumentError(f"{what}: no interpolation is called {interpolation!r:.40}", location=here(), contract=contract,
                            hint=did_you_mean(str(interpolation), _BETWEEN))  # fmt: skip
    rank = len(known_shape(x, what))
    rows = reshape(x, shape=(-1,)) if axis is None else moveaxis(x, axis, -1)
    parts, several = _parts(q, x, what)
    count = reduce_sum(cast(logical_not(isnan(rows)), dtype=x.dtype), axis=-1, keepdim=True)
    place = multiply(parts, clip(subtract(count, constant_like(1.0, x)), constant_like(0.0, x)))  # [*rows q]
    ordered = sort(rows, axis=-1)[0]
    if interpolation == "lower":
        found = _at(ordered, floor(place))
    elif interpolation == "higher":
        found = _at(ordered, ceil(place))
    elif interpolation == "nearest":
        found = _at(ordered, round_(place))
    else:
        below, above = _at(ordered, floor(place)), _at(ordered, ceil(place))
        weight = constant_like(0.5, x) if interpolation == "midpoint" else subtract(place, floor(place))
        found = add(below, multiply(weight, subtract(above, below)))
    first = moveaxis(found, -1, 0)  # [q *rows]
    front = known_shape(first, what)[:1] if several else ()
    if axis is None:
        return reshape(first, shape=(*front, *((1,) * rank if keepdim else ())))
    if not several:
        first = reshape(first, shape=known_shape(first, what)[1:])
    return unsqueeze(first, axis % rank + len(front)) if keepdim else first


def _parts(q: Var | float | Sequence[float], x: Var, what: str) -> tuple[Var, bool]:
    """Return ``q`` as a row, and whether there may be several. Raises ArgumentError or ShapeError."""
    if isinstance(q, Var):
        if len(known_shape(q, what)) > 1 or q.dtype is not x.dtype:
            raise ShapeError(f"{what}: q must be a number or a row of the dtype of x", location=here(), given=[x.describe(), q.describe()])
        held = clip(q, constant_like(0.0, q), constant_like(1.0, q))
        return (held, True) if q.shape else (reshape(held, shape=(1,)), False)
    numbers = [q] if isinstance(q, int | float) else list(q)
    for number in numbers:
        if not 0.0 <= number <= 1.0:
            raise ArgumentError(f"{what}: q must be from 0 to 1, not {number}", location=here(), given=[x.describe()])
    rows = [full(shape=(1,), value=float(number), dtype=x.dtype) for number in numbers]
    return (rows[0] if len(rows) == 1 else concat(rows, axis=0)), not isinstance(q, int | float)


def _at(ordered: Var, place: Var) -> Var:
    """Return the elements of sorted rows at given indices."""
    front = known_shape(ordered, "quantile")[:-1]
    index = cast(place, dtype="int64")
    wanted = (*front, known_shape(index, "quantile")[-1])
    return take_along_axis(ordered, index if index.shape == wanted else broadcast_to(index, [ordered], shape=wanted), axis=-1)


@composition
def cov(x: Var, *, correction: float = 1.0, weights: Var | None = None, frequencies: Var | None = None) -> Var:
    """The covariance matrix of the rows of ``x``, float[n k], whose columns are observations: float[n n]; for one row, its variance.

    ``weights``, float[k], weight the observations; ``frequencies``, integer[k], are their counts. The sum of squares is divided by the
    number of observations minus ``correction``, as in NumPy.
    """
    rank = len(known_shape(x, "cov"))
    if rank > 2:
        raise ShapeError(f"cov: x must have at most two axes, not {rank}", location=here(), given=[x.describe()])
    rows = x if rank == 2 else reshape(x, shape=(1, -1))
    weight = weights
    if frequencies is not None and not frequencies.dtype.is_integer:
        raise ArgumentError(f"cov: frequencies must be integers, not {frequencies.dtype}", location=here(), given=[frequencies.describe()])
    if frequencies is not None:
        often = cast(frequencies, dtype=x.dtype)
        weight = often if weights is None else multiply(weights, often)
    for each in (weights, frequencies):
        if each is not None and each.shape != known_shape(rows, "cov")[1:]:
            raise ShapeError("cov: there must be one weight for each observation", location=here(), given=[x.describe(), each.describe()])
    if weight is None:
        centred = subtract(rows, mean(rows, axis=1, keepdim=True))
        weighed, left = centred, subtract(cast(size(rows, axis=1), dtype=x.dtype), constant_like(correction, x))
    else:
        total = reduce_sum(weight)
        centred = subtract(rows, divide(reduce_sum(multiply(rows, weight), axis=1, keepdim=True), total))
        weighed = multiply(centred, weight)
        if correction == 0.0:
            left = total
        elif weights is None:
            left = subtract(total, constant_like(correction, x))
        else:
            squares = reduce_sum(multiply(weight, weights))
            left = subtract(total, multiply(divide(squares, total), constant_like(correction, x)))
    found = divide(linear(weighed, matrix_transpose(centred)), clip(left, constant_like(0.0, x)))
    return found if rank == 2 and known_shape(found, "cov")[0] != 1 else reshape(found, shape=())


@composition
def corrcoef(x: Var) -> Var:
    """The correlation matrix of the rows of ``x``, float[n k], from -1 to 1; 1 for a single row."""
    found = cov(x)
    if not known_shape(found, "corrcoef"):
        return divide(found, found)
    lengths = sqrt(diag(found))
    quotient = divide(divide(found, unsqueeze(lengths, 1)), lengths)
    one = constant_like(1.0, x)
    return minimum(maximum(quotient, constant_like(-1.0, x)), one)
