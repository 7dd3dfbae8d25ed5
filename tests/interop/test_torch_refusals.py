"""Refusals: all of them at once, with the author's lines."""

from pathlib import Path

import pytest
import torch
from torch import nn

import oarlock as ol


class Spectral(nn.Module):
    def __init__(self):
        super().__init__()
        self.mix = nn.Linear(4, 4)

    def forward(self, x):
        values = torch.linalg.svd(self.mix(x))[1]
        return torch.special.bessel_j0(values), torch.special.bessel_j0(x)


class Outer(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = Spectral()

    def forward(self, x):
        return self.inner(x)


def place(text):
    """Where a line of this file stands, as a message says it."""
    line = next(number for number, line in enumerate(Path(__file__).read_text().splitlines(), 1) if line.strip() == text)
    return f"interop/test_torch_refusals.py:{line} in forward      {text}"


def refused(module, *arguments, **options):
    with pytest.raises(ol.UnsupportedError) as raised:
        ol.from_torch(module, *arguments, **options)
    return raised.value


def test_every_place_is_named_once_with_its_module_and_line():
    error = refused(Outer(), torch.ones(4, 4))
    bessel = "return torch.special.bessel_j0(values), torch.special.bessel_j0(x)"
    svd = "values = torch.linalg.svd(self.mix(x))[1]"
    assert error.message == "from_torch: Outer has unsupported operators in 3 places; nothing was created"
    assert error.given == (
        f"aten.linalg_svd.default: there is no rule for this operator; in inner, at {place(svd)}",
        f"aten.special_bessel_j0.default: there is no rule for this operator; in inner, at {place(bessel)} (and 1 more)",
    )
    assert [refusal.operator for refusal in error.refusals] == ["aten.linalg_svd.default", *["aten.special_bessel_j0.default"] * 2]
    assert error.hint == "rewrite these places, or import the surrounding modules separately"


class Chooses(nn.Module):
    def forward(self, x):
        if x.sum() > 0:
            return x
        return -x


def test_a_choice_of_python_by_a_value_names_its_line():
    error = refused(Chooses(), torch.ones(2, 2))
    assert error.message == "from_torch: Chooses has Python control flow that depends on a tensor's value"
    assert str(error.location) == place("if x.sum() > 0:")
    assert error.hint == "use torch.cond, torch.while_loop or torch.where instead"


class Fixes(nn.Module):
    def forward(self, x):
        return x + torch.zeros(3, 4)


def test_a_size_that_the_module_fixes_is_refused_loudly():
    error = refused(Fixes(), torch.ones(3, 4), dynamic="n")
    assert error.message == "from_torch: Fixes fixes a size that dynamic declares as a symbol"
    assert error.hint == "remove that size from dynamic, or compute with x.shape in the module instead of a number"
    assert ol.from_torch(Fixes(), torch.ones(3, 4)).inputs["x"].shape == (3, 4)


class Complex(nn.Module):
    def forward(self, x):
        return torch.view_as_complex(x).abs()


def test_what_a_dtype_of_no_program_would_become_is_refused():
    assert "aten.view_as_complex.default" in [
        refusal.operator for refusal in refused(Complex(), torch.ones(3, 2, dtype=torch.float16)).refusals
    ]


class Writes(nn.Module):
    def forward(self, x):
        return x.add_(1.0)


def test_an_input_that_is_written_over_is_refused():
    (refusal,) = refused(Writes(), torch.ones(3)).refusals
    assert refusal.why == "x: only buffers can be updated in place, and this is a user input mutation"


def test_examples_and_sizes_that_do_not_fit_are_said():
    def given(example, dynamic=None):
        with pytest.raises(ol.ArgumentError) as raised:
            ol.from_torch(nn.Linear(4, 4), example, dynamic=dynamic)
        return raised.value.message

    x = torch.ones(2, 4)
    assert given((x, x)) == "from_torch: the example does not fit the module: too many positional arguments"
    start = "from_torch: invalid dynamic: "
    assert given(x, {"image": {0: "n"}}) == start + 'there is no input "image"'
    assert given(x, {"input": {2: "n"}}) == start + '"input" has 2 dimensions; axis 2 does not exist'
    assert given(x, {"input": {0: "2*n"}}) == start + "'2*n' is not a valid name of a size"
    assert given(x, {"input": {0: "n", 1: "n"}}) == start + '"n" is 2 and 4 in the example'
    with pytest.raises(ol.ArgumentError) as raised:
        ol.from_torch(lambda x: x, x)
    assert raised.value.message == "from_torch takes a torch.nn.Module or an ExportedProgram, not function"


class Nested(nn.Module):
    def forward(self, x, past, scale: float = 1.0, *, flags=None):
        return {"logits": x + past["key"][0], "past": (past["key"][1] * scale, x)}


def test_nested_inputs_and_outputs_are_called_by_their_paths():
    x = torch.ones(2, 3)
    model = ol.from_torch(
        Nested(), (x, {"key": (x, x * 2)}, 3.0), dynamic={"x": {0: "n"}, "past": {"key": ({0: "n"}, {0: "n", 1: "width"})}}
    )
    assert {name: var.shape for name, var in model.inputs.items()} == {"x": ("n", 3), "past.key.0": ("n", 3), "past.key.1": ("n", "width")}
    assert list(model.outputs) == ["logits", "past.0", "past.1"]
    assert model.output["past"][0] is model.outputs["past.0"]
    found = ol.infer(model, {"x": x[:1], "past.key.0": x[:1], "past.key.1": torch.ones(1, 5)})
    assert found["past.0"].tolist() == [[3.0] * 5]
    with ol.Program():
        given = ol.Variable(shape=[7, 3], name="x")
        made = model(given, {"key": (given, given)}, 3.0)
        assert made["logits"].shape == (7, 3)
        with pytest.raises(ol.ArgumentError) as raised:
            model(given, {"key": (given, given)}, 4.0)
    assert raised.value.message == "Nested: scale is 4.0, but the module was imported for 3.0"
