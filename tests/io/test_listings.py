"""The columns of a table, which a model file keeps for its inputs."""

import pytest
import torch

import oarlock as ol
from oarlock.io.container import write_container
from oarlock.io.listings import COLUMNS, PREDICTION


def two_inputs() -> tuple[ol.Var, ol.Scope]:
    with ol.Program(seed=0) as program:
        both = ol.layer.fc(ol.layer.data("x", [2]), 1) + ol.layer.data("y", [1])
    return both, ol.init(program, ol.Scope())


def test_a_model_keeps_the_columns_of_its_inputs(tmp_path):
    both, scope = two_inputs()
    given = {"x": ["width", "h\u00f6he"], "y": ["depth"], "label": ["of no input"]}
    ol.save_model(both, scope, tmp_path / "model", columns=given)
    model = ol.load_model(tmp_path / "model")
    assert model.columns == {"x": ["width", "h\u00f6he"], "y": ["depth"]}
    ol.save_model(model, tmp_path / "again")
    assert (tmp_path / "again").read_bytes() == (tmp_path / "model").read_bytes()
    ol.save_model(both, scope, tmp_path / "none")
    assert ol.load_model(tmp_path / "none").columns == {}


@pytest.mark.parametrize("listed", [b"\xff", b"null", b"[]", b'{"z": ["a"]}', b'{"x": []}', b'{"x": "a"}', b'{"x": [1]}', b"[" * 9999])
def test_a_file_lists_nothing_else(listed, tmp_path):
    both, scope = two_inputs()
    tensors = {name: scope[name] for name in scope} | {COLUMNS: torch.frombuffer(bytearray(listed), dtype=torch.uint8)}
    write_container(tmp_path / "file", both.block.program.to_bytes(), tensors)
    with pytest.raises(ol.FormatError) as raised:
        ol.load_model(tmp_path / "file")
    assert raised.value.message == "oarlock.columns does not map inputs of the program to columns"


def test_a_model_keeps_the_program_that_predicts_and_what_is_pruned_of_it_has_none(tmp_path):
    both, scope = two_inputs()
    ol.save_model(both, scope, tmp_path / "model")
    model = ol.load_model(tmp_path / "model")
    assert model.prediction is None
    model.prediction = b"any bytes: nobody has asked for them yet"
    ol.save_model(model, tmp_path / "kept")
    assert ol.load_model(tmp_path / "kept").prediction == model.prediction
    assert ol.load_model(both.name, tmp_path / "kept").prediction is None


def test_a_program_that_predicts_is_bytes(tmp_path):
    both, scope = two_inputs()
    tensors = {name: scope[name] for name in scope} | {PREDICTION: torch.zeros(3, dtype=torch.bfloat16)}
    write_container(tmp_path / "file", both.block.program.to_bytes(), tensors)
    with pytest.raises(ol.FormatError) as raised:
        ol.load_model(tmp_path / "file")
    assert raised.value.message == "oarlock.prediction is not a program"
