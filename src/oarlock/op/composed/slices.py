"""Slices along an axis with the bounds of NumPy and PyTorch, clipped to the axis even if its size is a symbol."""

import builtins

from oarlock.errors import ArgumentError
from oarlock.ir.location import here
from oarlock.ir.shape_rules import is_within, slice_size
from oarlock.ir.size import Size
from oarlock.ir.var import Var
from oarlock.op.composed.composition import composition
from oarlock.op.composed.shape import known_shape, require_axis_of
from oarlock.op.manipulation import slice_
from oarlock.op.rearrangement import flip

__all__ = ["part_along", "slice"]

_FAR = 2**62
"""A bound beyond any size, which is clipped to the end of the axis."""


@composition
def slice(
    x: Var,
    *,
    axis: int = 0,
    start: int | None = None,
    stop: int | None = None,
    step: int | None = None,
    clip: bool = True,
    name: str | None = None,
) -> Var:
    """Take a slice of ``x`` along ``axis``, as ``x[start:stop:step]`` does in NumPy and PyTorch.

    Negative bounds count from the end, and bounds beyond the axis are clipped. A negative ``step`` goes backwards from ``start``. With
    ``clip=False``, bounds beyond the axis raise an error: then the size of ``x[1:]`` is ``t-1``, not ``t-min(t,1)``, and a run with t = 0
    raises. Raises ShapeError and ArgumentError.
    """
    axis = require_axis_of(x, axis, "slice")
    if step == 0 or (not clip and step is not None and step < 0):
        wanted = "must not be 0" if clip else "must be at least 1 without clip"
        raise ArgumentError(f"slice: step is {step}, but {wanted}", location=here(), given=[x.describe()])
    if not clip:
        return slice_(x, axis=axis, start=start or 0, stop=stop, step=step, name=name)
    if step is not None and step < 0:
        x, start, stop, step = _turned(x, axis, start, stop, step)
    return _clipped(x, axis, start, stop, step, name)


def part_along(x: Var, axis: int, start: int | None, stop: int | None, step: int) -> Var:
    """Return ``x[start:stop:step]`` along an axis; ``x`` itself if the slice takes all of it."""
    if step < 0:
        x, start, stop, step = _turned(x, axis, start, stop, step)
    size = known_shape(x, "x[...]")[axis]
    first, last, _ = _bounds(size, start, stop)
    if slice_size(size, axis, first, last, step, clip=True) == size and (step == 1 or isinstance(size, int)):
        return x
    return _clipped(x, axis, start, stop, step if step != 1 else None)


def _turned(x: Var, axis: int, start: int | None, stop: int | None, step: int) -> tuple[Var, int | None, int | None, int]:
    """Return ``x`` flipped along an axis, and the bounds and the positive step that select the same elements."""
    return flip(x, axes=(axis,)), *(None if bound is None else ~bound for bound in (start, stop)), -step  # type: ignore[return-value]


def _clipped(x: Var, axis: int, start: int | None, stop: int | None, step: int | None, name: str | None = None) -> Var:
    first, last, clip = _bounds(known_shape(x, "slice")[axis], start, stop)
    return slice_(x, axis=axis, start=first, stop=last, step=step, clip=clip, name=name)


def _bounds(size: Size, start: int | None, stop: int | None) -> tuple[int, int | None, bool]:
    """Return the bounds of a slice of an axis of this size, and whether they must be clipped when the program runs."""
    start, stop = _near(0 if start is None else start), None if stop is None or stop >= _FAR else _near(stop)
    if is_within(size, start, stop):
        return start, stop, False
    if isinstance(size, int):
        first, end, _ = builtins.slice(start, stop).indices(size)
        return first, max(first, end), False
    return start, stop, True


def _near(bound: int) -> int:
    return max(-_FAR, min(bound, _FAR))
