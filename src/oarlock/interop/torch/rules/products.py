"""Matrix products and attention."""

import math
from collections.abc import Sequence

from oarlock import op
from oarlock.interop.torch.rules.arguments import (
    Number,
    as_dtype,
    broadcasted,
    is_one,
    like,
    rank_of,
    refuse,
    reshaped,
    shape_of,
    squeezed,
    unsqueezed,
)
from oarlock.interop.torch.rules.registry import rule
from oarlock.ir.dtype import DType
from oarlock.ir.var import Var


@rule("aten.linear.default")
def linear(input: Var, weight: Var, bias: Var | None = None):
    if rank_of(weight) == 1:
        y = matmul(input, weight)
        return y if bias is None else op.add(y, bias)
    return op.linear(input, op.matrix_transpose(weight), bias)


@rule("aten.addmm.default", "aten._addmm_activation.default")
def addmm(self: Var, mat1: Var, mat2: Var, beta: Number = 1, alpha: Number = 1, use_gelu: bool = False):
    if is_one(beta) and is_one(alpha) and rank_of(self) == 1 and self.dtype.is_floating and shape_of(self) == shape_of(mat2)[1:]:
        return op.linear(mat1, mat2, self)
    return _add_product(self, matmul(mat1, mat2), beta, alpha)


def _add_product(x: Var, product: Var, beta: Number, alpha: Number) -> Var:
    product = product if is_one(alpha) else op.multiply(product, like(alpha, product))
    if beta == 0:
        return product
    return op.add(x if is_one(beta) else op.multiply(x, like(beta, x)), product)


@rule("aten.mm.default", "aten.bmm.default", "aten.matmul.default", "aten.mv.default", "aten.linalg_matmul.default")
def matmul(self: Var, other: Var | None = None, mat2: Var | None = None, vec: Var | None = None):
    """Multiply matrices as NumPy does: leading axes broadcast, and a vector acts as a row or a column."""
    y = next(item for item in (other, mat2, vec) if item is not None)
    refuse(not self.dtype.is_floating, f"matrix products of {self.dtype} are not supported")
    return op.matrix_product(self, y)


@rule("aten.dot.default", "aten.vdot.default")
def dot(self: Var, other: Var | None = None, tensor: Var | None = None):
    y = other if other is not None else tensor
    assert y is not None
    if rank_of(self) == 1 == rank_of(y):
        return op.reduce_sum(op.multiply(self, y))
    return matmul(self, op.matrix_transpose(y)) if rank_of(y) > 1 else matmul(self, y)


@rule("aten.inner.default")
def inner(self: Var, other: Var):
    return op.inner(self, other)


@rule("aten.baddbmm.default")
def baddbmm(self: Var, batch1: Var, batch2: Var, beta: Number = 1, alpha: Number = 1):
    return _add_product(self, op.matmul(batch1, batch2), beta, alpha)


@rule("aten.addbmm.default")
def addbmm(self: Var, batch1: Var, batch2: Var, beta: Number = 1, alpha: Number = 1):
    return _add_product(self, op.reduce_sum(op.matmul(batch1, batch2), axis=0), beta, alpha)


@rule("aten.addmv.default")
def addmv(self: Var, mat: Var, vec: Var, beta: Number = 1, alpha: Number = 1):
    return _add_product(self, matmul(mat, vec), beta, alpha)


@rule("aten.addr.default")
def addr(self: Var, vec1: Var, vec2: Var, beta: Number = 1, alpha: Number = 1):
    return _add_product(self, outer(vec1, vec2), beta, alpha)


@rule("aten.outer.default", "aten.ger.default")
def outer(self: Var, vec2: Var):
    return op.outer(self, vec2)


@rule("aten.einsum.default")
def einsum(equation: str, tensors: Sequence[Var], path: object = None):
    return op.einsum(equation, *tensors)


@rule("aten.bilinear.default")
def bilinear(input1: Var, input2: Var, weight: Var, bias: Var | None = None):
    y = op.einsum("...i,oij,...j->...o", input1, weight, input2)
    return y if bias is None else op.add(y, bias)


@rule("aten._grouped_mm.default")
def grouped_mm(self: Var, mat2: Var, offs: Var | None = None, bias: Var | None = None, out_dtype: object = None):
    refuse(offs is None, "groups of columns are not supported")
    assert offs is not None
    y = _multiply_groups(self, mat2, offs)
    return as_dtype(y if bias is None else op.add(y, bias), out_dtype)


@rule("transformers.grouped_mm_fallback.default")
def grouped_mm_fallback(input: Var, weight: Var, offs: Var):
    """Multiply groups of rows; Transformers' operator where PyTorch has no kernel for it."""
    return _multiply_groups(input, weight, offs)


def _multiply_groups(x: Var, matrices: Var, ends: Var) -> Var:
    """Multiply groups of rows by their matrices: rows ``ends[g-1]`` to ``ends[g]`` by ``matrices[g]``."""
    refuse(rank_of(x) != 2 or rank_of(matrices) != 3, "only groups of rows, each with its own matrix, are supported")
    groups = shape_of(matrices)[0]
    refuse(not isinstance(groups, int), f"the number of groups is {groups}, which is not constant")
    bounds = as_dtype(ends, DType.INT64)
    start = op.full(shape=(1,), value=0.0, dtype=DType.INT64)
    parts = []
    for group in range(groups):  # type: ignore[arg-type]
        stop = op.slice(bounds, axis=0, start=group, stop=group + 1, clip=False)
        matrix = reshaped(op.slice(matrices, axis=0, start=group, stop=group + 1, clip=False), shape_of(matrices)[1:])
        parts.append(op.linear(op.gather(x, op.arange(like=[], start=start, stop=stop)), matrix))
        start = stop
    return op.gather(op.concat(parts, axis=0), op.arange_like(x))


@rule("aten.scaled_dot_product_attention.default")
def attention(
    query: Var,
    key: Var,
    value: Var,
    attn_mask: Var | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
):
    """Attend in each head separately. Tensors without an axis of heads have one head."""
    alone = rank_of(query) == 3
    query, key, value = (unsqueezed(x, 1) if alone else x for x in (query, key, value))
    lead = shape_of(query)[:-3]
    key, value = (broadcasted(x, [*lead, *shape_of(x)[-3:]]) for x in (key, value))
    mask = unsqueezed(attn_mask, 1) if alone and attn_mask is not None and rank_of(attn_mask) == 3 else attn_mask
    if dropout_p > 0.0:
        y = _attend_by_weights(query, key, value, mask, dropout_p, is_causal, scale)
    else:
        y = op.attention_by_head(query, key, value, mask, causal=is_causal, scale=None if scale is None else float(scale))
    return squeezed(y, [1]) if alone else y


def _repeat_heads(x: Var, query: Var) -> Var:
    """Repeat heads of keys or values so that each query head has its own."""
    heads, wanted = shape_of(x)[-3], shape_of(query)[-3]
    refuse(not (isinstance(heads, int) and isinstance(wanted, int)), f"the numbers of heads {wanted} and {heads} are not constant")
    if heads == wanted:
        return x
    *lead, rows, columns = shape_of(x)
    each = broadcasted(unsqueezed(x, rank_of(x) - 2), [*lead, wanted // heads, rows, columns])  # type: ignore[operator]
    return reshaped(each, [*lead[:-1], wanted, rows, columns])


def _attend_by_weights(query: Var, key: Var, value: Var, mask: Var | None, rate: float, causal: bool, scale: float | None) -> Var:
    """Attend with materialized weights, so that each can be dropped."""
    key, value = (_repeat_heads(x, query) for x in (key, value))
    columns, rows, keys = shape_of(query)[-1], shape_of(query)[-2], shape_of(key)[-2]
    refuse(scale is None and not isinstance(columns, int), f"the number of columns is {columns}; pass a scale")
    refuse(causal and rows != keys, f"causal attention of {rows} queries to {keys} keys with dropout is not supported")
    factor = 1.0 / math.sqrt(columns) if scale is None else scale  # type: ignore[arg-type]
    scores = op.multiply(op.matrix_product(query, op.matrix_transpose(key)), like(factor, query))
    if mask is not None:
        scores = op.where(mask, scores, like(-math.inf, scores)) if mask.dtype is DType.BOOL else op.add(scores, mask)
    weights = op.causal_softmax(scores) if causal else op.softmax(scores)
    return op.matrix_product(op.dropout(weights, rate=rate), value)
