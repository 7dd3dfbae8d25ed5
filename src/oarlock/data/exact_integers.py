"""Columns that mix floats with integers that float64 cannot represent (beyond 2**53), which are kept as Python numbers."""

import math
from collections.abc import Sequence
from decimal import Decimal

import numpy

from oarlock.runtime.value import EXACT_IN_FLOAT64

__all__ = ["array_of_fields", "exact_array", "has_numbers", "side_by_side"]

_INT64 = range(-(2**63), 2**63)


def exact_array(value: object) -> numpy.ndarray:
    """Return `value` as an array, of Python numbers if an array of floats would round an integer.

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
    """Parse a number as a float, or as an int64 integer if float64 cannot represent it."""
    number = float(field)
    if math.isfinite(number) and abs(number) >= EXACT_IN_FLOAT64 and abs(number) <= 2.0**63:
        exact = Decimal(field.strip())
        whole = int(exact)
        if exact == whole and whole in _INT64 and whole != int(number):
            return whole
    return number


def array_of_fields(fields: Sequence[str]) -> numpy.ndarray:
    """Parse numbers as float64, or as Python numbers if float64 would round an integer."""
    return exact_array([_number_in(field) for field in fields])


def has_numbers(array: numpy.ndarray) -> bool:
    """Return whether an array is numeric, or a column of Python numbers as returned by `exact_array`."""
    return array.dtype.kind in "fiub" or (
        array.dtype == object and array.ndim == 1 and all(isinstance(item, int | float) and not isinstance(item, bool) for item in array)
    )


def side_by_side(parts: Sequence[numpy.ndarray]) -> numpy.ndarray:
    """Stack columns of one shape, [n, columns, ...], as Python numbers if an array of floats would round an integer."""
    joined = numpy.stack(parts, axis=1)
    if joined.dtype.kind == "f" and any(_has_large_integers(part) for part in parts):
        return numpy.stack([part.astype(object) for part in parts], axis=1)
    return joined


def _has_large_integers(array: numpy.ndarray) -> bool:
    whole = array.dtype.kind in "iu" and array.dtype.itemsize == 8
    return whole and bool(((array >= EXACT_IN_FLOAT64) | (array <= -EXACT_IN_FLOAT64)).any())
