"""Transposes that undo one another across what lies between them are not done."""

import numpy
import pytest
import torch
from torch import nn

import oarlock as ol

HEADS, ROWS, WIDTH = 4, 5, 6
X = torch.randn(3, ROWS, HEADS * WIDTH, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
ANGLES = torch.linspace(0.0, 2.0, ROWS * WIDTH, dtype=torch.float64).reshape(1, 1, ROWS, WIDTH)


class Module(nn.Module):
    """A formula of x, split into heads, and of weights."""

    def __init__(self, formula):
        super().__init__()
        self.formula = formula
        self.w = nn.Parameter(torch.linspace(0.5, 1.5, HEADS * WIDTH, dtype=torch.float64))
        self.by_head = nn.Parameter(torch.linspace(-1.0, 1.0, HEADS * ROWS * WIDTH, dtype=torch.float64).reshape(HEADS, ROWS, WIDTH))
        self.register_buffer("cosines", ANGLES.cos())
        self.register_buffer("sines", ANGLES.sin())

    def forward(self, x):
        y = (x * self.w).unflatten(-1, (HEADS, WIDTH)).transpose(1, 2)
        return self.formula(self, y)


def joined(y):
    return y.transpose(1, 2).flatten(2)


def turned(self, y):
    half = WIDTH // 2
    return y * self.cosines + torch.cat([-y[..., half:], y[..., :half]], -1) * self.sines


def repeated(y):
    n, _, rows, width = y.shape
    return y[:, :, None].expand(n, HEADS, 3, rows, width).reshape(n, 3 * HEADS, rows, width)


@torch.no_grad()
def swapped_alone(y):
    return y.transpose(1, 2)


CANCELLED = {
    "nothing between": lambda self, y: joined(y),
    "elements": lambda self, y: joined(torch.tanh(y) * 2.0 + y),
    "places": lambda self, y: joined(turned(self, y)),
    "repeated heads": lambda self, y: joined(repeated(y)),
    "repeated heads by places": lambda self, y: joined(repeated(turned(self, y)) - 1.0),
    "a vector": lambda self, y: joined(y * self.w[:WIDTH]),
    "some heads": lambda self, y: joined(torch.tanh(torch.cat([y[:, 2:], y[:, :1]], 1))),
    "two": lambda self, y: (joined(torch.tanh(y)), joined(torch.exp(y))),
    "two of one": lambda self, y: (lambda z: (joined(z), joined(z) * 2.0))(torch.tanh(y)),
    "no gradient": lambda self, y: joined(torch.tanh(y.detach()) * self.w[0]),
    "another order": lambda self, y: (y.permute(2, 0, 1, 3) * 2.0).permute(1, 0, 2, 3).flatten(2),
}

LONG = "more ops between than Python has a stack for"
DONE = {
    "no gradient from a transpose": lambda self, y: joined(torch.tanh(swapped_alone(y)).transpose(1, 2) + y),
    "a weight of each head": lambda self, y: joined(y * self.by_head[None]),
    "elements along the axis that moves": lambda self, y: joined(torch.cumsum(y, 1)),
    LONG: lambda self, y: joined(at_length(y)),
    "read elsewhere too": lambda self, y: (lambda z: (joined(z), z))(torch.tanh(y)),
    "heads and rows as one axis": lambda self, y: torch.tanh(y.flatten(1, 2)).unflatten(1, (HEADS, ROWS)).transpose(1, 2).flatten(2),
}


def at_length(y):
    for _ in range(400):
        y = torch.sin(y)
    return y


def require_alike(module, model):
    """Values, and both gradients, are those of PyTorch."""
    x = X.clone().requires_grad_()
    found = module(x)
    values = list(found) if isinstance(found, tuple) else [found]
    cost = sum(value.square().mul(torch.arange(value.numel()).reshape(value.shape) + 1).sum() for value in values)
    expected = torch.autograd.grad(cost, [x, module.w], allow_unused=True)
    with model.program:
        outputs = list(model.outputs.values())
        weights = [ol.layer.data(f"weights_{number}", list(value.shape), "float64", batch=None) for number, value in enumerate(values)]
        total = ol.op.sum(
            [ol.op.reduce_sum(ol.op.multiply(ol.op.square(each), weight)) for each, weight in zip(outputs, weights, strict=True)]
        )
        gradients = ol.gradients([total], [model.inputs["x"], model.program.main.var("w")])
    feed = {"x": X.numpy()} | {
        f"weights_{number}": (numpy.arange(value.numel()).reshape(value.shape) + 1.0) for number, value in enumerate(values)
    }
    wanted = [var for var in gradients if var is not None]
    results = model.executor.run(model.program, feed, [*outputs, *wanted], scope=model.scope, training=False)
    compared = [*(value.detach() for value in values), *(value for value in expected if value is not None)]
    for result, value in zip(results, compared, strict=True):
        numpy.testing.assert_allclose(result, value.numpy(), rtol=1e-10, atol=1e-10)


def transposes(model):
    """Those of the plan that move more than axes of one place."""
    plan = model.executor.plan(model.program, list(model.outputs.values()))
    return [line for line in plan.text.splitlines() if "= transpose" in line and "cosines" not in line and "sines" not in line]


@pytest.mark.parametrize("name", list(CANCELLED))
def test_transposes_that_undo_one_another_are_not_done(name):
    module = Module(CANCELLED[name])
    model = ol.from_torch(module, X)
    assert transposes(model) == []
    require_alike(module, model)


@pytest.mark.parametrize("name", list(DONE))
def test_transposes_that_something_depends_on_are_done(name):
    module = Module(DONE[name])
    model = ol.from_torch(module, X)
    assert len(transposes(model)) == 2
    require_alike(module, model)


@pytest.mark.parametrize("name", [pytest.param(name, marks=[pytest.mark.slow] if name == LONG else []) for name in CANCELLED | DONE])
def test_sizes_that_a_run_tells_stay_so(name):
    module = Module((CANCELLED | DONE)[name])
    model = ol.from_torch(module, X, dynamic="n")
    for rows in (X, X[:2]):
        found = module(rows)
        expected = list(found) if isinstance(found, tuple) else [found]
        results = model.executor.run(model.program, {"x": rows.numpy()}, list(model.outputs.values()), scope=model.scope, training=False)
        for result, value in zip(results, expected, strict=True):
            numpy.testing.assert_allclose(result, value.detach().numpy(), rtol=1e-12)
