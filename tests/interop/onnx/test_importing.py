"""ONNX models that come in: names, sizes, parameters, and what is said of those that cannot."""

import numpy
import onnx
import pytest
import torch
from interop.onnx.models import BOOL, FLOAT, INT64, model, node, tensor, written
from onnx import helper
from tolerances import VALUES

import oarlock as ol
from oarlock.interop.onnx.runtime import compare_with_onnxruntime


def perceptron():
    return model(
        [
            node("MatMul", ["x", "fc.weight"], ["product"], name="first"),
            node("Add", ["product", "fc.bias"], ["sum"]),
            node("Relu", ["sum"], ["y"]),
        ],
        {"x": ["batch", 4]},
        ["y"],
        [tensor("fc.weight", numpy.arange(12).reshape(4, 3) / 10), tensor("fc.bias", [1.0, -2.0, 3.0])],
    )


def test_inputs_outputs_sizes_and_parameters_keep_their_names(tmp_path):
    imported = ol.from_onnx(written(tmp_path, perceptron()))
    (x,) = imported.program.main.inputs
    assert (x.name, x.type_text) == ("x", "float32[batch, 4]")
    assert list(imported.program.targets) == ["y"]
    assert [(var.name, var.type_text, var.trainable) for var in imported.program.parameters()] == [
        ("fc.weight", "float32[4, 3]", False),
        ("fc.bias", "float32[3]", False),
    ]
    assert [op.type for op in imported.program.main.ops] == ["linear", "add", "relu"]
    given = numpy.random.default_rng(0).standard_normal((5, 4)).astype("float32")
    weight, bias = (imported.scope[name].numpy() for name in ("fc.weight", "fc.bias"))
    assert numpy.allclose(ol.infer(imported, {"x": given}), numpy.maximum(given @ weight + bias, 0.0), *VALUES[torch.float32])


def test_a_model_that_came_in_is_trained_saved_and_loaded(tmp_path):
    imported = ol.from_onnx(written(tmp_path, perceptron()), trainable=True)
    with imported.program:
        loss = ol.op.mean(ol.op.square(imported.program.targets["y"]))
    gradients = ol.gradients([loss], imported.program.parameters())
    assert [gradient.shape for gradient in gradients] == [(4, 3), (3,)]
    ol.save_model(ol.from_onnx(tmp_path / "model.onnx"), tmp_path / "model.safetensors")
    given = numpy.ones((2, 4), "float32")
    loaded = ol.load_model(tmp_path / "model.safetensors")
    assert numpy.array_equal(ol.infer(loaded, {"x": given}), ol.infer(imported.program.targets["y"], {"x": given}, imported.scope))


def test_some_initializers_are_trained_and_statistics_and_single_numbers_never_unless_named(tmp_path):
    names = ["scale", "bias", "mean", "variance"]
    built = model(
        [node("BatchNormalization", ["x", *names], ["normal"]), node("Mul", ["normal", "factor"], ["y"])],
        {"x": ["n", 2, 3, 3]},
        ["y"],
        [*(tensor(name, [1.0, 2.0]) for name in names), tensor("factor", 3.0)],
    )
    path = written(tmp_path, built)

    def trained(**keywords):
        return [var.name for var in ol.from_onnx(path, **keywords).program.parameters() if var.trainable]

    assert trained() == []
    assert sorted(trained(trainable=True)) == ["bias", "scale"]
    assert trained(trainable=["factor"]) == ["factor"]
    with pytest.raises(ol.ArgumentError, match="trainable: the model has no float initializer 'scales'"):
        trained(trainable=["scales"])


def test_names_that_are_none_of_ours_are_made_so(tmp_path):
    built = model(
        [node("MatMul", ["/in put", "onnx::MatMul_7"], ["/out/Y:0"])],
        {"/in put": [None, 2]},
        ["/out/Y:0"],
        [tensor("onnx::MatMul_7", [[1.0], [2.0]])],
    )
    imported = ol.from_onnx(written(tmp_path, built))
    assert [var.type_text for var in imported.program.main.inputs] == ["float32[in_put.0, 2]"]
    assert (imported.program.main.inputs[0].name, *imported.program.targets) == ("in_put", "out.Y.0")
    assert [var.name for var in imported.program.parameters()] == ["onnx.MatMul_7"]


def test_a_size_becomes_a_number_or_another_name(tmp_path):
    path = written(tmp_path, perceptron())
    assert ol.from_onnx(path, sizes={"batch": 8}).program.main.inputs[0].shape == (8, 4)
    assert ol.from_onnx(path, sizes={"batch": "rows"}).program.main.inputs[0].shape == ("rows", 4)
    with pytest.raises(ol.ArgumentError, match="sizes: the model has no size 'bach'"):
        ol.from_onnx(path, sizes={"bach": 8})
    with pytest.raises(ol.ShapeError, match="sizes: 'batch' must be a name or a number from 0, not -1"):
        ol.from_onnx(path, sizes={"batch": -1})


def test_an_input_becomes_a_constant(tmp_path):
    built = model([node("ReduceSum", ["x", "axes"], ["y"], keepdims=0)], {"x": [2, 3], "axes": (INT64, [1])}, ["y"])
    path = written(tmp_path, built)
    with pytest.raises(ol.OarlockError, match="its input axes is computed at run time") as refused:
        ol.from_onnx(path)
    assert "pass values={'axes': ...} to make the input a constant" in str(refused.value)
    imported = ol.from_onnx(path, values={"axes": numpy.array([1])})
    assert [var.name for var in imported.program.main.inputs] == ["x"]
    assert ol.infer(imported, {"x": numpy.ones((2, 3), "float32")}).tolist() == [3.0, 3.0]


def test_all_that_cannot_come_in_is_said_at_once(tmp_path):
    nodes = [
        node("Fancy", ["x"], ["a"], name="one", domain="com.acme"),
        node("Relu", ["a"], ["b"]),
        node("Fancy", ["b"], ["c"], name="two", domain="com.acme"),
        node("NoSuchThing", ["x"], ["d"], name="three"),
        node("Transpose", ["x"], ["e"], name="four", perm=[0, 0]),
        node("Relu", ["x"], ["f"], name="five", flavour=1),
    ]
    path = written(
        tmp_path, model(nodes, {"x": ["n", 4], "text": (onnx.TensorProto.STRING, [1])}, ["c", "d", "e", "f"], domains=["com.acme"])
    )
    with pytest.raises(ol.OarlockError) as refused:
        ol.from_onnx(path)
    message = str(refused.value)
    assert '"model.onnx" cannot be imported' in message
    assert "com.acme.Fancy (one, two): the domain com.acme is unknown" in message
    assert "NoSuchThing (three): there is no rule and no ONNX function for it in opset 21" in message
    assert "Transpose (four): [0, 0] has a duplicate axis" in message
    assert "Relu (five): its attribute flavour is not supported" in message
    assert "input (text): tensors of string are not supported" in message


def test_functions_of_the_model_are_expanded_with_their_attributes(tmp_path):
    body = [node("Constant", [], ["slope"]), node("Mul", ["x", "slope"], ["scaled"]), node("Relu", ["scaled"], ["y"])]
    body[0].attribute.append(helper.make_attribute("value_float", 0.0))
    body[0].attribute[0].ref_attr_name = "factor"
    body[0].attribute[0].ClearField("f")
    function = helper.make_function("local", "ScaledRelu", ["x"], ["y"], body, [helper.make_opsetid("", 21)], ["factor"])
    built = model(
        [node("ScaledRelu", ["x"], ["y"], domain="local", factor=3.0)], {"x": [2]}, ["y"], functions=[function], domains=["local"]
    )
    imported = ol.from_onnx(written(tmp_path, built))
    assert ol.infer(imported, {"x": numpy.array([-1.0, 2.0], "float32")}).tolist() == [0.0, 6.0]


def test_what_is_computed_of_known_values_is_known(tmp_path):
    nodes = [
        node("Constant", [], ["two"], value_floats=[2.0, 4.0]),
        node("Sqrt", ["two"], ["root"]),
        node("Mul", ["root", "root"], ["square"]),
        node("Mul", ["x", "square"], ["y"]),
    ]
    imported = ol.from_onnx(written(tmp_path, model(nodes, {"x": ["n", 2]}, ["y"])))
    assert [op.type for op in imported.program.main.ops] == ["multiply"]
    assert numpy.allclose(
        ol.infer(imported, {"x": numpy.ones((1, 2), "float32")}), numpy.array([[2.0, 4.0]], "float32"), *VALUES[torch.float32]
    )


def test_a_constant_an_input_and_one_value_twice_may_be_outputs(tmp_path):
    nodes = [node("Constant", [], ["five"], value_float=5.0), node("Neg", ["x"], ["y"]), node("Identity", ["y"], ["z"])]
    imported = ol.from_onnx(written(tmp_path, model(nodes, {"x": [2]}, ["five", "x", "y", "z"])))
    found = ol.infer(imported, {"x": numpy.array([1.0, 2.0], "float32")})
    assert {label: value.tolist() for label, value in found.items()} == {"five": 5.0, "x": [1.0, 2.0], "y": [-1.0, -2.0], "z": [-1.0, -2.0]}


def branching():
    then = helper.make_graph([node("Neg", ["x"], ["a"])], "then", [], [helper.make_tensor_value_info("a", FLOAT, None)])
    other = helper.make_graph([node("Mul", ["x", "two"], ["b"])], "else", [], [helper.make_tensor_value_info("b", FLOAT, None)])
    nodes = [
        node("ReduceSum", ["x"], ["total"], keepdims=0),
        node("Less", ["total", "zero"], ["negative"]),
        node("If", ["negative"], ["y"], then_branch=then, else_branch=other),
    ]
    return model(nodes, {"x": ["n"]}, ["y"], [tensor("zero", 0.0), tensor("two", 2.0)])


def test_an_if_is_a_branch_of_ours(tmp_path):
    path = written(tmp_path, branching())
    imported = ol.from_onnx(path)
    for given, expected in (([-1.0, -2.0], [1.0, 2.0]), ([1.0, 2.0, 3.0], [2.0, 4.0, 6.0])):
        assert ol.infer(imported, {"x": numpy.array(given, "float32")}).tolist() == expected
    assert all(difference.fits and difference.largest == 0.0 for difference in compare_with_onnxruntime(path, imported, size=3))


def looping(condition: bool):
    inputs = [helper.make_tensor_value_info(name, kind, []) for name, kind in (("i", INT64), ("go", BOOL), ("state", FLOAT))]
    nodes = [node("Mul", ["state", "factor"], ["after"]), node("Add", ["after", "after"], ["seen"])]
    nodes += [node("Less", ["after", "bound"], ["again"]) if condition else node("Identity", ["go"], ["again"])]
    outputs = [helper.make_tensor_value_info(name, kind, None) for name, kind in (("again", BOOL), ("after", FLOAT), ("seen", FLOAT))]
    body = helper.make_graph(nodes, "body", inputs, outputs)
    loop = node("Loop", ["most", "yes", "x"], ["last", "all"], body=body)
    initializers = [tensor("most", 6, "int64"), tensor("yes", True, "bool"), tensor("factor", 2.0), tensor("bound", 10.0)]
    return model([loop], {"x": []}, ["last", "all"], initializers)


@pytest.mark.parametrize("condition", [False, True])
def test_a_loop_is_a_loop_of_ours(condition, tmp_path):
    path = written(tmp_path, looping(condition))
    imported = ol.from_onnx(path)
    found = ol.infer(imported, {"x": numpy.float32(1.0)})
    trips = 4 if condition else 6
    assert found["last"] == 2.0**trips
    assert found["all"].tolist() == [2.0 ** (trip + 2) for trip in range(trips)]
    assert all(difference.fits and difference.largest == 0.0 for difference in compare_with_onnxruntime(path, imported))


def test_a_loop_that_never_ends_is_refused(tmp_path):
    inputs = [helper.make_tensor_value_info(name, kind, []) for name, kind in (("i", INT64), ("go", BOOL), ("state", FLOAT))]
    outputs = [helper.make_tensor_value_info(name, kind, None) for name, kind in (("go", BOOL), ("after", FLOAT))]
    body = helper.make_graph([node("Neg", ["state"], ["after"])], "body", inputs, outputs)
    built = model([node("Loop", ["", "", "x"], ["last"], body=body)], {"x": []}, ["last"])
    with pytest.raises(ol.OarlockError, match="it never ends: it has no maximum number of iterations, and its condition is always true"):
        ol.from_onnx(written(tmp_path, built))


def test_a_scan_is_a_loop_over_steps(tmp_path):
    inputs = [helper.make_tensor_value_info(name, FLOAT, [2]) for name in ("state", "step")]
    outputs = [helper.make_tensor_value_info(name, FLOAT, [2]) for name in ("after", "seen")]
    nodes = [node("Add", ["state", "step"], ["after"]), node("Neg", ["after"], ["seen"])]
    scan = node("Scan", ["start", "x"], ["last", "all"], body=helper.make_graph(nodes, "body", inputs, outputs), num_scan_inputs=1)
    path = written(tmp_path, model([scan], {"start": [2], "x": ["t", 2]}, ["last", "all"]))
    imported = ol.from_onnx(path)
    found = ol.infer(imported, {"start": numpy.zeros(2, "float32"), "x": numpy.ones((3, 2), "float32")})
    assert found["last"].tolist() == [3.0, 3.0]
    assert found["all"].tolist() == [[-1.0, -1.0], [-2.0, -2.0], [-3.0, -3.0]]
    assert all(difference.fits and difference.largest == 0.0 for difference in compare_with_onnxruntime(path, imported))


def test_the_command_saves_a_model_and_says_how_far_it_is_from_onnxruntime(tmp_path, capsys):
    from oarlock.cli.main import app

    path = written(tmp_path, perceptron())
    app(["import", "onnx", str(path), "-o", str(tmp_path / "out.safetensors"), "--size", "batch=3", "--check"], standalone_mode=False)
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].endswith("out.safetensors: 3 ops, 2 parameters")
    assert lines[1].startswith("y: difference ")
    assert float(lines[1].split()[2]) < 1e-5
    loaded = ol.load_model(tmp_path / "out.safetensors")
    assert loaded.program.main.inputs[0].shape == (3, 4)
    assert torch.equal(loaded.scope["fc.bias"], torch.tensor([1.0, -2.0, 3.0]))
