"""An operator of the user's own: ten lines, and everything that our own operators have."""

import math
import re

import numpy as np
import pytest
import torch
from processes import run_forked

import oarlock as ol
from oarlock import Case, GradCheck, Rejects, operator
from oarlock.backend.torch.variants import in_place_variant, out_variant, variants_of
from oarlock.registry import Catalogue, standard
from oarlock.registry.page import format_page
from oarlock.testing import check_operator

DECLARATION = '''
import torch
from oarlock import Case, GradCheck, operator

@operator("x: float[*b] -> y: float[*b]", cases=[Case(x=[1.0, -2.0], power=3.0, y=[1.0, -8.0]), GradCheck(x=(2, 3))])
def signed_power(x, *, power: float = 2.0):
    """Raise the size of ``x`` to ``power`` and keep its sign."""
    return torch.sign(x) * torch.abs(x) ** power

@signed_power.gradient("x")
def signed_power_dx(x, dy, *, power):
    return dy * power * torch.abs(x) ** (power - 1)
'''

namespace = {"__name__": __name__}
exec(DECLARATION, namespace)


def model():
    with ol.Program() as program:
        x = ol.layer.data("x", shape=[3])
        program.targets["y"] = ol.op.signed_power(ol.layer.fc(x, 2, name="own"), power=3.0)
    return program


@pytest.mark.mission("F6")
def test_a_custom_operator_trains_saves_and_loads_like_any_other(tmp_path):
    program = model()
    x = np.linspace(-1, 1, 12, dtype="float32").reshape(4, 3)
    scope = ol.init(program, ol.Scope())
    with program:
        cost = ol.layer.mean(program.targets["y"])
    (before,) = ol.Executor().run(program, {"x": x}, [program.targets["y"]], scope=scope)
    w, b = scope["own.w"], scope["own.b"]
    weight = w.clone().requires_grad_()
    out = torch.tensor(x) @ weight + b
    (torch.sign(out) * torch.abs(out) ** 3).mean().backward()
    ((_, gradient), _) = ol.append_backward(cost)
    found = ol.Executor().run(program, {"x": x}, [gradient], scope=scope)[0]
    assert np.allclose(found, weight.grad.numpy(), rtol=1e-5)
    path = tmp_path / "own.safetensors"
    ol.save_model(program.targets["y"], scope, path)
    assert np.array_equal(ol.infer(ol.load_model(path), {"x": x}), before)
    reading = (
        "import oarlock as ol, numpy as np, sys\n"
        "model = ol.load_model(sys.argv[1])\n"
        "print(ol.infer(model, {'x': np.ones((1, 3), 'float32')}).shape)"
    )
    assert run_forked(DECLARATION + reading, tmp_path, path) == "(1, 2)\n"


def test_a_process_without_the_declaration_says_what_is_missing(tmp_path):
    program = model()
    path = tmp_path / "own.safetensors"
    ol.save_model(program.targets["y"], ol.init(program, ol.Scope()), path)
    reading = "import oarlock as ol, sys\ntry: ol.load_model(sys.argv[1])\nexcept ol.UnknownOperatorError as error: print(error.message)"
    assert run_forked(reading, tmp_path, path) == 'main, op 1 (signed_power): no operator "signed_power"\n'


def test_a_custom_operator_has_a_page_and_promises():
    page = format_page(standard.get("signed_power"))
    assert page.startswith(
        "signed_power(x: float[*b], power=2.0) -> y: float[*b]\n\nRaise the size of ``x`` to ``power`` and keep its sign."
    )
    assert "power: float = 2.0" in page
    assert "each leading index *b is computed independently" in page
    assert "signed_power_dx(x: float[*b], dy: float[*b], power=2.0) -> dx: float[*b]" in page


@pytest.mark.mission("F2")
def test_creators_are_generated_and_take_attributes_by_name_or_behind_the_inputs():
    with ol.Program():
        x = ol.layer.data("x", shape=[3])
        assert ol.op.signed_power(x).op.attributes == {"power": 2.0}
        assert ol.op.signed_power(x, 3.0).op.attributes == ol.op.signed_power(x, power=3.0).op.attributes == {"power": 3.0}
        with pytest.raises(ol.ArgumentError, match="3 arguments given, but it takes 1 input and power"):
            ol.op.signed_power(x, 3.0, 4.0)
    assert "signed_power" in dir(ol.op)


def test_a_name_is_registered_once():
    with pytest.raises(ol.DeclarationError, match='an operator called "relu" is already registered'):

        @operator("x: float[*b] -> y: float[*b]", cases=[Case(x=[1.0], y=[1.0]), GradCheck(x=(2,))])
        def relu(x):
            return x


def declared(kernel, gradient, case):
    """An operator of a catalogue of its own."""
    made = operator("x: float[*b] -> y: float[*b]", cases=[case, GradCheck(x=(2, 3))], catalogue=standard)(kernel)
    made.gradient("x")(gradient)
    return made


def test_a_custom_operator_is_held_to_its_cases():
    check_operator(standard.get("signed_power"))

    def wrong_value(x):
        return x * 2

    def wrong_value_dx(dy):
        return dy * 2

    def wrong_slope(x):
        return x * 2

    def wrong_slope_dx(dy):
        return dy * 3

    with pytest.raises(AssertionError, match=r"wrong_value: Case\(x=\[1.0\], y=\[3.0\]\) states y = \[3.0\], but it is \[2.0\]"):
        check_operator(declared(wrong_value, wrong_value_dx, Case(x=[1.0], y=[3.0])))
    with pytest.raises(AssertionError, match="wrong_slope: .* the gradient of x is"):
        check_operator(declared(wrong_slope, wrong_slope_dx, Case(x=[1.0], y=[2.0])))


def test_a_wrong_gradient_of_a_gradient_is_found():
    def third_power(x):
        return x * x * x

    def third_power_dx(x, dy):
        return 3 * x * x * dy

    def third_power_dx_dx(x, dy, ddx):
        return 3 * x * dy * ddx

    made = declared(third_power, third_power_dx, Case(x=[1.0, 2.0], y=[1.0, 8.0]))
    check_operator(made)  # one gradient is enough
    made.gradients["x"].operator.gradient("x")(third_power_dx_dx)
    with pytest.raises(AssertionError) as error:
        check_operator(made)
    number, row = r"-?\d+\.\d+", r"\[[-\d., ]+\]"
    message = (
        rf"third_power: GradCheck\(x=\(2, 3\)\): the gradient of its gradients with respect to x is \[{row}, {row}\], "
        rf"({number}) along \[{row}, {row}\], but finite differences give ({number})"
    )
    found = re.fullmatch(message, str(error.value))
    assert found, error.value
    assert 2 * float(found[1]) == pytest.approx(float(found[2]), rel=1e-5)


def test_a_gradient_that_is_right_for_some_cotangents_alone_is_found():
    limit = [math.inf]

    def quadrupled(x):
        return 4 * x

    def quadrupled_dx(dy):
        return 4 * (dy.clamp(-limit[0], limit[0]) if limit[0] else dy * dy / dy)

    made = declared(quadrupled, quadrupled_dx, Case(x=[1.0], y=[4.0]))
    check_operator(made)
    wrong = "the gradient of x is not linear in its cotangent: it is wrong if that is large or zero"
    for limit[0] in (100.0, 1.0, 0.0):  # wrong for large ones, and at last for zero
        with pytest.raises(AssertionError) as error:
            check_operator(made)
        assert str(error.value) == f"quadrupled: GradCheck(x=(2, 3)): {wrong}"


def test_a_refusal_that_does_not_come_is_noticed():
    @operator("x: float[*b] -> y: float[*b]", cases=[Case(x=[1.0], y=[1.0]), Rejects("too large", x=(2,))])
    def accepts_all(x):
        return x.clone()

    with pytest.raises(AssertionError, match="accepts_all: .* is not refused"):
        check_operator(accepts_all)


@operator("x: float[*b] -> y: float[*b]", cases=[Case(x=[1.0, -2.0], y=[2.0, -4.0]), GradCheck(x=(2, 3))])
def doubled(x):
    """Twice ``x``."""
    return x * 2


@doubled.gradient("x")
def doubled_dx(dy):
    return dy * 2


@out_variant(doubled)
def doubled_into(x, out):
    return torch.mul(x, 2, out=out)


@in_place_variant(doubled, "x")
def doubled_in_place(x):
    return x.mul_(2)


def test_forms_that_are_their_kernel_pass():
    check_operator(doubled)


@pytest.mark.parametrize(
    ("form", "message"),
    [
        (lambda x, out: out.copy_(x * 2.5), "doubled: its out variant gives"),
        (lambda x, out: out.copy_(x.mul_(2)), "doubled: its out variant changes x"),
    ],
)
def test_a_form_into_that_is_not_its_kernel_is_found(form, message, monkeypatch):
    monkeypatch.setattr(variants_of(doubled), "out", form)
    with pytest.raises(AssertionError, match=message):
        check_operator(doubled)


@pytest.mark.parametrize(
    ("form", "message"),
    [
        (lambda x: x * 2, r"doubled: its in-place variant for \('x',\) returns other memory"),
        (lambda x: x.mul_(3), r"doubled: its in-place variant for \('x',\) gives \["),
    ],
)
def test_a_form_in_place_that_is_not_its_kernel_is_found(form, message, monkeypatch):
    monkeypatch.setitem(variants_of(doubled).in_place, ("x",), form)
    with pytest.raises(AssertionError, match=message):
        check_operator(doubled)


def test_a_form_may_round_otherwise_where_the_operator_rounds_by_place(monkeypatch):
    monkeypatch.setattr(variants_of(doubled), "out", lambda x, out: torch.mul(x, 2 + 4e-16, out=out))
    with pytest.raises(AssertionError, match="doubled: its out variant gives"):
        check_operator(doubled)
    monkeypatch.setattr(doubled, "sensitive_to", "place")
    check_operator(doubled)
    monkeypatch.setattr(variants_of(doubled), "out", lambda x, out: torch.mul(x, 2 + 4e-12, out=out))
    with pytest.raises(AssertionError, match="doubled: its out variant gives"):
        check_operator(doubled)


@operator("x: number[*#s], y: number[*#s] -> z: bool[*#s]", cases=[Case(x=[[3, 2]], y=[3, 5], z=[[True, False]])])
def divides(x, y):
    return torch.remainder(y, x) == 0


def test_a_form_on_numbers_that_is_not_its_kernel_is_found(monkeypatch):
    monkeypatch.setattr(variants_of(divides), "host", lambda x, y: y % x == 0)
    check_operator(divides)
    monkeypatch.setattr(variants_of(divides), "host", lambda x, y: y % x == 1)
    with pytest.raises(AssertionError, match="divides: its host function gives False, but the kernel gives True"):
        check_operator(divides)


@operator("x: float[...s] -> y: float[]", cases=[Case(x=[[3.0, 2.0]], y=5.0)])
def added_up(x):
    return torch.sum(x)


def test_a_number_that_is_not_that_of_the_kernel_is_found(monkeypatch):
    monkeypatch.setattr(variants_of(added_up), "number", lambda x: x.sum().item())
    check_operator(added_up)
    monkeypatch.setattr(variants_of(added_up), "number", lambda x: x.sum().item() + 1)
    with pytest.raises(AssertionError, match=r"added_up: its number function gives 6\.0, but the kernel gives 5\.0"):
        check_operator(added_up)
    monkeypatch.setattr(variants_of(added_up), "number", lambda x: x.zero_().sum().item() + 5)
    with pytest.raises(AssertionError, match="its number function"):
        check_operator(added_up)


def test_memory_that_is_shared_without_saying_so_is_found():
    cases = [Case(x=[1.0], y=[1.0]), GradCheck(x=(2,))]

    @operator("x: float[*b] -> y: float[*b]", cases=cases[:1])
    def same_in_secret(x):
        return x

    @operator("x: float[*b] -> y: float[*b]", aliases=("x",), cases=cases)
    def same(x):
        return x

    @same.gradient("x")
    def same_dx(dy):
        return dy

    @operator("x: float[*b], y: float[*b] -> z: float[*b]", aliases=("x", "y"), cases=[Case(x=[1.0], y=[2.0], z=[1.0])])
    def first_of(x, y):
        return x

    with pytest.raises(AssertionError, match="^first_of: no case shares the memory of y, although aliases declares it$"):
        check_operator(first_of)
    with pytest.raises(AssertionError, match="same_in_secret: an output shares the memory of x, which aliases does not declare"):
        check_operator(same_in_secret)
    with pytest.raises(AssertionError, match="same_dx: an output shares the memory of dy, which aliases does not declare"):
        check_operator(same)


def test_an_operator_that_is_not_linear_as_it_says_is_found():
    @operator("x: float[*b], bias?: float[*b] -> y: float[*b]", linear_in=("x",), cases=[Case(x=[1.0, 2.0], y=[3.0, 6.0])])
    def tripled_beside(x, bias=None):
        return 3 * x if bias is None else 3 * x + bias

    @operator("x: float[*b] -> y: float[*b]", linear_in=("x",), cases=[Case(x=[1.0, 2.0], y=[2.0, 3.0])])
    def one_more(x):
        return x + 1

    @operator(
        "x: float[*b], factor?: float[*b] -> y: float[*b]", linear_in=("x",), cases=[Case(x=[1.0, 2.0], factor=[2.0, 3.0], y=[4.0, 9.0])]
    )
    def weighed_beside(x, factor=None):
        return x if factor is None else x * factor + factor

    @weighed_beside.gradient("x")
    def weighed_beside_dx(dy, factor=None):
        return dy if factor is None else dy * factor

    @operator("x: float[*b] -> y: float[*b]", linear_in=("x",), cases=[Case(x=[1.0, 2.0], y=[1.0, 2.0])])
    def size_of(x):
        return x.abs()

    check_operator(tripled_beside)
    for other in (weighed_beside, size_of):
        with pytest.raises(AssertionError, match=f"{other.type} is not linear in x"):
            check_operator(other)
    with pytest.raises(AssertionError, match="one_more is not linear in x"):
        check_operator(one_more)


def test_the_gradient_of_an_element_wise_gradient_is_itself():
    catalogue = Catalogue()

    @operator("x: float[*b] -> y: float[*b]", catalogue=catalogue)
    def cubed(x):
        return x * x * x

    @cubed.gradient("x")
    def cubed_dx(x, dy, *, scale: float = 3.0):
        return scale * x * x * dy

    @operator("x: float[*b k] -> y: float[*b k]", catalogue=catalogue)
    def shares(x):
        return x / x.sum(-1, keepdim=True)

    @shares.gradient("x")
    def shares_dx(x, dy):
        return dy

    assert (cubed_dx.gradients["dy"].parameters, cubed_dx.gradients["dy"].attributes) == (("x", "ddx"), ("scale",))
    assert shares_dx.gradients == {}, "it computes along an axis"


def test_a_linear_map_of_gradients_is_its_own_transpose():
    with ol.Program() as program:
        x, weight, along = (ol.layer.data(name, shape=[3], dtype="float64", batch=None) for name in ("x", "weight", "along"))
        (slope,) = ol.gradients(ol.op.reduce_sum(ol.op.tanh(x) * weight), x)
        (found,) = ol.gradients(ol.op.reduce_sum(slope * along), weight)
    feed = {"x": [0.0, 0.5, 1.0], "weight": [1.0, 2.0, 3.0], "along": [1.0, 10.0, 100.0]}
    (value,) = ol.Executor().run(program, feed, [found], scope=ol.Scope())
    assert value == pytest.approx([(1 - math.tanh(x) ** 2) * v for x, v in zip(feed["x"], feed["along"], strict=True)])
