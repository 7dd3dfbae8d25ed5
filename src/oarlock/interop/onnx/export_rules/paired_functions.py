"""Binary functions with broadcasting, as in `op/paired_functions.py`."""

import math

from oarlock.interop.onnx.export_graph import Graph, Unsupported, Value
from oarlock.interop.onnx.export_rule import export
from oarlock.interop.onnx.export_rules.unary import log1p


@export("hypot")
def hypot(g: Graph, x: Value, y: Value) -> str:
    """Return the larger absolute value times sqrt(1 + ratio**2), which avoids overflow."""
    one, zero = g.scalar(1, x.dtype), g.scalar(0, x.dtype)
    large, small = g("Max", g("Abs", x), g("Abs", y)), g("Min", g("Abs", x), g("Abs", y))
    still = g("Or", g("Equal", large, zero), g("IsInf", large))
    ratio = g("Where", still, zero, g("Div", small, g("Where", still, one, large)))
    length = g("Mul", large, g("Sqrt", g("Add", one, g("Mul", ratio, ratio))))
    infinite = g("Or", g("IsInf", x), g("IsInf", y))  # even if the other one is NaN
    return g("Where", infinite, g.scalar(math.inf, x.dtype), length)


@export("copysign")
def copysign(g: Graph, x: Value, y: Value) -> str:
    """Return `x` with the sign of `y`. The sign of a zero is the sign of its reciprocal."""
    size = g("Abs", x)
    return g("Where", has_minus(g, y), g("Neg", size), size)


def has_minus(g: Graph, x: Value) -> str:
    """Return whether numbers have a minus sign, including -0: bool."""
    zero = g.scalar(0, x.dtype)
    return g("Or", g("Less", x, zero), g("Less", g("Reciprocal", x), zero))


@export("atan2")
def atan2(g: Graph, y: Value, x: Value) -> str:
    """Return the angle of ``|y| / |x|``, reflected for negative x, with the sign of y; for 0 and infinities as in IEEE 754."""
    high, wide = g("Abs", y), g("Abs", x)
    zero, still = g.scalar(0, x.dtype), g("Equal", g("Add", high, wide), g.scalar(0, x.dtype))
    both = g("And", g("IsInf", y), g("IsInf", x))
    ratio = g("Where", still, zero, g("Where", both, g.scalar(1, x.dtype), g("Div", high, wide)))
    angle = g("Atan", ratio)
    angle = g("Where", has_minus(g, x), g("Sub", g.scalar(math.pi, x.dtype), angle), angle)
    return g("Where", has_minus(g, y), g("Neg", angle), angle)


@export("logaddexp")
def logaddexp(g: Graph, x: Value, y: Value) -> str:
    return _added(g, x, y, 1.0)


@export("logaddexp2")
def logaddexp2(g: Graph, x: Value, y: Value) -> str:
    return _added(g, x, y, math.log(2))


def _added(g: Graph, x: Value, y: Value, base: float) -> str:
    """Add two logarithms to a base, whose natural logarithm is `base`."""
    large = g("Max", x, y)
    apart = g("Sub", g("Min", x, y), large)
    alike = g("Equal", x, y)  # includes infinities, whose difference is NaN
    apart = g("Where", alike, g.scalar(0, x.dtype), apart)
    share = g("Exp", apart if base == 1.0 else g("Mul", apart, g.scalar(base, x.dtype)))
    logarithm = log1p(g, Value(share, x.dtype, ()))
    return g("Add", large, logarithm if base == 1.0 else g("Div", logarithm, g.scalar(base, x.dtype)))


@export("xlogy")
def xlogy(g: Graph, x: Value, y: Value) -> str:
    return _times_logarithm(g, x, y, g("Log", _but_of_nothing(g, x, y, 1)))


@export("xlog1py")
def xlog1py(g: Graph, x: Value, y: Value) -> str:
    return _times_logarithm(g, x, y, log1p(g, Value(_but_of_nothing(g, x, y, 0), y.dtype, ())))


def _times_logarithm(g: Graph, x: Value, y: Value, logarithm: str) -> str:
    return g("Where", g("IsNaN", y), y, g("Mul", x, logarithm))


def _but_of_nothing(g: Graph, x: Value, y: Value, instead: float) -> str:
    """Return `y`, or a number whose logarithm is 0 if `x` is 0."""
    return g("Where", g("Equal", x, g.scalar(0, x.dtype)), g.scalar(instead, y.dtype), y)


@export("fmax")
def fmax(g: Graph, x: Value, y: Value) -> str:
    return _of_numbers(g, "Max", x, y)


@export("fmin")
def fmin(g: Graph, x: Value, y: Value) -> str:
    return _of_numbers(g, "Min", x, y)


def _of_numbers(g: Graph, type: str, x: Value, y: Value) -> str:
    """Return the larger or smaller number, ignoring NaN."""
    return g("Where", g("IsNaN", x), y, g("Where", g("IsNaN", y), x, g(type, x, y)))


@export("heaviside")
def heaviside(g: Graph, x: Value, y: Value) -> str:
    zero = g.scalar(0, x.dtype)
    step = g.cast(g("Greater", x, zero), x.dtype)
    return g("Where", g("Equal", x, zero), y, step)


@export("gcd", "lcm", "nextafter")
def by_bits(g: Graph, *_: Value) -> str:
    raise Unsupported("ONNX has no operators for common divisors and adjacent floats")


@export("around")
def around(g: Graph, x: Value, *, decimals: int) -> str:
    """Round to decimals as PyTorch does: scale, round half to even, and scale back."""
    scale = g.scalar(10.0 ** abs(decimals), x.dtype)
    if decimals >= 0:
        return g("Div", g("Round", g("Mul", x, scale)), scale)
    return g("Mul", g("Round", g("Div", x, scale)), scale)
