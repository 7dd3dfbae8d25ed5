"""Differences of neighbouring elements along an axis, and integrals by the trapezoidal rule."""

from oarlock.errors import ArgumentError
from oarlock.ir.location import here
from oarlock.ir.var import Var
from oarlock.op.comparison import not_equal
from oarlock.op.composed.arithmetic import constant_like
from oarlock.op.composed.composition import composition
from oarlock.op.composed.shape import known_shape, require_axis_of, unsqueeze
from oarlock.op.composed.slices import slice as slice_
from oarlock.op.cumulative import cumsum
from oarlock.op.elementwise import add, multiply, subtract
from oarlock.op.manipulation import concat
from oarlock.op.reduction import reduce_sum

__all__ = ["cumulative_trapezoid", "diff", "trapezoid"]


@composition
def diff(x: Var, *, n: int = 1, axis: int = -1, prepend: Var | None = None, append: Var | None = None) -> Var:
    """The difference of each element and the previous one along ``axis``, ``n`` times; for bools, whether they differ.

    ``prepend`` and ``append`` are added at the ends first.
    """
    if n < 0:
        raise ArgumentError(f"diff: n must be at least 0, not {n}", location=here())
    axis = require_axis_of(x, axis, "diff")
    parts = [each for each in (prepend, x, append) if each is not None]
    found = concat(parts, axis=axis) if len(parts) > 1 and n else x
    for _ in range(n):
        size = known_shape(found, "diff")[axis]
        if size == 0:
            return found
        later, earlier = slice_(found, axis=axis, start=1), slice_(found, axis=axis, stop=-1)
        found = (not_equal if x.dtype.value == "bool" else subtract)(later, earlier)
    return found


def _areas(y: Var, x: Var | None, dx: float, axis: int, what: str) -> tuple[Var, int]:
    """Return the area under each pair of neighbours, and the axis along which they are."""
    axis = require_axis_of(y, axis, what)
    if known_shape(y, what)[axis] == 0:
        return slice_(y, axis=axis), axis
    later, earlier = slice_(y, axis=axis, start=1), slice_(y, axis=axis, stop=-1)
    total = add(later, earlier)
    if x is None:
        return multiply(total, constant_like(dx / 2.0, y)), axis
    if len(known_shape(x, what)) == 1:
        steps = diff(x)
        behind = len(known_shape(y, what)) - axis - 1
        steps = unsqueeze(steps, *range(1, behind + 1)) if behind else steps
    else:
        steps = diff(x, axis=axis - len(known_shape(y, what)))
    return multiply(multiply(total, steps), constant_like(0.5, y)), axis - len(known_shape(y, what))


@composition
def trapezoid(y: Var, x: Var | None = None, *, dx: float = 1.0, axis: int = -1) -> Var:
    """The integral of ``y`` along ``axis`` by the trapezoidal rule, with steps ``dx`` or between the positions
    ``x``, which are broadcast.
    """
    areas, axis = _areas(y, x, dx, axis, "trapezoid")
    return reduce_sum(areas, axis=axis)


@composition
def cumulative_trapezoid(y: Var, x: Var | None = None, *, dx: float = 1.0, axis: int = -1) -> Var:
    """The integral of `trapezoid` up to each element along ``axis`` except the first."""
    areas, axis = _areas(y, x, dx, axis, "cumulative_trapezoid")
    return cumsum(areas, axis=axis)
