"""Sizes, strides, paddings and dilations of windows, one for each axis."""

from oarlock.errors import ArgumentError
from oarlock.ir.location import here
from oarlock.ir.python_number import as_python

__all__ = ["Numbers", "numbers"]

Numbers = int | tuple[int, ...]
"""One number for all axes, or one for each."""

_EACH = {1: "", 2: ", or two for height and width", 3: ", or three for depth, height and width"}


def numbers(value: object, axes: int, what: str, *, least: int = 0) -> tuple[int, ...]:
    """Return one number for each axis; a single number applies to all. Raises ArgumentError unless they are integers from `least`."""
    value = as_python(value)
    each = (value,) * axes if isinstance(value, int) else tuple(value) if isinstance(value, tuple | list) else ()
    if len(each) != axes or not all(isinstance(item, int) and not isinstance(item, bool) for item in each):
        raise ArgumentError(f"{what} must be a number{_EACH[axes]}, not {value!r:.60}", location=here())
    if any(item < least for item in each):
        raise ArgumentError(f"{what} must be at least {least}, not {value!r:.60}", location=here())
    return each
