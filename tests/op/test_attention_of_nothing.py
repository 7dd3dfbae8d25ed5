"""Attention of queries some of which see no key, however many keys there are: PyTorch's kernel and products take different numbers."""

import math
from typing import Any

import pytest
import torch

import oarlock as ol

HEADS, WIDTH = 2, 8


def by_head(x):
    return x.unflatten(-1, (HEADS, WIDTH // HEADS)).transpose(1, 2)


def expected_of(query, key, value, seen, bias):
    scores = (by_head(query) @ by_head(key).mT / math.sqrt(WIDTH / HEADS) + bias).masked_fill(~seen, -1e300)
    weights = torch.softmax(scores, -1) * seen
    return (weights @ by_head(value)).transpose(1, 2).flatten(2)


@pytest.mark.parametrize("form", ["mask", "bias", "mask and bias"])
@pytest.mark.parametrize("keys", [1, 7, 15, 16, 33])
def test_a_query_that_sees_nothing_gets_zeros_and_gives_none(keys, form):
    generator = torch.Generator().manual_seed(keys)
    query, key, value, dy = (torch.randn(3, rows, WIDTH, generator=generator, dtype=torch.float64) for rows in (5, keys, keys, 5))
    seen = torch.rand(3, 1, 5, keys, generator=generator) > 0.4
    seen[..., 0] = True
    seen[1, 0, 2] = False
    seen[2] = False
    bias = torch.randn(3, 1, 5, keys, generator=generator, dtype=torch.float64) if "bias" in form else torch.zeros(())
    leaves = [x.clone().requires_grad_() for x in (query, key, value)]
    wanted = expected_of(*leaves, seen, bias)
    gradients = torch.autograd.grad(wanted, leaves, dy)
    given = {"mask": seen} if "mask" in form else {}
    if "bias" in form:
        given["bias"] = bias if given else bias.masked_fill(~seen, -math.inf)
    program = ol.Program()
    with program:
        fed = {
            name: ol.layer.data(name, list(x.shape), str(x.dtype).removeprefix("torch."), batch=None)
            for name, x in {"query": query, "key": key, "value": value, **given, "dy": dy}.items()
        }
        optional = {name: fed[name] for name in given}
        y = ol.op.scaled_dot_product_attention(fed["query"], fed["key"], fed["value"], **optional, heads=HEADS)
        logsumexp = y.op.outputs["logsumexp"][0]
        found = ol.gradients([y], [fed[name] for name in ("query", "key", "value")], [fed["dy"]])
    tensors = {"query": query, "key": key, "value": value, **given, "dy": dy}
    feed: dict[str, Any] = {name: x.numpy() for name, x in tensors.items()}
    results: Any = ol.Executor().run(program, feed, [y, logsumexp, *found], scope=ol.Scope())
    for result, value in zip([results[0], *results[2:]], [wanted.detach(), *gradients], strict=True):
        torch.testing.assert_close(torch.as_tensor(result), value, rtol=1e-10, atol=1e-10)
    blind = ~seen.any(-1).expand(3, HEADS, 5)
    assert torch.equal(torch.as_tensor(results[1]) == -math.inf, blind)
