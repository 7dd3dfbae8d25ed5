"""Element-wise rules beside PyTorch, their exports beside ONNX Runtime: a part of what `python -m interop.elementwise` compares."""

from collections.abc import Iterator

import pytest

pytest.importorskip("onnxruntime")

import torch
from interop.elementwise import (
    MODULES,
    OTHERS,
    difference,
    elementwise_overloads,
    export_bound,
    exported_operators,
    of_export,
    of_rule,
    rule_bound,
    spread,
)
from interop.onnx.models import model as model_of
from interop.onnx.models import node, written

import oarlock as ol
from oarlock.interop.torch.rules.registry import load_rules

inf, nan = float("inf"), float("nan")
OVERLOADS = dict(elementwise_overloads())


@pytest.fixture(autouse=True)
def denormal_numbers_are_kept() -> Iterator[None]:
    """A test before may have trained, which lets the process flush them."""
    before = torch.tensor([1e-310], dtype=torch.float64).mul(1.0).item() == 0.0
    torch.set_flush_denormal(False)
    yield
    torch.set_flush_denormal(before)


@pytest.mark.parametrize("overload", OVERLOADS)
def test_a_rule_gives_what_pytorch_gives_to_the_last_place(overload):
    for dtype in (torch.float16, torch.float32):
        found = of_rule(overload, OVERLOADS[overload], dtype, 2000, 0)
        assert found.units <= rule_bound(overload, dtype), f"{dtype}: {found.units} units at {found.where}"


@pytest.mark.parametrize("operator", exported_operators(), ids=lambda operator: operator.type)
def test_an_export_gives_what_the_operator_gives_to_the_last_places(operator):
    found = of_export(operator, 2000, 0)
    if found is None:
        pytest.skip("ONNX has no words for it")
    assert found.units <= export_bound(operator), f"{found.units} units at {found.where}"


def test_every_name_that_is_left_out_has_a_rule():
    files = {rule.function.__module__.rpartition(".")[2] for rule in load_rules().values()}
    names = {name for overload in load_rules() if overload.startswith("aten.") for name in (overload.split(".")[1], overload[5:])}
    assert set(MODULES) <= files
    assert sorted(OTHERS.keys() - names) == []


def test_a_difference_of_one_place_and_a_nan_are_seen():
    x = torch.tensor([1.0, 2.0])
    assert difference(x, torch.tensor([1.0, torch.nextafter(x[1], x[0]).item()]), [x]).units == 1.0
    assert difference(torch.tensor([-0.0]), torch.tensor([0.0]), [x]).units == 0.0
    assert difference(torch.tensor([nan, 1.0]), x, [x]).units == inf
    assert difference(torch.tensor([1e-45, -1e-45]), torch.tensor([1e-45, 1e-45]), [x]).units == 2.0
    assert difference(torch.tensor([True]), torch.tensor([False]), [x]).units == inf


def test_numbers_are_spread_over_all_exponents():
    assert spread(torch.float16, 0, 0).nan_to_num().unique().numel() > 63000
    exponents = torch.frexp(spread(torch.float32, 20000, 0).nan_to_num(0, 0, 0)).exponent.unique()
    assert exponents.numel() > 250


class OfComplex(torch.nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, x):
        return self.function(x)


COMPLEX = ("isnan", "isinf", "isfinite", "nan_to_num", "angle", "sgn", "real", "imag", "abs", "sin", "exp", "reciprocal")


@pytest.mark.parametrize("name", COMPLEX)
def test_complex_numbers_are_taken_as_by_pytorch(name):
    x = torch.tensor([1 + 2j, complex(nan, 1), complex(0, inf), complex(-inf, nan), 0j])
    function = getattr(torch, name)
    made = ol.from_torch(OfComplex(function), x)
    found = ol.infer(made, {next(iter(made.inputs)): x.numpy()})
    torch.testing.assert_close(torch.from_numpy(found), function(x).resolve_conj(), equal_nan=True)


def test_erfc_has_its_digits_where_it_is_nearly_nothing(tmp_path):
    x = torch.linspace(-6.0, 26.0, 1000, dtype=torch.float64)
    with ol.Program():
        y = ol.op.erfc(ol.layer.data("x", ["n"], "float64", batch=None))
    ol.to_onnx([y], tmp_path / "erfc.onnx")
    model = ol.from_onnx(tmp_path / "erfc.onnx")
    found = torch.from_numpy(ol.infer(model, {"x": x.numpy()}))
    torch.testing.assert_close(found, torch.erfc(x), rtol=1e-13, atol=0.0)


@pytest.mark.filterwarnings("error")
def test_the_sign_of_nan_is_that_of_onnx(tmp_path):
    """Its reference and ONNX Runtime give NaN, PyTorch and our operator 0; a model that came in goes out with its meaning."""
    held = model_of([node("Sign", ["x"], ["y"]), node("Abs", ["y"], ["z"])], {"x": [3]}, ["y", "z"])
    made = ol.from_onnx(written(tmp_path, held))
    found = ol.infer(made, {"x": torch.tensor([nan, -2.0, 0.0]).numpy()})
    assert isinstance(found, dict)
    torch.testing.assert_close([torch.from_numpy(each) for each in found.values()],
                               [torch.tensor([nan, -1.0, 0.0]), torch.tensor([nan, 1.0, 0.0])], equal_nan=True)  # fmt: skip
