"""8-bit integers with scales: quantized rows, integer products and dequantization."""

import numpy

from oarlock.interop.onnx.export_graph import Graph, Value
from oarlock.interop.onnx.export_rule import export
from oarlock.ir.dtype import DType

_LEAST = {DType.FLOAT16: 2.0**-24, DType.BFLOAT16: 2.0**-126, DType.FLOAT32: 2.0**-126, DType.FLOAT64: float(numpy.finfo("float64").tiny)}
"""The minimum scale of each dtype: the smallest normal number; for float16 the smallest subnormal."""

_HALVES = (DType.FLOAT16, DType.BFLOAT16)


def _wide(g: Graph, value: Value | str, dtype: DType) -> Value | str:
    """Cast a value of half precision to float32."""
    return g.cast(value, DType.FLOAT32) if dtype in _HALVES else value


@export("quantize_rows")
def quantize_rows(g: Graph, x: Value) -> tuple[str, str]:
    largest = g.reduce("ReduceMax", g("Abs", x), [x.rank - 1], keepdim=True)
    scale = g("Max", g("Div", largest, g.scalar(127.0, x.dtype)), g.scalar(_LEAST[x.dtype], x.dtype))
    quotients = g("Div", _wide(g, x, x.dtype), _wide(g, scale, x.dtype))
    return g.cast(g("Round", quotients), DType.INT8), g.squeeze(scale, x.rank - 1)


@export("linear_int8")
def linear_int8(g: Graph, q: Value, scale: Value, w: Value, w_scale: Value, bias: Value | None = None) -> str:
    sums = g("MatMulInteger", g.unsqueeze(q, 0) if q.rank == 1 else q, w)
    dtype = w_scale.dtype
    floats = g.cast(g.squeeze(sums, 0) if q.rank == 1 else sums, DType.FLOAT32 if dtype in _HALVES else dtype)
    out = g("Mul", g("Mul", floats, _wide(g, g.unsqueeze(scale, scale.rank), dtype)), _wide(g, w_scale, dtype))
    out = out if bias is None else g("Add", out, _wide(g, bias, dtype))
    return g.cast(out, dtype) if dtype in _HALVES else out


@export("dequantize")
def dequantize(g: Graph, q: Value, scale: Value, *, axis: int) -> str:
    others = [other for other in range(q.rank) if other != axis % q.rank]
    return g("Mul", g.cast(q, scale.dtype), g.unsqueeze(scale, *others) if others else scale)
