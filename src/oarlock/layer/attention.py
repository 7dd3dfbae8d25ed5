"""Attention."""

from oarlock.errors import ArgumentError, ShapeError
from oarlock.ir.location import here
from oarlock.ir.var import Var
from oarlock.layer.parameter import require_number
from oarlock.op.attention import scaled_dot_product_attention
from oarlock.registry.creator import require_type
from oarlock.registry.range_check import require_count

__all__ = ["attention"]


def attention(query: Var, key: Var, value: Var, *, heads: int = 1, causal: bool = False) -> Var:
    """A mean of values, weighed by how well each key fits the query: float[n t d], float[n s d], float[n s e] -> float[n t e].

    ``softmax(q k' / sqrt(d)) v`` (Vaswani et al., 2017). With `heads`, which divides d and e, each head has its share of the columns and
    its own weights. With `causal`, step i of the last t sees no key after it. It has no parameters: `ol.layer.fc` projects what is given
    and what comes out. Its gradient has no gradient. Raises ShapeError or ArgumentError.

        y = ol.layer.attention(vectors, memory, memory, heads=2)
    """
    query, key, value = (require_type(var, f"attention: {what}") for what, var in (("query", query), ("key", key), ("value", value)))
    for what, var in (("query", query), ("key", key), ("value", value)):
        if len(var.shape or ()) != 3:
            raise ShapeError(f"attention: {what} is float[n t d], not {var.type_text}", location=here(), given=[var.describe()])
    require_count("attention: heads", heads)
    for var in (query, key, value):
        if require_number(var.shape, -1, "attention", var) % heads:
            raise ArgumentError(
                f"attention: {heads} heads do not divide the columns of {var.name}", location=here(), given=[var.describe()]
            )
    return scaled_dot_product_attention(query, key, value, heads=heads, causal=causal)
