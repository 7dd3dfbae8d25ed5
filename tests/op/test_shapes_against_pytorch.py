"""Shapes, parts, products and attention against PyTorch's functions and its autograd, in float64; by plan and by interpreter.

A row says what is written here, what PyTorch computes, and of which shapes. Sizes are known, and then they are symbols.
"""

from collections.abc import Callable, Sequence

import pytest
import torch
import torch.nn.functional as F
from tolerances import AUTOGRAD

import oarlock as ol

op = ol.op
Row = tuple[Callable, Callable, Sequence]


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


def inputs_of(given: Sequence, seed: int = 0) -> list[torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    return [torch.randn(item, dtype=torch.float64, generator=generator) if isinstance(item, tuple) else item for item in given]


def by_pytorch(function: Callable, inputs: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    leaves = [item.clone().requires_grad_(item.is_floating_point()) for item in inputs]
    y = function(*leaves)
    y.square().sum().backward()
    return [y.detach(), *(leaf.grad for leaf in leaves if leaf.grad is not None)]


def by_program(function: Callable, inputs: Sequence[torch.Tensor], *, symbols: bool, interpret: bool) -> list[torch.Tensor]:
    with ol.Program() as program:
        vars: list[ol.Var] = []
        for number, item in enumerate(inputs):
            shape = [f"d{size}" if symbols and size > 1 else size for size in item.shape]
            vars.append(ol.layer.data(f"x{number}", shape, str(item.dtype).removeprefix("torch."), batch=None))
        y = function(*vars)
        floats = [var for var in vars if var.dtype.is_floating]
        found = ol.gradients([ol.op.reduce_sum(ol.op.square(y))], floats)
        fetch = [y, *(gradient for gradient in found if gradient is not None)]
    feed = {var.name: item for var, item in zip(vars, inputs, strict=True)}
    return ol.Executor(interpret=interpret, check=interpret).run(program, feed, fetch, scope=ol.Scope(), return_numpy=False)


@pytest.mark.parametrize("name", ROWS)
def test_values_and_gradients_are_those_of_pytorch(name: str):
    ours, theirs, given = ROWS[name]
    inputs = inputs_of(given)
    expected = by_pytorch(theirs, inputs)
    for symbols, interpret in ((False, False), (False, True), (True, False), (True, True)):
        if symbols and name.startswith("attention"):  # the number of heads must be known
            symbols = False
        found = by_program(ours, inputs, symbols=symbols, interpret=interpret)
        torch.testing.assert_close(found, expected, rtol=AUTOGRAD[0], atol=AUTOGRAD[1])
