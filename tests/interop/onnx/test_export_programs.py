"""Whole programs as ONNX: names, dimensions, versions, files; and the programs that several tests share."""

import pytest

pytest.importorskip("onnxruntime")

import io

import numpy
import onnx
import onnxruntime
from interop.onnx.onnx_sessions import session_of
from sample_programs import nested_loops, program_of_chain, running_sum
from tolerances import ONNX_LOSSES
from typer.testing import CliRunner

import oarlock as ol
from oarlock.cli.main import app
from oarlock.interop.onnx import export_model, runtime
from oarlock.interop.onnx.export_model import IR_VERSIONS

RANDOM = numpy.random.default_rng(0)


def require_same(program: ol.Program, feed: dict[str, numpy.ndarray], scope: ol.Scope) -> None:
    """ONNX Runtime gives the values of the targets that we give."""
    expected = ol.Executor().eval(program, list(program.targets), feed, scope=scope)
    results = session_of(program, scope).run(feed)
    for label, value in zip(program.targets, expected, strict=True):
        numpy.testing.assert_allclose(results[label], value, *ONNX_LOSSES, err_msg=label)


@pytest.mark.parametrize("trips", [1, 3])
def test_a_loop_in_a_loop_and_its_gradient(trips):
    program = nested_loops()
    program.targets["slope"] = program.main.var("decay@GRAD")
    pages = RANDOM.normal(size=(trips, 4, 3)).astype("float32")
    require_same(program, {"pages": pages, "start": numpy.zeros(3, "float32")}, ol.init(program, ol.Scope()))


def test_a_chain_of_element_wise_ops_in_float64():
    require_same(program_of_chain("x", "z"), {name: RANDOM.normal(size=(2, 3)) for name in ("x", "z")}, ol.Scope())


def test_a_commit_of_ones_own():
    program, scope = running_sum(), ol.Scope()
    scope.set("w", numpy.array([0.5, 0.25], "float32"))
    feed = {"xs": RANDOM.normal(size=(5, 2)).astype("float32"), "start": numpy.ones(2, "float32")}
    require_same(program, feed, scope)


def test_a_loop_that_carries_nothing():
    with ol.Program(seed=1) as program:
        x = ol.layer.data("x", shape=["n", 3], batch="t")
        rnn = ol.rnn()
        with rnn.step():
            rnn.output(ol.layer.fc(rnn.step_input(x), 2))
        program.targets["y"] = rnn()
    require_same(program, {"x": RANDOM.normal(size=(4, 2, 3)).astype("float32")}, ol.init(program, ol.Scope()))


def test_symbols_are_named_dimensions_and_each_opset_has_its_version():
    with ol.Program() as program:
        x = ol.layer.data("x", shape=["t", 3])
        program.targets["y"] = ol.layer.softmax(ol.op.flatten(ol.layer.fc(x, 2), start=1))
    scope = ol.init(program, ol.Scope())
    for opset, version in IR_VERSIONS.items():
        session = session_of(program, scope, opset=opset)
        graph = session.model.graph
        dims = [[size.dim_param or size.dim_value for size in value.type.tensor_type.shape.dim] for value in (*graph.input, *graph.output)]
        assert dims == [["n", "t", 3], ["n", "2*t"]]
        assert (session.model.opset_import[0].version, session.model.ir_version) == (opset, version)
        for shape in ((2, 5, 3), (1, 1, 3)):
            feed = {"x": RANDOM.normal(size=shape).astype("float32")}
            (expected,) = ol.Executor().eval(program, ["y"], feed, scope=scope)
            numpy.testing.assert_allclose(session.run(feed)["y"], expected, *ONNX_LOSSES)


def test_the_command_writes_what_the_function_writes(tmp_path):
    with ol.Program() as program:
        x, y = ol.layer.data("x", shape=[3]), ol.layer.data("y", shape=[1])
        program.targets["cost"] = ol.layer.mse(ol.layer.fc(x, 1, name="dense"), y)
        ol.optimizer.SGD(0.1).minimize(program.targets["cost"])
    scope = ol.init(program, ol.Scope())
    ol.save_model(program, scope, tmp_path / "run.safetensors")
    arguments = ["export", str(tmp_path / "run.safetensors"), "--onnx", str(tmp_path / "step.onnx"), "--training", "--opset", "20"]
    text = CliRunner().invoke(app, arguments, catch_exceptions=False).output
    assert "inputs x, y" in text
    assert "state dense.w -> dense.w@NEXT" in text
    ol.to_onnx(program, tmp_path / "other.onnx", scope, opset=20, training=True)
    assert (tmp_path / "step.onnx").read_bytes() == (tmp_path / "other.onnx").read_bytes()
    onnx.checker.check_model(tmp_path / "step.onnx", full_check=True)


def test_values_that_one_message_does_not_hold_stand_in_a_file_beside_it(tmp_path, monkeypatch):
    with ol.Program() as program:
        program.targets["y"] = ol.layer.fc(ol.layer.data("x", shape=[70]), 11, name="dense")
    scope = ol.init(program, ol.Scope())
    feed = {"x": RANDOM.normal(size=(2, 70)).astype("float32")}
    monkeypatch.setattr(export_model, "_LARGEST", 3000)
    (tmp_path / "model.onnx.data").write_bytes(b"what an earlier export left")
    for _ in range(2):
        ol.to_onnx(program, tmp_path / "model.onnx", scope)
    assert (tmp_path / "model.onnx").stat().st_size < 1000
    assert (tmp_path / "model.onnx.data").stat().st_size == 70 * 11 * 4  # the bias is small, and stays
    onnx.checker.check_model(tmp_path / "model.onnx", full_check=True)
    expected = ol.Executor().eval(program, ["y"], feed, scope=scope)[0]
    session = onnxruntime.InferenceSession(tmp_path / "model.onnx")
    numpy.testing.assert_allclose(session.run(None, feed)[0], expected, *ONNX_LOSSES)
    numpy.testing.assert_allclose(ol.infer(ol.from_onnx(tmp_path / "model.onnx"), feed), expected, *ONNX_LOSSES)
    with pytest.raises(ol.ArgumentError, match="more than 2 GiB of values") as refused:
        ol.to_onnx(program, io.BytesIO(), scope)
    assert refused.value.hint == "pass a path, so that the values can be written to a second file"


def test_a_large_model_is_run_from_files(tmp_path, monkeypatch):
    with ol.Program() as program:
        program.targets["y"] = ol.layer.fc(ol.layer.data("x", shape=[70]), 11)
    model = ol.Model(program, ol.init(program, ol.Scope()))
    feed = {"x": RANDOM.normal(size=(2, 70)).astype("float32")}
    expected = ol.infer(model, feed)
    monkeypatch.setattr(export_model, "_LARGEST", 3000)
    monkeypatch.setattr(runtime, "_LARGE", 3000)
    numpy.testing.assert_allclose(ol.infer(model, feed, backend="onnxruntime"), expected, *ONNX_LOSSES)
