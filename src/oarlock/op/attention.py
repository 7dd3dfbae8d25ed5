"""Scaled dot-product attention, by kernels that never store the full matrix of weights."""

import math

from oarlock.op.trusted_operator import operator
from oarlock.registry import Case, GradCheck, Rejects, fused_backward
from oarlock.tensor.attention import attend, attend_backward, attend_backward_bias, require_heads

__all__ = [
    "scaled_dot_product_attention",
    "scaled_dot_product_attention_dbias",
    "scaled_dot_product_attention_dkey",
    "scaled_dot_product_attention_dquery",
    "scaled_dot_product_attention_dvalue",
]

_LN3 = 1.0986122886681098
_MASKS = [[[[True, False, True, True, False]]], [[[False, True, True, False, False]]]]


@operator(
    "query: float[*~b t k], key: float[*~b s k], value: float[*~b s e], mask?: bool[*~b m n o], bias?: float[*~b g h i]"
    " -> y: float[*b t e], logsumexp: float[*b {heads} t]",
    sensitive_to="place",
    intermediate=("logsumexp",),
    checks_values=True,
    cases=[
        Case(query=[[_LN3]], key=[[1.0], [0.0]], value=[[4.0], [8.0]], y=[[5.0]], logsumexp=[[math.log(4.0)]]),
        Case(query=[[_LN3, 0.0]], key=[[1.0, 1.0], [0.0, 0.0]], value=[[4.0, 2.0], [8.0, 4.0]], heads=2, y=[[5.0, 3.0]],
             logsumexp=[[math.log(4.0)], [math.log(2.0)]]),
        Case(query=[[0.0], [0.0]], key=[[0.0], [0.0], [0.0]], value=[[1.0], [2.0], [6.0]], causal=True, y=[[1.5], [3.0]],
             logsumexp=[[math.log(2.0), math.log(3.0)]]),
        Case(query=[[2.0], [0.0]], key=[[1.0], [0.0]], value=[[4.0], [8.0]], mask=[[[True, True], [False, False]]], scale=_LN3 / 2,
             y=[[5.0], [0.0]], logsumexp=[[math.log(4.0), -math.inf]]),
        Case(query=[[0.0]], key=[[1.0], [0.0]], value=[[4.0], [8.0]], bias=[[[_LN3, 0.0]]], y=[[5.0]], logsumexp=[[math.log(4.0)]]),
        GradCheck(query=(2, 3, 4), key=(2, 5, 4), value=(2, 5, 4), heads=2),
        GradCheck(query=(2, 3, 4), key=(2, 3, 4), value=(2, 3, 4), heads=2, causal=True),
        GradCheck(query=(2, 4), key=(3, 4), value=(3, 4), causal=True),
        GradCheck(query=(2, 1, 3, 4), key=(2, 1, 5, 4), value=(2, 1, 5, 2), heads=2, causal=True),
        GradCheck(query=(2, 3, 4), key=(2, 5, 4), value=(2, 5, 4), mask=_MASKS, bias=(2, 2, 3, 5), heads=2, scale=0.7),
        GradCheck(query=(2, 3, 4), key=(2, 5, 4), value=(2, 5, 4), bias=(2, 1, 1, 5), heads=2, causal=True),
        Rejects("3 queries are more than 2 keys", query=(3, 1), key=(2, 1), value=(2, 1), causal=True),
        Rejects("3 heads do not divide the 4 columns of query", query=(2, 4), key=(2, 4), value=(2, 3), heads=3),
        Rejects("2 heads do not divide the 3 columns of value", query=(2, 4), key=(2, 4), value=(2, 3), heads=2),
        Rejects("bias ends with [2, 2, 2], but heads, queries and keys are [1, 2, 2]",
                query=(2, 4), key=(2, 4), value=(2, 4), bias=(2, 2, 2)),
    ],
)  # fmt: skip
def scaled_dot_product_attention(
    query, key, value, mask=None, bias=None, *, heads: int = 1, causal: bool = False, scale: float | None = None
):
    """``softmax(query key' scale) value``, with ``heads`` heads that each use their own columns (Vaswani et al., 2017).

    ``scale`` defaults to ``1 / sqrt(k / heads)``. With ``causal``, query ``i`` of ``t`` sees the keys up to ``i + s - t``. ``mask``,
    ``[*b heads t s]``, is true for visible keys; ``bias``, of the same shape, is added before the softmax. Each of their last three sizes
    may be 1. A query that sees no key yields zeros. ``logsumexp`` is the logarithm of the softmax denominators: from it, the gradient
    recomputes the weights block by block (Dao et al., 2022). Second-order gradients store the full matrix of weights.
    """
    return attend(query, key, value, mask, bias, heads=heads, causal=causal, scale=scale)


scaled_dot_product_attention.check_shapes(require_heads)


@scaled_dot_product_attention.gradient("query", sensitive_to="place")
def scaled_dot_product_attention_dquery(
    query, key, value, y, logsumexp, dy, mask=None, bias=None, dlogsumexp=None, *, heads, causal, scale=None
):
    return attend_backward(query, key, value, y, logsumexp, dy, mask, bias, dlogsumexp, heads=heads, causal=causal, scale=scale)[0]


@scaled_dot_product_attention.gradient("key", sensitive_to="place")
def scaled_dot_product_attention_dkey(
    query, key, value, y, logsumexp, dy, mask=None, bias=None, dlogsumexp=None, *, heads, causal, scale=None
):
    return attend_backward(query, key, value, y, logsumexp, dy, mask, bias, dlogsumexp, heads=heads, causal=causal, scale=scale)[1]


@scaled_dot_product_attention.gradient("value", sensitive_to="place")
def scaled_dot_product_attention_dvalue(
    query, key, value, y, logsumexp, dy, mask=None, bias=None, dlogsumexp=None, *, heads, causal, scale=None
):
    return attend_backward(query, key, value, y, logsumexp, dy, mask, bias, dlogsumexp, heads=heads, causal=causal, scale=scale)[2]


@scaled_dot_product_attention.gradient("bias", sensitive_to="place")
def scaled_dot_product_attention_dbias(query, key, value, y, logsumexp, dy, bias, mask=None, dlogsumexp=None, *, heads, causal, scale=None):
    return attend_backward_bias(query, key, value, y, logsumexp, dy, mask, bias, dlogsumexp, heads=heads, causal=causal, scale=scale)


@fused_backward(scaled_dot_product_attention_dquery, scaled_dot_product_attention_dkey, scaled_dot_product_attention_dvalue)
def scaled_dot_product_attention_backward(
    query, key, value, y, logsumexp, dy, mask=None, bias=None, dlogsumexp=None, *, heads, causal, scale=None
):
    return attend_backward(query, key, value, y, logsumexp, dy, mask, bias, dlogsumexp, heads=heads, causal=causal, scale=scale)


scaled_dot_product_attention.declare_edges(
    infinite="an infinite value is multiplied by a share of 0, which is NaN, at hidden positions too; PyTorch leaves some of them out"
)
