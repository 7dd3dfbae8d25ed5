"""Multi-head attention with projections, grouped keys and values, and masks."""

import math
from typing import Literal, overload

from oarlock.errors import ArgumentError, DTypeError, ShapeError
from oarlock.ir.dtype import DType
from oarlock.ir.location import here
from oarlock.ir.rollback import undone_on_error
from oarlock.ir.size import Size
from oarlock.ir.size import add as add_sizes
from oarlock.ir.size import multiply as multiply_sizes
from oarlock.ir.var import Var
from oarlock.layer.dense import linear
from oarlock.layer.initializer import xavier_normal
from oarlock.layer.parameter import layer_name, new_bias, require_number
from oarlock.layer.parameter_options import Given, require_unnamed
from oarlock.op.activation import softmax
from oarlock.op.attention import scaled_dot_product_attention
from oarlock.op.choice import where
from oarlock.op.comparison import less_equal
from oarlock.op.composed.arithmetic import constant_like
from oarlock.op.composed.positions import rotary_positions
from oarlock.op.composed.shape import known_shape, unsqueeze
from oarlock.op.creation import full
from oarlock.op.dtype_conversion import cast
from oarlock.op.elementwise import add, multiply
from oarlock.op.logical import logical_and
from oarlock.op.manipulation import concat, reshape, transpose
from oarlock.op.matrix import matmul, matrix_transpose
from oarlock.op.padding import pad
from oarlock.op.randomness import dropout as drop
from oarlock.op.told_shape import arange, broadcast_to
from oarlock.registry.creator import require_type
from oarlock.registry.range_check import require_count

__all__ = ["multi_head_attention"]


@overload
def multi_head_attention(
    query: Var,
    key: Var | None = None,
    value: Var | None = None,
    *,
    heads: int,
    kv_heads: int | None = None,
    size: int | None = None,
    head_size: int | None = None,
    mask: Var | None = None,
    key_mask: Var | None = None,
    causal: bool = False,
    rotary: bool | float = False,
    extra_key: bool | Given = False,
    zero_key: bool = False,
    dropout: float = 0.0,
    return_weights: Literal[False] = False,
    bias: bool | Given = True,
    weight: Given | None = None,
    shard: bool = False,
    name: str | None = None,
) -> Var: ...


@overload
def multi_head_attention(
    query: Var,
    key: Var | None = None,
    value: Var | None = None,
    *,
    heads: int,
    kv_heads: int | None = None,
    size: int | None = None,
    head_size: int | None = None,
    mask: Var | None = None,
    key_mask: Var | None = None,
    causal: bool = False,
    rotary: bool | float = False,
    extra_key: bool | Given = False,
    zero_key: bool = False,
    dropout: float = 0.0,
    return_weights: Literal[True],
    bias: bool | Given = True,
    weight: Given | None = None,
    shard: bool = False,
    name: str | None = None,
) -> tuple[Var, Var]: ...


def multi_head_attention(
    query: Var,
    key: Var | None = None,
    value: Var | None = None,
    *,
    heads: int,
    kv_heads: int | None = None,
    size: int | None = None,
    head_size: int | None = None,
    mask: Var | None = None,
    key_mask: Var | None = None,
    causal: bool = False,
    rotary: bool | float = False,
    extra_key: bool | Given = False,
    zero_key: bool = False,
    dropout: float = 0.0,
    return_weights: bool = False,
    bias: bool | Given = True,
    weight: Given | None = None,
    shard: bool = False,
    name: str | None = None,
) -> Var | tuple[Var, Var]:
    """Apply multi-head attention with projections: float[*b t d], float[*b s e], float[*b s f] -> float[*b t size].

    `key` defaults to `query` (self-attention), `value` to `key`. Each of the `heads` has `head_size` columns, by default d / heads. With
    `kv_heads` fewer than `heads`, each key and value head serves heads / kv_heads consecutive query heads (Ainslie et al., 2023). The
    output has `size` columns, by default d (Vaswani et al., 2017, section 3.2.2).

    `mask`, bool[t s], bool[*b t s] or bool[*b heads t s], is True for the keys that a query may attend to; a float mask is added to the
    scores. `key_mask`, bool[*b s], is False for padding. With `causal`, the t queries are aligned with the last t keys, and each sees only
    its own key and earlier ones. A query that sees no key yields zeros. `rotary` applies `ol.op.rotary_positions` to queries and keys; a
    number sets its base. `extra_key` adds a trained key and value visible to all queries, `<name>.key.extra` and `<name>.value.extra` [1,
    kv_heads head_size]; `zero_key` adds a key and a value of zeros. In training, attention weights are dropped with probability `dropout`.
    `return_weights` also returns the weights, float[*b heads t s]. With `shard`, workers divide the heads, see `ol.passes.tensor_parallel`.

    Parameters are `<name>.query.w` [d, heads head_size], `<name>.key.w` [e, kv_heads head_size], `<name>.value.w` [f, kv_heads head_size]
    and `<name>.output.w` [heads head_size, size], Xavier-uniform, and biases `<name>.query.b` ..., 0; `weight` and `bias` give options for
    all of them. Raises ArgumentError, ShapeError, DTypeError.

        y = ol.layer.multi_head_attention(vectors, memory, heads=4, kv_heads=2, dropout=0.1)
    """
    kind = "multi_head_attention"
    query = require_type(query, f"{kind}: query")
    key = query if key is None else require_type(key, f"{kind}: key")
    value = key if value is None else require_type(value, f"{kind}: value")
    heads = require_count(f"{kind}: heads", heads)
    shared = require_count(f"{kind}: kv_heads", heads if kv_heads is None else kv_heads)
    columns = require_number(query.shape, -1, kind, query)
    _require_fitting(kind, query, key, value)
    if heads % shared:
        raise ArgumentError(f"{kind}: kv_heads must divide heads: {shared} does not divide {heads}", location=here())
    if head_size is None and columns % heads:
        raise ArgumentError(
            f"{kind}: {heads} heads do not divide the {columns} columns of {query.name}", location=here(), given=[query.describe()]
        )
    each = require_count(f"{kind}: head_size", columns // heads if head_size is None else head_size)
    size = columns if size is None else require_count(f"{kind}: size", size)
    require_unnamed(kind, weight, bias, extra_key)
    base = _base(kind, rotary)
    program = query.block.program
    name = layer_name(program, name, kind)
    with undone_on_error(program):
        projected = [
            linear(var, width * each, bias=bias, weight=weight, shard="columns" if shard else None, name=f"{name}.{what}")
            for what, var, width in (("query", query, heads), ("key", key, shared), ("value", value, shared))
        ]
        if base is not None:
            projected[:2] = (rotary_positions(var, heads=of, base=base) for var, of in zip(projected, (heads, shared), strict=False))
        seen, added = _masks(kind, mask, key_mask, query, key, heads)
        more = (extra_key is not False) + zero_key
        if more:
            seen = _and_causal(seen, query, key) if causal else seen
            causal = False
            seen, added = (
                None if var is None else pad(var, before=(0,), after=(more,), value=fill) for var, fill in ((seen, 1.0), (added, 0.0))
            )
            for number, what in ((1, "key"), (2, "value")):
                projected[number] = _append_keys(projected[number], f"{name}.{what}.extra", extra_key, zero_key)
        q, k, v = projected[0], *(_repeated(var, shared, heads // shared) for var in projected[1:])
        weights: Var | None = None
        if dropout or return_weights:
            y, weights = _attend(q, k, v, seen, added, heads, causal, dropout)
        else:
            y = scaled_dot_product_attention(q, k, v, seen, added, heads=heads, causal=causal)
        result = linear(y, size, bias=bias, weight=weight, shard="rows" if shard else None, name=f"{name}.output")
        return (result, weights) if return_weights and weights is not None else result


def _require_fitting(kind: str, query: Var, key: Var, value: Var) -> None:
    shapes = [known_shape(var, kind) for var in (query, key, value)]
    if any(len(shape) < 2 for shape in shapes) or not (
        shapes[0][:-2] == shapes[1][:-2] == shapes[2][:-2] and shapes[1][-2] == shapes[2][-2]
    ):
        raise ShapeError(
            f"{kind}: queries, keys and values do not fit together",
            location=here(),
            contract="query: float[*b t d], key: float[*b s e], value: float[*b s f]",
            given=[var.describe() for var in dict.fromkeys((query, key, value))],
        )


def _repeated(x: Var, heads: int, times: int) -> Var:
    """Repeat the columns of each head: float[*b s heads*k] -> float[*b s heads*times*k]."""
    if times == 1:
        return x
    *front, _ = known_shape(x, "multi_head_attention")
    each = _columns_of(x) // heads
    by_head = unsqueeze(reshape(x, shape=(*front, heads, each)), -2)
    return reshape(broadcast_to(by_head, [x], shape=(*front, heads, times, each)), shape=(*front, heads * times * each))


def _masks(kind: str, mask: Var | None, key_mask: Var | None, query: Var, key: Var, heads: int) -> tuple[Var | None, Var | None]:
    """Return the mask of visible keys, bool[*b heads|1 t|1 s], and the float mask for the scores, of that shape."""
    (*front, t, _), s = known_shape(query, kind), known_shape(key, kind)[-2]
    seen: Var | None = None
    added: Var | None = None
    if key_mask is not None:
        key_mask = require_type(key_mask, f"{kind}: key_mask")
        _require_shape(kind, "key_mask", key_mask, [(*front, s)], DType.BOOL)
        seen = unsqueeze(key_mask, -2, -3)
    if mask is not None:
        mask = require_type(mask, f"{kind}: mask")
        forms: list[tuple[Size, ...]] = [(t, s), (*front, t, s), (*front, 1, t, s), (*front, heads, t, s)]
        _require_shape(kind, "mask", mask, forms, DType.BOOL if mask.dtype is DType.BOOL else query.dtype)
        rank = len(known_shape(mask, kind))
        by_head = mask
        if rank == len(front) + 2:
            by_head = unsqueeze(mask, -3)
        elif rank == 2:
            by_head = broadcast_to(mask, [query], shape=(*front, 1, t, s))
        if mask.dtype is not DType.BOOL:
            added = by_head
        else:
            seen = by_head if seen is None else logical_and(by_head, seen)
    return seen, added


def _require_shape(kind: str, what: str, mask: Var, forms: list[tuple[Size, ...]], dtype: DType) -> None:
    if mask.dtype is not dtype:
        raise DTypeError(f"{kind}: {what} must be {dtype}, not {mask.dtype}", location=here(), given=[mask.describe()])
    if mask.shape not in forms:
        texts = " or ".join(dict.fromkeys(f"[{', '.join(map(str, form))}]" for form in forms))
        raise ShapeError(f"{kind}: {what} must have the shape {texts}, not {mask.type_text}", location=here(), given=[mask.describe()])


def _attend(q: Var, k: Var, v: Var, seen: Var | None, added: Var | None, heads: int, causal: bool, rate: float) -> tuple[Var, Var]:
    """Compute attention with explicit weights; return float[*b t heads*k] and the weights after dropout."""
    q, k, v = (_by_head(var, heads) for var in (q, k, v))
    *front, t, _ = known_shape(q, "multi_head_attention")
    s = known_shape(k, "multi_head_attention")[-2]
    scores = matmul(multiply(q, constant_like(1.0 / math.sqrt(_columns_of(q)), q)), matrix_transpose(k))
    if added is not None:
        scores = add(scores, added)
    if causal:
        up_to = _causal_mask(q, k, t, s)
        seen = up_to if seen is None else logical_and(seen, up_to)
    if seen is not None:
        scores = where(seen, scores, constant_like(-1e30 if q.dtype is not DType.FLOAT16 else -6e4, scores))
    weights = softmax(scores)
    if seen is not None:
        weights = multiply(weights, cast(seen, dtype=weights.dtype))  # rows without a visible key become zero
    weights = drop(weights, rate=rate) if rate else weights
    y = matmul(weights, v)
    rank = len(front) + 2
    by_row = transpose(y, axes=(*range(rank - 3), rank - 2, rank - 3, rank - 1))
    return reshape(by_row, shape=(*front[:-1], t, heads * _columns_of(y))), weights


def _causal_mask(q: Var, k: Var, t: Size, s: Size) -> Var:
    """Return a causal mask in which the t queries are aligned with the last of s keys: bool[t s]."""
    last = arange([q, k], start=(add_sizes(s, multiply_sizes(t, -1)),), stop=(s,))
    return less_equal(unsqueeze(arange([k], stop=(s,)), 0), unsqueeze(last, 1))


def _and_causal(seen: Var | None, query: Var, key: Var) -> Var:
    """Combine a mask with the causal mask: bool[*b heads|1 t s]."""
    (*front, t, _), s = known_shape(query, "multi_head_attention"), known_shape(key, "multi_head_attention")[-2]
    up_to = broadcast_to(_causal_mask(query, key, t, s), [query], shape=(*front, 1, t, s))
    return up_to if seen is None else logical_and(seen, up_to)


def _append_keys(x: Var, name: str, extra: bool | Given, zero: bool) -> Var:
    """Append a trained row and a row of zeros to keys or values: float[*b s k] -> float[*b s+1 k]."""
    *front, _, columns = known_shape(x, "multi_head_attention")
    rows = [x]
    trained = new_bias(x.block, name, (1, _columns_of(x)), x.dtype, extra, rule=xavier_normal())
    if trained is not None:
        rows.append(broadcast_to(trained, [x], shape=(*front, 1, columns)))
    if zero:
        rows.append(broadcast_to(full(shape=(1, 1), value=0.0, dtype=x.dtype), [x], shape=(*front, 1, columns)))
    return concat(rows, axis=-2)


def _base(kind: str, rotary: bool | float) -> float | None:
    """Return the base of rotary positions, or None. Raises ArgumentError."""
    if isinstance(rotary, bool):
        return 10_000.0 if rotary else None
    if not isinstance(rotary, int | float) or not 0.0 < rotary < math.inf:
        raise ArgumentError(f"{kind}: rotary must be True, False or a positive base, not {rotary!r:.60}", location=here())
    return float(rotary)


def _columns_of(x: Var) -> int:
    return require_number(x.shape, -1, "multi_head_attention", x)


def _by_head(x: Var, heads: int) -> Var:
    """Move heads to their own dimension: float[*b t heads*k] -> float[*b heads t k]."""
    *front, t, _ = known_shape(x, "multi_head_attention")
    each = _columns_of(x) // heads
    split = reshape(x, shape=(*front, t, heads, each))
    rank = len(front) + 3
    return transpose(split, axes=(*range(len(front)), rank - 2, rank - 3, rank - 1))
