"""Formulas that modules write out come in as the operators that compute them."""

import math

import numpy
import pytest
import torch
from torch import nn

import oarlock as ol

X = torch.randn(2, 3, 6, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
C, ROOT = math.sqrt(2.0 / math.pi), math.sqrt(2.0)


class Written(nn.Module):
    """A formula of x and of six numbers."""

    def __init__(self, formula):
        super().__init__()
        self.formula = formula
        self.w = nn.Parameter(torch.linspace(0.5, 1.5, 6, dtype=torch.float64))

    def forward(self, x):
        return self.formula(x, self.w)


def rms(x, axis=-1):
    return x * torch.rsqrt(x.pow(2).mean(axis, keepdim=True) + 1e-6)


def by_tanh(x):
    return 0.5 * x * (1.0 + torch.tanh(C * (x + 0.044715 * torch.pow(x, 3.0))))


WHOLE = {
    "rms_norm": (lambda x, w: w * rms(x), ["rms_norm"]),
    "rms_norm by a product": (lambda x, w: torch.rsqrt((x * x).mean(-1, keepdim=True) + 0.5) * x * w, ["rms_norm"]),
    "rms_norm without a scale": (lambda x, w: rms(x * w), ["multiply", "rms_norm"]),
    "gelu by tanh": (lambda x, w: by_tanh(x * w), ["multiply", "gelu"]),
    "gelu by erf": (lambda x, w: 0.5 * x * (1.0 + torch.erf(x / ROOT)) * w, ["gelu", "multiply"]),
    "gelu by erf of a product": (lambda x, w: x * 0.5 * (torch.erf(x * math.sqrt(0.5)) + 1.0) * w, ["gelu", "multiply"]),
}

APART = {
    "another axis": lambda x, w: w * rms(x, 1),
    "a scale of each element": lambda x, w: rms(x) * (x + w),
    "another value": lambda x, w: x * torch.rsqrt((x + w).pow(2).mean(-1, keepdim=True) + 1e-6),
    "no gradient": lambda x, w: w * (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6).detach()),
    "another factor": lambda x, w: 0.5 * x * (1.0 + torch.tanh(0.79 * (x + 0.044715 * torch.pow(x, 3.0)))) * w,
    "another weight": lambda x, w: 0.5 * x * (1.0 + torch.tanh(C * (x + 0.05 * torch.pow(x, 3.0)))) * w,
    "another power": lambda x, w: 0.5 * x * (1.0 + torch.tanh(C * (x + 0.044715 * (x * x * w)))) * w,
    "twice": lambda x, w: x * (1.0 + torch.erf(x / ROOT)) * w,
    "of something else": lambda x, w: 0.5 * w * (1.0 + torch.erf(x / ROOT)),
    "another root": lambda x, w: 0.5 * x * (1.0 + torch.erf(x / 1.5)) * w,
}


def imported(formula):
    module = Written(formula)
    return module, ol.from_torch(module, X, dynamic="n")


def require_alike(module, model):
    """Values, and both gradients, are those of PyTorch."""
    x = X.clone().requires_grad_()
    y = module(x)
    cost = y.square().sum() if isinstance(y, torch.Tensor) else sum(each.square().sum() for each in y)
    expected = torch.autograd.grad(cost, [x, module.w])
    with model.program:
        outputs = list(model.outputs.values())
        total = ol.op.sum([ol.op.reduce_sum(ol.op.square(each)) for each in outputs])
        found = ol.gradients([total], [model.inputs["x"], model.program.main.var("w")])
    values = model.executor.run(model.program, {"x": X.numpy()}, [total, *found], scope=model.scope, training=False)
    for value, wanted in zip(values, [cost.detach(), *expected], strict=True):
        numpy.testing.assert_allclose(value, wanted.numpy(), rtol=1e-10, atol=1e-12)


def types(model):
    return [op.type for op in model.program.main.ops if op.type not in ("full", "assign")]


@pytest.mark.parametrize("name", list(WHOLE))
def test_a_formula_is_one_operator(name):
    formula, expected = WHOLE[name]
    module, model = imported(formula)
    assert types(model) == expected
    require_alike(module, model)


@pytest.mark.parametrize("name", list(APART))
def test_what_is_another_formula_stays_as_it_is(name):
    module, model = imported(APART[name])
    found = [op for op in model.program.main.ops if op.type in ("rms_norm", "gelu")]
    assert all(op.type == "rms_norm" and "scale" not in op.inputs for op in found) if name == "a scale of each element" else not found
    require_alike(module, model)


def test_what_is_read_elsewhere_too_stays():
    def formula(x, w):
        inner = torch.tanh(C * (x + 0.044715 * torch.pow(x, 3.0)))
        return 0.5 * x * (1.0 + inner) * w, inner

    module, model = imported(formula)
    assert "gelu" not in types(model)
    require_alike(module, model)
