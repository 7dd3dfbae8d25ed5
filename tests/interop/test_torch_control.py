"""Branches, loops, sizes that values tell, and what is drawn at random, as modules of PyTorch have them."""

import numpy
import pytest
import torch
from torch import nn
from torch._higher_order_ops.scan import scan
from torch._higher_order_ops.while_loop import while_loop

import oarlock as ol


class Branch(nn.Module):
    def __init__(self):
        super().__init__()
        self.yes, self.no = nn.Linear(4, 4), nn.Linear(4, 4)

    def forward(self, x):
        return torch.cond(x.sum() > 0, lambda x: self.yes(x), lambda x: self.no(x) * 2, (x,))


class Power(nn.Module):
    def __init__(self):
        super().__init__()
        self.base = nn.Parameter(torch.tensor([1.5]))

    def forward(self, x):
        return while_loop(lambda count, x: count < 3, lambda count, x: (count + 1, x * self.base), (torch.tensor(0), x))[1]


class Cell(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(4, 4)

    def forward(self, steps, state):
        def step(state, x):
            after = torch.tanh(self.inner(x) + state)
            return after, after * 2

        return scan(step, state, steps, dim=0)


def doubles(*shape):
    return torch.randn(*shape, dtype=torch.float64)


def gradients(model, feed):
    """The gradients of the mean of squares of all outputs, by parameter."""
    with model.program:
        squares = [ol.op.mean(ol.op.square(var)) for var in model.outputs.values()]
        pairs = ol.append_backward(sum(squares[1:], squares[0]))
    values = ol.Executor().run(model.program, feed, [gradient for _, gradient in pairs], scope=model.scope, training=True)
    return {var.name: value for (var, _), value in zip(pairs, values, strict=True)}


def require_close(found, module):
    expected = {name: value.grad for name, value in module.named_parameters() if value.grad is not None}
    assert found.keys() >= expected.keys()
    for name, value in expected.items():
        numpy.testing.assert_allclose(found[name], value, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_a_cond_is_a_branch_with_the_gradients_of_the_one_that_ran(sign):
    torch.manual_seed(0)
    module = Branch().double()
    x = (doubles(3, 4).abs() + 0.1) * sign
    model = ol.from_torch(module, doubles(2, 4), dynamic="n")
    assert [op.type for op in model.program.main.ops if op.blocks] == ["conditional_block", "conditional_block"]
    numpy.testing.assert_allclose(ol.infer(model, {"x": x}), module(x).detach(), rtol=1e-12)
    module(x).square().mean().backward()
    require_close(gradients(model, {"x": x}), module)


def test_a_while_loop_is_a_while():
    module = Power().double()
    model, x = ol.from_torch(module, doubles(2, 4), dynamic="n"), doubles(5, 4)
    assert "while" in [op.type for op in model.program.main.ops]
    numpy.testing.assert_allclose(ol.infer(model, {"x": x}), module(x).detach(), rtol=1e-12)
    (x * module.base**3).square().mean().backward()
    require_close(gradients(model, {"x": x}), module)


def test_a_scan_is_a_recurrent_loop():
    torch.manual_seed(0)
    module = Cell().double()
    feed = {"steps": doubles(5, 3, 4), "state": doubles(3, 4)}
    model = ol.from_torch(module, tuple(feed.values()))
    assert [op.type for op in model.program.main.ops if op.blocks] == ["recurrent"]
    expected = module(**feed)
    found = ol.infer(model, feed)
    for label, value in zip(model.outputs, expected, strict=True):
        numpy.testing.assert_allclose(found[label], value.detach(), rtol=1e-12)
    sum(value.square().mean() for value in expected).backward()
    require_close(gradients(model, feed), module)


class Sizes(nn.Module):
    """Arithmetic on sizes that no axis has, as a number and as a shape."""

    def forward(self, x, y):
        rows, columns = x.shape
        return x / (rows * columns + y.shape[0] // 2), x.new_ones(rows, dtype=torch.int64) * (2 * rows), torch.arange(rows * 2)


def test_arithmetic_on_sizes_is_told_by_a_run():
    x, y = doubles(3, 4), doubles(5)
    model = ol.from_torch(Sizes(), (x, y), dynamic={"x": {0: "n", 1: "c"}, "y": {0: "m"}})
    for given in ((x, y), (doubles(7, 2), doubles(8))):
        found = ol.infer(model, dict(zip(("x", "y"), given, strict=True)))
        for value, expected in zip(found.values(), Sizes()(*given), strict=True):
            numpy.testing.assert_allclose(value, expected, rtol=1e-12)


class Chosen(nn.Module):
    """A size that only values tell, in what is computed from it."""

    def forward(self, x):
        rows = (x[:, 0] > 0).nonzero()[:, 0]
        chosen = x[rows]
        return chosen, torch.arange(chosen.shape[0]), x.sum(0) * chosen.shape[0]


def test_a_size_that_values_tell_is_one_everywhere():
    model = ol.from_torch(Chosen(), doubles(6, 4), dynamic="n")
    for count in (6, 9):
        x = doubles(count, 4)
        for value, expected in zip(ol.infer(model, {"x": x}).values(), Chosen()(x), strict=True):
            numpy.testing.assert_allclose(value, expected, rtol=1e-12)


def dropped_path(x, rate, training):
    """As timm writes it."""
    if rate == 0.0 or not training:
        return x
    return x * x.new_empty((x.shape[0],) + (1,) * (x.ndim - 1)).bernoulli_(1 - rate).div_(1 - rate)


def dropped_path_by_floor(x, rate, training):
    """As transformers writes it."""
    if rate == 0.0 or not training:
        return x
    kept = (1 - rate) + torch.rand((x.shape[0],) + (1,) * (x.ndim - 1), dtype=x.dtype)
    return x.div(1 - rate) * kept.floor_()


class Paths(nn.Module):
    def __init__(self, drop):
        super().__init__()
        self.fc, self.drop = nn.Linear(4, 4), drop

    def forward(self, x):
        return self.drop(self.fc(x), 0.4, self.training)


@pytest.mark.parametrize("drop", [dropped_path, dropped_path_by_floor])
def test_paths_are_dropped_in_training_alone(drop):
    torch.manual_seed(0)
    module = Paths(drop)
    model = ol.from_torch(module, torch.randn(2, 4), dynamic="n")
    x = torch.randn(4000, 4)
    expected = module.eval()(x).detach().numpy()
    numpy.testing.assert_allclose(ol.infer(model, {"x": x}), expected, rtol=1e-6)
    (found,) = ol.Executor().run(model.program, {"x": x}, [model.output], scope=model.scope, training=True)
    kept = (found != 0).all(axis=1)
    assert abs(kept.mean() - 0.6) < 0.03
    numpy.testing.assert_allclose(found[kept], expected[kept] / 0.6, rtol=1e-5, atol=1e-7)


def test_without_training_nothing_is_dropped_and_batch_norm_keeps_its_statistics():
    torch.manual_seed(0)
    module = nn.Sequential(nn.Linear(4, 4), nn.Dropout(0.5))
    model = ol.from_torch(module, torch.randn(2, 4), training=False)
    assert module.training
    assert "dropout" not in [op.type for op in model.program.main.ops]
