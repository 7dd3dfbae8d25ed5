"""Loggers: what they are told, by which names and steps, once each after any end; those of others, where their packages are there."""

import json
import os
import sys
from collections import Counter
from pathlib import Path

import pytest
from classifiers import small_classifier, small_rows

import oarlock as ol
from oarlock.training import loggers
from oarlock.training.invocation import Invocation

ROWS, HELD_OUT = small_rows(23), small_rows(9)
OPTIONS = {"epochs": 3, "batch_size": 4, "validate": HELD_OUT, "progress": False}
STEPS = 18


def train(**options) -> ol.TrainingResult:
    """18 steps, 6 in an epoch."""
    return ol.train(small_classifier().cost, ROWS, **(OPTIONS | options))


class Recording:
    """A logger of a user's."""

    def __init__(self) -> None:
        self.calls: list[tuple] = []

    def begin(self, settings, step) -> None:
        self.calls.append(("begin", settings, step))

    def log(self, step, values) -> None:
        self.calls.append(("log", step, values))

    def end(self, summary) -> None:
        self.calls.append(("end", summary))

    def logged(self, label: str) -> list[tuple[int, float]]:
        return [(call[1], call[2][label]) for call in self.calls if call[0] == "log" and label in call[2]]


def test_a_logger_hears_of_settings_steps_epochs_validation_and_the_end():
    logger, losses = Recording(), []
    result = train(loggers=[logger], on_step=lambda step, values: losses.append((step, values["loss"])))
    assert [call[0] for call in logger.calls] == ["begin", *["log"] * (STEPS + 3 * 2), "end"]
    assert logger.logged("train/loss") == losses
    assert logger.logged("epoch/loss") == [(record.step, record.training["loss"]) for record in result.history]
    assert logger.logged("epoch") == [(6, 1.0), (12, 2.0), (18, 3.0)]
    assert logger.logged("validation/loss") == [(record.step, record.validation["loss"]) for record in result.history]
    _, settings, step = logger.calls[0]
    assert (step, settings["program"], settings["training"]["batch_size"]) == (0, ol.content_hash(result.program), 4)
    last = result.history[-1]
    assert logger.calls[-1][1] == {
        "status": "finished", "steps": 18, "epochs": 3, "epoch/loss": last.training["loss"], "validation/loss": last.validation["loss"],
    }  # fmt: skip


def test_validation_by_steps_is_told_at_its_steps():
    logger = Recording()
    result = train(loggers=[logger], validate_every=4)
    assert logger.logged("validation/loss") == [(record.step, record.validation["loss"]) for record in result.validations]


@pytest.mark.parametrize(("raised", "status"), [(KeyboardInterrupt, "interrupted"), (ZeroDivisionError, "failed")])
def test_the_end_says_how_the_run_ended(raised, status):
    logger = Recording()

    def stop(step: int, values: dict[str, float]) -> None:
        if step == 8:
            raise raised

    with pytest.raises(raised):
        train(loggers=[logger], on_step=stop)
    summary = logger.calls[-1][1]
    assert (summary["status"], summary["steps"], summary["epochs"]) == (status, 8, 1)


def test_a_run_in_a_folder_has_one_id_and_the_settings_with_which_it_began(tmp_path):
    first, second = Recording(), Recording()
    with Invocation():  # without the settings that a script of another test has declared
        train(loggers=[first], run=tmp_path / "run", steps=7)
        train(loggers=[second], run=tmp_path / "run")
    (_, begun, at), (_, again, later) = first.calls[0], second.calls[0]
    assert (begun, at, later) == (again, 0, 7)
    about = json.loads((tmp_path / "run/run.json").read_text())
    assert begun == {**about, "folder": str((tmp_path / "run").resolve()), "settings": {}}
    assert [step for step, _ in first.logged("train/loss") + second.logged("train/loss")] == list(range(1, STEPS + 1))
    other = Recording()
    train(loggers=[other])
    assert other.calls[0][1]["id"] != about["id"]


class Failing(Recording):
    def __init__(self, where: str) -> None:
        super().__init__()
        self.where = where

    def _fail(self, where: str) -> None:
        self.calls.append((where,))
        if where == self.where:
            raise ConnectionError("the server is gone\nfor now")

    def begin(self, settings, step) -> None:
        self._fail("begin")

    def log(self, step, values) -> None:
        self._fail("log")

    def flush(self) -> None:
        self._fail("flush")

    def end(self, summary) -> None:
        self._fail("end")


@pytest.mark.parametrize("where", ["begin", "log", "flush", "end"])
def test_a_logger_that_raises_is_reported_once_and_the_others_go_on(where, tmp_path):
    failing, other = Failing(where), Recording()
    with pytest.warns(RuntimeWarning) as caught:
        result = train(loggers=[failing, other], run=tmp_path / "run")
    assert [str(warning.message) for warning in caught] == [
        "the logger Failing raised ConnectionError: the server is gone. It is not called again; training continues"
    ]
    assert caught[0].filename == __file__
    assert result.steps == STEPS
    assert [call[0] for call in failing.calls].count(where) == 1
    assert failing.calls[-1] == (where,)
    assert len(other.logged("train/loss")) == STEPS


def test_a_logger_may_gather_what_it_is_told_until_a_checkpoint(tmp_path):
    class Gathering(Recording):
        def flush(self) -> None:
            self.calls.append(("flush",))

    logger = Gathering()
    train(loggers=[logger], run=ol.training.Run(tmp_path / "run", save_every=4), epochs=1)
    heard = [call[1] if call[0] == "log" else call[0] for call in logger.calls]
    assert heard == ["begin", 1, 2, 3, 4, "flush", 5, 6, 6, 6, "flush", "flush", "end"]


@pytest.mark.parametrize(
    ("given", "lines"),
    [
        (
            "tensorboard:runs",
            [
                "loggers must be a list, not str 'tensorboard:runs'",
                '  Try: loggers=["tensorboard:runs/tensorboard"]    (oarlock explain ArgumentError)',
            ],
        ),
        (
            ["comet:runs"],
            [
                '"comet:runs" is not a known logger',
                "  a logger is tensorboard and a folder: tensorboard:runs/tensorboard; mlflow and an address: mlflow:sqlite:///mlflow.db; "
                "wandb and a project: wandb:digits; trackio and a project: trackio:digits",
            ],
        ),
        (
            [print],
            [
                "a logger needs the methods begin, log and end; builtin_function_or_method <built-in function print> does not have them",
                '  Try: use ol.training.loggers.TensorBoard("runs/tensorboard"), or implement ol.training.loggers.Logger    '
                "(oarlock explain ArgumentError)",
            ],
        ),
    ],
)
def test_what_is_no_logger_is_refused_before_anything_is_written(given, lines, tmp_path):
    with pytest.raises(ol.ArgumentError) as raised:
        train(loggers=given, run=tmp_path / "run")
    assert [line for line in str(raised.value).splitlines() if "test_loggers.py" not in line] == lines
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("name", ["tensorboard", "mlflow", "wandb", "trackio"])
def test_a_package_that_is_not_installed_is_refused_before_training(name, monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(ol.ArgumentError) as raised:
        train(loggers=[f"{name}:there"], run=tmp_path / "run")
    assert [line for line in str(raised.value).splitlines() if "test_loggers.py" not in line] == [
        f"the logger needs {name}, which is not installed",
        f'  Try: pip install "oarlock[{name}]"    (oarlock explain ArgumentError)',
    ]
    assert not (tmp_path / "run").exists()


# TensorBoard


def read_events(folder: Path) -> dict[str, list[tuple[int, float]]]:
    accumulator = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    events = accumulator.EventAccumulator(str(folder), size_guidance={"scalars": 0, "tensors": 0})
    events.Reload()
    assert events.FirstEventTimestamp() > 0
    return {tag: [(event.step, event.value) for event in events.Scalars(tag)] for tag in events.Tags()["scalars"]} | {
        tag: [(event.step, event.tensor_proto.string_val[0].decode()) for event in events.Tensors(tag)] for tag in events.Tags()["tensors"]
    }


def test_event_files_of_tensorboard_hold_each_measurement_the_settings_and_the_summary(tmp_path):
    pytest.importorskip("tensorboard")
    recording = Recording()
    train(loggers=[loggers.TensorBoard(tmp_path / "events", settings={"note": "a | b"}), recording])
    found = read_events(tmp_path / "events")
    for label in ("train/loss", "epoch/loss", "epoch", "validation/loss"):
        assert found[label] == [(step, pytest.approx(value)) for step, value in recording.logged(label)]
    ((step, settings),) = found["settings"]
    assert step == 0
    assert "| training.batch_size | 4 |" in settings.splitlines()
    assert "| note | a \\| b |" in settings.splitlines()
    assert found["summary"][0][0] == STEPS
    assert "| status | finished |" in found["summary"][0][1].splitlines()


def killed(folder: Path, logger: str, *, at: int) -> None:
    """Train in a child that ends without a word after a step; its last checkpoint is some steps before."""
    child = os.fork()
    if not child:
        try:
            train(run=ol.training.Run(folder, save_every=3), loggers=[logger], on_step=lambda step, _: os._exit(7) if step == at else None)
        finally:
            os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7


@pytest.mark.skipif(not hasattr(os, "fork"), reason="children are forked")
@pytest.mark.parametrize("ends", [(8,), (2, 5, 13)])
def test_after_a_kill_tensorboard_has_each_step_once(ends, tmp_path):
    pytest.importorskip("tensorboard")
    logger = f"tensorboard:{tmp_path / 'events'}"
    for end in ends:
        killed(tmp_path / "run", logger, at=end)
    recording = Recording()
    train(run=ol.training.Run(tmp_path / "run", save_every=3), loggers=[logger, recording])
    assert recording.calls[0][2] < ends[-1]
    found = read_events(tmp_path / "events")
    assert [step for step, _ in found["train/loss"]] == list(range(1, STEPS + 1))
    assert [step for step, _ in found["validation/loss"]] == [6, 12, 18]
    assert [step for step, _ in found["settings"]] == [0]
    lines = [json.loads(line) for line in (tmp_path / "run/metrics.jsonl").read_text().splitlines()]
    assert found["train/loss"] == [(line["step"], pytest.approx(line["loss"])) for line in lines if "loss" in line]


def test_another_run_in_the_same_folder_leaves_the_events_that_are_there(tmp_path):
    pytest.importorskip("tensorboard")
    for _ in range(2):
        train(loggers=[loggers.TensorBoard(tmp_path)])
    assert Counter(step for step, _ in read_events(tmp_path)["train/loss"]) == dict.fromkeys(range(1, STEPS + 1), 2)


# The others, whose packages are large: they run where they are installed


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # what it imports warns of itself
def test_mlflow_has_each_step_once_after_a_run_goes_on(tmp_path):
    mlflow = pytest.importorskip("mlflow")
    pytest.importorskip("sqlalchemy")
    address = f"sqlite:///{tmp_path / 'mlflow.db'}"
    options = {"run": ol.training.Run(tmp_path / "run", save_every=3), "loggers": [loggers.MLflow(address, settings={"note": "one"})]}
    with pytest.raises(ZeroDivisionError):
        train(**options, on_step=lambda step, _: 1 // (8 - step))
    for path in (tmp_path / "run/checkpoints").glob("step-00000000[78]"):
        path.rename(path.with_name(".gone"))  # as if the process had been killed
    train(**options)
    client = mlflow.MlflowClient(tracking_uri=address, registry_uri=address)
    (run,) = client.search_runs([client.get_experiment_by_name("oarlock").experiment_id])
    assert [metric.step for metric in client.get_metric_history(run.info.run_id, "train/loss")] == list(range(1, STEPS + 1))
    assert [metric.step for metric in client.get_metric_history(run.info.run_id, "validation/loss")] == [6, 12, 18]
    assert (run.data.params["training.batch_size"], run.data.params["note"], run.info.status) == ("4", "one", "FINISHED")
    assert (run.data.tags["summary.steps"], run.data.tags["summary.status"]) == ("18", "finished")


@pytest.mark.slow
def test_trackio_has_each_step_once_after_a_run_goes_on(tmp_path, monkeypatch):
    monkeypatch.setenv("TRACKIO_DIR", str(tmp_path / "trackio"))
    pytest.importorskip("trackio")
    storage = pytest.importorskip("trackio.sqlite_storage")
    options = {"run": ol.training.Run(tmp_path / "run", save_every=3), "loggers": [loggers.Trackio("test-of-oarlock")]}
    with pytest.raises(ZeroDivisionError):
        train(**options, on_step=lambda step, _: 1 // (8 - step))
    for path in (tmp_path / "run/checkpoints").glob("step-00000000[78]"):
        path.rename(path.with_name(".gone"))
    train(**options)
    rows = storage.SQLiteStorage.get_logs("test-of-oarlock", json.loads((tmp_path / "run/run.json").read_text())["id"])
    assert [row["step"] for row in rows if "train/loss" in row] == list(range(1, STEPS + 1))
    assert [row["step"] for row in rows if "validation/loss" in row] == [6, 12, 18]


@pytest.mark.slow
def test_wandb_logs_offline(tmp_path, monkeypatch):
    monkeypatch.setenv("WANDB_SILENT", "true")
    wandb = pytest.importorskip("wandb")
    told = []
    real = wandb.init

    def init(**given):
        run = real(**given)
        log = run.log
        monkeypatch.setattr(run, "log", lambda values, step: (told.append((step, values)), log(values, step=step)))
        return run

    monkeypatch.setattr(wandb, "init", init)
    logger = loggers.WandB("digits", mode="offline", dir=str(tmp_path), settings={"note": "one"})
    train(loggers=[logger])
    assert [step for step, values in told if "train/loss" in values] == list(range(1, STEPS + 1))
    (file,) = tmp_path.glob("wandb/offline-run-*/run-*.wandb")
    written = file.read_bytes()
    assert all(text in written for text in (b"train/loss", b"validation/loss", b"batch_size", b"note"))
