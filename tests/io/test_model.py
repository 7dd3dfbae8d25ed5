"""Model files: every spelling of saving, loading and inferring; the bits that come back; what the file is."""

import json
import os
import stat
from pathlib import Path

import numpy
import pytest
import safetensors
import safetensors.torch
import torch
from classifiers import Classifier, digits_classifier, small_classifier, small_rows
from processes import run_forked

import oarlock as ol
from oarlock import inference
from oarlock.io import container

ROWS = small_rows(10)
ONLY_X = {"x": ROWS["x"]}


@pytest.fixture(scope="module")
def small() -> Classifier:
    return small_classifier()


@pytest.fixture(scope="module")
def result(small: Classifier) -> ol.TrainingResult:
    return ol.train(small.cost, ROWS, optimizer=ol.optimizer.Adam(0.1), epochs=2, progress=False, show={"accuracy": small.accuracy})


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "model.safetensors"


def same_bits(left: numpy.ndarray, right: numpy.ndarray) -> bool:
    return left.dtype == right.dtype and left.shape == right.shape and left.tobytes() == right.tobytes()


# Round trips


def test_another_process_infers_the_same_bits_from_the_file_alone(tmp_path):
    train, test = ol.datasets.digits.split(seed=0)
    digits = digits_classifier()
    trained = ol.train(digits.cost, train, optimizer=ol.optimizer.Adam(), epochs=1, progress=False)
    doubles = digits_classifier(dtype="float64")
    ol.save_model(digits.predict, trained, tmp_path / "digits.safetensors")
    ol.save_model(doubles.predict, ol.init(doubles.program, ol.Scope()), tmp_path / "doubles.safetensors")
    numpy.save(tmp_path / "image.npy", test["image"])
    code = """
import numpy
from oarlock import inference
image = numpy.load("image.npy")
for name, dtype in (("digits", "float32"), ("doubles", "float64")):
    model = inference.load_model(name + ".safetensors")
    numpy.save(name + ".npy", inference.infer(model, {"image": image.astype(dtype)}))
"""
    run_forked(code, tmp_path)
    here = ol.infer(digits.predict, {"image": test["image"]}, trained)
    assert here.dtype == numpy.float32
    assert here.shape == (len(test["label"]), 10)
    assert same_bits(numpy.load(tmp_path / "digits.npy"), here)
    here = ol.infer(doubles.predict, {"image": test["image"].astype("float64")}, ol.init(doubles.program, ol.Scope()))
    assert same_bits(numpy.load(tmp_path / "doubles.npy"), here)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64", "int8", "int16", "int32", "int64", "uint8", "bool"])
@pytest.mark.parametrize("shape", [(), (0,), (2, 0, 3), (5,), (2, 3)], ids=str)
def test_values_of_every_dtype_come_back_bit_for_bit(dtype, shape, path):
    with ol.Program() as program:
        var = program.main.new_var("value", ol.DType.of(dtype), shape, persistable=True)
    value = torch.arange(max(1, numpy.prod(shape, dtype=int)))[: int(numpy.prod(shape))].reshape(shape).to(getattr(torch, dtype))
    scope = ol.Scope()
    scope.set(var.name, value)
    ol.save_model(program, scope, path)
    loaded = ol.load_model(path).scope["value"]
    assert loaded.dtype == value.dtype
    assert loaded.shape == value.shape
    assert torch.equal(loaded, value)


def test_numbers_that_are_not_numbers_come_back_too(path):
    with ol.Program() as program:
        program.main.new_var("value", ol.DType.FLOAT32, (4,), persistable=True)
    value = numpy.array([numpy.nan, numpy.inf, -0.0, 1e-45], "float32")
    ol.save_model(program, {"value": value}, path)
    assert same_bits(ol.load_model(path).scope["value"].numpy(), value)


def test_parameters_that_share_memory_or_are_not_contiguous_are_saved(path):
    with ol.Program() as program:
        for name in ("a", "b"):
            program.main.new_var(name, ol.DType.FLOAT32, (3, 2), persistable=True)
    whole = torch.arange(6.0).reshape(2, 3)
    ol.save_model(program, {"a": whole.T, "b": whole.T}, path)
    scope = ol.load_model(path).scope
    assert torch.equal(scope["a"], whole.T)
    assert torch.equal(scope["b"], whole.T)


# Saving, by every spelling


def test_a_variable_is_saved_with_what_it_needs_and_no_more(small, result, path):
    ol.save_model(small.predict, result.parameters, path)
    model = ol.load_model(path)
    assert sorted(model.scope) == ["fc_0.b", "fc_0.w"]
    assert [var.name for var in model.program.main.inputs] == ["x"]
    assert list(model.program.targets) == ["predict"]
    assert not model.program.is_training
    assert same_bits(ol.infer(model, ONLY_X), ol.infer(small.predict, ONLY_X, result))


def test_several_variables_are_saved_under_their_names(small, result, path):
    ol.save_model([small.predict, small.accuracy], result.parameters, path)
    inferred = ol.infer(ol.load_model(path), ROWS)
    assert list(inferred) == ["softmax_0", "accuracy_0"]
    assert same_bits(inferred["softmax_0"], ol.infer(small.predict, ONLY_X, result))


def test_several_variables_are_saved_under_given_labels(small, result, path):
    ol.save_model({"probability": small.predict, "share": small.accuracy}, result.parameters, path)
    assert list(ol.infer(ol.load_model(path), ROWS)) == ["probability", "share"]


def test_a_whole_program_is_saved_with_its_state(result, path, tmp_path):
    ol.save_model(result.program, result.parameters, path)
    model = ol.load_model(path)
    assert sorted(model.scope) == sorted(result.parameters)
    assert model.program.to_bytes() == result.program.to_bytes()
    ol.save_model(result, tmp_path / "result")
    ol.save_model(model, tmp_path / "model")
    assert path.read_bytes() == (tmp_path / "result").read_bytes() == (tmp_path / "model").read_bytes()


def test_the_seeds_life_cycle_saves_the_cost_once_the_data_set_fits(path):
    with ol.Program(seed=0):
        predict = ol.layer.fc(ol.layer.data("x", shape=[3]), 1)
        cost = ol.layer.mse(predict, ol.layer.data("y", shape=[1]))
    rows = {"x": ROWS["x"], "y": ROWS["x"][:, :1]}
    parameters = ol.train(cost, rows, progress=False)
    ol.save_model(cost, rows | {"unused": ROWS["label"]}, parameters, path)
    model = ol.load_model(predict, path)
    assert [var.name for var in model.program.main.inputs] == ["x"]
    assert same_bits(ol.infer(model, ONLY_X), ol.infer(predict, ONLY_X, parameters))


@pytest.mark.parametrize("kind", ["scope", "result", "model", "dict of arrays", "dict of tensors"])
def test_parameters_come_as_a_scope_a_result_a_model_or_a_dict(kind, small, result, path):
    scope = result.parameters
    given = {
        "scope": scope,
        "result": result,
        "model": inference.Model(result.program, scope),
        "dict of arrays": {name: scope[name].numpy() for name in scope},
        "dict of tensors": {name: scope[name] for name in scope},
    }[kind]
    ol.save_model(small.predict, given, path)
    expected = ol.infer(small.predict, ONLY_X, scope)
    assert same_bits(ol.infer(ol.load_model(path), ONLY_X), expected)
    assert same_bits(ol.infer(small.predict, ONLY_X, given), expected)


def test_the_path_may_be_text_or_a_path_and_may_stand_in_the_working_directory(small, result, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for path in ("bare", Path("object"), str(tmp_path / "whole")):
        ol.save_model(small.predict, result, path)
        assert same_bits(ol.infer(ol.load_model(path), ONLY_X), ol.infer(small.predict, ONLY_X, result))


# Loading, by every spelling


@pytest.fixture
def labelled(small: Classifier, result: ol.TrainingResult, path: Path) -> Path:
    ol.save_model({"probability": small.predict, "share": small.accuracy}, result, path)
    return path


@pytest.mark.parametrize("target", ["var", "probability", "softmax_0"])
def test_a_model_is_loaded_for_one_of_its_variables(target, small, result, labelled):
    model = ol.load_model(small.predict if target == "var" else target, labelled)
    assert list(model.program.targets) == ["softmax_0" if target == "var" else target]
    assert [var.name for var in model.program.main.inputs] == ["x"]
    assert same_bits(ol.infer(model, ONLY_X), ol.infer(small.predict, ONLY_X, result))


def test_a_training_program_is_loaded_for_what_it_predicts(small, result, path):
    with ol.Program(seed=0):
        x = ol.layer.data("x", shape=[3])
        logits = ol.layer.fc(x, 2)
        predict = ol.layer.softmax(logits)
        cost = ol.layer.cross_entropy(logits, ol.layer.data("label", shape=[], dtype="int64"))
    trained = ol.train(cost, ROWS, progress=False, show={"predict": predict})
    ol.save_model(trained, path)
    model = ol.load_model("predict", path)
    assert not model.program.is_training
    assert same_bits(ol.infer(model, ONLY_X), ol.infer(predict, ONLY_X, trained))


# Inferring, by every spelling


def test_inference_is_spelled_with_a_model_or_with_a_variable_and_its_parameters(small, result, path):
    ol.save_model(small.predict, result, path)
    inferred = [
        ol.infer(ol.load_model(path), ONLY_X),
        ol.infer(small.predict, ONLY_X, result.parameters),
        ol.infer(small.predict, result.parameters, ONLY_X),
        inference.infer(inference.load_model(path), ONLY_X),
    ]
    assert all(same_bits(each, inferred[0]) for each in inferred)


def test_inputs_that_carry_their_values_need_no_feed(path):
    with ol.Program():
        x = ol.layer.data("x", value=ROWS["x"])
        predict = ol.layer.fc(x, 2)
    scope = ol.init(predict.block.program, ol.Scope())
    ol.save_model(predict, scope, path)
    assert same_bits(ol.infer(predict, scope), ol.infer(predict, ONLY_X, scope))
    assert same_bits(ol.infer(ol.load_model(path)), ol.infer(predict, scope))


def test_inferring_changes_neither_program_nor_parameters(small, result):
    before = small.program.to_bytes(), {name: result.parameters[name].clone() for name in result.parameters}
    ol.infer(small.predict, ONLY_X, result)
    ol.infer(inference.Model(result.program, result.parameters), ROWS)
    assert small.program.to_bytes() == before[0]
    assert all(torch.equal(result.parameters[name], value) for name, value in before[1].items())


def test_inferring_does_not_drop_anything_out():
    dropping = small_classifier(dropout=0.9)
    scope = ol.init(dropping.program, ol.Scope())
    assert same_bits(ol.infer(dropping.predict, ONLY_X, scope), ol.infer(small_classifier().predict, ONLY_X, scope))


def test_the_result_of_an_inference_is_an_array_of_its_own(small, result):
    first = ol.infer(small.predict, ONLY_X, result)
    first[:] = 0.0
    assert ol.infer(small.predict, ONLY_X, result).min() > 0.0


# The file


def test_the_same_content_gives_the_same_bytes(small, result, tmp_path):
    ol.save_model(small.predict, result, tmp_path / "a")
    ol.save_model(
        small.predict, dict(sorted(((name, result.parameters[name]) for name in result.parameters), reverse=True)), tmp_path / "b"
    )
    ol.save_model(ol.load_model(tmp_path / "a"), tmp_path / "c")
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes() == (tmp_path / "c").read_bytes()


def test_saving_over_a_file_replaces_it_and_leaves_nothing_else(small, result, path):
    ol.save_model(result, path)
    large = path.read_bytes()
    ol.save_model(small.predict, result, path)
    once = path.read_bytes()
    ol.save_model(small.predict, result, path)
    assert path.read_bytes() == once != large
    assert [entry.name for entry in path.parent.iterdir()] == [path.name]
    assert stat.S_IMODE(path.stat().st_mode) == 0o644


def test_any_safetensors_reader_opens_the_file(small, result, path):
    ol.save_model(small.predict, result, path)
    tensors = safetensors.torch.load_file(path)
    assert sorted(tensors) == ["fc_0.b", "fc_0.w", "oarlock.program"]
    assert torch.equal(tensors["fc_0.w"], result.parameters["fc_0.w"])
    program = ol.Program.from_bytes(tensors["oarlock.program"].numpy().tobytes())
    assert program.to_bytes() == ol.load_model(path).program.to_bytes()
    with safetensors.safe_open(path, "pt") as file:
        metadata = file.metadata()
    version, digest = metadata["oarlock"].split(" ")
    assert (list(metadata), version, len(digest)) == (["oarlock"], "1", 64)


def test_the_file_names_no_folder_of_the_machine_it_was_written_on(small, result, path):
    ol.save_model(result, path)
    data = path.read_bytes()
    header = json.loads(data[8 : 8 + int.from_bytes(data[:8], "little")])
    assert set(header) == {"__metadata__", "oarlock.program", *result.parameters}
    assert str(Path(__file__).parent).encode() not in data
    assert str(path.parent).encode() not in data


# What is refused: the whole message, and the old file stays


@pytest.fixture
def old(path: Path) -> Path:
    path.write_bytes(b"the old file")
    return path


def require_refused(kind: type[ol.OarlockError], old: Path, *arguments: object) -> ol.OarlockError:
    with pytest.raises(kind) as raised:
        ol.save_model(*arguments)
    assert old.read_bytes() == b"the old file"
    assert [entry.name for entry in old.parent.iterdir()] == [old.name]
    return raised.value


def test_saving_without_a_value_is_refused(small, old):
    error = require_refused(ol.UnsetVarError, old, small.predict, {"fc_0.w": numpy.zeros((3, 2), "float32")}, old)
    assert error.message == 'the parameters have no value for "fc_0.b"'
    assert error.hint == "pass the parameters that ol.train returned, or initialize them with ol.init(program, scope)"


@pytest.mark.parametrize(
    ("bias", "kind"), [(numpy.zeros(3, "float32"), ol.ShapeError), (numpy.zeros(2, "float64"), ol.DTypeError)], ids=["shape", "dtype"]
)
def test_saving_a_value_that_does_not_fit_is_refused(bias, kind, small, old):
    error = require_refused(kind, old, small.predict, {"fc_0.w": numpy.zeros((3, 2), "float32"), "fc_0.b": bias}, old)
    assert error.message == f'"fc_0.b" is {bias.dtype}[{len(bias)}] in the scope, but float32[2] in the program'


def test_saving_with_a_data_set_that_does_not_fit_is_refused(small, result, old):
    error = require_refused(ol.FeedError, old, small.cost, ROWS | {"x": ROWS["x"][:, :2]}, result, old)
    assert error.message == '"x" must have shape [n, 3], not [10, 2]'
    error = require_refused(ol.FeedError, old, small.cost, ONLY_X, result, old)
    assert error.message == '"label" is not fed'


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("predict",), "save_model takes a target, optionally a dataset, the parameters and a path"),
        (("predict", "result"), "save_model takes a target, optionally a dataset, the parameters and a path"),
        (("predict", "old", "result"), "the last argument must be a path or an open binary file, not TrainingResult"),
        ((3, "result", "old"), "a model is saved from variables or a program, not from int 3"),
        (([], "result", "old"), "a model is saved from variables or a program, not from list []"),
        (("predict", 3, "old"), "parameters must be a scope, the result of ol.train, or a dict of arrays, not int"),
        (("predict", 3, "result", "old"), "a dataset must be a dict of arrays, not int"),
        (("predict", "data", "result", "old", "old"), "save_model takes a target, optionally a dataset, the parameters and a path"),
    ],
)
def test_arguments_that_are_no_spelling_of_saving_are_refused(arguments, message, small, result, old):
    named = {"predict": small.predict, "result": result, "old": old, "data": ONLY_X}
    given = [named.get(argument, argument) if isinstance(argument, str) else argument for argument in arguments]
    assert str(require_refused(ol.ArgumentError, old, *given)) == message


def test_arguments_may_be_given_by_their_names(small, result, tmp_path):
    spellings = [
        ((small.predict, result, tmp_path / "0"), {}),
        ((small.predict, result), {"path": tmp_path / "1"}),
        ((small.predict,), {"parameters": result, "path": tmp_path / "2"}),
        ((small.predict,), {"dataset": ONLY_X, "parameters": result, "path": tmp_path / "3"}),
        ((small.predict, ONLY_X), {"parameters": result, "path": tmp_path / "4"}),
    ]
    for arguments, keywords in spellings:
        ol.save_model(*arguments, **keywords)
    assert len({(tmp_path / name).read_bytes() for name in "01234"}) == 1
    ol.save_model(result, path=tmp_path / "whole")
    assert ol.load_model(tmp_path / "whole").program.is_training
    for arguments, keywords in (
        ((small.predict,), {"parameter": result, "path": "x"}),
        ((small.predict, ONLY_X, result, "x"), {"path": "y"}),
    ):
        with pytest.raises(ol.ArgumentError, match="^save_model takes a target, optionally a dataset, the parameters and a path$"):
            ol.save_model(*arguments, **keywords)


def test_a_model_is_saved_without_a_target_in_no_spelling(result, old):
    message = "save_model takes a target, optionally a dataset, the parameters and a path"
    for keywords in ({}, {"path": old}, {"result": result, "path": old}):
        with pytest.raises(ol.ArgumentError, match=f"^{message}$"):
            ol.save_model(**keywords)
    with pytest.raises(ol.ArgumentError, match="^a model is saved from variables or a program, not from NoneType None$"):
        ol.save_model(parameters=result, path=old)


def test_a_model_is_loaded_by_the_names_of_the_arguments(labelled):
    assert ol.load_model(path=labelled).program.to_text() == ol.load_model(labelled).program.to_text()
    label = "share"
    for model in (ol.load_model(label, path=labelled), ol.load_model(target=label, path=labelled)):
        assert model.program.to_text() == ol.load_model(label, labelled).program.to_text()
    for arguments, keywords in (((), {"target": label}), ((), {"file": labelled}), ((labelled,), {"path": labelled, "target": label})):
        with pytest.raises(ol.ArgumentError, match="^load_model takes a path, or a target and a path$"):
            ol.load_model(*arguments, **keywords)


def test_saving_where_there_is_no_folder_is_refused(small, result, tmp_path):
    with pytest.raises(ol.MissingFileError) as raised:
        ol.save_model(small.predict, result, tmp_path / "none" / "model.safetensors")
    assert str(raised.value) == f'there is no folder "{tmp_path / "none"}"'


def test_saving_over_a_folder_is_refused(small, result, tmp_path):
    with pytest.raises(ol.ArgumentError) as raised:
        ol.save_model(small.predict, result, tmp_path)
    assert str(raised.value) == f'"{tmp_path}" is a folder, not a file'


@pytest.mark.parametrize("breaks", ["fsync", "replace"])
def test_a_machine_that_fails_while_it_saves_leaves_the_old_file(breaks, small, result, old, monkeypatch):
    def fail(*_: object) -> None:
        raise OSError("the disk is full")

    monkeypatch.setattr(container.os, breaks, fail)
    with pytest.raises(OSError, match="the disk is full"):
        ol.save_model(small.predict, result, old)
    monkeypatch.undo()
    assert old.read_bytes() == b"the old file"
    assert os.listdir(old.parent) == [old.name]


def test_arguments_that_are_no_spelling_of_loading_are_refused(labelled):
    with pytest.raises(ol.ArgumentError) as raised:
        ol.load_model()
    assert str(raised.value) == "load_model takes a path, or a target and a path"
    with pytest.raises(ol.ArgumentError) as raised:
        ol.load_model(3, labelled)
    assert str(raised.value) == "a target must be a variable or its name, not int"


def test_loading_what_was_not_saved_is_refused(labelled):
    with pytest.raises(ol.UndefinedVarError) as raised:
        ol.load_model("mean_0", labelled)
    assert str(raised.value) == (
        '"model.safetensors" has no variable "mean_0"\n'
        "      it was saved with only the part that computes probability, share\n"
        "  Try: save the part that computes both: ol.save_model([cost, predict], parameters, path)    (oarlock explain UndefinedVarError)"
    )


def test_arguments_that_are_no_spelling_of_inference_are_refused(small, result, labelled):
    model = ol.load_model(labelled)
    for arguments, message in [
        ((3, ROWS), "infer takes a model or a variable, not int"),
        ((model, ROWS, result), "a model has its own parameters; infer(model, feed) takes no others"),
        ((small.predict, ROWS, result, result), "infer takes a target, optionally a feed, and optionally parameters"),
    ]:
        with pytest.raises(ol.ArgumentError) as raised:
            ol.infer(*arguments)
        assert str(raised.value) == message


def test_inference_on_an_array_that_is_no_input_is_refused(small, result):
    with pytest.raises(ol.FeedError) as raised:
        ol.infer(small.predict, ROWS, result)
    assert str(raised.value) == '"label" is not an input of the program\n  the program takes x: float32[n, 3]\n      "label" fed'
