"""Complex numbers as real and imaginary parts in a last axis of 2, as in ONNX's DFT, and Fourier transforms."""

import math

from oarlock.interop.onnx.export_graph import Graph, Unsupported, Value
from oarlock.interop.onnx.export_rule import export_of_complex
from oarlock.interop.onnx.export_rules.elementwise import sum_
from oarlock.interop.onnx.export_rules.functions import hypot
from oarlock.interop.onnx.export_rules.reduction import axes_of
from oarlock.ir.dtype import DType


def _parts(g: Graph, z: Value) -> tuple[str, str]:
    """Return the real and the imaginary parts."""
    return tuple(g("Gather", z, g.ints(number), axis=z.rank - 1) for number in (0, 1))  # type: ignore[return-value]


def _joined(g: Graph, real: str, imag: str) -> str:
    """Join real and imaginary parts of one shape."""
    return g("Concat", g.unsqueeze(real, -1), g.unsqueeze(imag, -1), axis=-1)


export_of_complex("add")(lambda g, x, y: g("Add", x, y))
export_of_complex("subtract")(lambda g, x, y: g("Sub", x, y))
export_of_complex("neg")(lambda g, x: g("Neg", x))
export_of_complex("sum")(sum_)
export_of_complex("assign", "optimization_barrier", "stop_gradient")(lambda g, x: x)
export_of_complex("move")(lambda g, x, *, place: x)
export_of_complex("view_as_real")(lambda g, z: z)
export_of_complex("view_as_complex")(lambda g, x: x)
export_of_complex("real")(lambda g, z: _parts(g, z)[0])
export_of_complex("imag")(lambda g, z: _parts(g, z)[1])


@export_of_complex("conj")
def conj(g: Graph, z: Value) -> str:
    real, imag = _parts(g, z)
    return _joined(g, real, g("Neg", imag))


@export_of_complex("complex")
def complex_(g: Graph, real: Value, imag: Value) -> str:
    shape = g("Shape", g("Add", real, imag))
    return _joined(g, g("Expand", real, shape), g("Expand", imag, shape))


@export_of_complex("polar")
def polar(g: Graph, size: Value, angle: Value) -> str:
    return _joined(g, g("Mul", size, g("Cos", angle)), g("Mul", size, g("Sin", angle)))


@export_of_complex("abs")
def abs_(g: Graph, x: Value) -> str:
    real, imag = (Value(part, x.dtype, x.sizes[:-1]) for part in _parts(g, x))
    return hypot(g, real, imag)


@export_of_complex("multiply")
def multiply(g: Graph, x: Value, y: Value) -> str:
    (a, b), (c, d) = _parts(g, x), _parts(g, y)
    return _joined(g, g("Sub", g("Mul", a, c), g("Mul", b, d)), g("Add", g("Mul", a, d), g("Mul", b, c)))


@export_of_complex("reduce_sum")
def reduce_sum(g: Graph, x: Value, *, axis: int | tuple[int, ...] | None = None, keepdim: bool) -> str:
    rank = x.rank - 1
    return g.reduce("ReduceSum", x, list(range(rank)) if axis is None else axes_of(axis, rank), keepdim=keepdim)


@export_of_complex("cast")
def cast(g: Graph, x: Value, *, dtype: DType) -> str:
    """Cast complex numbers to another complex dtype or to bool, or real numbers to complex ones."""
    assert g.op is not None
    if dtype is DType.BOOL:
        return g("Or", *(g.cast(part, dtype) for part in _parts(g, x)))
    parts = g.cast(x, dtype.real)
    if g.op.inputs["x"][0].dtype.is_complex:
        return parts
    return _joined(g, parts, g("Mul", parts, g.scalar(0.0, dtype.real)))


# Fourier transforms


_DIVISIONS = {"backward": 0.0, "ortho": 0.5, "forward": 1.0}
"""The power of n that divides a transform; its inverse is divided by the rest, so that the powers add up to 1."""


def _transform(g: Graph, x: Value, at: int, inverse: bool, norm: str, *, onesided: bool = False) -> str:
    """Apply DFT along an axis of complex or real numbers. ONNX divides the inverse by n."""
    length = x.sizes[at]
    if not isinstance(length, int):
        raise Unsupported("transforms along an axis of unknown size are not supported")
    given = g.unsqueeze(x, 0)  # DFT requires a batch axis
    if onesided:
        given = g.unsqueeze(given, x.rank + 1)
    how = {"inverse": int(inverse), "onesided": int(onesided)}
    y = g("DFT", given, "", g.ints(at + 1), **how) if g.opset >= 20 else g("DFT", given, axis=at + 1, **how)
    y = g.squeeze(y, 0)
    power = _DIVISIONS[norm] if inverse else -_DIVISIONS[norm]
    return g("Mul", y, g.scalar(math.pow(length, power), x.dtype)) if power else y


@export_of_complex("fourier")
def fourier(g: Graph, x: Value, *, axis: int, inverse: bool, norm: str) -> str:
    return _transform(g, x, axis % (x.rank - 1), inverse, norm)


@export_of_complex("fourier_dx")
def fourier_dx(g: Graph, dy: Value, *, axis: int, inverse: bool, norm: str) -> str:
    turned = {"backward": "forward", "ortho": "ortho", "forward": "backward"}[norm]
    return _transform(g, dy, axis % (dy.rank - 1), not inverse, turned)


@export_of_complex("real_fourier")
def real_fourier(g: Graph, x: Value, *, axis: int, norm: str) -> str:
    return _transform(g, x, axis % x.rank, False, norm, onesided=True)
