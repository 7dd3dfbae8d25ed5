"""Attention in the layout of PyTorch and ONNX, with heads before rows, over the operator that has heads among the columns."""

import math
from typing import Any

from oarlock.errors import ShapeError
from oarlock.ir.dtype import DType
from oarlock.ir.location import here
from oarlock.ir.rollback import undone_on_error
from oarlock.ir.size import Size, floor_divide, multiply
from oarlock.ir.var import Var
from oarlock.op.attention import scaled_dot_product_attention
from oarlock.op.choice import where
from oarlock.op.comparison import less_equal
from oarlock.op.composed.shape import known_shape, unsqueeze
from oarlock.op.creation import full
from oarlock.op.logical import logical_and
from oarlock.op.manipulation import reshape, transpose
from oarlock.op.told_shape import arange, broadcast_to
from oarlock.registry.creator import require_type

__all__ = ["attention_by_head"]


def attention_by_head(
    query: Var, key: Var, value: Var, mask: Var | None = None, *, causal: bool = False, scale: float | None = None
) -> Var:
    """``softmax(query key' scale) value``: float[*b h t k], float[*b g s k], float[*b g s e] -> float[*b h t e].

    Each of the ``g`` heads of keys and values serves ``h / g`` consecutive heads of queries. A mask is broadcast to ``[*b h t s]``: a bool
    mask is true for visible keys, a float mask is added to the scores. With `causal`, query ``i`` sees the keys up to ``i``, for any ``t``
    and ``s``, as in PyTorch and ONNX. The heads are moved among the columns, which is free if they were just moved from there. Raises
    ShapeError.
    """
    query, key, value = (require_type(var, "attention_by_head: query, key or value") for var in (query, key, value))
    with undone_on_error(query.block.program):
        shapes = [known_shape(var, "attention_by_head") for var in (query, key, value)]
        if any(len(shape) < 3 for shape in shapes):
            raise ShapeError(
                "attention_by_head: inputs must be [*b heads rows columns]",
                location=here(),
                given=[var.describe() for var in (query, key, value)],
            )
        (*front, heads, rows, _), (keys_of, keys) = shapes[0], (shapes[1][-3], shapes[1][-2])
        if not isinstance(heads, int) or not isinstance(keys_of, int) or keys_of == 0 or heads % keys_of or shapes[2][-3] != keys_of:
            raise ShapeError(
                f"attention_by_head: {keys_of} and {shapes[2][-3]} heads of keys and values do not serve {heads} heads of queries",
                location=here(),
                given=[var.describe() for var in (query, key, value)],
            )
        key, value = (_served(var, heads // keys_of) for var in (key, value))
        masks, hidden = [] if mask is None else [mask], []
        if causal and rows != keys:
            before = less_equal(unsqueeze(arange([key], stop=(keys,)), 0), unsqueeze(arange([query], stop=(rows,)), 1))
            hidden, causal = [before], False
        bias = _as_bias([*masks, *hidden], query)
        given: dict[str, Any] = {} if bias is None else {"bias": _in_front(bias, query, front)}
        columns = [_among_columns(var) for var in (query, key, value)]
        y = scaled_dot_product_attention(*columns, **given, heads=heads, causal=causal, scale=scale)
        return _by_head(y, heads)


def _served(x: Var, times: int) -> Var:
    """Return each head repeated several times in a row."""
    if times == 1:
        return x
    *front, heads, rows, columns = known_shape(x, "attention_by_head")
    repeated = broadcast_to(unsqueeze(x, -3), [], shape=(*front, heads, times, rows, columns))
    return reshape(repeated, shape=(*front, heads * times, rows, columns))


def _as_bias(masks: list[Var], query: Var) -> Var | None:
    """Return the bias of the scores: one tensor that all layers with the same mask share, forward and backward."""
    bools = [var for var in masks if var.dtype is DType.BOOL]
    biases = [var for var in masks if var.dtype is not DType.BOOL]
    if bools:
        seen = logical_and(*bools) if len(bools) > 1 else bools[0]
        shown, hidden = (full(shape=(), value=value, dtype=query.dtype) for value in (0.0, -math.inf))
        biases = [where(seen, biases[0] if biases else shown, hidden)]
    return biases[0] if biases else None


def _in_front(mask: Var, query: Var, front: list[Size]) -> Var:
    """Return a mask or a bias broadcast to the leading axes of the queries."""
    shape = known_shape(mask, "attention_by_head")
    lacking = len(front) + 3 - len(shape)
    mask = unsqueeze(mask, *range(lacking)) if lacking else mask
    wanted = (*front, *known_shape(mask, "attention_by_head")[-3:])
    return mask if mask.shape == wanted else broadcast_to(mask, [query], shape=wanted)


def _among_columns(x: Var) -> Var:
    """Return [*b heads rows columns] as [*b rows heads * columns]."""
    *front, heads, rows, columns = known_shape(x, "attention_by_head")
    return reshape(_swapped(x), shape=(*front, rows, multiply(heads, columns)))


def _by_head(x: Var, heads: int) -> Var:
    """Return [*b rows heads * columns] as [*b heads rows columns]."""
    *front, rows, columns = known_shape(x, "attention_by_head")
    return _swapped(reshape(x, shape=(*front, rows, heads, floor_divide(columns, heads))))


def _swapped(x: Var) -> Var:
    rank = len(known_shape(x, "attention_by_head"))
    return transpose(x, axes=(*range(rank - 3), rank - 2, rank - 3, rank - 1))
