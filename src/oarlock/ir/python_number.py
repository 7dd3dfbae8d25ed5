"""Numbers as Python has them, which is how programs hold them: those of NumPy become such."""

from numbers import Integral, Real

__all__ = ["as_python", "is_bool"]


def is_bool(value: object) -> bool:
    """Whether a value is a bool, of Python or NumPy."""
    return isinstance(value, bool) or type(value).__name__ in ("bool", "bool_")


def as_python(value: object) -> object:
    """A number of NumPy as Python's, in a tuple or a list too; anything else as it is."""
    if type(value) in (int, float, str):
        return value
    if type(value) in (tuple, list):
        return type(value)(map(as_python, value))  # type: ignore[call-arg, arg-type]
    if is_bool(value):
        return bool(value)
    if isinstance(value, Real):
        return int(value) if isinstance(value, Integral) else float(value)
    return value
