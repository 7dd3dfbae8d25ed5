"""Shapes, parts, products and attention against PyTorch's functions and its autograd, in float64; by plan and by interpreter.

A row says what is written here, what PyTorch computes, and of which shapes. Sizes are known, and then they are symbols.
"""

import pytest
import torch
import torch.nn.functional as F
from op.against_pytorch import Row, require_same

import oarlock as ol

op = ol.op


def causal_mask(*shape: int) -> torch.Tensor:
    return torch.rand(shape, generator=torch.Generator().manual_seed(7)) > 0.4


ROWS: dict[str, Row] = {
    "view, several sizes": (lambda x: op.reshape(x, shape=(*x.shape[::-1], -1)), lambda x: x.view(*x.shape[::-1], -1), [(2, 3, 8)]),
    "view, two joined": (lambda x: op.reshape(x, shape=(-1, x.shape[2])), lambda x: x.view(-1, 8), [(2, 3, 8)]),
    "view, by another": (
        lambda x, y: op.add(op.view(op.reshape(x, shape=(-1, x.shape[2])), [y], shape=y.shape), y),
        lambda x, y: x.view(-1, 8).view(*y.shape) + y,
        [(2, 3, 8), (2, 3, 8)],
    ),
    "expand": (lambda x: op.broadcast_to(x, [], shape=(5, -1, 3, -1)), lambda x: x.expand(5, -1, 3, -1), [(2, 1, 4)]),
    "expand, by another": (
        lambda x, y: op.multiply(op.broadcast_to(x, [y], shape=y.shape), y),
        lambda x, y: x.expand(y.shape) * y,
        [(3, 1), (2, 3, 4)],
    ),
    "unsqueeze": (lambda x: op.unsqueeze(x, 0, -1), lambda x: x.unsqueeze(0).unsqueeze(-1), [(2, 3)]),
    "squeeze": (lambda x: op.squeeze(x, 1), lambda x: x.squeeze(1), [(2, 1, 3)]),
    "squeeze, all": (op.squeeze, torch.squeeze, [(1, 2, 1)]),
    "narrow": (lambda x, y: op.narrow(x, [y], axis=1, length=y.shape[:1]), lambda x, y: x.narrow(1, 0, y.shape[0]), [(2, 7), (3, 2)]),
    "narrow, from": (
        lambda x, y: op.narrow(x, [y], axis=-2, start=y.shape[:1], length=y.shape[1:]),
        lambda x, y: x.narrow(-2, y.shape[0], y.shape[1]),
        [(7, 3), (3, 2)],
    ),
    "slice, every second": (lambda x: op.slice(x, axis=1, start=1, step=2), lambda x: x[:, 1::2], [(2, 6, 3)]),
    "slice, every third to the last": (lambda x: op.slice(x, axis=-1, stop=-1, step=3), lambda x: x[..., :-1:3], [(2, 8)]),
    "matmul, shared": (op.matrix_product, torch.matmul, [(2, 3, 4, 5), (5, 6)]),
    "matmul, same front": (op.matrix_product, torch.matmul, [(2, 3, 4), (2, 4, 5)]),
    "matmul, broadcast": (op.matrix_product, torch.matmul, [(2, 1, 3, 4), (5, 4, 6)]),
    "matmul, shared on the left": (op.matrix_product, torch.matmul, [(3, 4), (2, 4, 5)]),
    "matmul, row": (op.matrix_product, torch.matmul, [(4,), (2, 4, 5)]),
    "matmul, column": (op.matrix_product, torch.matmul, [(2, 3, 4), (4,)]),
    "matmul, row and matrix": (op.matrix_product, torch.matmul, [(4,), (4, 5)]),
    "matmul, matrix and column": (lambda x, y: x @ y, torch.matmul, [(3, 4), (4,)]),
    "matmul, row and column": (lambda x, y: x @ y, torch.matmul, [(4,), (4,)]),
    "attention": (op.attention_by_head, F.scaled_dot_product_attention, [(2, 3, 4, 5), (2, 3, 6, 5), (2, 3, 6, 7)]),
    "attention, scale": (
        lambda q, k, v: op.attention_by_head(q, k, v, scale=0.3),
        lambda q, k, v: F.scaled_dot_product_attention(q, k, v, scale=0.3),
        [(2, 3, 4, 5), (2, 3, 6, 5), (2, 3, 6, 5)],
    ),
    "attention, causal": (
        lambda q, k, v: op.attention_by_head(q, k, v, causal=True),
        lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True),
        [(2, 3, 4, 5), (2, 3, 4, 5), (2, 3, 4, 5)],
    ),
    "attention, causal, more keys": (
        lambda q, k, v: op.attention_by_head(q, k, v, causal=True),
        lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True),
        [(2, 3, 4, 5), (2, 3, 6, 5), (2, 3, 6, 5)],
    ),
    "attention, grouped": (
        lambda q, k, v: op.attention_by_head(q, k, v, causal=True),
        lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True),
        [(2, 6, 4, 5), (2, 2, 4, 5), (2, 2, 4, 5)],
    ),
    "attention, mask": (
        op.attention_by_head,
        F.scaled_dot_product_attention,
        [(2, 3, 4, 5), (2, 3, 6, 5), (2, 3, 6, 5), causal_mask(2, 1, 4, 6)],
    ),
    "attention, mask of all": (
        op.attention_by_head,
        F.scaled_dot_product_attention,
        [(2, 3, 4, 5), (2, 3, 6, 5), (2, 3, 6, 5), causal_mask(4, 6)],
    ),
    "attention, mask of keys": (
        op.attention_by_head,
        F.scaled_dot_product_attention,
        [(2, 3, 4, 5), (2, 3, 6, 5), (2, 3, 6, 7), causal_mask(2, 1, 1, 6)],
    ),
    "attention, a query that sees nothing": (
        op.attention_by_head,
        F.scaled_dot_product_attention,
        [(1, 1, 2, 4), (1, 1, 2, 4), (1, 1, 2, 4), torch.tensor([[True, False], [False, False]])],
    ),
    "attention, bias": (op.attention_by_head, F.scaled_dot_product_attention, [(2, 3, 4, 5), (2, 3, 6, 5), (2, 3, 6, 5), (1, 3, 4, 6)]),
    "attention, bias of all": (op.attention_by_head, F.scaled_dot_product_attention, [(2, 3, 4, 5), (2, 3, 6, 5), (2, 3, 6, 5), (4, 6)]),
    "attention, mask and more keys": (
        lambda q, k, v, m: op.attention_by_head(q, k, v, m, causal=True),
        lambda q, k, v, m: F.scaled_dot_product_attention(q, k, v, m & torch.ones(4, 6, dtype=torch.bool).tril()),
        [(2, 3, 4, 5), (2, 3, 6, 5), (2, 3, 6, 5), causal_mask(2, 1, 4, 6)],
    ),
}


@pytest.mark.parametrize("name", ROWS)
def test_values_and_gradients_are_those_of_pytorch(name: str):
    require_same(ROWS[name], symbols=not name.startswith("attention"))  # whose number of heads must be known


def test_heads_whose_number_is_not_known_are_refused():
    with ol.Program():
        x = ol.layer.data("x", ["h", 3, 4])
        with pytest.raises(ol.ShapeError, match="h and h heads of keys and values do not serve h heads of queries"):
            op.attention_by_head(x, x, x)
