"""Gradients at the edges of domains are PyTorch's, or the page says why not: a part of what `python -m op.gradient_edges` compares."""

from collections.abc import Iterator

import pytest
import torch
from op.arguments import FORWARD, Arguments
from op.gradient_edges import (
    COMPARED_TWINS,
    DIFFERENTIABLE,
    OF_PYTHON,
    Twin,
    compare_operator,
    compare_twin,
    edges_of_twin,
    kinds_of,
    same,
)

import oarlock as ol
from oarlock.op.composed.edges import COMPOSITION_EDGES
from oarlock.registry import Operator, standard
from oarlock.registry.declaration import EDGES
from oarlock.registry.gradient import Rule
from oarlock.registry.page import AT, format_page

inf, nan = float("inf"), float("nan")
WITHOUT = {
    **dict.fromkeys(("bessel_j0", "bessel_j1", "bessel_y0", "bessel_y1", "k0", "k0e", "k1", "k1e"), "PyTorch has no gradient of it"),
    **dict.fromkeys(("layer_norm_grad", "layer_norm_scale_grad"), "PyTorch has no gradient of the kernel alone"),
}
"""Operators that cannot be compared."""


@pytest.fixture(autouse=True)
def denormal_numbers_are_kept() -> Iterator[None]:
    """A test before may have trained, which lets the process flush them."""
    before = torch.tensor([1e-310], dtype=torch.float64).mul(1.0).item() == 0.0
    torch.set_flush_denormal(False)
    yield
    torch.set_flush_denormal(before)


@pytest.mark.parametrize("operator", [pytest.param(each, id=each.type) for each in DIFFERENTIABLE])
def test_gradients_of_an_operator_at_edges_are_those_of_pytorch(operator: Operator):
    report = compare_operator(operator, 1, 0, (torch.float64,), most=4)
    assert report.wrong(operator.edges)[:3] == []
    assert bool(report.compared) != (operator.type in WITHOUT), report.skipped[:3]


@pytest.mark.parametrize("twin", [pytest.param(each, id=each.name) for each in COMPARED_TWINS])
@pytest.mark.filterwarnings("ignore:reduction", "ignore:index_reduce")
def test_gradients_of_a_function_at_edges_are_those_of_pytorch(twin: Twin):
    assert compare_twin(twin, 1, 0).wrong(edges_of_twin(twin))[:3] == []


def test_a_kind_of_edge_is_one_that_a_page_has_words_for():
    assert set(EDGES) == AT.keys()
    declared = [each.edges for each in FORWARD] + list(COMPOSITION_EDGES.values()) + list(OF_PYTHON.values())
    assert {kind for edges in declared for kind in edges} <= set(EDGES)
    assert COMPOSITION_EDGES.keys() <= vars(ol.op).keys()


def test_the_page_of_an_operator_has_the_reasons():
    assert "Gradients that differ from PyTorch's\n    at infinities: 0 if all elements are -inf" in format_page(standard.get("logsumexp"))
    with pytest.raises(ol.DeclarationError, match="relu: infinity is not a kind of edge: denormal, equal"):
        standard.get("relu").declare_edges(infinity="large")


def test_kinds_of_edges_are_seen():
    def seen(*values: float) -> set[str]:
        return set(kinds_of(Arguments({"x": [torch.tensor(values, dtype=torch.float64)]}, {})))

    assert seen(0.5, 2.0) == set()
    assert seen(0.0) == {"zero"}
    assert seen(-inf, nan) == {"infinite", "nan", "negative"}
    assert seen(1e-310, 1.0) == {"denormal", "one"}
    assert seen(2.0, 2.0) == {"equal"}


def test_a_gradient_that_is_wrong_at_an_edge_is_seen(monkeypatch):
    """The square root's, which is infinite at 0, made NaN there."""
    wrong = Rule("x", program=lambda y, dy: dy * y / (y * y * 2.0))
    root = standard.get("sqrt")
    monkeypatch.setitem(root.gradients, "x", wrong)
    report = compare_operator(root, 0, 0, (torch.float64,))
    assert {kind for finding in report.findings for kind in finding.kinds} >= {"zero"}
    assert report.wrong([]) != []
    assert report.wrong(["zero", "infinite"]) == []


def test_nan_and_infinities_are_compared():
    x = torch.tensor([1.0, nan, inf], dtype=torch.float64)
    assert same(x, x.clone())
    for other in ([1.0, nan, -inf], [1.0, 0.0, inf], [nan, nan, inf], [1.0 + 1e-5, nan, inf]):
        assert not same(x, torch.tensor(other, dtype=torch.float64))
