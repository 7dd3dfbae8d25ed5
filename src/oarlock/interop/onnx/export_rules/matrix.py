"""Matrix products, also fused with sums and gathers."""

from oarlock.interop.onnx.export_graph import Graph, Value
from oarlock.interop.onnx.export_rule import export
from oarlock.interop.onnx.export_rules.indexing import add_rows

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
