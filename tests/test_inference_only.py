"""`import oarlock.inference` alone: what such a process loads, what it can do, and what it refuses."""

import json
from pathlib import Path

import numpy
import pytest
from classifiers import small_classifier, small_rows
from processes import run_python

import oarlock as ol
from oarlock import inference

CODE = """
import json, sys
import numpy
from oarlock import inference
from oarlock.registry.catalogue import standard

def heavy():
    names = ("oarlock.optimizer", "oarlock.training", "oarlock.passes.backward", "oarlock.op.update", "oarlock.cli", "oarlock.datasets")
    return sorted(name for name in sys.modules if name.startswith(names))

def resolved():
    return sorted(operator.type for operator in standard.gradient_operators.values() if "signature" in operator.__dict__)

facts = {"gradient operators": len(standard.gradient_operators), "modules at first": heavy(), "resolved at first": resolved()}
model = inference.load_model("predict.safetensors")
numpy.save("predicted.npy", inference.infer(model, {"x": numpy.load("x.npy")}))
try:
    inference.load_model("training.safetensors")
except ValueError as error:
    facts["refused"] = f"{type(error).__module__}.{type(error).__name__}: {error}"
facts |= {"modules at last": heavy(), "resolved at last": resolved(), "public": sorted(inference.__all__)}
print(json.dumps(facts))
"""

REFUSAL = (
    "this is a training program: it has 5 gradient ops and updates 3 variables\n"
    "  Try: save only the prediction with ol.save_model(predict, parameters, path), or load it with ol.load_model"
    "    (oarlock explain TrainingProgramError)"
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files that the other process is given: a model, a training program, and rows."""
    folder = tmp_path_factory.mktemp("inference")
    small = small_classifier()
    result = ol.train(small.cost, small_rows(), progress=False)
    ol.save_model(small.predict, result, folder / "predict.safetensors")
    ol.save_model(result, folder / "training.safetensors")
    numpy.save(folder / "x.npy", small_rows()["x"])
    numpy.save(folder / "expected.npy", ol.infer(small.predict, {"x": small_rows()["x"]}, result))
    return folder


@pytest.fixture(scope="module")
def facts(folder: Path) -> dict[str, object]:
    return json.loads(run_python(CODE, folder))


@pytest.mark.mission("F10")
def test_a_process_that_only_infers_loads_no_optimizer_no_training_and_no_backward_pass(facts):
    assert facts["modules at first"] == []
    assert facts["modules at last"] == [], "and loading and running a model brings none of them in"


@pytest.mark.mission("F10")
def test_a_process_that_only_infers_resolves_no_gradient_operator(facts):
    assert facts["gradient operators"] > 10, "they are declared beside their kernels"
    assert facts["resolved at first"] == []
    assert facts["resolved at last"] == []


def test_a_process_that_only_infers_refuses_a_training_program(facts):
    assert facts["refused"] == f"oarlock.TrainingProgramError: {REFUSAL}"


def test_a_process_that_only_infers_infers_the_same_bits(folder, facts):
    assert (folder / "predicted.npy").read_bytes() == (folder / "expected.npy").read_bytes()


def test_the_inference_module_has_four_names(facts):
    assert facts["public"] == ["Model", "Scope", "infer", "load_model"]


def test_a_training_program_is_refused_in_any_process(folder):
    with pytest.raises(ol.TrainingProgramError) as raised:
        inference.load_model(folder / "training.safetensors")
    assert str(raised.value) == REFUSAL
    assert ol.load_model(folder / "training.safetensors").program.is_training


def test_a_program_that_only_differentiates_is_refused_too(tmp_path):
    small = small_classifier()
    (pair, _) = ol.append_backward(small.cost)
    ol.save_model({"gradient": pair[1]}, ol.init(small.program, ol.Scope()), tmp_path / "gradient.safetensors")
    with pytest.raises(ol.TrainingProgramError) as raised:
        inference.load_model(tmp_path / "gradient.safetensors")
    assert raised.value.message == "this is a training program: it has 4 gradient ops and updates 0 variables"


def test_a_gradient_operator_under_a_forged_role_is_not_found(tmp_path):
    small = small_classifier()
    (pair, _) = ol.append_backward(small.cost)
    for op in small.program.main.ops:
        op.role = ol.ir.Role.FORWARD
    ol.save_model({"gradient": pair[1]}, ol.init(small.program, ol.Scope()), tmp_path / "forged.safetensors")
    with pytest.raises(ol.UnknownOperatorError) as raised:
        inference.load_model(tmp_path / "forged.safetensors")
    assert raised.value.message.endswith('"mean_dx" is a gradient operator, which is unavailable in an inference-only process')
