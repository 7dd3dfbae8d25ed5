"""Conversion of NumPy numbers to Python numbers, which programs use."""

from numbers import Integral, Real

__all__ = ["as_python", "is_bool"]


def is_bool(value: object) -> bool:
    """Return whether a value is a Python or NumPy bool."""
    return isinstance(value, bool) or type(value).__name__ in ("bool", "bool_")


def as_python(value: object) -> object:
    """Convert a NumPy number to a Python number, also inside a tuple or list; return anything else unchanged."""
    if type(value) in (int, float, str):
        return value
    if type(value) in (tuple, list):
        return type(value)(map(as_python, value))  # type: ignore[call-arg, arg-type]
    if is_bool(value):
        return bool(value)
    if isinstance(value, Real):
        return int(value) if isinstance(value, Integral) else float(value)
    return value
