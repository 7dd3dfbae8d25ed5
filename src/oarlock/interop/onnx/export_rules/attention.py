"""Attention as matrix products, and its gradients, which recompute the weights from their logsumexp."""

import math

from oarlock.interop.onnx.export_graph import Graph, Value
from oarlock.interop.onnx.export_rule import export
from oarlock.interop.onnx.export_rules.activation import causal_mask
from oarlock.interop.onnx.export_rules.reduction import sum_to


class Heads:
    """Queries, keys and values by head, `[*b heads rows columns]`, and the scores of each query and key."""

    def __init__(
        self,
        g: Graph,
        query: Value,
        key: Value,
        value: Value,
        mask: Value | None = None,
        bias: Value | None = None,
        *,
        heads: int,
        causal: bool,
        scale: float | None = None,
    ):
        self.g, self.heads, self.rank = g, heads, query.rank
        self.scale = self._scale(query) if scale is None else g.scalar(scale, query.dtype)
        self.q, self.k, self.v = (self.split(x) for x in (query, key, value))
        scores = g("MatMul", g("Mul", self.q, self.scale), self.flipped(self.k))
        scores = scores if bias is None else g("Add", scores, bias)
        self.none = g.scalar(-math.inf, query.dtype)
        if causal:
            scores = g("Where", causal_mask(g, g.dim(query, -2), g.dim(key, -2)), self.none, scores)
        self.scores = scores if mask is None else g("Where", mask, scores, self.none)
        self.shape = (*query.sizes[:-2], heads, query.sizes[-2], key.sizes[-2])

    def _scale(self, query: Value) -> str:
        """Return 1 / sqrt(columns of a head)."""
        columns, g = query.sizes[-1], self.g
        if isinstance(columns, int):
            return g.scalar(1 / math.sqrt(max(1, columns // self.heads)), query.dtype)
        each = g("Squeeze", g("Div", g.dim(query, -1), g.ints([self.heads])))
        return g("Reciprocal", g("Sqrt", g.cast(each, query.dtype)))

    def split(self, x: Value) -> str:
        """Split ``[*b rows columns]`` into heads."""
        columns = x.sizes[-1]
        each = columns // self.heads if isinstance(columns, int) else -1
        rows = [self.g.dim(x, axis) for axis in range(x.rank - 1)]
        shape = self.g("Concat", *rows, self.g.ints([self.heads, each]), axis=0)
        apart = self.g.reshape(x, shape) if each != -1 else self.g("Reshape", x, shape)
        return self.g("Transpose", apart, perm=self.perm())

    def perm(self) -> list[int]:
        """Return the permutation that swaps heads and rows."""
        return [*range(self.rank - 2), self.rank - 1, self.rank - 2, self.rank]

    def joined(self, x: str, like: Value) -> str:
        """Join the heads of `x`, in the shape of `like`."""
        return self.g.reshape(self.g("Transpose", x, perm=self.perm()), self.g.shape(like))

    def flipped(self, x: str) -> str:
        """Swap rows and columns."""
        return self.g("Transpose", x, perm=[*range(self.rank - 1), self.rank, self.rank - 1])

    def weights(self) -> tuple[str, str]:
        """Return the weights, which are 0 for queries that see no key, and the logsumexp of the scores."""
        g, zero = self.g, self.g("Sub", self.scale, self.scale)
        top = g.reduce("ReduceMax", self.scores, [self.rank], keepdim=True)
        top = g("Where", g("Equal", top, self.none), zero, top)
        parts = g("Exp", g("Sub", self.scores, top))
        total = g.reduce("ReduceSum", parts, [self.rank], keepdim=True)
        divisor = g("Where", g("Equal", total, zero), g("Exp", zero), total)
        return g("Div", parts, divisor), g.squeeze(g("Add", g("Log", total), top), self.rank)


@export("scaled_dot_product_attention")
def scaled_dot_product_attention(
    g: Graph, query: Value, key: Value, value: Value, mask: Value | None = None, bias: Value | None = None, **settings
) -> tuple[str, str]:
    by_head = Heads(g, query, key, value, mask, bias, **settings)
    if mask is None and bias is None:
        weights = g("Softmax", by_head.scores, axis=-1)
        logsumexp = g.reduce("ReduceLogSumExp", by_head.scores, [by_head.rank])
    else:
        weights, logsumexp = by_head.weights()
    mixed = g("Transpose", g("MatMul", weights, by_head.v), perm=by_head.perm())
    sizes = [g.dim(query, axis) for axis in range(query.rank - 1)]
    return g.reshape(mixed, g("Concat", *sizes, g.dim(value, -1), axis=0)), logsumexp


class Backward(Heads):
    """The recomputed weights, and the gradient of the scores."""

    def __init__(self, g: Graph, query, key, value, y, logsumexp, dy, mask=None, bias=None, dlogsumexp=None, **settings):
        super().__init__(g, query, key, value, mask, bias, **settings)
        finite = g("Where", g("Equal", logsumexp, self.none), g.scalar(0, query.dtype), logsumexp)
        self.weight = g("Exp", g("Sub", self.scores, g.unsqueeze(finite, -1)))
        self.arriving = self.split(dy)
        along = g.reduce("ReduceSum", g("Mul", self.arriving, self.split(y)), [self.rank], keepdim=True)
        along = along if dlogsumexp is None else g("Sub", along, g.unsqueeze(dlogsumexp, -1))
        self.dfit = g("Mul", self.weight, g("Sub", g("MatMul", self.arriving, self.flipped(self.v)), along))


@export("scaled_dot_product_attention_dquery")
def scaled_dot_product_attention_dquery(g: Graph, query: Value, *others: Value | None, **settings) -> str:
    back = Backward(g, query, *others, **settings)
    return back.joined(g("MatMul", g("Mul", back.dfit, back.scale), back.k), query)


@export("scaled_dot_product_attention_dkey")
def scaled_dot_product_attention_dkey(g: Graph, query: Value, key: Value, *others: Value | None, **settings) -> str:
    back = Backward(g, query, key, *others, **settings)
    return back.joined(g("MatMul", back.flipped(g("Mul", back.dfit, back.scale)), back.q), key)


@export("scaled_dot_product_attention_dvalue")
def scaled_dot_product_attention_dvalue(g: Graph, query: Value, key: Value, value: Value, *others: Value | None, **settings) -> str:
    back = Backward(g, query, key, value, *others, **settings)
    return back.joined(g("MatMul", back.flipped(back.weight), back.arriving), value)


@export("scaled_dot_product_attention_dbias")
def scaled_dot_product_attention_dbias(g: Graph, query, key, value, y, logsumexp, dy, bias, mask=None, dlogsumexp=None, **settings) -> str:
    back = Backward(g, query, key, value, y, logsumexp, dy, mask, bias, dlogsumexp, **settings)
    return sum_to(g, Value(back.dfit, query.dtype, back.shape), bias)
