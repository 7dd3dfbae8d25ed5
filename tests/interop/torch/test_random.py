"""Random operators of a module that comes in: dropped in training as in PyTorch, and not in inference."""

import math

import numpy
import pytest
import torch
from interop.torch.imports import Function
from tolerances import MOMENTS
from torch.nn import functional

import oarlock as ol


def _drop_by_bernoulli(x):
    mask = x.new_empty((x.shape[0], 1)).bernoulli_(0.75)
    return x * mask.div_(0.75)


def _drop_by_floor(x):
    mask = 0.75 + torch.rand((x.shape[0], 1), dtype=x.dtype)
    return x.div(0.75) * mask.floor_()


def _drop_elements(x):
    return functional.dropout(x, 0.25, training=True)


def _drop_channels(x):
    return functional.dropout2d(x[:, :, None, None], 0.25, training=True)[..., 0, 0]


@pytest.mark.parametrize("drop", [_drop_by_bernoulli, _drop_by_floor, _drop_elements, _drop_channels])
def test_what_drops_in_training_keeps_its_share_and_drops_nothing_in_inference(drop):
    count = 4000
    x = torch.ones(count, 1, dtype=torch.float64)
    model = ol.from_torch(Function(drop), x)
    (name,) = model.inputs
    (output,) = model.outputs.values()
    (still,) = model.executor.run(model.program, {name: x.numpy()}, [output], scope=model.scope, training=False)
    numpy.testing.assert_allclose(still, x.numpy(), rtol=1e-15)
    draws = [model.executor.run(model.program, {name: x.numpy()}, [output], scope=model.scope, training=True)[0][:, 0] for _ in range(2)]
    for drawn in draws:
        kept = drawn != 0.0
        numpy.testing.assert_allclose(drawn[kept], 1 / 0.75, rtol=1e-15)
        assert abs(kept.mean() - 0.75) < MOMENTS * math.sqrt(0.75 * 0.25 / count)
    assert (draws[0] != draws[1]).any()


def test_random_numbers_have_the_moments_that_were_asked_for():
    def draw(x):
        return torch.rand_like(x), torch.randn(x.shape, dtype=x.dtype), torch.randint(0, 4, x.shape), torch.bernoulli(x)

    count = 4000
    x = torch.full((count,), 0.25, dtype=torch.float64)
    model = ol.from_torch(Function(draw), x)
    (name,) = model.inputs
    uniform, normal, whole, chosen = ol.infer(model, {name: x.numpy()}).values()
    for drawn, mean, deviation in ((uniform, 0.5, 12**-0.5), (normal, 0.0, 1.0), (whole, 1.5, 1.25**0.5), (chosen, 0.25, 0.1875**0.5)):
        assert abs(drawn.mean() - mean) < MOMENTS * deviation / math.sqrt(count)
        assert abs(drawn.std() - deviation) < MOMENTS * deviation / math.sqrt(count)
    assert set(whole.tolist()) == {0, 1, 2, 3}
    assert set(chosen.tolist()) == {0.0, 1.0}
