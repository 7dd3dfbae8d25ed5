"""Elementwise functions composed of operators, with PyTorch's gradients at every kink."""

import math

from oarlock.errors import ArgumentError
from oarlock.ir.location import here
from oarlock.ir.var import Var
from oarlock.op.choice import where
from oarlock.op.comparison import equal, less, less_equal
from oarlock.op.complex_parts import complex_, imag, real
from oarlock.op.composed.arithmetic import constant_like
from oarlock.op.composed.composition import composition
from oarlock.op.composed.shape import known_shape
from oarlock.op.dtype_conversion import cast
from oarlock.op.elementwise import add, divide, multiply, neg, subtract
from oarlock.op.logical import all_, logical_and, logical_or
from oarlock.op.magnitude import abs_
from oarlock.op.paired_functions import copysign
from oarlock.op.powers import power
from oarlock.op.rounding import isfinite, isnan, trunc
from oarlock.op.special_functions import erfc, lgamma
from oarlock.op.unary import exp2

__all__ = [
    "addcdiv", "allclose", "deg2rad", "float_power", "frac", "isclose", "isneginf", "isposinf", "ldexp", "multigammaln", "nan_to_num",
    "ndtr", "rad2deg", "signbit",
]  # fmt: skip


@composition
def deg2rad(x: Var) -> Var:
    """Degrees to radians: ``pi / 180 x``."""
    return multiply(x, constant_like(math.pi / 180.0, x))


@composition
def rad2deg(x: Var) -> Var:
    """Radians to degrees: ``180 / pi x``."""
    return multiply(x, constant_like(180.0 / math.pi, x))


@composition
def frac(x: Var) -> Var:
    """The fractional part of ``x``, with its sign: ``x - trunc(x)``."""
    return subtract(x, trunc(x))


@composition
def nan_to_num(x: Var, *, nan: float = 0.0, posinf: float | None = None, neginf: float | None = None) -> Var:
    """``x`` with NaN and infinities replaced; infinities by default by the largest and the smallest number of the dtype.

    The real and imaginary parts of a complex number are replaced separately.
    """
    if x.dtype.is_complex:
        return complex_(*(nan_to_num(part, nan=nan, posinf=posinf, neginf=neginf) for part in (real(x), imag(x))))
    largest = _LARGEST[str(x.dtype)] if x.dtype.is_floating else 0.0
    infinity = constant_like(math.inf, x) if x.dtype.is_floating else x
    found = where(isnan(x), constant_like(nan, x), x)
    found = where(equal(x, infinity), constant_like(largest if posinf is None else posinf, x), found)
    return where(equal(x, neg(infinity)), constant_like(-largest if neginf is None else neginf, x), found)


_LARGEST = {"float16": 65504.0, "bfloat16": (2 - 2**-7) * 2.0**127, "float32": (2 - 2**-23) * 2.0**127, "float64": (2 - 2**-52) * 2.0**1023}


@composition
def isposinf(x: Var) -> Var:
    """Whether ``x`` is positive infinity, elementwise."""
    return equal(x, constant_like(math.inf, x))


@composition
def isneginf(x: Var) -> Var:
    """Whether ``x`` is negative infinity, elementwise."""
    return equal(x, constant_like(-math.inf, x))


@composition
def signbit(x: Var) -> Var:
    """Whether ``x`` has a minus sign, which -0 has, elementwise."""
    return less(copysign(constant_like(1.0, x), x) if x.dtype.is_floating else x, constant_like(0.0, x))


@composition
def isclose(x: Var, y: Var, *, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False) -> Var:
    """Whether ``|x - y| <= atol + rtol |y|`` or both are the same infinity, elementwise; with ``equal_nan``, also if both are NaN."""
    if not (rtol >= 0.0 and atol >= 0.0):
        raise ArgumentError(f"isclose: rtol and atol must be at least 0, not {rtol} and {atol}", location=here())
    size = abs_(y)
    bound = add(multiply(size, constant_like(rtol, size)), constant_like(atol, size))
    near = logical_or(equal(x, y), logical_and(isfinite(y), less_equal(abs_(subtract(x, y)), bound)))
    return logical_or(near, logical_and(isnan(x), isnan(y))) if equal_nan else near


@composition
def allclose(x: Var, y: Var, *, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False) -> Var:
    """Whether all elements are close by the rule of `isclose`: bool[]."""
    return all_(isclose(x, y, rtol=rtol, atol=atol, equal_nan=equal_nan))


@composition
def float_power(x: Var, exponent: Var | float) -> Var:
    """``x`` to a power, computed in float64, or in complex128 if either is complex."""
    of_complex = x.dtype.is_complex or (isinstance(exponent, Var) and exponent.dtype.is_complex)
    wide = cast(x, dtype="complex128" if of_complex else "float64")
    return power(wide, cast(exponent, dtype=wide.dtype) if isinstance(exponent, Var) else constant_like(exponent, wide))


@composition
def ldexp(x: Var, exponent: Var | float) -> Var:
    """``x`` times 2 to the power ``exponent``."""
    return multiply(x, exp2(exponent if isinstance(exponent, Var) else constant_like(exponent, x)))


@composition
def addcdiv(base: Var, x: Var, y: Var, *, value: float = 1.0) -> Var:
    """``base + value x / y``, with broadcasting. Half precision is computed in float32."""
    if x.dtype.value in ("float16", "bfloat16"):
        wide = (cast(each, dtype="float32") for each in (base, x, y))
        return cast(addcdiv(*wide, value=value), dtype=x.dtype)
    quotient = divide(x, y)
    return add(base, quotient if value == 1.0 else multiply(quotient, constant_like(value, x)))


@composition
def ndtr(x: Var) -> Var:
    """The standard normal distribution function: the probability of a number below ``x``."""
    return multiply(erfc(multiply(x, constant_like(-math.sqrt(0.5), x))), constant_like(0.5, x))


@composition
def multigammaln(x: Var, *, dimensions: int) -> Var:
    """The logarithm of the multivariate gamma function: ``d (d - 1) / 4 log(pi) + sum lgamma(x - i / 2)`` for ``i`` from 0 to ``d - 1``."""
    if dimensions < 1:
        raise ArgumentError(f"multigammaln: dimensions must be at least 1, not {dimensions}", location=here())
    known_shape(x, "multigammaln")
    total = lgamma(x)
    for number in range(1, dimensions):
        total = add(total, lgamma(subtract(x, constant_like(number / 2, x))))
    return add(total, constant_like(dimensions * (dimensions - 1) / 4 * math.log(math.pi), x))
