"""Matrix products, determinants and attention.

Attention is written out step by step if the model needs intermediate scores.
"""

from typing import TYPE_CHECKING

from oarlock import op
from oarlock.interop.onnx.import_rules.forms import constant, moved, rank_of, reshaped, shape_of, unsqueezed
from oarlock.interop.onnx.known_value import known_sizes
from oarlock.interop.onnx.rule import Unsupported, rule
from oarlock.interop.onnx.tensors import DTYPES
from oarlock.ir import size as sizes
from oarlock.ir.attribute import Sizes
from oarlock.ir.dtype import DType
from oarlock.ir.size import Shape, Size
from oarlock.ir.var import Var
from oarlock.op.composed.attention import attention_by_head
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
    return x if x.shape == shape else op.broadcast_to(x, importer.writer.variables_with_sizes(shape), shape=Sizes(shape))


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


# Attention


_NEVER = -float("inf")


@rule("Attention")
def attention(
    query, key, value, mask=None, past_key=None, past_value=None, filled=None, *,
    is_causal=0, kv_num_heads=0, q_num_heads=0, qk_matmul_output_mode=0, scale=None, softcap=0.0, softmax_precision=0,
    left_window_size=-1, right_window_size=-1, outputs, importer: "Importer",
):  # fmt: skip
    """Return the result, the present keys and values, and the scores. Query rows that see no key are 0."""
    flat = rank_of(query) == 3
    if flat:
        if not q_num_heads or not kv_num_heads:
            raise Unsupported("its numbers of heads are missing, and its inputs are not split into heads")
        query = _split_heads(query, q_num_heads, importer)
        key, value = _split_heads(key, kv_num_heads, importer), _split_heads(value, kv_num_heads, importer)
    dtype = query.dtype
    present_key = op.concat([past_key, key], axis=2) if past_key is not None else op.assign(key)
    present_value = op.concat([past_value, value], axis=2) if past_value is not None else op.assign(value)
    heads, groups = shape_of(query)[1], shape_of(present_key)[1]
    if not isinstance(heads, int) or not isinstance(groups, int) or groups < 1 or heads % groups:
        raise Unsupported(f"{heads} query heads cannot share {groups} key heads")
    plain = (
        outputs < 4
        and not softcap
        and filled is None
        and left_window_size < 0
        and right_window_size < 0
        and _covers_all_keys(mask, present_key)
    )
    if plain and dtype.itemsize >= 4 and (past_key is None or not is_causal):
        result = attention_by_head(query, present_key, present_value, mask, causal=bool(is_causal), scale=scale)
        return [_join_heads(result, importer) if flat else result, present_key, present_value][: max(outputs, 1)]
    keys, values = (_repeat_heads(item, heads // groups, importer) for item in (present_key, present_value))
    width = shape_of(query)[3]
    if scale is None and not isinstance(width, int):
        raise Unsupported(f"its scale depends on the size {width}", hint="pass sizes={...} to fix symbolic sizes")
    root = constant((float(width) ** -0.5 if scale is None else scale) ** 0.5, query)  # type: ignore[arg-type]
    scores = matrix_product(op.multiply(query, root), op.multiply(op.matrix_transpose(keys), root))
    bias = _bias(scores, mask, past_key, filled, (bool(is_causal), left_window_size, right_window_size), importer)
    capped = _cap(scores, softcap)
    masked = capped if bias is None else op.add(capped, bias)
    precision = DTYPES.get(softmax_precision, dtype)
    weights = _weights(masked if precision is dtype else op.cast(masked, dtype=precision), bias is not None)
    weights = weights if precision is dtype else op.cast(weights, dtype=dtype)
    result = matrix_product(weights, values)
    result = _join_heads(result, importer) if flat else result
    if not 0 <= qk_matmul_output_mode < 4:
        raise Unsupported(f"qk_matmul_output_mode is {qk_matmul_output_mode}")
    return [result, present_key, present_value, op.assign([scores, capped, masked, weights][qk_matmul_output_mode])][: max(outputs, 1)]


def _covers_all_keys(mask: Var | None, key: Var) -> bool:
    """Return whether the mask covers every key; ONNX allows shorter masks."""
    return mask is None or shape_of(mask)[-1:] in ((1,), (shape_of(key)[2],))


def _join_heads(x: Var, importer: "Importer") -> Var:
    """Join the heads: `[n, t, heads k]`."""
    n, h, t, e = shape_of(x)
    return reshaped(op.transpose(x, axes=(0, 2, 1, 3)), (n, t, sizes.multiply(h, e)), importer)


def _cap(scores: Var, cap: float) -> Var:
    return op.multiply(op.tanh(op.divide(scores, constant(cap, scores))), constant(cap, scores)) if cap else scores


def _weights(scores: Var, guarded: bool) -> Var:
    """Return the softmax of scores. If `guarded`, rows without visible keys are 0 instead of NaN."""
    if not guarded:
        return op.softmax(scores, axis=-1)
    unseen = op.equal(op.reduce_max(scores, axis=-1, keepdim=True), constant(_NEVER, scores))
    return op.where(unseen, constant(0.0, scores), op.softmax(op.where(unseen, constant(0.0, scores), scores), axis=-1))


def _bias(
    scores: Var, mask: Var | None, past: Var | None, filled: Var | None, bounds: tuple[bool, int, int], importer: "Importer"
) -> Var | None:
    """Return the bias of the scores, `[n, h, t, s]`: minus infinity for invisible keys. None if all keys are visible."""
    causal, left, right = bounds
    t, s = shape_of(scores)[2:]
    bias = None
    if mask is not None:
        bias = op.where(mask, constant(0.0, scores), constant(_NEVER, scores)) if mask.dtype is DType.BOOL else mask
        there = shape_of(bias)[-1]
        if isinstance(there, int) and isinstance(s, int) and 1 < there < s:
            pads = (*(0,) * (rank_of(bias) - 1), s - there)
            bias = op.pad(bias, before=(0,) * rank_of(bias), after=pads, mode="constant", value=_NEVER)
    columns = op.arange_like(moved(scores, 3, 0))
    seen = None
    if filled is not None:
        counts = op.cast(filled, dtype=DType.INT64)
        filled = reshaped(counts, (shape_of(counts)[0], 1, 1, 1), importer)
        seen = op.less(columns, filled)
    if causal or left >= 0 or right >= 0:
        rows = reshaped(op.arange_like(moved(scores, 2, 0)), (t, 1), importer)
        if past is not None:
            rows = op.add(rows, _number(shape_of(past)[2], importer))
        elif filled is not None:
            rows = op.add(rows, op.subtract(filled, _number(t, importer)))
        if causal or right >= 0:
            ahead = 0 if causal else right
            seen = _both(seen, op.less_equal(columns, op.add(rows, constant(ahead, rows))))
        if left >= 0:
            seen = _both(seen, op.greater_equal(columns, op.subtract(rows, constant(left, rows))))
    if seen is None:
        return bias
    hidden = op.where(seen, constant(0.0, scores), constant(_NEVER, scores))
    return hidden if bias is None else op.add(bias, hidden)


def _both(left: Var | None, right: Var) -> Var:
    return right if left is None else op.logical_and(left, right)


def _number(size: Size, importer: "Importer") -> Var:
    """Return a size as a scalar variable."""
    return reshaped(importer.writer.variable(known_sizes([size])), ())


def _split_heads(x: Var, heads: int, importer: "Importer") -> Var:
    """Split rows into heads: `[n, heads, t, k]`."""
    n, t, columns = shape_of(x)
    if not isinstance(columns, int) or heads < 1 or columns % heads:
        raise Unsupported(f"{columns} columns cannot be split into {heads} heads")
    return op.transpose(reshaped(x, (n, t, heads, columns // heads), importer), axes=(0, 2, 1, 3))


def _repeat_heads(x: Var, times: int, importer: "Importer") -> Var:
    """Repeat each key or value head for the query heads that share it."""
    if times == 1:
        return x
    n, heads, t, k = shape_of(x)
    wide = expanded(unsqueezed(x, [2]), (n, heads, times, t, k), importer)
    return reshaped(wide, (n, sizes.multiply(heads, times), t, k), importer)
