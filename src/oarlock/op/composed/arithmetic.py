"""Python's operators on variables, such as `x + 1`, `x ** 2`, `x @ w` and `(x > 0) & ~done`. `==` and `!=` are in `equality.py`."""

from collections.abc import Callable
from numbers import Real

from oarlock.errors import ArgumentError
from oarlock.ir.dtype import DType
from oarlock.ir.location import here
from oarlock.ir.var import Var
from oarlock.op.bitwise import bitwise_and, bitwise_left_shift, bitwise_not, bitwise_or, bitwise_right_shift, bitwise_xor
from oarlock.op.comparison import greater, greater_equal, less, less_equal
from oarlock.op.composed.broadcast_product import matrix_product
from oarlock.op.composed.indexing import subscript
from oarlock.op.dtype_conversion import cast
from oarlock.op.elementwise import add, divide, floor_divide, multiply, neg, remainder, subtract
from oarlock.op.logical import logical_and, logical_not, logical_or, logical_xor
from oarlock.op.magnitude import abs_
from oarlock.op.matrix import linear
from oarlock.op.powers import power
from oarlock.op.unary import reciprocal, rsqrt, sqrt, square
from oarlock.registry.arguments import is_number
from oarlock.registry.creator import append_constant, describe_value, find_read_hint, seen

__all__ = ["constant_like", "is_one", "masks_as_numbers"]

Operand = Var | complex
"""The other operand of an operator: a variable, or a number, which becomes a constant."""


def is_one(value: object) -> bool:
    """Return whether `value` is the number 1, so that a multiplication by it can be omitted."""
    return isinstance(value, int | float) and not isinstance(value, bool) and value == 1.0


def constant_like(value: object, like: Var, *, what: str | None = None) -> Var:
    """Return the number `value` as a variable of the dtype of `like`; a variable is returned as it is.

    `what` names the argument if it is not part of an expression. Raises ArgumentError for other values, and the errors of `require_held`.
    """
    if isinstance(value, Var):
        return seen(value)
    if not is_number(value):
        combined = None if what is None else f"{what} is a number or a variable that holds one, not {describe_value(value)}"
        raise ArgumentError(
            combined or f'"{like.name}" and {describe_value(value)} do not combine; numbers and variables do',
            location=here(),
            given=[like.describe()],
            hint=find_read_hint(value),
        )
    return append_constant(value, like.dtype, like)


def _binary(operator: Callable[[Var, Var], Var]) -> tuple[Callable[[Var, Operand], Var], Callable[[Var, Operand], Var]]:
    def forward(self: Var, other: Operand) -> Var:
        sides = self, constant_like(other, self)
        return operator(*(sides if operator in _OF_BITS else masks_as_numbers(*sides)))

    def reflected(self: Var, other: Operand) -> Var:
        return operator(constant_like(other, self), self)

    forward.__doc__ = reflected.__doc__ = operator.__doc__
    return forward, reflected


def masks_as_numbers(x: Var, y: Var) -> tuple[Var, Var]:
    """Return both operands; if only one is bool, it is cast to the dtype of the other, as in ``loss * (label != -100)``."""
    x = seen(x)
    if (x.dtype is DType.BOOL) == (y.dtype is DType.BOOL):
        return x, y
    return (cast(x, dtype=y.dtype), y) if x.dtype is DType.BOOL else (x, cast(y, dtype=x.dtype))


def _unary(operator: Callable[[Var], Var]) -> Callable[[Var], Var]:
    def apply(self: Var) -> Var:
        return operator(self)

    apply.__doc__ = operator.__doc__
    return apply


def _matmul(self: Var, other: Var) -> Var:
    """The matrix product by NumPy's rules."""
    return matrix_product(self, other) if isinstance(other, Var) else linear(self, other)


_FIXED: dict[float, Callable[[Var], Var]] = {
    -2.0: lambda x: reciprocal(square(x)),
    -1.0: reciprocal,
    -0.5: rsqrt,
    0.5: sqrt,
    1.0: lambda x: x,
    2.0: square,
    3.0: lambda x: multiply(x, square(x)),
}
"""Faster operators for fixed powers of floats and complex numbers, with no larger rounding errors."""


def _power(self: Var, exponent: Operand) -> Var:
    """``x`` to the power of a number or a variable."""
    if isinstance(exponent, Real) and not isinstance(exponent, bool) and seen(self).dtype.is_inexact:
        found = _FIXED.get(float(exponent))
        if found is not None:
            return found(self)
    return power(self, constant_like(exponent, self))


def _and(x: Var, y: Var) -> Var:
    """Elementwise AND; for integers, bitwise."""
    return (bitwise_and if x.dtype.is_integer else logical_and)(x, y)


def _or(x: Var, y: Var) -> Var:
    """Elementwise OR; for integers, bitwise."""
    return (bitwise_or if x.dtype.is_integer else logical_or)(x, y)


def _xor(x: Var, y: Var) -> Var:
    """Elementwise XOR; for integers, bitwise."""
    return (bitwise_xor if x.dtype.is_integer else logical_xor)(x, y)


def _not(x: Var) -> Var:
    """Elementwise NOT; for integers, bitwise."""
    return (bitwise_not if x.dtype.is_integer else logical_not)(x)


_OF_BITS = (_and, _or, _xor, bitwise_left_shift, bitwise_right_shift)

_BOTH_SIDES = {
    "add": add,
    "sub": subtract,
    "mul": multiply,
    "truediv": divide,
    "floordiv": floor_divide,
    "mod": remainder,
    "and": _and,
    "or": _or,
    "xor": _xor,
    "lshift": bitwise_left_shift,
    "rshift": bitwise_right_shift,
    "pow": power,
}


def attach() -> None:
    """Add Python's operators to Var."""
    for name, operator in _BOTH_SIDES.items():
        forward, reflected = _binary(operator)
        setattr(Var, f"__{name}__", forward)
        setattr(Var, f"__r{name}__", reflected)
    for name, operator in (("gt", greater), ("ge", greater_equal), ("lt", less), ("le", less_equal)):
        setattr(Var, f"__{name}__", _binary(operator)[0])
    Var.__pow__ = _power
    for name, operator in (("abs", abs_), ("neg", neg), ("invert", _not)):
        setattr(Var, f"__{name}__", _unary(operator))
    Var.__matmul__ = _matmul
    Var.__getitem__ = subscript  # type: ignore[method-assign]
    Var.__iter__ = None  # otherwise Python would iterate forever, by index
    Var.__array_ufunc__ = None  # NumPy then defers `array + x` to Var instead of looping over elements


attach()
