"""The contents of a declaration, and every way in which it can contradict itself."""

import re

import pytest
import torch

import oarlock as ol
from oarlock.backend.torch.variants import in_place_variant, lowers_to, variants_of
from oarlock.ir.attribute import Sizes
from oarlock.ir.block import Block
from oarlock.registry import Catalogue, op_proto, operator
from oarlock.registry.attributes import attributes_on_stacks, axes_alone


def declare(signature, kernel, **options):
    return operator(signature, catalogue=Catalogue(), **options)(kernel)


def refuse(signature, kernel, message):
    with pytest.raises(ol.DeclarationError) as caught:
        declare(signature, kernel)
    assert str(caught.value) == message


# Declarations that are wrong


def test_the_kernels_parameters_are_the_signatures_inputs():
    def scale(x, factor):
        return x * factor

    refuse(
        "x: float -> y: float", scale, "scale: the signature's inputs are ['x'], the kernel's positional parameters ['x', 'factor']"
    )  # fmt: skip


def test_the_order_of_the_parameters_is_that_of_the_inputs():
    def subtract(b, a):
        return a - b

    refuse(
        "a: float, b: float -> y: float",
        subtract,
        "subtract: the signature's inputs are ['a', 'b'], the kernel's positional parameters ['b', 'a']",
    )


def test_a_context_may_come_first():
    def noise(context, x):
        return x

    assert declare("x: float[*b] -> y: float[*b]", noise).wants_context


def test_a_slot_name_stands_once():
    def same(x):
        return x

    refuse("x: float -> x: float", same, "same: duplicate slot name in ['x', 'x']")


def test_no_slot_is_taken_for_a_gradient():
    def loss(y, dy):
        return y

    refuse("y: float, dy: float -> z: float", loss, "loss: slot dy would be mistaken for a gradient")
    refuse("y: float, z: float -> x: float, dx: float", lambda y, z: y, "<lambda>: slot dx would be mistaken for a gradient")


def test_an_operator_that_is_a_gradient_may_call_its_result_so():
    @operator("x: float[*b], dy: float[*b] -> dx: float[*b]", catalogue=Catalogue())
    def square_grad(x, dy):
        return 2 * x * dy

    assert [slot.name for slot in square_grad.signature.outputs] == ["dx"]


def test_an_operator_is_registered_once():
    catalogue = Catalogue()

    def twice(x):
        return 2 * x

    operator("x: float[*b] -> y: float[*b]", catalogue=catalogue)(twice)
    with pytest.raises(ol.DeclarationError) as caught:
        operator("x: float[*b] -> y: float[*b]", catalogue=catalogue)(twice)
    assert str(caught.value) == 'an operator called "twice" is already registered'


def test_a_name_that_python_keeps_for_itself_has_an_underscore_behind():
    def sum_(x):
        return x

    assert declare("x: float[*b] -> y: float[*b]", sum_).type == "sum"


def test_an_attribute_has_a_type():
    def scale(x, *, factor=2.0):
        return x * factor

    declared = declare("x: float[*b] -> y: float[*b]", scale)
    with pytest.raises(ol.DeclarationError, match="^scale: attribute factor has no type$"):
        _ = declared.attributes


@pytest.fixture
def twice():
    def twice(x, bias=None, *, factor: float = 2.0):
        return x * factor

    return declare("x: float[*b], bias?: float[*#c] -> y: float[*b]", twice)


def test_a_gradient_is_called_after_its_operator_and_its_input(twice):
    with pytest.raises(ol.DeclarationError) as caught:

        @twice.gradient("x")
        def twice_backward(dy):
            return dy

    assert str(caught.value) == "the gradient of twice with respect to x must be called twice_dx, not twice_backward"


@pytest.mark.parametrize("declare_gradient", ["gradient", "gradient_program"])
def test_a_gradient_is_with_respect_to_an_input(twice, declare_gradient):
    def twice_dz(dy):
        return dy

    with pytest.raises(ol.DeclarationError) as caught:
        getattr(twice, declare_gradient)("z")(twice_dz)
    assert str(caught.value) == "twice has no input z, so it has no gradient with respect to it"


def test_zero_by_meaning_is_said_of_an_input(twice):
    with pytest.raises(ol.DeclarationError, match="^twice has no input z$"):
        twice.no_gradient("x", "z")


def test_an_in_place_variant_reuses_an_input(twice):
    with pytest.raises(ol.DeclarationError, match="^twice has no input z$"):
        in_place_variant(twice, "z")(lambda x: x)
    with pytest.raises(ol.DeclarationError, match="^twice has no input z$"):
        in_place_variant(twice, "x", "z")(lambda x: x)


def test_an_in_place_variant_is_known_by_the_inputs_that_give_their_memory(twice):
    reusing = in_place_variant(twice, "x")(lambda x, bias=None, *, factor: x.mul_(factor))
    both = in_place_variant(twice, "x", "bias")(lambda x, bias=None, *, factor: x.mul_(factor))
    assert variants_of(twice).in_place == {("x",): reusing, ("x", "bias"): both}


@pytest.mark.parametrize("text", ["x + x", "torch.mul(x, 0.5)", "torch.add(x, 'y')", "x[0]", "[x for x in y]", "torch.cat([x])"])
def test_an_expression_is_made_of_calls_names_and_integers(twice, text):
    with pytest.raises(
        ol.DeclarationError, match=f"^{re.escape(text)}: what a kernel lowers to is written with calls, names and integers$"
    ):
        lowers_to(twice, text)


def test_an_expression_is_written_for_the_names_of_a_plan(twice):
    lowers_to(twice, "torch.mul(x.t(), factor, out=out)")
    (expression,) = variants_of(twice).expressions[twice.kernel]
    assert expression.names == {"x", "factor", "out"}
    assert expression.written({"x": "x_1", "factor": "factor_2", "out": "space_3[0]"}, {"torch.mul": "mul_4"}.get) == (
        "mul_4(x_1.t(), factor_2, out=space_3[0])"
    )


def test_a_view_is_of_an_input():
    def same(x):
        return x

    assert declare("x: float[*b] -> y: float[*b]", same, aliases=("x",)).aliases == ("x",)
    with pytest.raises(ol.DeclarationError, match="^same has no input z$"):
        declare("x: float[*b] -> y: float[*b]", same, aliases=("z",))


def test_the_axes_in_front_of_those_computed_across_are_counted_from_either_end():
    def halves(x, *, axis: int | None = None):
        return x

    def summed(x, *, axis: int | tuple[int, ...] | None = None):
        return x

    def turned(x, *, axes: tuple[int, ...]):
        return x

    along = declare("x: float[...s] -> y: float[...s]", halves, axis_attribute="axis")
    assert [axes_alone(along, {"axis": axis}, 3) for axis in (0, 2, -1, -3)] == [0, 2, 2, 0]
    assert axes_alone(along, {}, 3) == 0
    assert attributes_on_stacks(along, {"axis": 1}) == {"axis": 2}
    assert attributes_on_stacks(along, {"axis": -1}) == {"axis": -1}
    assert attributes_on_stacks(along, {}) is None
    last = declare("x: float[...s] -> y: float[...s]", halves, axis_attribute="axis=-1")
    assert [axes_alone(last, attributes, 3) for attributes in ({}, {"axis": 1})] == [2, 1]
    assert [attributes_on_stacks(last, attributes) for attributes in ({}, {"axis": 1})] == [{}, {"axis": 2}]
    several = declare("x: float[...s] -> y: float[...s]", summed, axis_attribute="axis")
    assert [axes_alone(several, {"axis": axes}, 3) for axes in ((1, 2), (-1,), (2, -2), 1)] == [1, 2, 1, 1]
    assert attributes_on_stacks(several, {"axis": (1, -1)}) == {"axis": (2, -1)}
    assert attributes_on_stacks(several, {}) is None
    order = declare("x: float[...s] -> y: float[...s]", turned, axis_attribute="axes")
    assert [axes_alone(order, {"axes": axes}, 3) for axes in ((1, 0, 2), (0, 2, 1), (0, 1, 2))] == [0, 1, 3]
    assert attributes_on_stacks(order, {"axes": (1, 0)}) == {"axes": (0, 2, 1)}


def test_a_gradient_may_be_a_view(twice):
    @twice.gradient("x", aliases=("dy",))
    def twice_dx(dy):
        return dy

    assert twice_dx.aliases == ("dy",)
    assert twice.aliases == ()


def test_what_bits_depend_on_is_said_in_one_of_two_words(twice):
    def same(x):
        return x

    @twice.gradient("x", sensitive_to="layout")
    def twice_dx(dy):
        return dy

    assert (twice.sensitive_to, twice_dx.sensitive_to) == (None, "layout")
    with pytest.raises(ol.DeclarationError, match='^same: sensitive_to must be "layout", "place" or None, not "gaps"$'):
        declare("x: float[*b] -> y: float[*b]", same, sensitive_to="gaps")


def test_a_gradient_reads_what_its_operator_has(twice):
    @twice.gradient("x")
    def twice_dx(z, dy):
        return dy

    with pytest.raises(ol.DeclarationError) as caught:
        _ = twice_dx.signature
    assert str(caught.value) == "twice_dx: z is not an input or output of twice, dy or <input>_shape"


def test_a_gradient_whose_shape_nothing_tells_takes_the_inputs_shape(twice):
    @twice.gradient("bias")
    def twice_dbias(dy):
        return dy

    with pytest.raises(ol.DeclarationError) as caught:
        _ = twice_dbias.signature
    assert str(caught.value) == "twice_dbias: the shape of dbias cannot be inferred; add a parameter bias_shape"


# What follows from a declaration


def test_the_signature_of_a_gradient_follows(twice):
    @twice.gradient("x")
    def twice_dx(y, dy, bias=None, *, factor):
        return dy * factor

    @twice.gradient("bias")
    def twice_dbias(dy, bias_shape):
        return dy.sum_to_size(bias_shape)

    assert str(twice_dx.signature) == "y: float[*b], dy: float[*b], bias?: float[*#c] -> dx: float[*b]"
    assert str(twice_dbias.signature) == "dy: float[*b], bias_shape?: shape[*#c] -> dbias: float[*#c]"
    assert {name: spec.type_text for name, spec in twice_dx.attributes.items()} == {"factor": "float"}
    assert (twice_dx.row_group, twice_dbias.row_group) == ("b", None)
    assert (twice_dx.forward, twice_dx.wrt) == (twice, "x")
    assert set(twice.catalogue.gradient_operators) == {"twice_dx", "twice_dbias"}
    assert set(twice.catalogue.operators) == {"twice"}


def test_a_gradient_that_drops_the_rows_is_their_sum():
    def linear(x, w):
        return x @ w

    linear = declare("x: float[*b k], w: float[k n] -> out: float[*b n]", linear)

    @linear.gradient("w")
    def linear_dw(x, dout):
        return x.mT @ dout

    @linear.gradient("x")
    def linear_dx(w, dout):
        return dout @ w.mT

    assert (linear_dw.summed_outputs, linear_dx.summed_outputs, linear.summed_outputs) == (("dw",), (), ())
    assert (linear_dw.row_group, linear_dx.row_group, linear.row_group) == (None, "b", "b")


def test_only_what_is_said_to_be_zero_has_no_gradient(twice):
    assert twice.differentiates("x")
    twice.no_gradient("bias")
    assert not twice.differentiates("bias")
    assert not twice.differentiates("nothing")


def test_the_message_that_other_languages_read(twice):
    twice.kernel.__doc__ = "Two times ``x``."
    twice.no_gradient("x")
    proto = op_proto(twice)
    assert (proto.type, proto.signature, proto.doc, list(proto.gradients)) == (
        "twice",
        "x: float[*b], bias?: float[*#c] -> y: float[*b]",
        "Two times ``x``.",
        ["x"],
    )
    assert [(slot.name, slot.dtype, slot.shape, slot.optional) for slot in (*proto.inputs, *proto.outputs)] == [
        ("x", "float", "[*b]", False),
        ("bias", "float", "[*#c]", True),
        ("y", "float", "[*b]", False),
    ]
    assert [(item.name, item.type, item.default, item.required) for item in proto.attributes] == [("factor", "float", "2.0", False)]


# Attributes


NO_SIZES = Sizes(())


def everything(
    x,
    *,
    count: int,
    rate: float = 0.5,
    on: bool = False,
    name: str = "a",
    kind: ol.DType = ol.DType.INT8,
    shape: Sizes = NO_SIZES,
    pair: tuple[int, ...] = (1, 2),
    axis: int | None = None,
):
    return x


@pytest.fixture
def attributes():
    return declare("x: float[*b] -> y: float[*b]", everything)


def test_attributes_are_completed_and_converted(attributes):
    assert attributes.convert_attributes({"count": 3, "rate": 1, "kind": "float64", "shape": ["n", 2], "pair": [3, 4], "axis": None}) == {
        "count": 3,
        "rate": 1.0,
        "on": False,
        "name": "a",
        "kind": ol.DType.FLOAT64,
        "shape": Sizes(("n", 2)),
        "pair": (3, 4),
    }


ATTRIBUTES = [
    ({}, "attribute count is required"),
    ({"count": 3, "size": 1}, "no attribute or input size; its attributes: count, rate, on, name, kind, shape, pair, axis"),
    ({"count": 3.0}, "attribute count must be int, not 3.0"),
    ({"count": True}, "attribute count must be int, not True"),
    ({"count": None}, "attribute count must be int, not None"),
    ({"count": 3, "rate": "a"}, "attribute rate must be float, not 'a'"),
    ({"count": 3, "rate": True}, "attribute rate must be float, not True"),
    ({"count": 3, "rate": None}, "attribute rate must be float, not None"),
    ({"count": 3, "on": 1}, "attribute on must be bool, not 1"),
    ({"count": 3, "name": b"a"}, "attribute name must be str, not b'a'"),
    ({"count": 3, "shape": 3}, "attribute shape must be Sizes, not 3"),
    ({"count": 3, "shape": (2.0,)}, "attribute shape must be Sizes, not (2.0,)"),
    ({"count": 3, "pair": 3}, "attribute pair must be tuple[int, ...], not 3"),
    ({"count": 3, "pair": (1, True)}, "attribute pair must be tuple[int, ...], not (1, True)"),
    ({"count": 3, "axis": 1.0}, "attribute axis must be int, not 1.0"),
]


@pytest.mark.parametrize(("given", "message"), ATTRIBUTES, ids=[message for _, message in ATTRIBUTES])
def test_attributes_that_do_not_fit_are_refused(attributes, given, message):
    with pytest.raises(ol.ArgumentError) as caught:
        attributes.convert_attributes(given)
    assert str(caught.value) == message


def test_a_dtype_that_is_none_is_refused(attributes):
    with pytest.raises(ol.DTypeError) as caught:
        attributes.convert_attributes({"count": 3, "kind": "float8"})
    assert str(caught.value) == (
        "'float8' is not a dtype of Oarlock\n"
        f"  {caught.value.location}\n"
        "  one of float16, bfloat16, float32, float64, int8, int16, int32, int64, uint8, bool, complex64, complex128"
    )  # fmt: skip


def test_an_operator_without_attributes_says_so(twice):
    plain = declare("x: float[*b] -> y: float[*b]", lambda x: x)
    with pytest.raises(ol.ArgumentError, match="^no attribute or input size; its attributes: none$"):
        plain.convert_attributes({"size": 1})


def test_a_block_is_an_attribute():
    def loop(x, *, body: Block):
        return x

    assert declare("x: float -> y: float", loop).block_attributes == ("body",)


# Custom operators are operators


def test_a_users_operator_runs_has_a_gradient_and_is_told_apart_by_its_catalogue():
    catalogue = Catalogue()
    for standard in ol.registry.standard:
        catalogue.operators[standard.type] = standard

    def cube(x):
        return x**3

    cube = operator("x: float[*b] -> y: float[*b]", catalogue=catalogue)(cube)
    with ol.Program() as program:
        x = ol.layer.data("x", shape=[])
        y = cube(x)
    assert ol.Executor(catalogue=catalogue).run(program, feed={"x": [2.0, 3.0]}, fetch=[y], scope=ol.Scope())[0].tolist() == [8.0, 27.0]
    with pytest.raises(ol.UnknownOperatorError) as caught:
        ol.Executor().run(program, feed={"x": [2.0]}, fetch=[y], scope=ol.Scope())
    assert caught.value.message == 'main, op 0 (cube): no operator "cube"'


def test_an_inferred_type_may_be_a_function():
    def pairs(x, like):
        return [x, x], torch.zeros(2)

    declared = declare("x: float, *like: shape -> *ys: float, z: any", pairs)

    @declared.infer_shape
    def pairs_types(x, like):
        return [item.shape for item in like], ol.registry.signature.TensorType(ol.DType.INT8, (2,))

    with ol.Program():
        x = ol.layer.data("x", shape=[])
        ys, z = declared(x, [x, x], name="two")
    assert [var.name for var in ys] == ["two.ys.0", "two.ys.1"]
    assert [var.type_text for var in (*ys, z)] == ["float32[n]", "float32[n]", "int8[2]"]
