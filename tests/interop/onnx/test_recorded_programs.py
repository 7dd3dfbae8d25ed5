"""Some seeds, workloads and examples as ONNX, each program that they run; `tools/onnx_programs.py` takes all of them."""

import importlib.util
import sys
from pathlib import Path

import pytest

pytest.importorskip("onnxruntime")

import numpy

import oarlock as ol

# A source, and how many of its programs are exported for what is fetched, and as training steps.
SOURCES = {
    "block_run": (2, 0),
    "create_rnn": (1, 0),
    "gemm": (4, 0),
    "if_else": (1, 0),
    "net_builder": (2, 2),
    "net_life": (1, 1),
    "plain_network": (2, 1),
    "prune_and_eval": (2, 0),
    "rnn_step": (1, 0),
    "trace_and_build": (1, 0),
    "variables": (0, 0),
    "I1": (1, 0),
    "W1": (1, 1),
    "W8": (1, 1),
    "X3": (1, 1),
    "digits_ifelse": (2, 1),
}


@pytest.fixture(scope="module")
def onnx_programs():
    path = Path(__file__).resolve().parents[3] / "tools" / "onnx_programs.py"
    spec = importlib.util.spec_from_file_location("onnx_programs", path)
    module = importlib.util.module_from_spec(spec)
    before, sys.modules[spec.name] = list(sys.path), module
    spec.loader.exec_module(module)
    yield module
    sys.path[:] = before
    del sys.modules[spec.name]


@pytest.mark.parametrize("name", SOURCES)
def test_what_a_source_runs_is_the_same_under_onnx_runtime(name, onnx_programs):
    (source,) = [source for source in onnx_programs.sources() if source.name == name]
    for recorded in onnx_programs.run(source):
        onnx_programs.compare(source, recorded)
    assert [outcome for outcome in source.outcomes if outcome.result != "agrees"] == []
    counts = tuple(sum(outcome.what == what for outcome in source.outcomes) for what in ("inference", "training"))
    assert counts == SOURCES[name]


def test_every_seed_workload_and_example_is_a_source(onnx_programs):
    names = [source.name for source in onnx_programs.sources()]
    for folder in ("tests/examples/seeds", "examples"):
        assert {path.stem for path in (onnx_programs.ROOT / folder).glob("*.py")} <= set(names)
    assert {*(f"W{number}" for number in range(1, 14)), "I1", "I2", "I3", *(f"X{number}" for number in range(1, 7))} <= set(names)


def test_a_run_is_recorded_once_with_what_it_was_fed_and_what_it_began_with(onnx_programs):
    with ol.Program() as program:
        x = ol.layer.data("x", shape=[2])
        cost = ol.layer.mean(ol.layer.fc(x, 1, name="dense"))
        ol.optimizer.SGD(0.5).minimize(cost)
    scope, feed = ol.init(program, ol.Scope()), {"x": numpy.ones((3, 2), "float32")}
    start = scope["dense.w"].clone()

    def run():
        for _ in range(2):
            ol.Executor().run(program, feed, [cost], scope=scope)
        ol.Executor().eval(program, [cost, "dense.w"], feed, scope=scope)
        with pytest.raises(ol.FeedError):
            ol.Executor().eval(program, ["dense.b", cost], {}, scope=scope)

    first, second = onnx_programs.run(onnx_programs.Source("tests", "two runs", run))
    assert (first.trains, list(first.program.targets)) == (True, [cost.name])
    assert (second.trains, list(second.program.targets)) == (False, [cost.name, "dense.w"])
    assert first.scope["dense.w"].equal(start)
    assert not second.scope["dense.w"].equal(start)
    assert first.feed["x"].tolist() == feed["x"].tolist()


def test_a_fault_is_told_from_rounding(onnx_programs):
    value = {"y": numpy.array([1.0, 100.0], "float32"), "z": numpy.array([0], "int64")}
    off = {"y": value["y"] * numpy.float32(1 + 4e-5), "z": value["z"]}
    assert onnx_programs.judge(value, value, list).result == "agrees"
    assert onnx_programs.judge(value, off, lambda: [value]).result == "differs"
    assert onnx_programs.judge(value, off, lambda: [value, off]).result == "rounding"
    assert onnx_programs.judge(value, value | {"z": numpy.array([1])}, lambda: [off]).result == "differs"
    for wrong in (value["y"].astype("float64"), value["y"][:1], numpy.array([1.0, numpy.nan], "float32")):
        assert onnx_programs.judge(value, value | {"y": wrong}, lambda: [off]).apart == float("inf")


def test_what_has_no_rule_is_refused_with_its_reason(onnx_programs):
    with ol.Program() as program:
        x, grid = ol.layer.data("x", shape=[1, 4, 4]), ol.layer.data("grid", shape=[2, 2, 2])
        y = ol.op.grid_sample(x * ol.layer.create_parameter([4], name="w"), grid)
        cost = ol.layer.mean(ol.op.square(y))
        ol.optimizer.SGD(0.1).minimize(cost)
    scope, feed = ol.init(program, ol.Scope()), {"x": numpy.ones((2, 1, 4, 4), "float32"), "grid": numpy.zeros((2, 2, 2, 2), "float32")}
    source = onnx_programs.Source("tests", "samples", lambda: ol.Executor().run(program, feed, [cost], scope=scope) and None)
    for recorded in onnx_programs.run(source):
        onnx_programs.compare(source, recorded)
    assert [(outcome.what, outcome.result) for outcome in source.outcomes] == [("inference", "agrees"), ("training", "refused")]
    assert source.outcomes[1].reason == "grid_sample_dx: ONNX has no operator for the gradients of GridSample"
