"""Layers in the spellings of the seeds."""

import numpy
import pytest

import oarlock as ol


@pytest.mark.mission("B29")
def test_a_variable_of_just_this_shape():
    with ol.Program() as program:
        a = ol.Variable(shape=[20, 20])
        b = ol.Variable(shape=["n", 3], dtype="int64", name="b")
        carrying = ol.Variable(value=numpy.ones((2, 2), "float32"))
    assert (a.shape, str(a.dtype), a.persistable) == ((20, 20), "float32", False)
    assert (b.name, b.type_text) == ("b", "int64[n, 3]")
    assert program.main.inputs == [a, b, carrying]
    assert ol.eval(carrying + 1).tolist() == [[2, 2], [2, 2]]


@pytest.mark.mission("B30")
def test_parameters_are_shared_by_the_names_they_are_given():
    with ol.Program() as program:
        a = ol.Variable(shape=[4, 3])
        ol.layer.fc(a, 3, params=["fc.w", "fc.b"])
        second = ol.layer.fc(a, 3, params=["fc.w", "other.b"])
        ol.layer.fc(a, 3, params=["fc.w"], bias=False)
    assert [var.name for var in program.parameters()] == ["fc.w", "fc.b", "other.b"]
    assert [op.inputs["w"][0].name for op in program.main.ops] == ["fc.w"] * 3
    assert second.shape == (4, 3)
    with pytest.raises(ol.ShapeError, match=r'^"fc.w" is needed as float32\[3, 5\], but is already declared differently'):
        ol.layer.fc(a, 5, params=["fc.w", "five.b"])
    with pytest.raises(ol.ArgumentError, match="^fc: params must name 2 parameters, not 1"):
        ol.layer.fc(a, 3, params=["fc.w"])
    with pytest.raises(ol.ArgumentError, match="^fc: params must name 1 parameters, not 2"):
        ol.layer.fc(a, 3, params=["fc.w", "fc.b"], bias=False)
    with pytest.raises(ol.ProgramError, match="^'fc@w' cannot be a variable's name"):
        ol.layer.fc(a, 3, params=["fc@w", "fc.b"])


@pytest.mark.mission("E1", "E2")
def test_data_is_fed_and_fc_takes_the_size_of_its_output():
    with ol.Program() as program:
        x = ol.layer.data(name="x", shape=[3])
        y = ol.layer.fc(x, output_size=100)
    assert (x.shape, x.stop_gradient, program.main.inputs[0] is x) == (("n", 3), True, True)
    assert y.shape == ("n", 100)
    assert [(var.shape, var.parameter, var.trainable) for var in program.parameters()] == [((3, 100), True, True), ((100,), True, True)]
    for sizes in ({}, {"size": 3, "output_size": 3}):
        with pytest.raises(ol.ArgumentError, match="^fc: it takes exactly one size"):
            ol.layer.fc(x, **sizes)
    assert len(program.parameters()) == 2


@pytest.mark.mission("E3")
def test_mse_is_the_mean_over_all_elements():
    with ol.Program():
        cost = ol.layer.mse(ol.minibatch([[1, 2], [3, 4]]), ol.minibatch([[1, 4], [0, 0]]))
    assert cost.shape == ()
    assert float(ol.eval(cost)) == (0 + 4 + 9 + 16) / 4


@pytest.mark.mission("E4", "E5", "E6")
def test_train_save_load_and_infer_by_a_variable(tmp_path):
    x = numpy.linspace(-1, 1, 24, dtype="float32").reshape(8, 3)
    data = {"x": x, "y": x @ numpy.array([[1], [2], [3]], "float32")}
    with ol.Program(seed=0) as program:
        predict = ol.layer.fc(ol.layer.data("x", shape=[3]), output_size=1)
        cost = ol.layer.mse(predict, ol.layer.data("y", shape=[1]))
    parameters = ol.train(cost, data, optimizer=ol.optimizer.SGD(0.2), epochs=60, batch_size=8, progress=False)
    assert parameters.history[-1].training["loss"] < 0.01 * parameters.history[0].training["loss"]
    path = tmp_path / "filename"
    ol.save_model(cost, data, parameters, path)
    model = ol.load_model(predict, path)
    found = ol.infer(model, {"x": data["x"]})
    assert numpy.abs(found - data["y"]).max() < 0.2
    assert "y" not in [var.name for var in model.program.main.inputs]
    assert ol.infer(ol.load_model(predict.name, path), {"x": data["x"]}).tobytes() == found.tobytes()
    assert ol.infer(predict, {"x": data["x"]}, parameters).tobytes() == found.tobytes()
    with pytest.raises(ol.FeedError, match='^"y" is not fed'):
        ol.save_model(cost, {"x": data["x"]}, parameters, path)
    assert len(program.main.ops) == 4


@pytest.mark.mission("B9", "B10", "B11")
def test_the_constructors_with_values_of_the_examples():
    """x = minibatch([10, 20, 30]) # shape=[None, 1];  y = var(1) # shape=[1], value=1;  cond = larger_than(x, 15) # [false, true, true]"""
    with ol.Program() as program:
        x = ol.minibatch([10, 20, 30])
        y = ol.var(1)
        w = ol.var(0.314, param=True)
        cond = ol.larger_than(x, 15)
        total = x + y
    assert (x.type_text, y.type_text, w.type_text) == ("float32[n, 1]", "float32[1]", "float32[1]")
    assert (y.parameter, w.parameter, w.trainable, program.parameters()) == (False, True, True, [w])
    assert cond.type_text == "bool[n, 1]"
    with ol.scope.guard(ol.Scope()):
        assert ol.eval(cond).tolist() == [[False], [True], [True]]
        assert ol.eval(total).tolist() == [[11], [21], [31]]
        assert ol.eval(total, {x.name: numpy.array([[5]], "float32")}).tolist() == [[6]]
        assert ol.eval(ol.larger_than(x, x * 2 - 20)).tolist() == [[True], [False], [False]]
        assert ol.eval(w).tolist() == [pytest.approx(0.314)]


@pytest.mark.mission("F11")
def test_a_layer_is_operators_and_the_parameters_it_creates_and_initialises():
    with ol.Program(seed=1) as program:
        x = ol.layer.data("x", shape=[2, 6, 6])
        ol.layer.fc(ol.layer.flatten(ol.layer.conv2d(x, 3, 3, act="relu")), 4, act="tanh")
    assert [op.type for op in program.main.ops] == ["conv2d", "relu", "flatten", "linear", "tanh"]
    assert [(var.name, var.shape) for var in program.parameters()] == [
        ("conv2d_0.w", (3, 2, 3, 3)),
        ("conv2d_0.b", (3,)),
        ("fc_0.w", (48, 4)),
        ("fc_0.b", (4,)),
    ]
    scope = ol.init(program, ol.Scope())
    assert [bool(scope[var.name].any()) for var in program.parameters()] == [True, False, True, False]


@pytest.mark.mission("F16")
def test_train_makes_a_context_of_training_and_measures_outside_it():
    with ol.Program(seed=0):
        x = ol.layer.data("x", shape=[64])
        w = ol.var(1.0, param=True)
        cost = ol.layer.mean(ol.layer.dropout(x, rate=0.5)) + ol.layer.mean(w) * 0.0
    data = {"x": numpy.ones((4, 64), "float32")}
    result = ol.train(cost, data, validate=data, epochs=2, batch_size=4, progress=False)
    for record in result.history:
        assert record.training["loss"] != 1.0
        assert 0.5 < record.training["loss"] < 1.5
        assert record.validation["loss"] == 1.0


def test_a_scalar_is_added_whether_it_is_a_number_or_a_variable_of_one():
    with ol.Program():
        x, s = ol.minibatch([10, 20]), ol.op.full(shape=(), value=2.0)
        sums = [ol.layer.add_scalar(x, y) for y in (1, 2.5, ol.var(0.5), s)]
        of_scalar = ol.layer.add_scalar(s, ol.var(1))
        assert [item.type_text for item in (*sums, of_scalar)] == ["float32[n, 1]"] * 4 + ["float32[]"]
        values = ol.eval([*sums, of_scalar])
    assert [value.tolist() for value in values] == [[[11], [21]], [[12.5], [22.5]], [[10.5], [20.5]], [[12], [22]], 3]


def test_what_is_no_scalar_is_refused_by_add_scalar():
    with ol.Program() as program:
        x = ol.minibatch([10, 20], name="x")
        count = ol.layer.data("count", shape=[], dtype="int64", batch=None)
        written = len(program.main.ops)
        with pytest.raises(ol.ShapeError, match=r"^add_scalar: y is one number, float32\[\] or float32\[1\], not float32\[n, 1\]"):
            ol.layer.add_scalar(x, x)
        with pytest.raises(ol.ArgumentError, match="^\"x\" and str '1' do not combine; numbers and variables do"):
            ol.layer.add_scalar(x, "1")
        with pytest.raises(ol.ArgumentError, match="^add_scalar: x must be a variable of a program, not int 1"):
            ol.layer.add_scalar(1, x)
        with pytest.raises(ol.DTypeError, match="^add: "):
            ol.layer.add_scalar(x, count)
        assert len(program.main.ops) == written
