"""Special functions, label counts and patches, most of which ONNX does not have."""

import math

from oarlock.interop.onnx.export_graph import Graph, Unsupported, Value
from oarlock.interop.onnx.export_rule import export
from oarlock.ir.dtype import DType

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


@export(
    "bessel_j0",
    "bessel_j1",
    "bessel_y0",
    "bessel_y1",
    "digamma",
    "erfcx",
    "erfinv",
    "i0",
    "i0e",
    "i1",
    "i1e",
    "k0",
    "k0e",
    "k1",
    "k1e",
    "lgamma",
    "log_ndtr",
    "ndtri",
    "polygamma",
)
def special_functions(g: Graph, *_: Value, **__: object) -> str:
    raise Unsupported("ONNX has no operator for this function")


@export("chunk_counts", "contingency_table", "edit_distance")
def counts(g: Graph, *_: Value, **__: object) -> str:
    raise Unsupported("ONNX has no operator that counts labels")


@export("unfold", "unfold_dx", "fold", "fold_dx")
def patches(g: Graph, *_: Value, **__: object) -> str:
    raise Unsupported("ONNX has no operator that extracts patches of images")
