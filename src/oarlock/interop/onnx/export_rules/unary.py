"""Elementwise functions of one number."""

import math

from oarlock.interop.onnx.export_graph import Graph, Value
from oarlock.interop.onnx.export_rule import export

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
