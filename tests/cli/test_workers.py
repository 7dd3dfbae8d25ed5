"""`oarlock train` by several workers: how torchrun is started, and what each of them gets."""

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy
import pytest
import torch
from command_workers import run_by_workers
from torch.distributed import run as torchrun
from torch.distributed.elastic.multiprocessing.errors import ChildFailedError, ProcessFailure

import oarlock as ol
from oarlock.cli.workers import start_workers
from oarlock.training.run_folder import load_run
from oarlock.training.sent_model import REFUSED


@pytest.fixture
def started(monkeypatch):
    """The words of each start of torchrun, which `ends` as it is told to."""
    started, ends = [], []

    def main(words):
        started.append(words)
        if ends:
            ends.pop(0)()

    monkeypatch.setattr(torchrun, "main", main)
    monkeypatch.setenv(REFUSED, "")
    monkeypatch.delenv("RANK", raising=False)
    return started, ends


def fail() -> None:
    raise ChildFailedError("oarlock", {0: ProcessFailure(local_rank=0, pid=1, exitcode=1, error_file="")})


def refuse() -> None:
    Path(os.environ[REFUSED]).touch()
    fail()


def test_torchrun_leaves_every_word_of_the_command_to_it(monkeypatch, started):
    """Its parser takes `--run` and `--log` for what its own options might begin with, unless it is told where they end."""
    words = ["train", "model.py", "--workers", "2", "--run", "runs/one", "--log", "csv", "--", "--own", "3"]
    monkeypatch.setattr(sys, "argv", ["oarlock", *words])
    with pytest.raises(SystemExit) as ended:
        start_workers(2)
    assert ended.value.code == 0
    ((given,), _) = started
    found = torchrun.parse_args(given)
    assert (found.module, found.training_script, found.training_script_args) == (True, "oarlock", words)
    assert (found.nproc_per_node, found.standalone, found.max_restarts) == ("2", True, 0)


def test_workers_that_end_are_started_again_a_few_times(started):
    starts, ends = started
    ends += [fail, fail]
    with pytest.raises(SystemExit) as ended:
        start_workers(2)
    assert (ended.value.code, len(starts)) == (0, 3)
    ends += [fail] * 9
    with pytest.raises(ChildFailedError):
        start_workers(2)
    assert len(starts) == 3 + 4


def test_workers_of_what_the_first_one_refuses_are_not_started_again(started):
    starts, ends = started
    ends += [fail, refuse]
    with pytest.raises(SystemExit) as ended:
        start_workers(2)
    assert (ended.value.code, len(starts)) == (1, 2)


@pytest.mark.parametrize(("count", "environment"), [(1, {}), (2, {"RANK": "1"})])
def test_one_worker_and_a_worker_that_was_started_start_nobody(monkeypatch, started, count, environment):
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    start_workers(count)
    assert started[0] == []


# What each worker gets

MODEL = """
import os
import oarlock as ol

with open("ran.log", "a") as log:
    log.write(os.environ.get("RANK", "alone"))
settings = ol.settings(SETTINGS)
with ol.Program(seed=3):
    x, kind = ol.layer.data("x", [2]), ol.layer.data("kind", [], dtype="int64")
    logits = ol.layer.fc(ol.layer.dropout(ol.layer.fc(x, settings["hidden"], act="tanh"), 0.1), 2)
    predict, cost = ol.layer.softmax(logits), ol.layer.cross_entropy(logits, kind)
    show = {"accuracy": ol.metric.accuracy(logits, kind)}
optimizer = ol.optimizer.Adam(0.05)
"""
TRAINS = """
data = ol.data.read("table.csv", columns={"x": ["width", "height"], "kind": "kind"})
ol.train(cost, data, optimizer=optimizer, show=show, epochs=2, run="runs/one")
"""
DATA = ("--data", "table.csv", "--columns", "x=width,height", "--columns", "kind=kind")


@pytest.fixture
def folders(tmp_path: Path) -> tuple[Path, Path]:
    """The working folders of two workers, as on two machines: a table in both, and a script in that of the first alone."""
    rows = numpy.random.default_rng(0).normal(size=(100, 2))
    table = "width,height,kind\n" + "".join(f"{width:.6f},{height:.6f},{int(width > height)}\n" for width, height in rows)
    folders = tmp_path / "first", tmp_path / "second"
    for folder in folders:
        folder.mkdir()
        (folder / "table.csv").write_text(table)
    (folders[0] / "model.py").write_text(MODEL.replace("SETTINGS", '{"hidden": 4}'))
    return folders


def train(folders: tuple[Path, Path], *words: str) -> tuple[list[int | None], list[str]]:
    """Train by a worker in each folder; return how each ended, and what it printed."""
    return run_by_workers(folders, "train", *words, "--plain")


def state_of(run: Path) -> dict[str, bytes]:
    scope = load_run(run).scope
    return {name: numpy.asarray(scope[name]).tobytes() for name in scope}


def test_the_first_worker_alone_runs_the_script_and_saves(folders):
    """And they come to the bits that they come to where each runs the script, which trains by itself; also in a folder, going on."""
    first, second = folders
    how = *DATA, "--set", "hidden=6", "--save-every", "2", "--save", "kind.safetensors"
    runs = "--run", str(first / "runs" / "sent")  # of both, as where machines share a disk
    status, printed = train(folders, "model.py", *how, *runs, "--steps", "3")
    assert status == [0, 0], printed
    assert (first / "ran.log").read_text() == "0"
    assert sorted(path.name for path in second.iterdir()) == ["table.csv"]
    assert "saved kind.safetensors" in printed[0]
    assert printed[1] == ""
    status, printed = train(folders, "model.py", *how, *runs, "--epochs", "2")
    assert status == [0, 0], printed
    assert load_run(first / "runs" / "sent").prediction == ol.load_model(first / "kind.safetensors").program.to_bytes()
    for folder in folders:
        (folder / "trains.py").write_text(MODEL.replace("SETTINGS", '{"hidden": 6}') + TRAINS.replace("runs/one", str(first / "runs/own")))
    status, printed = train(folders, "trains.py")
    assert status == [0, 0], printed
    assert [(folder / "ran.log").read_text() for folder in folders] == ["000", "1"]
    assert state_of(first / "runs" / "sent") == state_of(first / "runs" / "own")
    assert ol.load_model(first / "kind.safetensors").program.main.var("fc_0.w").shape == (2, 6)


def test_the_first_worker_alone_reads_a_saved_program_and_saves_it(folders, monkeypatch):
    first, second = folders
    with ol.Program(seed=3):
        x, kind = ol.layer.data("x", [2]), ol.layer.data("kind", [], dtype="int64")
        cost = ol.layer.cross_entropy(ol.layer.fc(x, 2), kind)
    monkeypatch.chdir(first)
    data = ol.data.read("table.csv", columns={"x": ["width", "height"], "kind": "kind"})
    ol.save_model(ol.train(cost, data, epochs=2, steps=3, progress=False), "run.safetensors")
    ol.save_model(ol.train(ol.load_model("run.safetensors"), data, progress=False), "alone.safetensors")
    status, printed = train(folders, "run.safetensors", *DATA)
    assert status == [0, 0], printed
    assert "8 steps in total; saved run.safetensors" in printed[0]
    assert printed[1] == ""
    assert sorted(path.name for path in second.iterdir()) == ["table.csv"]
    trained, alone = ol.load_model("run.safetensors").scope, ol.load_model("alone.safetensors").scope
    torch.testing.assert_close(trained["fc_0.w"], alone["fc_0.w"])


def test_where_the_first_worker_has_no_file_all_end_and_it_alone_says_so(folders):
    status, printed = train(folders, "run.safetensors", *DATA)
    assert status == [1, 1]
    assert printed == ['MissingFileError: there is no file "run.safetensors"\n', ""]


def test_operators_that_the_script_declares_are_refused_and_imported_ones_are_known_to_all(folders):
    declares = '@ol.operator("x: float[*s] -> y: float[*s]")\ndef twice(x):\n    return x + x\n'
    for folder in folders:
        (folder / "my_operators.py").write_text(f"import oarlock as ol\n{declares}")
    text = (folders[0] / "model.py").read_text().replace("ol.layer.fc(x,", "ol.layer.fc(twice(x),")
    (folders[0] / "model.py").write_text(text.replace("settings =", f"{declares}\nsettings ="))
    status, printed = train(folders, "model.py", *DATA)
    assert status == [1, 1]
    assert 'the script declares the operator "twice", which other workers do not know' in printed[0]
    assert "--import my_operators.py" in printed[0]
    assert printed[1] == ""
    (folders[0] / "model.py").write_text(f"from my_operators import twice\n{text}")
    status, printed = train(folders, "model.py", *DATA, "--import", "my_operators.py")
    assert status == [0, 0], printed
    assert (folders[0] / "ran.log").read_text() == "00"


def test_a_script_with_data_as_a_setting_of_its_own_is_run_by_every_worker(folders):
    for folder in folders:
        script = MODEL.replace("SETTINGS", '{"hidden": 4, "data": ""}') + TRAINS.replace("runs/one", str(folders[0] / "one"))
        (folder / "trains.py").write_text(script.replace('"table.csv"', 'settings["data"]'))
    status, printed = train(folders, "trains.py", "--data", "table.csv")
    assert status == [0, 0], printed
    assert [(folder / "ran.log").read_text() for folder in folders] == ["0", "1"]


def test_a_script_that_fails_ends_all_workers_once(folders):
    folder = folders[0]
    with open(folder / "model.py", "a") as script:
        script.write("raise ValueError('of the script')\n")
    environment = os.environ | {"PYTHONPATH": str(Path(ol.__file__).parents[1]), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "oarlock", "train", "--workers", "2", "model.py", *DATA]
    ended = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=120)
    assert ended.returncode == 1
    assert len(re.findall("ValueError: of the script", ended.stderr)) == 1, ended.stderr
    assert "WorkerError" not in ended.stderr
    assert "ChildFailedError" not in ended.stderr
    assert (folder / "ran.log").read_text() == "0"
