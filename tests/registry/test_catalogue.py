import pytest

import oarlock as ol
from oarlock.registry import Catalogue, operator, standard


def test_an_operator_is_found_by_its_name():
    assert standard.get("relu").type == "relu"
    assert standard.find("relu") is standard.get("relu") is ol.op.relu
    assert standard.find("nothing") is None


def test_gradient_operators_are_found_too_and_are_not_listed():
    assert standard.get("relu_dx").forward is standard.get("relu")
    assert "relu_dx" not in [found.type for found in standard]


def test_operators_are_listed_by_name():
    names = [found.type for found in standard]
    assert names == sorted(names)
    assert {"relu", "linear", "recurrent", "sum"} <= set(names)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("softmx", 'no operator "softmx"; did you mean "softmax"?'),
        ("sigmiod", 'no operator "sigmiod"; did you mean "sigmoid"?'),
        ("xyzzy", 'no operator "xyzzy"'),
    ],
)
def test_an_unknown_operator_is_named_with_the_nearest_one(name, message):
    with pytest.raises(ol.UnknownOperatorError) as caught:
        standard.get(name)
    assert str(caught.value) == message
    assert caught.value.op == name


def test_the_package_of_operators_names_them():
    assert "relu" in dir(ol.op)
    with pytest.raises(AttributeError, match=r"^module 'oarlock.op' has no attribute 'rellu'; did you mean ol.op.relu\?$"):
        _ = ol.op.rellu


def test_a_forward_only_catalogue_has_no_gradients():
    view = standard.forward_only()
    assert view.get("relu") is standard.get("relu")
    assert view.find("relu_dx") is None
    with pytest.raises(ol.UnknownOperatorError) as caught:
        view.get("relu_dx")
    assert str(caught.value) == '"relu_dx" is a gradient operator, which is unavailable in an inference-only process'
    with pytest.raises(ol.UnknownOperatorError, match='^no operator "rellu"; did you mean "relu"\\?$'):
        view.get("rellu")


def test_a_forward_only_catalogue_sees_what_is_registered_later():
    catalogue = Catalogue()
    view = catalogue.forward_only()

    @operator("x: float[*b] -> y: float[*b]", catalogue=catalogue)
    def late(x):
        return x

    assert view.get("late") is late


def test_a_gradient_operator_and_an_operator_never_share_a_name():
    catalogue = Catalogue()

    @operator("x: float[*b] -> y: float[*b]", catalogue=catalogue)
    def f_dx(x):
        return x

    @operator("x: float[*b] -> y: float[*b]", catalogue=catalogue)
    def f(x):
        return x

    def gradient(dy):
        return dy

    gradient.__name__ = "f_dx"
    with pytest.raises(ol.DeclarationError, match='^an operator called "f_dx" is already registered$'):
        f.gradient("x")(gradient)
    assert catalogue.get("f_dx") is f_dx


def test_a_program_with_gradients_is_refused_where_only_inference_is():
    with ol.Program() as program:
        x = ol.layer.data("x", shape=[2])
        slope = ol.gradients([ol.op.relu(x)], [x])[0]
    with pytest.raises(ol.UnknownOperatorError) as caught:
        ol.Executor(catalogue=standard.forward_only()).run(program, feed={"x": [[1.0, 2.0]]}, fetch=[slope], scope=ol.Scope())
    assert (
        caught.value.message == 'main, op 2 (relu_dx): "relu_dx" is a gradient operator, which is unavailable in an inference-only process'
    )
