"""Elementwise functions of one and two numbers."""

import math

from oarlock.interop.onnx.export_graph import Graph, Value
from oarlock.interop.onnx.export_rule import export
from oarlock.ir.dtype import DType

for ours, theirs in {
    "abs": "Abs",
    "exp": "Exp",
    "log": "Log",
    "sqrt": "Sqrt",
    "sin": "Sin",
    "cos": "Cos",
    "tan": "Tan",
    "asin": "Asin",
    "acos": "Acos",
    "atan": "Atan",
    "sinh": "Sinh",
    "cosh": "Cosh",
    "asinh": "Asinh",
    "acosh": "Acosh",
    "atanh": "Atanh",
    "erf": "Erf",
    "floor": "Floor",
    "ceil": "Ceil",
    "round": "Round",
    "reciprocal": "Reciprocal",
    "isnan": "IsNaN",
    "isinf": "IsInf",
}.items():
    export(ours)(lambda g, x, theirs=theirs: g(theirs, x))


@export("sign")
def sign(g: Graph, x: Value) -> str:
    """Return the sign. ONNX returns NaN for NaN, Oarlock 0."""
    found = g("Sign", x)
    return g("Where", g("IsNaN", x), g.scalar(0, x.dtype), found) if x.dtype.is_floating else found


export("square")(lambda g, x: g("Mul", x, x))
export("rsqrt")(lambda g, x: g("Reciprocal", g("Sqrt", x)))
export("abs_dx")(lambda g, x, dy: g("Mul", dy, sign(g, x)))
export("log2")(lambda g, x: g("Mul", g("Log", x), g.scalar(1 / math.log(2), x.dtype)))
export("log10")(lambda g, x: g("Mul", g("Log", x), g.scalar(1 / math.log(10), x.dtype)))
export("exp2")(lambda g, x: g("Pow", g.scalar(2, x.dtype), x))
export("isfinite")(lambda g, x: g("Not", g("Or", g("IsInf", x), g("IsNaN", x))))
export("cast")(lambda g, x, *, dtype: g.cast(x, dtype))


@export("trunc")
def trunc(g: Graph, x: Value) -> str:
    return g("Mul", g("Sign", x), g("Floor", g("Abs", x)))


@export("log1p")
def log1p(g: Graph, x: Value) -> str:
    """Return ``log(u) x / (u - 1)`` with ``u = 1 + x``, which is accurate for small x (Kahan), or x itself if u is 1."""
    one = g.scalar(1, x.dtype)
    u = g("Add", x, one)
    near = g("Equal", u, one)
    rest = g("Where", near, one, g("Sub", u, one))
    found = g("Mul", g("Log", g("Where", near, g.scalar(2, x.dtype), u)), g("Div", x, rest))
    huge = g("Equal", u, x)  # adding 1 has no effect, as for infinity
    return g("Where", near, x, g("Where", huge, g("Log", u), found))


@export("expm1")
def expm1(g: Graph, x: Value) -> str:
    """Return ``2 tanh(x / 2) / (1 - tanh(x / 2))`` for small x, which loses no digits, and ``exp(x) - 1`` elsewhere."""
    one = g.scalar(1, x.dtype)
    half = g("Tanh", g("Mul", x, g.scalar(0.5, x.dtype)))
    near = g("Less", g("Abs", x), one)
    small = g("Div", g("Mul", g.scalar(2, x.dtype), half), g("Sub", one, g("Where", near, half, g.scalar(0, x.dtype))))
    return g("Where", near, small, g("Sub", g("Exp", x), one))


# Special functions


# (1 + 2 x) exp(x**2) erfc(x) as a polynomial of u = (x - 2) / (x + 2), interpolated at the zeros of a Chebyshev polynomial
_SINGLE = (1.27697838, -0.0927637628, -0.166030384, 0.164049454, -0.0542202666, -0.00801896308, 0.00872460764, 0.00121741059,
           -0.00146407091, -0.000357920448, 0.00022157155, 6.33694584e-05, -2.02559894e-05)  # fmt: skip
_DOUBLE = (1.276978381552529, -0.09276382658574549, -0.16603039761534158, 0.16405128003336958, -0.05422000098934559, -0.008034015079475574,
           0.008722653817629015, 0.0012713389102667787, -0.0014568132829834034, -0.00045434025219570076, 0.0002063626709472865,
           0.00015103550992965112, -1.4899230602176393e-06, -3.640824818280941e-05, -1.3551244173659207e-05, 3.668735212847251e-06,
           5.339892902428813e-06, 1.5843063162962865e-06, -8.511878126198487e-07, -9.405636210868353e-07, -1.261786711931797e-07,
           2.3130160365236702e-07, 9.011975796584774e-08, -2.4519721432573788e-08, -1.408462066448042e-08)  # fmt: skip
_MOST = 28.0  # erfc of this underflows in float64


@export("erfc")
def erfc(g: Graph, x: Value) -> str:
    """Return erfc as ``exp(-x**2)`` times a polynomial, as ``1 - erf(x)`` loses all digits near 0. The square is split to be exact."""
    dtype = x.dtype if x.dtype is DType.FLOAT64 else DType.FLOAT32
    wide = g.cast(x, dtype)
    one, two = g.scalar(1, dtype), g.scalar(2, dtype)
    size = g("Min", g("Abs", wide), g.scalar(_MOST, dtype))
    u = g("Div", g("Sub", size, two), g("Add", size, two))
    coefficients = _DOUBLE if dtype is DType.FLOAT64 else _SINGLE
    value = g.scalar(coefficients[-1], dtype)
    for coefficient in coefficients[-2::-1]:
        value = g("Add", g("Mul", value, u), g.scalar(coefficient, dtype))
    near = g("Div", g("Round", g("Mul", size, g.scalar(16, dtype))), g.scalar(16, dtype))
    rest = g("Mul", g("Sub", size, near), g("Add", size, near))
    bell = g("Mul", g("Exp", g("Neg", g("Mul", near, near))), g("Exp", g("Neg", rest)))
    tail = g("Div", g("Mul", bell, value), g("Add", one, g("Mul", size, two)))
    found = g("Where", g("Less", wide, g.scalar(0, dtype)), g("Sub", two, tail), tail)
    return g.cast(Value(g("Where", g("IsNaN", wide), wide, found), dtype, x.shape), x.dtype)


@export("logit")
def logit(g: Graph, x: Value, *, epsilon: float | None = None) -> str:
    """Return ``log(x / (1 - x))``."""
    one, held = g.scalar(1, x.dtype), x.name
    if epsilon is not None:
        held = g("Min", g("Max", x, g.scalar(epsilon, x.dtype)), g.scalar(1.0 - epsilon, x.dtype))
    return g("Log", g("Div", held, g("Sub", one, held)))


@export("sinc")
def sinc(g: Graph, x: Value) -> str:
    """Return ``sin(pi x) / (pi x)``, and 1 at 0."""
    one, angle = g.scalar(1, x.dtype), g("Mul", x, g.scalar(math.pi, x.dtype))
    nothing = g("Equal", angle, g.scalar(0, x.dtype))
    return g("Where", nothing, one, g("Div", g("Sin", angle), g("Where", nothing, one, angle)))


@export("entr")
def entr(g: Graph, x: Value) -> str:
    """Return ``-x log(x)``; 0 at 0, minus infinity below."""
    zero, one = g.scalar(0, x.dtype), g.scalar(1, x.dtype)
    some = g("Not", g("LessOrEqual", x, zero))  # NaN too
    found = g("Neg", g("Mul", x, g("Log", g("Where", some, x, one))))
    return g("Where", some, found, g("Where", g("Equal", x, zero), zero, g.scalar(-math.inf, x.dtype)))


# Functions of two numbers


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
    return g("Where", is_negative(g, y), g("Neg", size), size)


def is_negative(g: Graph, x: Value) -> str:
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
    angle = g("Where", is_negative(g, x), g("Sub", g.scalar(math.pi, x.dtype), angle), angle)
    return g("Where", is_negative(g, y), g("Neg", angle), angle)


@export("logaddexp")
def logaddexp(g: Graph, x: Value, y: Value) -> str:
    return _add_logarithms(g, x, y, 1.0)


@export("logaddexp2")
def logaddexp2(g: Graph, x: Value, y: Value) -> str:
    return _add_logarithms(g, x, y, math.log(2))


def _add_logarithms(g: Graph, x: Value, y: Value, base: float) -> str:
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
    return _multiply_logarithm(g, x, y, g("Log", _replace_where_zero(g, x, y, 1)))


@export("xlog1py")
def xlog1py(g: Graph, x: Value, y: Value) -> str:
    return _multiply_logarithm(g, x, y, log1p(g, Value(_replace_where_zero(g, x, y, 0), y.dtype, ())))


def _multiply_logarithm(g: Graph, x: Value, y: Value, logarithm: str) -> str:
    return g("Where", g("IsNaN", y), y, g("Mul", x, logarithm))


def _replace_where_zero(g: Graph, x: Value, y: Value, instead: float) -> str:
    """Return `y`, or a number whose logarithm is 0 if `x` is 0."""
    return g("Where", g("Equal", x, g.scalar(0, x.dtype)), g.scalar(instead, y.dtype), y)


@export("fmax")
def fmax(g: Graph, x: Value, y: Value) -> str:
    return _ignore_nan(g, "Max", x, y)


@export("fmin")
def fmin(g: Graph, x: Value, y: Value) -> str:
    return _ignore_nan(g, "Min", x, y)


def _ignore_nan(g: Graph, type: str, x: Value, y: Value) -> str:
    """Return the larger or smaller number, ignoring NaN."""
    return g("Where", g("IsNaN", x), y, g("Where", g("IsNaN", y), x, g(type, x, y)))


@export("heaviside")
def heaviside(g: Graph, x: Value, y: Value) -> str:
    zero = g.scalar(0, x.dtype)
    step = g.cast(g("Greater", x, zero), x.dtype)
    return g("Where", g("Equal", x, zero), y, step)


@export("around")
def around(g: Graph, x: Value, *, decimals: int) -> str:
    """Round to decimals as PyTorch does: scale, round half to even, and scale back."""
    scale = g.scalar(10.0 ** abs(decimals), x.dtype)
    if decimals >= 0:
        return g("Div", g("Round", g("Mul", x, scale)), scale)
    return g("Mul", g("Round", g("Div", x, scale)), scale)
