"""Attention: against PyTorch's, with heads and without, with a mask and without."""

import numpy
import pytest
import torch
from tolerances import AUTOGRAD

import oarlock as ol


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("heads", [1, 2])
def test_attention_and_its_gradients_are_those_of_pytorch(heads, causal):
    with ol.Program() as program:
        inputs = [ol.layer.data(name, shape=["t", 4], dtype="float64") for name in ("q", "k", "v")]
        y = ol.layer.attention(*inputs, heads=heads, causal=causal)
        gradients = ol.gradients([ol.op.reduce_sum(ol.op.square(y))], inputs)
    assert y.shape == ("n", "t", 4)
    feed = {name: numpy.random.default_rng(seed).standard_normal((2, 5, 4)) for seed, name in enumerate("qkv")}
    leaves = [torch.from_numpy(value).clone().requires_grad_() for value in feed.values()]
    by_head = [leaf.unflatten(-1, (heads, 4 // heads)).transpose(1, 2) for leaf in leaves]
    expected = torch.nn.functional.scaled_dot_product_attention(*by_head, is_causal=causal).transpose(1, 2).flatten(2)
    expected.square().sum().backward()
    found = ol.Executor().run(program, feed, [y, *gradients], scope=ol.Scope(), return_numpy=False)
    torch.testing.assert_close(found, [expected.detach(), *(leaf.grad for leaf in leaves)], rtol=AUTOGRAD[0], atol=AUTOGRAD[1])


def test_heads_that_do_not_divide_the_columns_are_refused():
    with ol.Program() as program:
        q = ol.layer.data("q", shape=["t", 4])
        with pytest.raises(ol.ArgumentError) as raised:
            ol.layer.attention(q, q, q, heads=3)
        assert raised.value.message == "attention: 3 heads do not divide the columns of q"
        with pytest.raises(ol.ShapeError) as refused:
            ol.layer.attention(ol.layer.data("x", shape=[4]), q, q)
        assert refused.value.message == "attention: query is float[n t d], not float32[n, 4]"
    assert program.main.ops == []


def test_a_third_derivative_is_refused_by_name():
    with ol.Program():
        x = ol.layer.data("x", shape=["t", 4])
        (dx,) = ol.gradients([ol.op.reduce_sum(ol.layer.attention(x, x, x))], [x])
        (ddx,) = ol.gradients([ol.op.reduce_sum(dx)], [x])
        with pytest.raises(ol.GradientError, match='"attention_changes" has no gradient with respect to'):
            ol.gradients([ol.op.reduce_sum(ddx)], [x])


@pytest.mark.parametrize("mode", ["average", "max"])
def test_a_pool_over_a_whole_image_leaves_its_channels(mode):
    with ol.Program() as program:
        y = ol.layer.global_pool2d(ol.layer.data("x", shape=[3, "h", "w"], dtype="float64"), mode=mode)
    x = numpy.random.default_rng(0).standard_normal((2, 3, 4, 5))
    expected = x.mean((2, 3)) if mode == "average" else x.max((2, 3))
    numpy.testing.assert_allclose(ol.Executor().run(program, {"x": x}, [y], scope=ol.Scope())[0], expected, rtol=1e-12)
