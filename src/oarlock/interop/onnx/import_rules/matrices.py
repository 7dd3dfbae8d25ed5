"""Products of matrices, attention and rotary positions."""

from typing import TYPE_CHECKING

from oarlock import op
from oarlock.interop.onnx.import_rules.forms import constant, rank_of, reshaped, shape_of, unsqueezed
from oarlock.interop.onnx.rule import Unsupported, rule
from oarlock.ir.attribute import Sizes
from oarlock.ir.dtype import DType
from oarlock.ir.size import Shape
from oarlock.ir.var import Var

if TYPE_CHECKING:
    from oarlock.interop.onnx.importer import Importer


@rule("MatMul")
def matmul(x, y, *, importer: "Importer"):
    if not x.dtype.is_floating:
        left, right = (op.cast(item, dtype=DType.FLOAT64) for item in (x, y))
        return op.cast(product(left, right, importer), dtype=x.dtype)
    return product(x, y, importer)


def product(x: Var, y: Var, importer: "Importer") -> Var:
    """A product by NumPy's rules: vectors on either side, leading axes broadcast; many rows by one matrix as one product."""
    if rank_of(x) == 0 or rank_of(y) == 0:
        raise Unsupported("one of its inputs has no dimension")
    if rank_of(y) == 2:
        return op.linear(x, y)
    if rank_of(x) == 1:
        found = product(unsqueezed(x, [0]), y if rank_of(y) > 1 else unsqueezed(y, [1]), importer)
        dropped = [rank_of(found) - 2] + ([rank_of(found) - 1] if rank_of(y) == 1 else [])
        return reshaped(found, [size for axis, size in enumerate(shape_of(found)) if axis not in dropped], importer)
    if rank_of(y) == 1:
        found = op.linear(x, unsqueezed(y, [1]))
        return reshaped(found, shape_of(found)[:-1], importer)
    leading = broadcast_shape(shape_of(x)[:-2], shape_of(y)[:-2])
    x, y = (expanded(item, (*leading, *shape_of(item)[-2:]), importer) for item in (x, y))
    return op.matmul(x, y)


def broadcast_shape(left: Shape, right: Shape) -> Shape:
    """The shape that two shapes broadcast to. Of a number and a symbol, the number."""
    rank = max(len(left), len(right))
    left, right = (1,) * (rank - len(left)) + left, (1,) * (rank - len(right)) + right
    return tuple(
        b if a == 1 else a if b == 1 or isinstance(a, int) else b if isinstance(b, int) else a for a, b in zip(left, right, strict=True)
    )


def expanded(x: Var, shape: Shape, importer: "Importer") -> Var:
    """`x` broadcast to `shape`; itself where it has that."""
    return x if x.shape == shape else op.broadcast_to(x, importer.writer.tellers(shape), shape=Sizes(shape))


@rule("Gemm")
def gemm(x, y, bias=None, *, alpha=1.0, beta=1.0, transA=0, transB=0):  # noqa: N803  ONNX's names
    x = op.matrix_transpose(x) if transA else x
    y = op.matrix_transpose(y) if transB else y
    if not x.dtype.is_floating:
        raise Unsupported(f"it is of {x.dtype}, where floats are taken")
    if alpha == 1.0 and beta == 1.0 and bias is not None and shape_of(bias) == shape_of(y)[1:]:
        return op.linear(x, y, bias)
    result = op.linear(x, y)
    result = result if alpha == 1.0 else op.multiply(result, constant(alpha, x))
    if bias is None or beta == 0.0:
        return result
    return op.add(result, bias if beta == 1.0 else op.multiply(bias, constant(beta, x)))
