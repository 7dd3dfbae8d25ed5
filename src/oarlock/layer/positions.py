"""Positions of the steps of a sequence: sinusoidal, trained, or as trained biases by distance."""

import math

from oarlock.errors import ShapeError
from oarlock.ir.dtype import DType
from oarlock.ir.location import here
from oarlock.ir.rollback import undone_on_error
from oarlock.ir.var import Var
from oarlock.layer.initializer import normal
from oarlock.layer.parameter import layer_name, new_parameter, require_number
from oarlock.layer.parameter_options import Given
from oarlock.op.composed.arithmetic import constant_like
from oarlock.op.composed.positions import relative_buckets, relative_places
from oarlock.op.composed.shape import known_shape, unsqueeze
from oarlock.op.dtype_conversion import cast
from oarlock.op.elementwise import add, multiply
from oarlock.op.indexing import gather
from oarlock.op.manipulation import reshape, stack, transpose
from oarlock.op.told_shape import arange, broadcast_to, narrow
from oarlock.op.trigonometry import cos, sin
from oarlock.op.unary import exp
from oarlock.registry.creator import require_type
from oarlock.registry.range_check import require_count

__all__ = ["learned_positions", "relative_position_bias", "sinusoidal_positions"]


def sinusoidal_positions(x: Var, *, base: float = 10_000.0, name: str | None = None) -> Var:
    """Add a sinusoidal encoding of each step's position: float[*b t d] -> float[*b t d], for an even d.

    Column 2i of step p is increased by ``sin(p / base**(2i / d))``, column 2i + 1 by the cosine (Vaswani et al., 2017, section 3.5). It has
    no parameters and accepts sequences of any length. Raises ShapeError.

        y = ol.layer.sinusoidal_positions(vectors)
    """
    x = require_type(x, "sinusoidal_positions: x")
    shape = known_shape(x, "sinusoidal_positions")
    columns = require_number(shape, -1, "sinusoidal_positions", x)
    if len(shape) < 2 or columns % 2:
        raise ShapeError(
            f"sinusoidal_positions: x must be float[*b t d] with an even d, not {x.type_text}", location=here(), given=[x.describe()]
        )
    with undone_on_error(x.block.program):
        precise = DType.FLOAT64 if x.dtype is DType.FLOAT64 else DType.FLOAT32  # half precision cannot represent every position above 256
        places = unsqueeze(arange([x], stop=(shape[-2],), dtype=precise), 1)
        pairs = arange([x], stop=(columns // 2,), dtype=precise)
        angles = multiply(places, exp(multiply(pairs, constant_like(-2.0 * math.log(base) / columns, pairs))))
        waves = reshape(stack([sin(angles), cos(angles)], axis=2), shape=(shape[-2], columns))
        return add(x, waves if precise is x.dtype else cast(waves, dtype=x.dtype), name=name)


def learned_positions(x: Var, longest: int, *, weight: Given | None = None, name: str | None = None) -> Var:
    """Add a trained vector for each position: float[*b t d] -> float[*b t d], where t is at most `longest`.

    The parameter is `<name>.w` [longest, d], normal with deviation 0.02; `weight` accepts `ParameterOptions` (Radford et al., 2018). A
    longer sequence raises ShapeError if its length is a number, otherwise KernelError in the run. Raises ArgumentError.

        y = ol.layer.learned_positions(vectors, 512)
    """
    x = require_type(x, "learned_positions: x")
    shape = known_shape(x, "learned_positions")
    columns = require_number(shape, -1, "learned_positions", x)
    longest = require_count("learned_positions: longest", longest)
    if len(shape) < 2 or (isinstance(shape[-2], int) and shape[-2] > longest):
        raise ShapeError(
            f"learned_positions: x must be float[*b t d] with at most {longest} steps, not {x.type_text}",
            location=here(),
            given=[x.describe()],
        )
    program = x.block.program
    name = layer_name(program, name, "learned_positions")
    with undone_on_error(program):
        w = new_parameter(x.block, f"{name}.w", (longest, columns), x.dtype, normal(0.0, 0.02), weight)
        return add(x, narrow(w, [x], length=(shape[-2],)))


def relative_position_bias(
    query: Var,
    key: Var | None = None,
    *,
    heads: int,
    buckets: int = 32,
    farthest: int = 128,
    both_sides: bool = True,
    weight: Given | None = None,
    name: str | None = None,
) -> Var:
    """Return a trained bias for each query and key that depends on their distance: float[*b t d], float[*b s e] -> float[*b heads t s].

    Distances are grouped by `ol.op.relative_buckets`, up to `farthest`. `key` defaults to `query`; with ``both_sides=False``, keys after
    the query count as distance 0. The parameter is `<name>.w` [buckets, heads], normal with deviation 0.02; `weight` accepts
    `ParameterOptions` (Raffel et al., 2020). Pass the result to attention as its float mask; layers of the same name share it. Raises
    ShapeError or ArgumentError.

        bias = ol.layer.relative_position_bias(vectors, heads=2)
        y = ol.layer.multi_head_attention(vectors, heads=2, mask=bias)
    """
    query = require_type(query, "relative_position_bias: query")
    heads = require_count("relative_position_bias: heads", heads)
    buckets = require_count("relative_position_bias: buckets", buckets)
    if len(query.shape or ()) < 2:
        raise ShapeError(
            f"relative_position_bias: query must be float[*b t d], not {query.type_text}", location=here(), given=[query.describe()]
        )
    program = query.block.program
    name = layer_name(program, name, "relative_position_bias")
    with undone_on_error(program):
        numbers = relative_buckets(relative_places(query, key), buckets=buckets, farthest=farthest, both_sides=both_sides)
        w = new_parameter(query.block, f"{name}.w", (buckets, heads), query.dtype, normal(0.0, 0.02), weight)
        biases = transpose(gather(w, numbers), axes=(2, 0, 1))
        front = known_shape(query, "relative_position_bias")[:-2]
        return broadcast_to(biases, [query], shape=(*front, *known_shape(biases, "relative_position_bias"))) if front else biases
