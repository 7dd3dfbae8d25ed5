"""Gradients of gradient operators that follow from a declaration: what is derived, from what, and when nothing is."""

import pytest

import oarlock as ol
from oarlock.registry import Catalogue, operator, standard


def declare(signature, kernel, **options):
    return operator(signature, catalogue=Catalogue(), **options)(kernel)


def product(x, w, bias=None, *, scale: float = 1.0):
    return x @ w * scale


def product_dx(w, dy, *, scale):
    return dy @ w.T * scale


def product_dw(x, dy, *, scale):
    return x.T @ dy * scale


def parameters(gradient):
    """The parameters of the derived gradients, by slot."""
    return {slot: rule.parameters + rule.attributes for slot, rule in gradient.gradients.items()}


@pytest.fixture
def bilinear():
    return declare("x: float[m k], w: float[k n], bias?: float[n] -> y: float[m n]", product, linear_in=("x", "w"))


def test_the_gradient_of_a_linear_operators_gradient_is_the_operator(bilinear):
    dx = bilinear.gradient("x")(product_dx)
    assert parameters(dx) == {"dy": ("ddx", "w", "scale")}, "a bias has no part in it"


@pytest.mark.parametrize("order", ["xw", "wx"])
def test_an_operator_linear_in_each_of_two_inputs_gives_the_gradients_of_both_gradients(bilinear, order):
    made = {slot: bilinear.gradient(slot)({"x": product_dx, "w": product_dw}[slot]) for slot in order}
    assert parameters(made["x"]) == {"dy": ("ddx", "w", "scale"), "w": ("ddx", "dy", "scale")}
    assert parameters(made["w"]) == {"dy": ("x", "ddw", "scale"), "x": ("ddw", "dy", "scale")}


def test_an_operator_linear_in_one_input_gives_no_gradient_for_another():
    one = declare("x: float[m k], w: float[k n], bias?: float[n] -> y: float[m n]", product, linear_in=("x",))
    assert parameters(one.gradient("x")(product_dx)) == {"dy": ("ddx", "w", "scale")}
    assert parameters(one.gradient("w")(product_dw)) == {}


def test_nothing_is_derived_where_the_gradient_lacks_what_the_operator_takes(bilinear):
    def product_dx(w, dy):  # the scale is no attribute of this one
        return dy @ w.T

    assert parameters(bilinear.gradient("x")(product_dx)) == {}


def test_a_factor_that_may_be_left_out_has_a_part_in_what_is_derived():
    """As its gradients tell, which read it. A bias they do not read."""

    def weighed(x, w, factor=None, bias=None):
        y = x @ w if factor is None else x @ w * factor
        return y if bias is None else y + bias

    def weighed_dx(w, dy, factor=None):
        return (dy if factor is None else dy * factor) @ w.T

    def weighed_dw(x, dy, factor=None):
        return x.T @ (dy if factor is None else dy * factor)

    signature = "x: float[m k], w: float[k n], factor?: float[n], bias?: float[n] -> y: float[m n]"
    forward = declare(signature, weighed, linear_in=("x", "w"))
    dx, dw = forward.gradient("x")(weighed_dx), forward.gradient("w")(weighed_dw)
    assert parameters(dx) == {"dy": ("ddx", "w", "factor"), "w": ("ddx", "dy", "factor")}
    assert parameters(dw) == {"dy": ("x", "ddw", "factor"), "x": ("ddw", "dy", "factor")}
    assert all(rule.optional == {"factor"} for each in (dx, dw) for rule in each.gradients.values())


def test_nothing_is_derived_where_one_gradient_reads_a_factor_and_the_other_does_not():
    def weighed(x, w, factor=None):
        return x @ w * factor

    def weighed_dw(x, dy, factor=None):
        return x.T @ (dy * factor)

    forward = declare("x: float[m k], w: float[k n], factor?: float[n] -> y: float[m n]", weighed, linear_in=("x", "w"))

    def weighed_dx(w, dy):
        return dy @ w.T

    dx, _ = forward.gradient("x")(weighed_dx), forward.gradient("w")(weighed_dw)
    assert "w" not in dx.gradients


@pytest.mark.parametrize(
    ("signature", "slot"),
    [
        ("x: float[k], w?: float[k] -> y: float[k]", "w"),
        ("x: float[k], *w: float[k] -> y: float[k]", "w"),
        ("x: float[k], w: float[k] -> y: float[k], z: float[k]", "x"),
    ],
    ids=["optional", "variadic", "two outputs"],
)
def test_where_an_operator_cannot_be_linear_in_an_input(signature, slot):
    def kernel(x, w):
        return x * w

    with pytest.raises(ol.DeclarationError) as caught:
        declare(signature, kernel, linear_in=(slot,))
    assert str(caught.value) == f"kernel: linear_in needs a single output and a required single input, unlike {slot}"


def test_a_declared_gradient_stays_where_another_would_follow_later(bilinear):
    dx = bilinear.gradient("x")(product_dx)
    dx.gradient_programs(w=lambda dy, ddx: dy)
    bilinear.gradient("w")(product_dw)
    assert parameters(dx) == {"dy": ("ddx", "w", "scale"), "w": ("dy", "ddx")}


def test_a_declared_gradient_takes_the_place_of_a_derived_one(bilinear):
    dx = bilinear.gradient("x")(product_dx)
    dx.gradient_programs(dy=lambda w, ddx: ddx)
    assert parameters(dx) == {"dy": ("w", "ddx")}


def test_the_transpose_of_a_gradients_transpose_is_the_gradient():
    def largest(x):
        return x.max()

    def largest_dx(x, dy, x_shape):
        return (x == x.max()) * dy

    def largest_dx_ddy(x, ddx):
        return ddx[x == x.max()]

    forward = declare("x: float[k] -> y: float[]", largest)
    transpose = forward.gradient("x")(largest_dx).gradient("dy")(largest_dx_ddy)
    assert parameters(transpose) == {"ddx": ("x", "dddy", "ddx_shape")}


def test_an_element_wise_gradient_is_its_own_transpose():
    def cube(x):
        return x * x * x

    def cube_dx(x, dy):
        return 3 * x * x * dy

    assert parameters(declare("x: float[*b] -> y: float[*b]", cube).gradient("x")(cube_dx)) == {"dy": ("x", "ddx")}


def test_an_operator_is_linear_in_an_input():
    with pytest.raises(ol.DeclarationError, match="^product has no input z$"):
        declare("x: float[m k], w: float[k n], bias?: float[n] -> y: float[m n]", product, linear_in=("z",))


def test_gradients_as_programs_are_declared_by_input(bilinear):
    def leave(dy):
        return dy

    bilinear.gradient_programs(x=leave, bias=lambda dy: dy)
    assert bilinear.gradients["x"].program is leave
    assert bilinear.gradients["bias"].parameters == ("dy",)
    with pytest.raises(ol.DeclarationError) as caught:
        bilinear.gradient_programs(z=lambda dy: dy)
    assert str(caught.value) == "product has no input z, so it has no gradient with respect to it"


def test_every_operator_that_is_linear_in_an_input_derives_from_it():
    """So that `linear_in` says nothing in vain."""
    for forward in (each for each in standard if each.kernel.__module__.startswith("oarlock.")):
        for slot in forward.linear_in:
            gradient = forward.gradients[slot].operator
            assert gradient is not None
            assert f"d{forward.signature.outputs[0].name}" in gradient.gradients, forward.type
