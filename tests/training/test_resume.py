"""A training program that is stopped, saved and continued elsewhere ends in the same bits as one that never stopped.

The second process runs in an empty folder: it has the installed package, the file, and none of the model's Python.
"""

import shutil
from dataclasses import dataclass
from pathlib import Path

import numpy
import pytest
import torch
from classifiers import digits_classifier
from processes import run_forked, run_oarlock

import oarlock as ol

SEED = 3  # of the program, of the order of its rows, and of the split of the digits
BATCH_SIZE = 128
STEPS = 24  # two epochs of twelve
STOPPED = 17  # in the middle of the second
OPTIMIZERS = {
    "sgd": lambda: ol.optimizer.SGD(0.1),
    "momentum": lambda: ol.optimizer.Momentum(0.05, nesterov=True),
    "adam": lambda: ol.optimizer.Adam(1e-2),
}

CONTINUE = """
import sys
import oarlock as ol
for data, path in (argument.split("=") for argument in sys.argv[1:]):
    model = ol.load_model(path)
    result = ol.train(model, ol.datasets.load(data, seed=model.program.seed), progress=False)
    ol.save_model(result, path)
    print(path, result.steps)
"""


@dataclass
class Run:
    """One training run, saved twice: where it was stopped, and where it ended without a stop."""

    stopped: Path
    unbroken: Path


def save_both(cost: ol.Var, data: dict[str, numpy.ndarray], folder: Path, *, steps: int, **options: object) -> Run:
    run = Run(folder / "stopped.safetensors", folder / "unbroken.safetensors")
    for path, taken in ((run.unbroken, None), (run.stopped, steps)):  # one line makes both, since a file knows its author's lines
        ol.save_model(ol.train(cost, data, progress=False, steps=taken, **options), path)
    return run


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Run]:
    train, _ = ol.datasets.digits.split(seed=SEED)
    found = {}
    for kind, optimizer in OPTIMIZERS.items():
        cost = digits_classifier(dropout=0.3, seed=SEED).cost
        options = {"optimizer": optimizer(), "epochs": 2, "batch_size": BATCH_SIZE}
        found[kind] = save_both(cost, train, tmp_path_factory.mktemp(kind), steps=STOPPED, **options)
    return found


@pytest.fixture(scope="module")
def loop(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A recurrent network that steps through the rows of a minibatch, and drops something in every step of its loop."""
    with ol.Program(seed=SEED):
        rows = ol.layer.data("rows", shape=[3])
        label = ol.layer.data("label", shape=[], dtype="int64")
        start = ol.layer.data("start", value=numpy.ones(4, "float32"), batch=None)
        rnn = ol.rnn()
        with rnn.step():
            memory = rnn.memory(init=start)
            both = ol.layer.concat([ol.layer.dropout(rnn.step_input(rows), rate=0.2), rnn.previous_memory(memory)], axis=0)
            state = ol.layer.fc(both, 4, act="tanh")
            rnn.update_memory(memory, state)
            rnn.output(state)
        cost = ol.layer.cross_entropy(ol.layer.fc(rnn(), 2), label)
    generator = numpy.random.default_rng(0)
    folder = tmp_path_factory.mktemp("loop")
    data = {"rows": generator.standard_normal((20, 3)).astype("float32"), "label": generator.integers(0, 2, 20)}
    numpy.savez(folder / "rows.npz", **data)
    return save_both(cost, data, folder, steps=4, optimizer=ol.optimizer.Adam(), epochs=2, batch_size=6)


def require_same_bits(continued: Path, unbroken: Path) -> None:
    ours, theirs = ol.load_model(continued).scope, ol.load_model(unbroken).scope
    assert sorted(ours) == sorted(theirs)
    different = [name for name in theirs if not torch.equal(ours[name], theirs[name])]
    assert different == []
    assert continued.read_bytes() == unbroken.read_bytes(), "and the program, with all that belongs to the run, is the same"


def test_a_process_with_nothing_but_the_file_continues_bit_for_bit(runs, loop, tmp_path):
    for kind, run in runs.items():
        shutil.copy(run.stopped, tmp_path / kind)
    shutil.copy(loop.stopped, tmp_path / "loop")
    shutil.copy(loop.stopped.parent / "rows.npz", tmp_path)
    output = run_forked(CONTINUE, tmp_path, *(f"digits:train={kind}" for kind in runs), "rows.npz=loop")
    assert output.splitlines() == [f"sgd {STEPS}", f"momentum {STEPS}", f"adam {STEPS}", "loop 8"]
    for kind, run in {**runs, "loop": loop}.items():
        require_same_bits(tmp_path / kind, run.unbroken)


@pytest.mark.parametrize("kind", ["adam", "momentum"])
def test_the_command_line_continues_bit_for_bit(kind, runs, tmp_path):
    shutil.copy(runs[kind].stopped, tmp_path / "run.safetensors")
    done = run_oarlock(tmp_path, "train", "run.safetensors", "--data", "digits:train")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines()[-1] == f"{STEPS} steps in total; saved run.safetensors"
    assert [path.name for path in tmp_path.iterdir()] == ["run.safetensors"]
    require_same_bits(tmp_path / "run.safetensors", runs[kind].unbroken)


def test_a_run_may_be_stopped_many_times(runs, tmp_path):
    train, _ = ol.datasets.digits.split(seed=SEED)
    path = tmp_path / "run.safetensors"
    shutil.copy(runs["adam"].stopped, path)
    for _ in range(STEPS - STOPPED):
        ol.save_model(ol.train(ol.load_model(path), train, steps=1, progress=False), path)
    require_same_bits(path, runs["adam"].unbroken)


def test_what_was_saved_is_not_yet_what_the_whole_run_ends_in(runs):
    for run in runs.values():
        stopped, unbroken = ol.load_model(run.stopped).scope, ol.load_model(run.unbroken).scope
        assert int(stopped["@STEP"]) == STOPPED
        assert not torch.equal(stopped["fc_0.w"], unbroken["fc_0.w"])


def test_a_longer_run_is_asked_for_by_its_epochs(runs):
    train, _ = ol.datasets.digits.split(seed=SEED)
    result = ol.train(ol.load_model(runs["sgd"].stopped), train, epochs=3, progress=False)
    assert result.steps == 36
    assert [record.epoch for record in result.history] == [2, 3]
