"""Attention, out of ordinary operators."""

import math

from oarlock.errors import ArgumentError, ShapeError
from oarlock.ir.location import here
from oarlock.ir.variable import Var
from oarlock.layer.parameter import require_count, require_number
from oarlock.op.activation import causal_softmax, softmax
from oarlock.op.arithmetic import constant_like
from oarlock.op.elementwise import multiply
from oarlock.op.matrix import batch_matmul
from oarlock.op.shaping import flatten, split, stack, transpose
from oarlock.registry.creator import require_type

__all__ = ["attention"]


def attention(query: Var, key: Var, value: Var, *, heads: int = 1, causal: bool = False) -> Var:
    """A mean of values, weighed by how well each key fits the query: float[n t d], float[n s d], float[n s e] -> float[n t e].

    ``softmax(q k' / sqrt(d)) v`` (Vaswani et al., 2017). With `heads`, which divides d and e, each head has its share of the columns and
    its own weights. With `causal`, step i of the last t sees no key after it. It has no parameters: `ol.layer.fc` projects what is given
    and what comes out. Raises ShapeError or ArgumentError.
    """
    for what, var in (("query", query), ("key", key), ("value", value)):
        if len(require_type(var, f"attention: {what}").shape or ()) != 3:
            raise ShapeError(f"attention: {what} is float[n t d], not {var.type_text}", location=here(), given=[var.describe()])
    require_count(heads, "attention: heads")
    width = require_number(query.shape, -1, "attention", query)
    for var in (query, key, value):
        if require_number(var.shape, -1, "attention", var) % heads:
            raise ArgumentError(
                f"attention: {heads} heads do not divide the columns of {var.name}", location=here(), given=[var.describe()]
            )
    q, k, v = (_by_head(var, heads) for var in (multiply(query, constant_like(math.sqrt(heads / width), query)), key, value))
    fit = batch_matmul(q, transpose(k, axes=(0, 1, 3, 2)))
    mixed = batch_matmul(causal_softmax(fit) if causal else softmax(fit), v)
    return flatten(transpose(mixed, axes=(0, 2, 1, 3)), start=2)


def _by_head(x: Var, heads: int) -> Var:
    """float[n t heads*d] -> float[n heads t d]."""
    return stack(split(x, parts=heads, axis=-1), axis=1)
