"""Scaled dot-product attention."""

from oarlock.errors import ArgumentError, ShapeError
from oarlock.ir.location import here
from oarlock.ir.var import Var
from oarlock.layer.parameter import require_number
from oarlock.op.attention import scaled_dot_product_attention
from oarlock.registry.creator import require_type
from oarlock.registry.range_check import require_count

__all__ = ["attention"]


def attention(query: Var, key: Var, value: Var, *, heads: int = 1, causal: bool = False) -> Var:
    """Apply scaled dot-product attention: float[n t d], float[n s d], float[n s e] -> float[n t e].

    The result is ``softmax(q k' / sqrt(d)) v`` (Vaswani et al., 2017). `heads` must divide d and e; each head attends with its own share of
    the columns. With `causal`, the t queries are aligned with the last t keys, and each sees only its own key and earlier ones. The layer
    has no parameters: use `ol.layer.multi_head_attention` or `ol.layer.fc` for projections. Second derivatives are not available. Raises
    ShapeError or ArgumentError.

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
