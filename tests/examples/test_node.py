"""A program that was written in another language, by its .proto alone, is one like any other."""

import runpy
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

import oarlock as ol

FOLDER = Path(__file__).parent.parent.parent / "examples" / "node"
KEPT = FOLDER / "digits.program"
NODE = shutil.which("node")
can_write = pytest.mark.skipif(
    NODE is None or not (FOLDER / "node_modules" / "protobufjs").exists(),
    reason="node, or its package protobufjs (npm install in examples/node), is not here: what it wrote before is trained",
)


@pytest.fixture(params=[pytest.param("written now", marks=can_write), "kept"])
def written(request, tmp_path):
    """The file that the client writes, or wrote."""
    if request.param == "kept":
        return KEPT
    path = tmp_path / "digits.program"
    subprocess.run([str(NODE), str(FOLDER / "write_program.mjs"), str(path)], check=True, timeout=120, capture_output=True)
    return path


@can_write
def test_the_client_writes_the_bytes_that_are_kept(tmp_path):
    path = tmp_path / "digits.program"
    subprocess.run([str(NODE), str(FOLDER / "write_program.mjs"), str(path)], check=True, timeout=120, capture_output=True)
    assert path.read_bytes() == KEPT.read_bytes()


@pytest.mark.mission("F3")
def test_the_program_trains_until_it_reads_nine_digits_of_ten(written):
    main = runpy.run_path(str(FOLDER.parent / "trained_from_node.py"), run_name="trained_from_node")["main"]
    assert main(written, epochs=8) > 0.9


def test_it_takes_the_steps_of_the_same_program_written_in_python(written):
    with ol.Program(seed=7) as ours:
        pixels = ol.layer.data("pixels", shape=[64])
        label = ol.layer.data("label", shape=[], dtype="int64")
        logits = ol.layer.fc(ol.layer.fc(pixels, 32, act="tanh", name="hidden"), 10, name="logits")
        cost = ol.layer.mean(ol.op.softmax_with_cross_entropy(logits, label))
    theirs = ol.Program.from_bytes(written.read_bytes())
    assert [op.type for op in theirs.main.ops] == [op.type for op in ours.main.ops]
    assert theirs.targets["cost"].type_text == "float32[]"
    train, _ = ol.datasets.digits.split(seed=0)
    data = {"pixels": train["image"].reshape(-1, 64)[:64], "label": train["label"][:64]}
    scopes = []
    for target in (cost, theirs.targets["cost"]):
        scopes.append(ol.train(target, data, optimizer=ol.optimizer.SGD(0.5), epochs=3, batch_size=16, progress=False, scope=ol.Scope()))
    for name in ("hidden.w", "hidden.b", "logits.w", "logits.b"):
        np.testing.assert_array_equal(*(result.parameters[name].numpy() for result in scopes))
    first, *_, last = (next(iter(epoch.training.values())) for epoch in scopes[1].history)
    assert last < first
