"""Constants that move, rotary positions and masks looked up row by row cost an imported program no more than they must."""

from collections import Counter

import numpy
import pytest
import torch
from torch import nn

import oarlock as ol

WIDTH = 6
X = torch.randn(3, 5, WIDTH, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
ANGLES = torch.linspace(0.0, 2.0, 5 * WIDTH, dtype=torch.float64).reshape(5, WIDTH)


class Module(nn.Module):
    """A formula of x and of the sines that it holds."""

    def __init__(self, formula):
        super().__init__()
        self.formula = formula
        self.sines = nn.Parameter(ANGLES.sin())

    def forward(self, x):
        return self.formula(self, x)


def turned(y, cut=WIDTH // 2):
    return torch.cat([-y[..., cut:], y[..., :cut]], -1)


def types(model):
    return Counter(op.type for op in model.program.main.ops)


def require_alike(module, model):
    """The value, and the gradients of x and of the sines, are those of PyTorch."""
    x, weight = X.clone().requires_grad_(), torch.arange(X.numel(), dtype=torch.float64).reshape(X.shape) + 1
    value = module(x)
    wanted = torch.autograd.grad((value * weight).sum(), [x, module.sines])
    with model.program:
        (output,) = model.outputs.values()
        fed = ol.layer.data("weight", list(X.shape), "float64", batch=None)
        found = ol.gradients([output], [model.inputs["x"], model.program.main.var("sines")], [fed])
    feed = {"x": X.numpy(), "weight": weight.numpy()}
    results = model.executor.run(model.program, feed, [output, *found], scope=model.scope, training=False)
    for result, expected in zip(results, (value.detach(), *wanted), strict=True):
        numpy.testing.assert_allclose(result, expected.numpy(), rtol=1e-12, atol=1e-12)


ROLLED = {
    "sines at the right": lambda self, x: x + turned(x) * self.sines,
    "sines at the left": lambda self, x: self.sines * turned(x),
    "of a result": lambda self, x: turned(torch.tanh(x)) * self.sines[None] - x,
    "a number of each row": lambda self, x: turned(x) * self.sines[:, :1] + self.sines,
    "two": lambda self, x: turned(x) * self.sines + turned(x * 2.0) * self.sines,
}
LEFT = {
    "other parts": lambda self, x: turned(x, 2) * self.sines,
    "the other sign": lambda self, x: torch.cat([x[..., 3:], -x[..., :3]], -1) * self.sines,
    "parts of two": lambda self, x: torch.cat([-x[..., 3:], (x + 1.0)[..., :3]], -1) * self.sines,
    "along the rows": lambda self, x: torch.cat([-x[:, 3:], x[:, :3]], 1) * self.sines,
    "every second column": lambda self, x: torch.cat([-x[..., 1::2], x[..., ::2]], -1) * self.sines,
    "read twice": lambda self, x: (lambda y: y * self.sines + y)(turned(x)),
}


@pytest.mark.parametrize("name", list(ROLLED))
def test_halves_that_change_places_and_sign_become_a_roll(name):
    module = Module(ROLLED[name])
    model = ol.from_torch(module, X)
    assert types(model)["roll"] == (0 if name == "a number of each row" else 2 if name == "two" else 1)
    require_alike(module, model)


@pytest.mark.parametrize("name", list(LEFT))
def test_other_parts_are_left_as_they_are(name):
    module = Module(LEFT[name])
    model = ol.from_torch(module, X)
    assert types(model)["roll"] == 0
    require_alike(module, model)


def test_constants_are_moved_when_the_module_comes_in():
    angles = ANGLES.clone()
    module = Module(lambda self, x: turned(x) * torch.cos(angles).t().contiguous().t() + x * self.sines)
    model = ol.from_torch(module, X)
    assert not {"transpose", "neg", "concat", "slice"} & types(model).keys()
    held = [name for name in model.program.main.vars if "@CONSTANT" in name]
    assert len(held) == 1  # the cosines as they were are gone
    require_alike(module, model)


def take(*indices):
    return lambda self, x: x[indices] * self.sines


ROWS, PLACES, COLUMNS = torch.arange(3), torch.arange(5), torch.arange(WIDTH)
WHOLE = {
    "all axes": take(ROWS[:, None, None], PLACES[:, None], COLUMNS),
    "the first": take(ROWS[:, None], PLACES),
    "one": take(slice(None), slice(None), COLUMNS),
}
PARTLY = {
    "in another order": take(slice(None), PLACES.flip(0)),
    "one place less": lambda self, x: x[:, :, COLUMNS[1:] - 1].sum(-1, keepdim=True) + x * self.sines,
    "places beside one another": lambda self, x: x[ROWS, ROWS][:, None] + x * self.sines,
    "axes that change places": lambda self, x: x[ROWS, PLACES[:, None]].transpose(0, 1) * self.sines,
}


@pytest.mark.parametrize("name", list(WHOLE))
def test_numbers_of_all_places_are_no_index(name):
    module = Module(WHOLE[name])
    model = ol.from_torch(module, X)
    assert types(model)["index"] + types(model)["gather"] == 0
    require_alike(module, model)


@pytest.mark.parametrize("name", list(PARTLY))
def test_numbers_of_some_places_are_an_index(name):
    module = Module(PARTLY[name])
    model = ol.from_torch(module, X)
    require_alike(module, model)
