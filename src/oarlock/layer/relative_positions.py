"""Trained relative position bias: a bias for each head and bucket of distances."""

from oarlock.errors import ShapeError
from oarlock.ir.location import here
from oarlock.ir.rollback import undone_on_error
from oarlock.ir.var import Var
from oarlock.layer.initializer import normal
from oarlock.layer.parameter import layer_name, new_parameter
from oarlock.layer.parameter_options import Given
from oarlock.op.composed.positions import relative_buckets, relative_places
from oarlock.op.composed.shape import known_shape
from oarlock.op.indexing import gather
from oarlock.op.manipulation import transpose
from oarlock.op.told_shape import broadcast_to
from oarlock.registry.creator import require_type
from oarlock.registry.range_check import require_count

__all__ = ["relative_position_bias"]


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
