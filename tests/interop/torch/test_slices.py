"""Slices of axes that are symbols, imported: clipped as PyTorch clips them, or refused beyond what the export has fixed."""

import numpy
import pytest
import torch
from interop.torch.imports import Function

import oarlock as ol

SIZES = (0, 1, 2, 3, 5, 7, 600)
CLIPPED = {
    ":512": lambda x: x[:, :512] * 2.0,
    "5:": lambda x: x[:, 5:] * 2.0,
    "1:-1": lambda x: x[:, 1:-1].sum(1),
    ":-1 beside 1:": lambda x: x[:, :-1] * x[:, 1:],
    "1::2": lambda x: x[:, 1::2] * 2.0,
    "half": lambda x: x[:, : x.shape[1] // 2] * 2.0,
    "diff": torch.diff,
    "chunk": lambda x: torch.cat([part * (number + 1.0) for number, part in enumerate(x.chunk(2, dim=1))], dim=1),
    "rows_in_a_row": lambda x: x[:, :512].reshape(x.shape[0], -1) + 1.0,
}
FIXED = {
    "-4:": (lambda x: x[:, -4:] * 2.0, (0, 1, 2, 3)),
    "-512:2": (lambda x: x[:, -512:2] * 2.0, (0, 1, 600)),
    "mean": (lambda x: x[:, :512].sum(1) / x[:, :512].shape[1], (600,)),
    "narrow": (lambda x: x.narrow(1, 1, 2) * 2.0, (0, 1, 2)),
    "select": (lambda x: x[:, 3] * 2.0, (0, 1, 2, 3)),
}


def imported(function) -> ol.Model:
    return ol.from_torch(Function(function), torch.randn(3, 7, dtype=torch.float64), dynamic={"given.0": {0: "n", 1: "t"}})


def matrix(t: int, rows: int = 2) -> numpy.ndarray:
    return numpy.random.default_rng(t).normal(size=(rows, t))


@pytest.mark.parametrize("name", CLIPPED)
def test_a_slice_is_clipped_as_pytorch_clips_it_outside_of_an_export(name):
    model = imported(CLIPPED[name])
    (x,) = model.inputs.values()
    with model.program:
        (slope,) = ol.gradients([ol.op.reduce_sum(model.output * model.output)], [x])
    for t in SIZES:
        given = torch.tensor(matrix(t), requires_grad=True)
        wanted = CLIPPED[name](given)
        (gradient,) = torch.autograd.grad((wanted * wanted).sum(), given)
        values = ol.Executor().run(model.program, {x.name: matrix(t)}, [model.output, slope], scope=model.scope)
        for found, expected in zip(values, (wanted.detach(), gradient), strict=True):
            assert found.shape == tuple(expected.shape)
            assert numpy.allclose(found, expected.numpy(), rtol=1e-12)


@pytest.mark.parametrize("name", FIXED)
def test_sizes_beyond_what_the_export_has_fixed_are_refused_in_the_run(name):
    function, refused = FIXED[name]
    model = imported(function)
    (x,) = model.inputs
    for t in SIZES[1:]:
        if t in refused:
            with pytest.raises(ol.ShapeError, match=f"axis 1 has size {min(t, 512) if name == 'mean' else '.'}"):
                ol.infer(model, {x: matrix(t)})
        else:
            assert numpy.allclose(ol.infer(model, {x: matrix(t)}), function(torch.tensor(matrix(t))).numpy(), rtol=1e-12)


class Taken(torch.nn.Module):
    """The first elements of each row, as many as a number in a tensor says."""

    def forward(self, x: torch.Tensor, count: torch.Tensor) -> torch.Tensor:
        number = count.item()
        torch._check(number >= 0)
        torch._check(number <= x.shape[1])
        return x[:, :number].sum(1)


def test_a_bound_that_a_tensor_holds_takes_what_there_is():
    model = ol.from_torch(Taken(), (torch.randn(3, 7, dtype=torch.float64), torch.tensor(2)))
    x, count = model.inputs
    for number in (0, 2, 7, 9, -2):
        found = ol.infer(model, {x: matrix(7, 3), count: numpy.array(number)})
        assert numpy.allclose(found, matrix(7, 3)[:, :number].sum(1), rtol=1e-12)
