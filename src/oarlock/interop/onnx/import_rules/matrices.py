"""Matrix products and determinants."""

from typing import TYPE_CHECKING

from oarlock import op
from oarlock.interop.onnx.import_rules.forms import constant, shape_of
from oarlock.interop.onnx.rule import Unsupported, rule
from oarlock.ir.attribute import Sizes
from oarlock.ir.dtype import DType
from oarlock.ir.size import Shape
from oarlock.ir.var import Var
from oarlock.op.composed.broadcast_product import matrix_product
from oarlock.op.composed.einsum import einsum

if TYPE_CHECKING:
    from oarlock.interop.onnx.importer import Importer


@rule("MatMul")
def matmul(x, y):
    if not x.dtype.is_floating:
        left, right = (op.cast(item, dtype=DType.FLOAT64) for item in (x, y))
        return op.cast(matrix_product(left, right), dtype=x.dtype)
    return matrix_product(x, y)


def expanded(x: Var, shape: Shape, importer: "Importer") -> Var:
    """Broadcast `x` to `shape`; return `x` itself if it has that shape."""
    return x if x.shape == shape else op.broadcast_to(x, importer.writer.tellers(shape), shape=Sizes(shape))


@rule("Gemm")
def gemm(x, y, bias=None, *, alpha=1.0, beta=1.0, transA=0, transB=0):  # noqa: N803  ONNX's names
    x = op.matrix_transpose(x) if transA else x
    y = op.matrix_transpose(y) if transB else y
    if not x.dtype.is_floating:
        raise Unsupported(f"its inputs are {x.dtype}; only floats are supported")
    if alpha == 1.0 and beta == 1.0 and bias is not None and shape_of(bias) == shape_of(y)[1:]:
        return op.linear(x, y, bias)
    result = op.linear(x, y)
    result = result if alpha == 1.0 else op.multiply(result, constant(alpha, x))
    if bias is None or beta == 0.0:
        return result
    return op.add(result, bias if beta == 1.0 else op.multiply(bias, constant(beta, x)))


@rule("Einsum")
def sum_of_products(*items, equation):
    return einsum(equation, *items)


@rule("Det")
def determinant(x):
    return op.det(x)
