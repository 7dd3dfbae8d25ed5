"""Attention for step-by-step decoding, with a cache of the keys and values of earlier steps.

keys = values = ol.op.full_batch_size_like(x, shape=(64, 32), value=0.0)         # room for 64 steps of each row, float[n 64 32]
loop = ol.while_loop(length < 64)                                                # length: int64[]
with loop.block():
    q, k, v = ...                                                                # of the last token, float[n 1 32]
    y, next_keys, next_values = ol.layer.cached_attention(q, k, v, keys, values, length, heads=4)
    loop.carry(keys, next_keys); loop.carry(values, next_values); loop.carry(length, length + 1)
"""

from oarlock.errors import ShapeError
from oarlock.ir.location import here
from oarlock.ir.rollback import undone_on_error
from oarlock.ir.var import Var
from oarlock.op.along_axis import index_put
from oarlock.op.attention import scaled_dot_product_attention
from oarlock.op.comparison import less_equal
from oarlock.op.composed.shape import known_shape, unsqueeze
from oarlock.op.elementwise import add
from oarlock.op.logical import logical_and
from oarlock.op.told_shape import arange, broadcast_to
from oarlock.registry.creator import require_type
from oarlock.registry.range_check import require_count

__all__ = ["append_to_cache", "cached_attention"]


def append_to_cache(cache: Var, rows: Var, length: Var) -> Var:
    """Return the cache with `rows` written after its first `length` rows: T[*b c d], T[*b t d], int64[] -> T[*b c d].

    Raises ShapeError; the run raises KernelError if the cache is full.

        room = ol.op.full_batch_size_like(vectors, shape=(16, 8), value=0.0)
        length = ol.op.full(shape=(), value=0.0, dtype="int64")
        cache = ol.layer.append_to_cache(room, vectors, length)
    """
    cache, rows, length = (
        require_type(var, f"append_to_cache: {what}") for what, var in (("cache", cache), ("rows", rows), ("length", length))
    )
    room, given = known_shape(cache, "append_to_cache"), known_shape(rows, "append_to_cache")
    if len(room) < 2 or len(given) != len(room) or room[-1] != given[-1] or cache.dtype is not rows.dtype:
        raise ShapeError(
            "append_to_cache: the rows do not fit into the cache", location=here(), contract="cache: T[*b c d], rows: T[*b t d]",
            given=[cache.describe(), rows.describe()],
        )  # fmt: skip
    with undone_on_error(cache.block.program):
        places = add(arange([rows], stop=(given[-2],)), length)
        return index_put(cache, rows, [places], axes=(len(room) - 2,))


def cached_attention(
    query: Var,
    key: Var,
    value: Var,
    cached_keys: Var,
    cached_values: Var,
    length: Var,
    *,
    heads: int = 1,
    scale: float | None = None,
    key_mask: Var | None = None,
    bias: Var | None = None,
) -> tuple[Var, Var, Var]:
    """Apply causal attention of new steps to all cached steps and themselves; return float[*b t e] and the updated caches.

    Queries float[*b t d], keys float[*b t d] and values float[*b t e] of the new steps are stored after the first `length`, int64[], rows
    of caches of fixed size, float[*b c d] and float[*b c e]; query i sees the cached keys up to ``length + i``. `key_mask`, bool[*b c], is
    False for cached keys to ignore, such as padding in front of a prompt; `bias`, float[*b heads|1 t|1 c], is added to the scores. In a
    while loop, carry the caches and the length. Raises ShapeError or ArgumentError.

        room = ol.op.full_batch_size_like(vectors, shape=(16, 8), value=0.0)
        length = ol.op.full(shape=(), value=0.0, dtype="int64")
        y, keys, values = ol.layer.cached_attention(vectors, vectors, vectors, room, room, length, heads=2)
    """
    query, length = require_type(query, "cached_attention: query"), require_type(length, "cached_attention: length")
    require_count("cached_attention: heads", heads)
    with undone_on_error(query.block.program):
        keys, values = append_to_cache(cached_keys, key, length), append_to_cache(cached_values, value, length)
        *front, steps, _ = known_shape(query, "cached_attention")
        room = known_shape(keys, "cached_attention")[-2]
        last = add(arange([query], stop=(steps,)), length)
        seen = less_equal(unsqueeze(arange([keys], stop=(room,)), 0), unsqueeze(last, 1))
        mask = broadcast_to(seen, [query, keys], shape=(*front, 1, steps, room))
        if key_mask is not None:
            mask = logical_and(mask, unsqueeze(key_mask, -2, -3))
        return scaled_dot_product_attention(query, keys, values, mask, bias, heads=heads, scale=scale), keys, values
