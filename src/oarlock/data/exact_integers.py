"""Integers beside floats in one column: float64 holds those below 2**53; with others a column keeps the numbers as they are."""

import math
from collections.abc import Sequence
from decimal import Decimal

import numpy

from oarlock.runtime.value import EXACT_IN_FLOAT64

__all__ = ["array_of_fields", "exact_array", "has_numbers", "side_by_side"]

_INT64 = range(-(2**63), 2**63)


def exact_array(value: object) -> numpy.ndarray:
    """`value` as an array: of Python's numbers themselves where an array of floats would round an integer.

    Raises ValueError for rows of different lengths.
    """
    array = numpy.asarray(value)
    if array.dtype.kind != "f" or not array.size or isinstance(value, numpy.ndarray | numpy.generic):
        return array
    with numpy.errstate(invalid="ignore"):
        large = numpy.abs(array) >= EXACT_IN_FLOAT64
    if not large.any():
        return array
    items = numpy.array(value, dtype=object)
    if items.shape != array.shape:
        return array
    numbers = [item.item() if isinstance(item, numpy.ndarray | numpy.generic) else item for item in items.reshape(-1).tolist()]
    rounded = zip(numbers, array.reshape(-1).tolist(), large.reshape(-1).tolist(), strict=True)
    if not any(is_large and isinstance(number, int) and number != int(read) for number, read, is_large in rounded):
        return array
    exact = numpy.empty(len(numbers), dtype=object)
    exact[:] = numbers
    return exact.reshape(array.shape)


def _number_in(field: str) -> int | float:
    """The number that a text is: a float, or an integer of int64 that no float64 is. The text is one of a number."""
    number = float(field)
    if math.isfinite(number) and abs(number) >= EXACT_IN_FLOAT64 and abs(number) <= 2.0**63:
        exact = Decimal(field.strip())
        whole = int(exact)
        if exact == whole and whole in _INT64 and whole != int(number):
            return whole
    return number


def array_of_fields(fields: Sequence[str]) -> numpy.ndarray:
    """The numbers that texts are: float64, or Python's numbers where float64 would round an integer."""
    return exact_array([_number_in(field) for field in fields])


def has_numbers(array: numpy.ndarray) -> bool:
    """Whether an array has numbers, or is a column of Python's numbers as `exact_array` makes one."""
    return array.dtype.kind in "fiub" or (
        array.dtype == object and array.ndim == 1 and all(isinstance(item, int | float) and not isinstance(item, bool) for item in array)
    )


def side_by_side(parts: Sequence[numpy.ndarray]) -> numpy.ndarray:
    """Columns of one shape as one array, [n, columns, ...]: of Python's numbers where an array of floats would round an integer."""
    joined = numpy.stack(parts, axis=1)
    if joined.dtype.kind == "f" and any(_has_large_integers(part) for part in parts):
        return numpy.stack([part.astype(object) for part in parts], axis=1)
    return joined


def _has_large_integers(array: numpy.ndarray) -> bool:
    whole = array.dtype.kind in "iu" and array.dtype.itemsize == 8
    return whole and bool(((array >= EXACT_IN_FLOAT64) | (array <= -EXACT_IN_FLOAT64)).any())
