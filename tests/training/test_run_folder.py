"""A run that is kept in a folder: checkpoints, what was measured, and going on after any end."""

import errno
import json
import os
import shutil
import subprocess
import sys
import threading
from pathlib import Path

import failing_disk
import numpy
import pytest
import safetensors.torch
import torch
from classifiers import small_classifier, small_rows

import oarlock as ol
from oarlock.io.tensor_file import TensorFile
from oarlock.training import checkpoint, checkpoint_process, checkpoint_writing
from oarlock.training.folder_lock import is_running
from oarlock.training.metric_log import MetricLogWriter
from oarlock.training.run_folder import RunFolder, sample_of

ROWS = small_rows(23)
OPTIONS = {"epochs": 3, "batch_size": 4, "progress": False}


def train(folder: Path, **options) -> ol.TrainingResult:
    """A run with everything that has a state: shuffled rows, momentum, dropout, a metric."""
    with ol.Program(seed=3):
        x = ol.layer.data("x", [3])
        label = ol.layer.data("label", [], dtype="int64")
        logits = ol.layer.fc(ol.layer.dropout(ol.layer.batch_norm(ol.layer.fc(x, 8, act="tanh")), 0.2), 2)
        cost = ol.layer.mean(ol.layer.softmax_with_cross_entropy(logits, label))
        show = {"accuracy": ol.layer.accuracy(logits, label)}
    given = {"optimizer": ol.optimizer.Momentum(0.1), "show": show, "validate": ROWS, "run": folder} | OPTIONS | options
    return ol.train(cost, ROWS, **given)


def same(left: ol.TrainingResult, right: ol.TrainingResult) -> bool:
    held = all(torch.equal(left.parameters[name], right.parameters[name]) for name in right.parameters)
    return held and left.steps == right.steps and left.history == right.history


@pytest.fixture(scope="module")
def unbroken(tmp_path_factory: pytest.TempPathFactory) -> ol.TrainingResult:
    return train(tmp_path_factory.mktemp("unbroken") / "run", run=None)


@pytest.mark.parametrize("stop", [0, 1, 5, 6, 7, 12, 17, 18])
def test_a_run_that_ended_anywhere_goes_on_with_the_same_bits_and_the_whole_history(stop, unbroken, tmp_path):
    half = train(tmp_path / "run", steps=stop)
    assert half.steps == stop
    assert same(train(tmp_path / "run"), unbroken)
    assert same(train(tmp_path / "run"), unbroken)  # which is over, and says what it measured


def test_the_folder_holds_what_the_run_is_and_each_step_once(tmp_path):
    train(tmp_path / "run", steps=8)
    with open(tmp_path / "run/metrics.jsonl", "a") as log:
        log.write('{"step": 9, "epoch": 2, "rows": 4, "loss": 1.0}\n{"st')  # of a step that no checkpoint holds, and a line cut short
    result = train(tmp_path / "run")
    lines = [json.loads(line) for line in (tmp_path / "run/metrics.jsonl").read_text().splitlines()]
    steps = [line["step"] for line in lines if "loss" in line]
    assert steps == list(range(1, 19))
    times = [line.pop("time") for line in lines]
    assert times == sorted(times)
    assert [line for line in lines if "training" in line] == [
        {"epoch": r.epoch, "training": r.training, "validation": r.validation, "step": r.step} for r in result.history
    ]
    assert [(line["step"], line["epochs"]) for line in lines if "environment" in line] == [(0, 3), (8, 3)]  # where it began, and went on
    assert [line["step"] for line in lines if "ended" in line] == [18]
    about = json.loads((tmp_path / "run/run.json").read_text())
    assert about["training"] == {"batch_size": 4, "epochs": 3, "backend": None}
    assert about["environment"]["torch"] == torch.__version__
    assert "momentum" in (tmp_path / "run/program.txt").read_text()


def test_the_newest_checkpoints_are_kept_and_the_best_one(tmp_path):
    stopping = ol.training.EarlyStopping("loss", target=0.0)
    result = train(ol.training.Run(tmp_path / "run", save_every=4, keep=2), early_stopping=stopping, epochs=4)
    best = stopping.best(result.history)
    assert set(checkpoint.find_checkpoints(tmp_path / "run/checkpoints")) == {best.step, 20, 24}
    assert min(record.training["loss"] for record in result.history) == best.training["loss"]


def test_a_run_of_another_program_is_refused_and_the_folder_stays_as_it_is(tmp_path):
    train(tmp_path / "run", steps=3)
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    with pytest.raises(ol.ProgramError) as raised:
        train(tmp_path / "run", optimizer=ol.optimizer.Adam(0.1))
    assert raised.value.message == f'"{tmp_path / "run"}" contains a run of another program'
    assert len(raised.value.given) == 1
    with pytest.raises(ol.ArgumentError, match="with its own parameters; scope can only be given for a new run"):
        train(tmp_path / "run", scope=ol.Scope())
    with pytest.raises(ol.ArgumentError, match="this run has a batch size of 4"):
        train(tmp_path / "run", batch_size=5)
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before


def test_a_folder_is_of_one_run_at_a_time(tmp_path):
    with (
        RunFolder(ol.training.Run(tmp_path / "run")),
        pytest.raises(ol.WriteError, match="is in use by a run of another process"),
    ):
        train(tmp_path / "run")


def test_a_broken_checkpoint_is_passed_over(unbroken, tmp_path):
    train(ol.training.Run(tmp_path / "run", save_every=3), steps=9)
    newest = tmp_path / "run/checkpoints/step-000000009/model.safetensors"
    data = bytearray(newest.read_bytes())
    data[len(data) // 2] ^= 1
    newest.write_bytes(data)
    assert same(train(tmp_path / "run"), unbroken)
    for path in (tmp_path / "run/checkpoints").glob("*/manifest.json"):
        text = path.read_text()
        assert text.count('"rows": 0,') == 1
        path.write_text(text.replace('"rows": 0,', '"rows": 1,'))
    with pytest.raises(ol.FormatError, match="are damaged"):
        train(tmp_path / "run")


def read_sample(path: Path) -> dict[str, torch.Tensor]:
    with TensorFile.open(path, untrusted=True) as file:
        return {name: file.read(name) for name in file.entries}


def test_a_few_rows_are_kept_of_the_validation_data_or_else_of_the_training_data(tmp_path):
    held_out = small_rows(100)
    train(tmp_path / "validated", validate=held_out)
    assert [path.name for path in tmp_path.glob("validated/sample.*")] == ["sample.validation.safetensors"]
    kept = read_sample(tmp_path / "validated/sample.validation.safetensors")
    chosen = [0, 14, 28, 42, 57, 71, 85, 99]
    assert {name: value.numpy().tolist() for name, value in kept.items()} == {n: held_out[n][chosen].tolist() for n in ("x", "label")}
    train(ol.training.Run(tmp_path / "trained", sample=3), validate=None)
    assert read_sample(tmp_path / "trained/sample.training.safetensors")["x"].tolist() == ROWS["x"][[0, 11, 22]].tolist()
    train(ol.training.Run(tmp_path / "none", sample=0))
    assert not list(tmp_path.glob("none/sample.*"))
    with pytest.raises(ol.ArgumentError, match="sample must be an integer >= 0, not -1"):
        ol.training.Run(tmp_path / "run", sample=-1)


def test_rows_that_are_kept_are_those_of_the_first_time_and_change_no_bit(unbroken, tmp_path):
    train(tmp_path / "run", steps=7)
    before = (tmp_path / "run/sample.validation.safetensors").read_bytes()
    assert same(train(tmp_path / "run", validate=ROWS), unbroken)
    assert (tmp_path / "run/sample.validation.safetensors").read_bytes() == before


def test_a_sample_keeps_ragged_rows_with_their_splits_and_fewer_of_those_that_are_large():
    with ol.Program() as program:
        ol.layer.data("words", [], dtype="int64", ragged=1)
        ol.layer.data("scale", [], batch=None)
    feed = {"words": ol.Ragged.from_lists([[1, 2], [], [3], [4, 5]]), "scale": numpy.float32(2.0)}
    kept = safetensors.torch.load(sample_of(program, feed, 4, 2))
    assert {name: value.tolist() for name, value in kept.items()} == {"words": [1, 2, 4, 5], "words.splits": [0, 2, 4], "scale": 2.0}
    image = {"image": numpy.zeros((8, 600, 600), "float32")}
    assert safetensors.torch.load(sample_of(program, image, 8, 8))["image"].shape == (2, 600, 600)
    assert sample_of(program, {"image": numpy.zeros((1, 2000, 2000), "float32")}, 1, 8) is None
    assert sample_of(program, {}, 1, 8) is None


def test_who_asks_whether_a_run_is_running_does_not_unlock_it(tmp_path):
    seen = []
    train(tmp_path / "run", on_epoch=lambda record: seen.append(is_running(tmp_path / "run")) or locked(tmp_path / "run"))
    assert seen == [True, True, True]
    assert not is_running(tmp_path / "run")
    assert not is_running(tmp_path / "nothing")


def locked(folder: Path) -> None:
    """Another process, which need not know Oarlock, finds the folder locked."""
    code = "import fcntl, sys; fcntl.lockf(open(sys.argv[1], 'rb'), fcntl.LOCK_SH | fcntl.LOCK_NB)"
    done = subprocess.run([sys.executable, "-c", code, folder / "lock"], capture_output=True, text=True, check=False)
    assert "BlockingIOError" in done.stderr


@pytest.mark.parametrize("label", ["step", "time", "training"])
def test_a_label_that_the_log_has_for_something_else_is_refused_before_anything_is_written(label, tmp_path):
    made = small_classifier()
    with pytest.raises(ol.ArgumentError, match=f'^show: the label "{label}" is reserved in the log of a run'):
        ol.train(made.cost, ROWS, show={label: made.accuracy}, run=tmp_path / "run", progress=False)
    assert not (tmp_path / "run/run.json").exists()
    assert ol.train(made.cost, ROWS, show={label: made.accuracy}, progress=False).history[0].training[label] >= 0


FAULTS = [
    ("mkdir", 2, errno.ENOSPC),
    ("write", 4, errno.ENOSPC),
    ("open", 2, errno.EACCES),
    ("fdatasync", 4, errno.EIO),
    ("fsync", 4, errno.EIO),
    ("rename", 2, errno.EIO),
]


@pytest.fixture(scope="module")
def begun(tmp_path_factory) -> Path:
    """A run of five steps."""
    folder = tmp_path_factory.mktemp("begun") / "run"
    train(ol.training.Run(folder, save_every=5), steps=5)
    return folder


@pytest.mark.parametrize("beside", ["process", "thread"])
@pytest.mark.parametrize(("operation", "count", "fault"), FAULTS)
def test_a_disk_that_fails_leaves_the_checkpoints_before_and_the_run_goes_on(
    operation, count, fault, beside, begun, unbroken, tmp_path, monkeypatch
):
    for number in range(1, count + 1):
        folder = tmp_path / f"{number}"
        shutil.copytree(begun, folder)
        with monkeypatch.context() as patch:
            if beside == "process":
                patch.setattr(checkpoint_process, "PROGRAM", failing_disk.__file__)
                patch.setenv(*failing_disk.environment_of(checkpoint_writing, operation, number, fault))
            else:
                patch.setattr(checkpoint_process, "CAN_START", False)
                failing_disk.fail_in(checkpoint_writing, operation, number, fault, patch.setattr)
            with pytest.warns(RuntimeWarning, match=f"{os.strerror(fault)}. Training continues, and earlier checkpoints are kept"):
                result = train(ol.training.Run(folder, save_every=5), steps=5)
        assert result.steps == 10
        assert same(train(folder), unbroken)
        assert not list((folder / "checkpoints").glob(".*"))


def test_early_stopping_is_a_function_of_the_history():
    def records(*losses: float) -> list[ol.training.EpochRecord]:
        return [ol.training.EpochRecord(number, {"loss": loss}, {"acc": 1 - loss}, 10 * number) for number, loss in enumerate(losses, 1)]

    patient = ol.training.EarlyStopping("loss", patience=2)
    assert [patient.is_over(records(3.0, 2.0, 2.5, 2.0, 1.0)[:count]) for count in range(6)] == [False, False, False, False, True, False]
    assert patient.best(records(3.0, 2.0, 2.0)).epoch == 2
    upward = ol.training.EarlyStopping("validation acc", target=0.5, higher_is_better=True)
    assert [upward.is_over(records(loss)) for loss in (0.6, 0.5, 0.4, numpy.nan)] == [False, True, True, False]
    assert ol.training.EarlyStopping("loss", patience=1).is_over(records(numpy.nan))
    with pytest.raises(ol.ArgumentError, match='no metric is called "accuracy"'):
        ol.training.EarlyStopping("accuracy", patience=1).is_over(records(1.0))


def test_callbacks_hear_of_steps_and_epochs_and_may_end_the_run():
    small, steps, epochs = small_classifier(), [], []
    ol.train(small.cost, ROWS, **OPTIONS, on_step=lambda step, values: steps.append((step, sorted(values))), on_epoch=epochs.append)
    assert steps == [(number, ["loss"]) for number in range(1, 19)]
    assert [(record.epoch, record.step) for record in epochs] == [(1, 6), (2, 12), (3, 18)]
    assert ol.train(small.cost, ROWS, **OPTIONS, on_epoch=lambda record: record.epoch == 2).steps == 12


def test_a_broken_checkpoint_does_not_outlive_those_that_come_after(unbroken, tmp_path):
    train(ol.training.Run(tmp_path / "run", keep=2))
    newest = tmp_path / "run/checkpoints/step-000000018/model.safetensors"
    newest.write_bytes(newest.read_bytes()[:-9])
    train(ol.training.Run(tmp_path / "run", save_every=1, keep=1), steps=2)
    assert list(checkpoint.find_checkpoints(tmp_path / "run/checkpoints")) == [14]
    assert same(train(tmp_path / "run"), unbroken)


def test_a_run_that_a_function_ended_stays_so(tmp_path):
    for _ in range(3):
        assert train(tmp_path / "run", on_epoch=lambda record: record.epoch == 2).steps == 12


def test_a_run_on_other_data_is_refused(tmp_path):
    small = small_classifier()
    ol.train(small.cost, ROWS, **OPTIONS, run=tmp_path / "small", steps=2)
    with pytest.raises(ol.ArgumentError, match="has 6 batches per epoch, but the data have 3"):
        ol.train(small.cost, small_rows(10), **OPTIONS, run=tmp_path / "small")


def test_sums_of_an_epoch_outlive_a_run_of_no_steps(unbroken):
    half = train(Path("unused"), run=None, steps=8)
    none = ol.train(half, ROWS, steps=0, validate=ROWS, progress=False)
    assert ol.train(none, ROWS, validate=ROWS, progress=False).history == unbroken.history[1:]


def test_what_is_not_measured_stops_no_run(tmp_path):
    with pytest.raises(ol.ArgumentError, match='no metric is called "validation loss"'):
        train(tmp_path / "run", validate=None, early_stopping=ol.training.EarlyStopping(patience=2))
    assert not checkpoint.find_checkpoints(tmp_path / "run/checkpoints")


def test_a_run_that_is_refused_leaves_no_folder_and_one_that_stood_there_stays(tmp_path, monkeypatch):
    model = small_classifier()
    (tmp_path / "mine").mkdir()
    for folder in (tmp_path / "runs" / "one", tmp_path / "mine"):
        with pytest.raises(ol.FeedError):
            ol.train(model.cost, {"x": small_rows(10)["x"]}, run=folder, progress=False)
    assert [path.name for path in tmp_path.rglob("*")] == ["mine"]


def test_a_checkpoint_holds_its_own_step_however_late_it_is_written(tmp_path, monkeypatch):
    train(tmp_path / "stopped", steps=4)
    begun, goes_on, real = threading.Event(), threading.Event(), checkpoint_process.answer_request

    def late(*arguments):
        begun.set()
        assert goes_on.wait(20)
        return real(*arguments)

    def on_step(step, _):
        if step == 6:  # the end of an epoch, which is saved too, and waits for the one before
            assert begun.is_set()
            goes_on.set()

    monkeypatch.setattr(checkpoint_process, "CAN_START", False)
    monkeypatch.setattr(checkpoint_process, "answer_request", late)
    train(ol.training.Run(tmp_path / "run", save_every=4, keep=9), on_step=on_step, steps=9)
    found = [checkpoint.read_checkpoint(tmp_path / name / "checkpoints/step-000000004") for name in ("stopped", "run")]
    assert found[0] == found[1]
    values = [ol.load_model(tmp_path / name / "checkpoints/step-000000004/model.safetensors") for name in ("stopped", "run")]
    names = [var.name for var in values[1].program.persistables()]
    assert "fc_0.w" in names
    assert all(torch.equal(values[0].scope[name], values[1].scope[name]) for name in names)


def test_a_checkpoint_leaves_the_values_of_the_run_where_they_are(tmp_path):
    places, scope = [], ol.Scope()
    train(ol.training.Run(tmp_path / "run", save_every=1), scope=scope, on_step=lambda *_: places.append(scope.find_var("fc_0.w").held))
    assert len({place.data_ptr() for place in places[2:]}) == 1  # each step has written over it: nobody else holds it


def test_the_log_spells_labels_and_numbers_as_json_does(tmp_path):
    log = MetricLogWriter(tmp_path / "log")
    log.begin(0)
    log.step(3, 1, 32, {'a "loss", %d': 1e-7, "ö": float("nan")})
    log.step(4, 1, 32, {'a "loss", %d': 1e-7, "ö": 2.0})
    log.flush()
    log.step(5, 1, 32, {'a "loss", %d': 3.0, "ö": 0.1})
    log.step(6, 2, 31, {'a "loss", %d': -0.0, "ö": 1e300})
    log.step(7, 2, 31, {"other": 1.0})
    log.step(8, 2, 31, {})
    log.close()
    first, *lines = [json.loads(line) for line in (tmp_path / "log").read_text().splitlines()]
    assert numpy.isnan(first["ö"])
    assert [line.pop("time") > 1e9 for line in lines] == [True] * 5
    assert lines == [
        {"step": 4, "epoch": 1, "rows": 32, 'a "loss", %d': 1e-7, "ö": 2.0},
        {"step": 5, "epoch": 1, "rows": 32, 'a "loss", %d': 3.0, "ö": 0.1},
        {"step": 6, "epoch": 2, "rows": 31, 'a "loss", %d': -0.0, "ö": 1e300},
        {"step": 7, "epoch": 2, "rows": 31, "other": 1.0},
        {"step": 8, "epoch": 2, "rows": 31},
    ]
