"""One place knows how slots and attributes become a call of a kernel: for values, and for the text of a plan."""

import ast
from pathlib import Path

import pytest
import torch

import oarlock
from oarlock.registry import Catalogue, operator

PACKAGE = Path(oarlock.__file__).parent
OF_KERNELS = ("op/", "backend/torch/")
"""Where kernels stand: one may call another as the function that it is."""


@operator(
    "x: float[n k], like: shape[m], *parts: float[n k], scale?: float[k] -> y: float[n k], *others: float[n k]", catalogue=Catalogue()
)
def every_kind(context, x, like, parts, scale=None, *, factor: float = 2.0):
    first = x * factor * like[0] if scale is None else x * factor * like[0] * scale
    return first, [part + context for part in parts]


ONE, TWO = torch.ones(1, 2), torch.full((1, 2), 2.0)


@pytest.mark.parametrize("given_scale", [False, True])
@pytest.mark.parametrize("like", [torch.zeros(3), torch.Size([3])])
def test_a_call_and_its_text_say_the_same(given_scale, like):
    values = {"x": [ONE], "like": [like], "parts": [ONE, TWO]} | ({"scale": [torch.tensor([1.0, 10.0])]} if given_scale else {})
    expected = {"y": [[[6.0, 60.0 if given_scale else 6.0]]], "others": [[[6.0, 6.0]], [[7.0, 7.0]]]}
    found = every_kind.call(values, {"factor": 2.0}, 5.0)
    assert {slot: [value.tolist() for value in items] for slot, items in found.items()} == expected
    names = {slot: [f"{slot}_{number}" for number in range(len(items))] for slot, items in values.items()} | {"like": ["like_0.shape"]}
    text = every_kind.call_text("kernel", names, {"factor": "2.0"}, "run")
    assert text == f"kernel(run, x_0, like_0.shape, [parts_0, parts_1]{', scale_0' if given_scale else ''}, factor=2.0)"
    if isinstance(like, torch.Tensor):
        known = {name: value for slot, items in values.items() for name, value in zip(names[slot], items, strict=True)} | {"like_0": like}
        assert every_kind.results_text({"y": ["y_0"], "others": ["others_0", "others_1"]}) == "y_0, [others_0, others_1]"
        exec(f"y_0, [others_0, others_1] = {text}", {"kernel": every_kind.kernel, "run": 5.0}, known)
        assert {"y": [known["y_0"].tolist()], "others": [known["others_0"].tolist(), known["others_1"].tolist()]} == expected


def test_what_is_left_out_at_the_end_is_not_written():
    assert every_kind.call_text("kernel", {"x": ["x"], "like": ["like.shape"]}, {}) == "kernel(x, like.shape, [])"
    one = operator("a?: float[k], b: float[k] -> c: float[k]", catalogue=Catalogue())

    def behind(a, b):
        return b

    assert one(behind).call_text("kernel", {"b": ["b"]}, {}) == "kernel(None, b)"


def test_a_variant_is_called_as_its_kernel_is():
    def variant(context, x, like, parts, scale=None, *, factor, out):
        return out.copy_(x * factor * like[0]), []

    out = torch.empty(1, 2)
    found = every_kind.call({"x": [ONE], "like": [torch.zeros(3)]}, {"factor": 2.0, "out": out}, 0, kernel=variant)
    assert found["y"] == [out]
    assert out.tolist() == [[6.0, 6.0]]


def calls_of_kernels(source: str) -> list[str]:
    """The calls, in a file, of what is called `kernel`."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "kernel":
            found.append(ast.unparse(node))
    return found


def test_nobody_else_calls_a_kernel():
    files = [path for path in sorted(PACKAGE.rglob("*.py")) if not path.relative_to(PACKAGE).as_posix().startswith(OF_KERNELS)]
    found = {path.relative_to(PACKAGE).as_posix(): calls_of_kernels(path.read_text(encoding="utf-8")) for path in files}
    assert {file: calls for file, calls in found.items() if calls} == {}
    assert calls_of_kernels("value = catalogue.get(op.type).kernel(**op.attributes)") == ["catalogue.get(op.type).kernel(**op.attributes)"]
