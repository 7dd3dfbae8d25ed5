"""Attention by products, and its gradients, which compute the weights again from the logarithm of their sums."""

import math

from oarlock.interop.onnx.export_graph import Graph, Value
from oarlock.interop.onnx.export_rule import export
from oarlock.interop.onnx.export_rules.activation import hidden_by_order


class Heads:
    """Queries, keys and values by head, `[*b heads rows columns]`, and how well each query fits each key."""

    def __init__(self, g: Graph, query: Value, key: Value, value: Value, *, heads: int, causal: bool):
        self.g, self.heads, self.rank = g, heads, query.rank
        self.scale = self._scale(query)
        self.q, self.k, self.v = (self.split(x) for x in (query, key, value))
        scores = g("MatMul", g("Mul", self.q, self.scale), self.flipped(self.k))
        if causal:
            hidden = hidden_by_order(g, g.dim(query, -2), g.dim(key, -2))
            scores = g("Where", hidden, g.scalar(-math.inf, query.dtype), scores)
        self.scores = scores

    def _scale(self, query: Value) -> str:
        """One by the root of the columns that each head has."""
        columns, g = query.sizes[-1], self.g
        if isinstance(columns, int):
            return g.scalar(1 / math.sqrt(max(1, columns // self.heads)), query.dtype)
        each = g("Squeeze", g("Div", g.dim(query, -1), g.ints([self.heads])))
        return g("Reciprocal", g("Sqrt", g.cast(each, query.dtype)))

    def split(self, x: Value) -> str:
        """``[*b rows columns]`` by head."""
        columns = x.sizes[-1]
        each = columns // self.heads if isinstance(columns, int) else -1
        rows = [self.g.dim(x, axis) for axis in range(x.rank - 1)]
        shape = self.g("Concat", *rows, self.g.ints([self.heads, each]), axis=0)
        apart = self.g.reshape(x, shape) if each != -1 else self.g("Reshape", x, shape)
        return self.g("Transpose", apart, perm=self._perm())

    def _perm(self) -> list[int]:
        front = list(range(self.rank - 2))
        return [*front, self.rank - 1, self.rank - 2, self.rank]

    def joined(self, x: str, like: Value) -> str:
        """The heads' columns side by side again, in the shape of `like`."""
        return self.g.reshape(self.g("Transpose", x, perm=self._perm()), self.g.shape(like))

    def flipped(self, x: str) -> str:
        """Rows as columns."""
        front = list(range(self.rank - 1))
        return self.g("Transpose", x, perm=[*front, self.rank, self.rank - 1])


@export("scaled_dot_product_attention")
def scaled_dot_product_attention(g: Graph, query: Value, key: Value, value: Value, *, heads: int, causal: bool) -> tuple[str, str]:
    by_head = Heads(g, query, key, value, heads=heads, causal=causal)
    weights = g("Softmax", by_head.scores, axis=-1)
    mixed = g("Transpose", g("MatMul", weights, by_head.v), perm=by_head._perm())
    sizes = [g.dim(query, axis) for axis in range(query.rank - 1)]
    shape = g("Concat", *sizes, g.dim(value, -1), axis=0)
    return g.reshape(mixed, shape), g.reduce("ReduceLogSumExp", by_head.scores, [by_head.rank])


def _gradient(g: Graph, query, key, value, y, logsumexp, dy, heads: int, causal: bool) -> tuple[Heads, str, str]:
    """Heads, the weights, and the gradient at the scores of scaled queries."""
    by_head = Heads(g, query, key, value, heads=heads, causal=causal)
    weights = g("Exp", g("Sub", by_head.scores, g.unsqueeze(logsumexp, -1)))
    arriving = by_head.split(dy)
    along = g.reduce("ReduceSum", g("Mul", arriving, by_head.split(y)), [by_head.rank], keepdim=True)
    dfit = g("Mul", weights, g("Sub", g("MatMul", arriving, by_head.flipped(by_head.v)), along))
    return by_head, weights, g("Mul", dfit, by_head.scale)


@export("scaled_dot_product_attention_dquery")
def scaled_dot_product_attention_dquery(g: Graph, query, key, value, y, logsumexp, dy, *, heads: int, causal: bool) -> str:
    by_head, _, dfit = _gradient(g, query, key, value, y, logsumexp, dy, heads, causal)
    return by_head.joined(g("MatMul", dfit, by_head.k), query)


@export("scaled_dot_product_attention_dkey")
def scaled_dot_product_attention_dkey(g: Graph, query, key, value, y, logsumexp, dy, *, heads: int, causal: bool) -> str:
    by_head, _, dfit = _gradient(g, query, key, value, y, logsumexp, dy, heads, causal)
    return by_head.joined(g("MatMul", by_head.flipped(dfit), by_head.q), key)


@export("scaled_dot_product_attention_dvalue")
def scaled_dot_product_attention_dvalue(g: Graph, query, key, value, y, logsumexp, dy, *, heads: int, causal: bool) -> str:
    by_head, weights, _ = _gradient(g, query, key, value, y, logsumexp, dy, heads, causal)
    return by_head.joined(g("MatMul", by_head.flipped(weights), by_head.split(dy)), value)
