"""Whole texts of what a user reads where a program cannot leave as ONNX."""

import io

import pytest

pytest.importorskip("onnx")

import oarlock as ol


def test_every_op_that_onnx_has_no_words_for_is_told_with_its_line():
    with ol.Program() as program:
        x = ol.layer.data("x", shape=[1, 4, 4], batch=2)
        grid = ol.layer.data("grid", shape=[2, 2, 2], batch=2)
        w = ol.layer.create_parameter([2, 1, 2, 2], name="w")
        cost = ol.layer.mean(ol.op.grid_sample(x + ol.layer.mean(w), grid) * w)
        program.targets["cost"] = cost
        ol.optimizer.SGD(0.1).minimize(cost)
        program.targets["bits"] = ol.op.bitwise_and(ol.op.cast(x, dtype="int64"), ol.op.cast(x, dtype="int64"))
    with pytest.raises(ol.ProgramError) as refusal:
        ol.to_onnx(program, io.BytesIO(), opset=17, training=True)
    lines = str(refusal.value).splitlines()
    assert lines[0] == "2 ops cannot be expressed in ONNX opset 17"
    told = [line.split(", at ")[0].strip() for line in lines[1:-1]]
    assert "grid_sample_dx of add_0@GRAD: ONNX has no operator for the gradients of GridSample" in told
    assert "bitwise_and of bitwise_and_0: BitwiseAnd requires opset 18, not 17" in told
    assert all("test_onnx_export_messages.py:" in line for line in lines[1:-1])
    assert lines[-1].startswith("  Try: prune the program to targets that can be exported, or use other operators;")


def test_what_cannot_be_exported_is_told():
    with ol.Program() as program:
        y = ol.layer.fc(ol.layer.data("x", shape=[3]), 2)
    for arguments, message in (
        ((y, io.BytesIO(), None, 16), "opset must be 17 to 23, not 16"),
        ((program, io.BytesIO(), None, 18), "the program has no targets to export"),
        (("text", io.BytesIO(), None, 18), "to_onnx takes a model, a program or variables, not str 'text'"),
        ((y, io.BytesIO(), 3, 18), "parameters must be a scope, the result of ol.train, or a dict of arrays, not int"),
    ):
        with pytest.raises(ol.OarlockError) as refusal:
            ol.to_onnx(*arguments[:3], opset=arguments[3])
        assert refusal.value.message == message
    with pytest.raises(ol.ProgramError, match="the program has no updates, so it has no training step"):
        ol.to_onnx(y, io.BytesIO(), training=True)
