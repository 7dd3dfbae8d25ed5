"""Gradients of the gradients of attention: as PyTorch's products have them, by plan and by interpreter."""

import numpy
import pytest
import torch
from tolerances import AUTOGRAD

import oarlock as ol

RANDOM = numpy.random.default_rng(0)
MASK = RANDOM.random((2, 1, 3, 5)) > 0.4
MASK[..., 0] = True
SETTINGS = {
    "two heads": ((3, 5, 4, 4), {"heads": 2}, None, None),
    "values of another width": ((3, 5, 4, 6), {"heads": 2}, None, None),
    "causal": ((4, 4, 4, 4), {"heads": 2, "causal": True}, None, None),
    "causal, a bias for all heads": ((3, 5, 4, 4), {"causal": True, "scale": 0.7}, None, (2, 1, 3, 5)),
    "a mask, a bias for all queries": ((3, 5, 4, 4), {"heads": 2}, MASK, (2, 2, 1, 5)),
}


def theirs(leaves: dict[str, torch.Tensor], heads: int, causal: bool, scale: float | None, mask: numpy.ndarray | None) -> torch.Tensor:
    """Attention by products, which PyTorch differentiates as often as is asked."""
    q, k, v = (leaves[name].unflatten(-1, (heads, -1)).transpose(1, 2) for name in ("query", "key", "value"))
    scores = q @ k.mT * (q.shape[-1] ** -0.5 if scale is None else scale) + leaves.get("bias", torch.zeros(()))
    t, s = scores.shape[-2:]
    hidden = torch.ones(t, s, dtype=torch.bool).triu(s - t + 1) if causal else torch.zeros(t, s, dtype=torch.bool)
    hidden = hidden if mask is None else hidden | ~torch.as_tensor(mask)
    return (scores.masked_fill(hidden, -torch.inf).softmax(-1) @ v).transpose(1, 2).flatten(2)


@pytest.mark.parametrize("options", [{"interpret": True}, {}], ids=["interpreter", "plan"])
@pytest.mark.parametrize("name", SETTINGS)
def test_a_penalty_on_the_gradients_of_attention_has_those_of_pytorch(name, options):
    (t, s, k, e), settings, mask, bias = SETTINGS[name]
    shapes = {"query": (2, t, k), "key": (2, s, k), "value": (2, s, e)} | ({} if bias is None else {"bias": bias})
    arrays = {what: RANDOM.normal(size=shape) for what, shape in shapes.items()}
    with ol.Program() as program:
        vars = {what: ol.layer.data(what, list(shape), dtype="float64", batch=None) for what, shape in shapes.items()}
        seen = None if mask is None else ol.layer.data("mask", list(mask.shape), dtype="bool", batch=None)
        y = ol.op.scaled_dot_product_attention(vars["query"], vars["key"], vars["value"], seen, vars.get("bias"), **settings)
        firsts = ol.gradients([ol.op.reduce_sum(ol.op.sin(y))], list(vars.values()))
        penalty = ol.op.reduce_sum(ol.op.stack([ol.op.reduce_sum(ol.op.square(first)) * (1.0 + n) for n, first in enumerate(firsts)]))
        seconds = ol.gradients([penalty], list(vars.values()))
    feed = arrays | ({} if mask is None else {"mask": mask})
    found = ol.Executor(**options).run(program, feed, [y, *firsts, *seconds], scope=ol.Scope())
    leaves = {what: torch.tensor(array, requires_grad=True) for what, array in arrays.items()}
    expected = theirs(leaves, settings.get("heads", 1), settings.get("causal", False), settings.get("scale"), mask)
    once = torch.autograd.grad(expected.sin().sum(), list(leaves.values()), create_graph=True)
    twice = torch.autograd.grad(sum(first.square().sum() * (1.0 + n) for n, first in enumerate(once)), list(leaves.values()))
    for ours, wanted in zip(found, [expected, *once, *twice], strict=True):
        torch.testing.assert_close(torch.as_tensor(ours), wanted.detach(), rtol=AUTOGRAD[0], atol=AUTOGRAD[1])


def test_a_query_that_sees_nothing_adds_nothing_to_second_gradients():
    with ol.Program() as program:
        q, k, v = (ol.layer.data(what, [2, 3], dtype="float64", batch=None) for what in "qkv")
        mask = ol.layer.data("mask", [1, 2, 2], dtype="bool", batch=None)
        y = ol.op.scaled_dot_product_attention(q, k, v, mask)
        (first,) = ol.gradients([ol.op.reduce_sum(ol.op.exp(y))], [k])
        seconds = ol.gradients([ol.op.reduce_sum(ol.op.square(first))], [q, k, v])
    feed = {what: RANDOM.normal(size=(2, 3)) for what in "qkv"} | {"mask": numpy.array([[[True, True], [False, False]]])}
    found = ol.Executor().run(program, feed, seconds, scope=ol.Scope())
    assert all(numpy.isfinite(each).all() for each in found)
    assert not found[0][1].any()
    assert found[0][0].any()


def test_gradients_of_third_order_are_refused_by_name():
    with ol.Program():
        q, k, v = (ol.layer.data(what, [2, 3], dtype="float64", batch=None) for what in "qkv")
        found = ol.op.scaled_dot_product_attention(q, k, v)
        for _ in range(2):
            (found,) = ol.gradients([ol.op.reduce_sum(ol.op.square(found))], [q])
        with pytest.raises(ol.GradientError, match="attention_changes"):
            ol.gradients([ol.op.reduce_sum(ol.op.square(found))], [q])
