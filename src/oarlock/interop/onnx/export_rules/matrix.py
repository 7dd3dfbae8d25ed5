"""Matrix products, also fused with sums, gathers and 8-bit integers; determinants."""

import numpy

from oarlock.interop.onnx.export_graph import Graph, Value
from oarlock.interop.onnx.export_rule import export
from oarlock.interop.onnx.export_rules.indexing import add_rows
from oarlock.ir.dtype import DType

__all__ = ["linear_dw", "transposed"]


def transposed(g: Graph, x: Value) -> str:
    """Swap the last two axes."""
    return g("Transpose", x, perm=[*range(x.rank - 2), x.rank - 1, x.rank - 2])


@export("linear")
def linear(g: Graph, x: Value, w: Value, bias: Value | None = None) -> str:
    if x.rank == 2 and bias is not None:
        return g("Gemm", x, w, bias)
    product = g("MatMul", x, w)
    return product if bias is None else g("Add", product, bias)


@export("linear_dx")
def linear_dx(g: Graph, w: Value, dout: Value) -> str:
    return g("Gemm", dout, w, transB=1) if dout.rank == 2 else g("MatMul", dout, transposed(g, w))


@export("linear_dw")
def linear_dw(g: Graph, x: Value, dout: Value) -> str:
    return g("Gemm", g.rows(x), g.rows(dout), transA=1)


@export("linear_dbias")
def linear_dbias(g: Graph, dout: Value) -> str:
    return g.reduce("ReduceSum", dout, list(range(dout.rank - 1)))


export("matrix_transpose")(transposed)
export("matmul")(lambda g, x, y: g("MatMul", x, y))
export("matmul_dx")(lambda g, y, dz: g("MatMul", dz, transposed(g, y)))
export("matmul_dy")(lambda g, x, dz: g("MatMul", transposed(g, x), dz))


@export("dot")
def dot(g: Graph, x: Value, y: Value, *, mean: bool) -> str:
    return g.reduce("ReduceMean" if mean else "ReduceSum", g("Mul", x, y), None)


export("addmm")(lambda g, base, x, w: g("Add", base, g("MatMul", x, w)))
export("addmm_nt")(lambda g, base, w, x: g("Add", base, g("MatMul", x, transposed(g, w))))


@export("addmm_tn")
def addmm_tn(g: Graph, base: Value, x: Value, dout: Value, *, scale: float) -> str:
    return g("Gemm", g.rows(x), g.rows(dout), base, transA=1, beta=scale)


@export("embedding_linear")
def embedding_linear(g: Graph, x: Value, rows: Value, w: Value, bias: Value | None = None) -> str:
    product = g("MatMul", g("Gather", x, rows, axis=0), w)
    return product if bias is None else g("Add", product, bias)


@export("embedding_linear_dx")
def embedding_linear_dx(g: Graph, rows: Value, w: Value, x: Value, dout: Value) -> str:
    back = Value(g("MatMul", dout, transposed(g, w)), dout.dtype, (*dout.sizes[:-1], w.sizes[0]))
    return add_rows(g, back, rows, x)


@export("embedding_linear_dw")
def embedding_linear_dw(g: Graph, x: Value, rows: Value, dout: Value) -> str:
    taken = Value(g("Gather", x, rows, axis=0), x.dtype, (*rows.sizes, *x.sizes[1:]))
    return g("Gemm", g.rows(taken), g.rows(dout), transA=1)


# Decompositions


@export("det")
def det(g: Graph, x: Value) -> str:
    return g("Det", x)


@export("power_iteration")
def power_iteration(g: Graph, x: Value, u: Value, *, iterations: int, epsilon: float) -> tuple[str, str]:
    """Return the vectors of inference: ``u`` is unchanged, and ``v`` is normalized."""

    def unit(vector: str) -> str:
        length = g.reduce("ReduceL2", vector, None, keepdim=True)
        return g("Div", vector, g("Max", length, g.scalar(epsilon, x.dtype)))

    return g("Identity", u), unit(g("MatMul", unit(u.name), x))


# 8-bit integers


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
