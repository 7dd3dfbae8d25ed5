"""`oarlock profile` and `oarlock train --profile`."""

import json
from pathlib import Path

import numpy
import pytest
from classifiers import small_classifier, small_rows

import oarlock as ol
from oarlock.profiling.model_run import make_feed

SCRIPT = """
import sys
import numpy
import oarlock as ol

with ol.Program(seed=0):
    x = ol.layer.data("x", [3])
    y = ol.layer.fc(x, 2)
    cost = ol.layer.mean(y)
ol.train(cost, {"x": numpy.ones((64, 3), "float32")}, batch_size=4, progress=False, steps=int(sys.argv[1]) if sys.argv[1:] else None)
print("the end")
"""
EXPLAIN = "    (oarlock explain ArgumentError)"
MODEL = SCRIPT.partition("ol.train")[0]


@pytest.fixture
def script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "script.py"
    path.write_text(SCRIPT)
    return path


def steps_in(path: Path) -> int:
    return sum(event.get("cat") == "step" for event in json.loads(path.read_bytes())["traceEvents"])


def test_a_script_is_ended_once_enough_steps_were_seen(script, prints):
    text = prints("profile", script, "--steps", 3, "--warm-up", 2, "-o", "trace.json")
    assert text.startswith("3 steps of ")
    assert "script.py:8  y = ol.layer.fc(x, 2)" in text
    assert "the end" not in text
    assert text.endswith("trace of 3 steps in trace.json, for ui.perfetto.dev or chrome://tracing\n")
    assert steps_in(Path("trace.json")) == 3


def test_a_script_of_few_steps_ends_by_itself(script, prints, refuses):
    text = prints("profile", script, "--warm-up", 2, "4")
    assert text.startswith("the end\n2 steps of ")
    said = refuses("profile", script, "4")
    assert said == "ArgumentError: no steps were recorded: all steps were part of the warm-up of 5\n  Try: --warm-up 0" + EXPLAIN


def test_the_model_of_a_script_is_profiled_on_data_and_kept_nowhere(script, prints):
    script.write_text(MODEL)
    numpy.savez("rows.npz", x=numpy.ones((64, 3), "float32"))
    before = set(script.parent.iterdir())
    text = prints("profile", script, "--data", "rows.npz", "--batch-size", 4, "--steps", 2)
    assert text.startswith("2 steps of ")
    assert set(script.parent.iterdir()) == before


def test_a_saved_model_and_a_saved_run_are_profiled_with_data_and_without(tmp_path, prints, refuses, monkeypatch):
    monkeypatch.chdir(tmp_path)
    small = small_classifier()
    result = ol.train(small.cost, small_rows(40), batch_size=4, progress=False)
    ol.save_model(result, "run.safetensors")
    ol.save_model(small.predict, result.parameters, "model.safetensors")
    numpy.savez("rows.npz", **small_rows(40))
    before = [Path(name).read_bytes() for name in ("run.safetensors", "model.safetensors")]
    for name, role in (("run.safetensors", "update"), ("model.safetensors", "forward")):
        for data in ([], ["--data", "rows.npz"]):
            text = prints("profile", name, *data, "--steps", 2, "--warm-up", 1, "-o", "trace.json")
            assert text.startswith("2 steps of ")
            events = json.loads(Path("trace.json").read_bytes())["traceEvents"]
            assert role in {event["args"].get("role") for event in events}
    assert [Path(name).read_bytes() for name in ("run.safetensors", "model.safetensors")] == before
    said = refuses("profile", "run.safetensors", "--data", "rows.npz", "--batch-size", 5)
    assert said == "ArgumentError: this run has a batch size of 4\n  Try: omit the batch size" + EXPLAIN
    assert refuses("profile", "none.safetensors") == 'MissingFileError: there is no file "none.safetensors"'
    assert (
        refuses("profile", "run.safetensors", "more") == "ArgumentError: unknown argument 'more'\n  Try: oarlock profile --help" + EXPLAIN
    )


def test_train_writes_a_trace_beside_what_it_does(script, prints):
    text = prints("train", script, "--profile", "trace.json", "--profile-steps", 4)
    assert text.startswith("the end\n4 steps of ")
    assert text.endswith("trace of 4 steps in trace.json, for ui.perfetto.dev or chrome://tracing\n")
    assert steps_in(Path("trace.json")) == 4
    assert prints("train", script, "--profile", "other.json", "3").endswith("no trace: all steps were part of the warm-up of 5\n")
    assert not Path("other.json").exists()


def test_a_feed_is_made_up_of_what_the_inputs_declare():
    with ol.Program(seed=2) as program:
        ol.layer.data("x", ["t", 3])
        ol.layer.data("label", [], dtype="int64")
        ol.layer.data("scale", [], batch=None)
        ol.layer.data("half", [2], dtype="float16")
    feed = make_feed(program, 5, {"t": 7})
    assert {name: (tuple(value.shape), str(value.dtype)) for name, value in feed.items()} == {
        "x": ((5, 7, 3), "torch.float32"),
        "label": ((5,), "torch.int64"),
        "scale": ((), "torch.float32"),
        "half": ((5, 2), "torch.float16"),
    }
    assert make_feed(program, 5, {})["x"].shape == (5, 32, 3)
    with ol.Program() as program:
        ol.layer.data("words", [], dtype="int64", ragged=1)
    with pytest.raises(ol.ArgumentError) as raised:
        make_feed(program, 5, {})
    assert raised.value.message == 'there is no synthetic input for "words", which is ragged'
