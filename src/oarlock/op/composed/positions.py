"""Positions in attention: rotary position embedding, and biases of scores by distance."""

import math

from oarlock.errors import ArgumentError, ShapeError
from oarlock.ir.dtype import DType
from oarlock.ir.location import here
from oarlock.ir.rollback import undone_on_error
from oarlock.ir.size import Size
from oarlock.ir.size import add as add_sizes
from oarlock.ir.size import multiply as multiply_sizes
from oarlock.ir.var import Var
from oarlock.op.choice import maximum, minimum, where
from oarlock.op.comparison import greater, less
from oarlock.op.composed.shape import known_shape, unsqueeze
from oarlock.op.dtype_conversion import cast
from oarlock.op.elementwise import add, divide, multiply, neg, subtract
from oarlock.op.magnitude import abs_
from oarlock.op.manipulation import concat, flatten, reshape, slice_, stack
from oarlock.op.told_shape import arange, broadcast_to
from oarlock.op.trigonometry import cos, sin
from oarlock.op.unary import exp, log
from oarlock.registry.creator import require_type
from oarlock.registry.range_check import require_count

__all__ = ["alibi_bias", "relative_buckets", "relative_places", "rotary_positions"]


def rotary_positions(
    x: Var, *, heads: int = 1, base: float = 10_000.0, offset: "int | Var" = 0, columns: int | None = None, interleaved: bool = False
) -> Var:
    """Rotary position embedding: pairs of columns rotated by angles that grow with the position (Su et al., 2021).

    float[*b t heads*k] -> float[*b t heads*k]. In each of `heads`, pair i of its first `columns` (default: all k) is rotated by
    ``p / base**(2 i / columns)`` at position p, so that the product of a rotated query and key depends only on their distance. A pair is
    columns i and i + columns / 2, as in Llama, or with `interleaved` 2i and 2i + 1, as in the paper. The first row has the position
    `offset`, a number or int64[], for decoding with a cache. Raises ShapeError or ArgumentError.
    """
    x = require_type(x, "rotary_positions: x")
    *front, rows, width = known_shape(x, "rotary_positions") if len(x.shape or ()) > 1 else (None, None)
    if rows is None or not isinstance(width, int):
        raise ShapeError(
            f"rotary_positions: x must be float[*b t d], of a known d, not {x.type_text}", location=here(), given=[x.describe()]
        )
    turned = width // heads if columns is None and heads > 0 else columns
    if heads < 1 or width % heads or turned is None or turned % 2 or not 0 < turned <= width // heads:
        raise ArgumentError(
            f"rotary_positions: {turned} columns of each of {heads} heads cannot be rotated in pairs, of {width} columns", location=here(),
            given=[x.describe()],
        )  # fmt: skip
    with undone_on_error(x.block.program):
        precise = DType.FLOAT64 if x.dtype is DType.FLOAT64 else DType.FLOAT32  # half precision does not represent all positions beyond 256
        places = cast(add(arange([x], stop=(rows,)), offset), dtype=precise)
        pairs = arange([x], stop=(turned // 2,), dtype=precise)
        angles = multiply(unsqueeze(places, 1), exp(multiply(pairs, -2.0 * math.log(base) / turned)))  # [t columns/2]
        cosine, sine = (unsqueeze(wave if precise is x.dtype else cast(wave, dtype=x.dtype), 1) for wave in (cos(angles), sin(angles)))
        by_head = reshape(x, shape=(*front, rows, heads, width // heads))
        part = by_head if turned == width // heads else slice_(by_head, axis=-1, stop=turned)
        parts = [_turned(part, cosine, sine, interleaved)]
        if turned < width // heads:
            parts.append(slice_(by_head, axis=-1, start=turned))
        return reshape(concat(parts, axis=-1) if len(parts) > 1 else parts[0], shape=(*front, rows, width))


def _turned(x: Var, cosine: Var, sine: Var, interleaved: bool) -> Var:
    """Return pairs of the last axis rotated by angles, [t 1 k/2]."""
    count = known_shape(x, "rotary_positions")[-1]
    assert isinstance(count, int)
    if interleaved:
        first, second = slice_(x, axis=-1, start=0, step=2), slice_(x, axis=-1, start=1, step=2)
    else:
        first, second = slice_(x, axis=-1, stop=count // 2), slice_(x, axis=-1, start=count // 2)
    one = subtract(multiply(first, cosine), multiply(second, sine))
    other = add(multiply(second, cosine), multiply(first, sine))
    if not interleaved:
        return concat([one, other], axis=-1)
    rank = len(known_shape(one, "rotary_positions"))
    return flatten(stack([one, other], axis=rank), start=rank - 1)


def relative_places(query: Var, key: Var | None = None) -> Var:
    """The position of each key minus that of each query, int64[t s]: float[*b t d], float[*b s e]. The last query is at the last key."""
    key = query if key is None else key
    rows, keys = (_rows(var, "relative_places") for var in (query, key))
    first = add_sizes(keys, multiply_sizes(rows, -1))
    ahead = arange([query, key], start=(first,), stop=(keys,))
    return subtract(unsqueeze(arange([key], stop=(keys,)), 0), unsqueeze(ahead, 1))


def _rows(x: Var, what: str) -> Size:
    shape = known_shape(require_type(x, what), what)
    if len(shape) < 2:
        raise ShapeError(f"{what}: {x.name} must be float[*b t d], not {x.type_text}", location=here(), given=[x.describe()])
    return shape[-2]


def alibi_bias(query: Var, key: Var | None = None, *, heads: int) -> Var:
    """A bias of scores proportional to the distance, with a slope per head: float[*b heads t s] (Press, Smith and Lewis, 2022).

    Inputs are float[*b t d] and float[*b s e] (default: the query). Head h, from 1 on, has ``-slope |i - j|`` with the slope
    ``2**(-8 h / heads)``. If heads are not a power of 2, they have the slopes of the next lower one, then every other slope of the next
    higher one. Pass it to attention as a float mask. Raises ShapeError or ArgumentError.
    """
    query = require_type(query, "alibi_bias: query")
    require_count("alibi_bias: heads", heads)
    with undone_on_error(query.block.program):
        distance = cast(abs_(relative_places(query, key)), dtype=query.dtype)
        lower = 2 ** (heads.bit_length() - 1)
        slopes = [2.0 ** (-8.0 * (head + 1) / lower) for head in range(lower)]
        slopes += [2.0 ** (-4.0 * (2 * number + 1) / lower) for number in range(heads - lower)]
        biases = stack([multiply(distance, -slope) for slope in slopes], axis=0)
        front = known_shape(query, "alibi_bias")[:-2]
        return broadcast_to(biases, [query], shape=(*front, *known_shape(biases, "alibi_bias"))) if front else biases


def relative_buckets(places: Var, *, buckets: int = 32, farthest: int = 128, both_sides: bool = True) -> Var:
    """The index of a bucket for each relative position, int64[...s] -> int64[...s] (Raffel et al., 2020).

    Half of the buckets hold one position each, the others ranges that grow logarithmically up to `farthest`; the last also holds all
    beyond. With `both_sides`, half of all buckets are for keys after the query; otherwise these count as distance 0. Raises ArgumentError.
    """
    places = require_type(places, "relative_buckets: places")
    side = buckets // 2 if both_sides else buckets
    if side < 2 or farthest <= side // 2:
        raise ArgumentError(f"relative_buckets: {buckets} buckets do not reach to {farthest}", location=here())
    with undone_on_error(places.block.program):
        distance = abs_(places) if both_sides else maximum(neg(places), 0)
        exact = side // 2
        wide = cast(maximum(distance, exact), dtype=DType.FLOAT64)
        grown = divide(multiply(log(divide(wide, float(exact))), float(side - exact)), math.log(farthest / exact))
        grown = add(grown, 1e-9)  # so that rounding does not miss a bound that is a whole number
        bucket = where(less(distance, exact), distance, minimum(add(cast(grown, dtype=DType.INT64), exact), side - 1))
        return add(bucket, multiply(cast(greater(places, 0), dtype=DType.INT64), side)) if both_sides else bucket
