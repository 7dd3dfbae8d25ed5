"""Scripts under `oarlock train`: their settings, the models that they make, where their runs are kept, and how these go on."""

import json
import os
import re
import runpy
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import numpy
import pytest
import torch
from processes import INSTALLED, run_module, run_oarlock

import oarlock as ol
from oarlock.training.run_folder import load_run

MODEL = """
import oarlock as ol

settings = ol.settings({"hidden": 4, "rate": 0.1})
with ol.Program(seed=3):
    x = ol.layer.data("x", [2])
    kind = ol.layer.data("kind", [], dtype="int64")
    logits = ol.layer.fc(ol.layer.dropout(ol.layer.fc(x, settings["hidden"], act="tanh"), settings["rate"]), 2)
    predict = ol.layer.softmax(logits)
    cost = ol.layer.cross_entropy(logits, kind)
    show = {"accuracy": ol.metric.accuracy(logits, kind)}
"""

TRAINS = """
import sys
import oarlock as ol

settings = ol.settings({"hidden": 4, "train": {"epochs": 3, "lr": 0.1}})
with ol.Program(seed=3):
    x = ol.layer.data("x", [2])
    kind = ol.layer.data("kind", [], dtype="int64")
    cost = ol.layer.cross_entropy(ol.layer.fc(ol.layer.fc(x, settings["hidden"], act="tanh"), 2), kind)
data = ol.data.read("table.csv", columns={"x": ["width", "height"], "kind": "kind"})
stop = (lambda step, values: 1 / 0) if "fail" in sys.argv else None
result = ol.train(cost, data, optimizer=ol.optimizer.SGD(settings["train"]["lr"]), epochs=settings["train"]["epochs"], on_step=stop)
"""

DATA = ("--data", "table.csv:train", "--validate", "table.csv:test", "--columns", "x=width,height", "--columns", "kind=kind")


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working folder: a table of 100 rows, a script that makes a model, and one that trains by itself."""
    monkeypatch.chdir(tmp_path)
    random = numpy.random.default_rng(0)
    lines = [f"{width:.6f},{height:.6f},{int(width > height)}" for width, height in random.normal(size=(100, 2))]
    (tmp_path / "table.csv").write_text("width,height,kind\n" + "\n".join(lines) + "\n")
    (tmp_path / "model.py").write_text(textwrap.dedent(MODEL))
    (tmp_path / "trains.py").write_text(textwrap.dedent(TRAINS))
    return tmp_path


def values_in(run: Path) -> dict[str, torch.Tensor]:
    newest = max((run / "checkpoints").glob("step-*"))
    scope = ol.load_model(newest / "model.safetensors").scope
    return {name: scope[name] for name in scope}


def alike(one: Path, other: Path) -> bool:
    first, second = values_in(one), values_in(other)
    return first.keys() == second.keys() and all(torch.equal(first[name], second[name]) for name in first)


# A script that makes a model


def test_the_model_of_a_script_is_trained_evaluated_and_saved(place, prints):
    how = ("--optimizer", "adam", "--lr", 0.1, "--epochs", 3)
    printed = prints("train", "model.py", *DATA, *how, "--save", "kind.safetensors").splitlines()
    assert printed[0] == "run runs/model-1"
    assert [line[:9] for line in printed[1:4]] == ["epoch 1/3", "epoch 2/3", "epoch 3/3"]
    assert printed[4:] == [
        "saved kind.safetensors for prediction",
        "Next: oarlock evaluate runs/model-1, oarlock report runs/model-1, oarlock infer runs/model-1 --data DATA; "
        "oarlock resume runs/model-1 --epochs N trains up to N epochs in total",
    ]
    number = r"(\d+\.\d+)"
    found = re.search(rf"  accuracy {number} %  validation loss {number}  validation accuracy {number} %  ", printed[3])
    assert found is not None
    assert prints("evaluate", "runs/model-1") == f"table.csv:test  loss {found[2]}  accuracy {found[3]} %\n"
    assert prints("evaluate", "runs/model-1", "--data", "table.csv").startswith("table.csv  loss ")
    table = ol.data.read("table.csv", columns={"x": ["width", "height"]})
    assert ol.infer(ol.load_model("kind.safetensors"), {"x": table.rows.whole()["x"].astype("float32")}).shape == (100, 2)
    assert prints("infer", "kind.safetensors", "--data", "table.csv", "--columns", "x=width,height") == "predicted float32[100, 2]\n"


def test_a_saved_model_and_a_run_find_their_columns_by_name(place, prints, refuses):
    lines = [line.split(",") for line in Path("table.csv").read_text().splitlines()]
    Path("turned.csv").write_text("".join(",".join((kind, height, width)) + "\n" for width, height, kind in lines))
    Path("narrow.csv").write_text("".join(",".join((kind, height)) + "\n" for _, height, kind in lines))
    named = ("--columns", "kind=kind", "--columns", "x=*")
    prints("train", "model.py", "--data", "table.csv", *named, "--epochs", 2, "--save", "kind.safetensors")
    for number, (table, columns) in enumerate([("table.csv", ()), ("turned.csv", ()), ("turned.csv", named)]):
        prints("infer", "kind.safetensors", "--data", table, *columns, "--output", f"{number}.csv")
    assert Path("0.csv").read_text() == Path("1.csv").read_text() == Path("2.csv").read_text()
    assert 'the data set has no column "width"' in refuses("infer", "kind.safetensors", "--data", "narrow.csv")
    here, there = (prints("evaluate", "runs/model-1", "--data", table).partition("  ")[2] for table in ("table.csv", "turned.csv"))
    assert here == there
    prints("prune", "kind.safetensors", "predict", "-o", "pruned.safetensors")
    prints("infer", "pruned.safetensors", "--data", "turned.csv", "--output", "pruned.csv")
    assert Path("pruned.csv").read_text() == Path("0.csv").read_text()


def test_parts_of_a_table_have_each_row_once(place):
    part = {name: ol.datasets.load(f"table.csv:{name}", seed=3)["width"] for name in ("train", "test", "all")}
    assert [len(part[name]) for name in ("train", "test")] == [80, 20]
    assert sorted([*part["train"], *part["test"]]) == sorted(part["all"])
    assert sorted(ol.datasets.load("table.csv:test", seed=4)["width"]) != sorted(part["test"])


def test_an_error_names_the_row_of_the_file_and_not_that_of_its_part(place, refuses):
    lines = (place / "table.csv").read_text().splitlines()
    lines[98] = lines[98].rpartition(",")[0] + ",0.5"
    (place / "table.csv").write_text("\n".join(lines))
    part = next(name for name in ("train", "test") if 0.5 in ol.datasets.load(f"table.csv:{name}", seed=3)["kind"])
    said = refuses("train", "model.py", "--data", f"table.csv:{part}", "--columns", "x=width,height", "--columns", "kind=kind")
    assert "row 97 has [0.5]" in said


def test_each_run_has_a_folder_of_its_own_and_one_that_is_named_goes_on(place, prints):
    for name in ("model-1", "model-2"):
        assert prints("train", "model.py", *DATA).startswith(f"run runs/{name}\n")
    assert "epoch 2/2" in prints("train", "model.py", *DATA, "--run", "runs/model-2", "--epochs", 2)
    assert len(list(Path("runs").iterdir())) == 2


def test_settings_and_options_come_from_toml_and_the_command_line(place, prints):
    Path("train.toml").write_text(
        'hidden = 3\n[train]\ndata = "table.csv:train"\ncolumns = ["x=width,height", "kind=kind"]\nbatch_size = 16\nepochs = 4\nseed = 9\n'
    )
    prints("train", "model.py", "--config", "train.toml", "--set", "train.lr=3e-4", "--set", "rate=0.5", "--epochs", 2, "--run", "runs/one")
    assert Path("runs/one/config.toml").read_text() == (
        "hidden = 3\nrate = 0.5\n\n"
        '[train]\ndata = "table.csv:train"\ncolumns = ["x=width,height", "kind=kind"]\nepochs = 2\nbatch_size = 16\nlr = 0.0003\nseed = 9\n'
    )
    about = json.loads(Path("runs/one/run.json").read_text())
    assert about["training"] == {"batch_size": 16, "epochs": 2, "backend": None}
    assert about["seed"] == 9
    program = Path("runs/one/program.txt").read_text()
    assert "rate=0.5" in program
    assert "parameter fc_0.w: float32[2, 3]" in program


def test_resume_goes_on_with_the_settings_in_the_folder_to_the_same_bits(place, prints):
    how = ("train", "model.py", *DATA, "--optimizer", "Adam(0.05)", "--epochs", 3)
    Path("train.toml").write_text("hidden = 3\n")
    prints(*how, "--config", "train.toml", "--run", "runs/whole")
    assert prints(*how, "--config", "train.toml", "--run", "runs/part", "--steps", 4).endswith("Next: oarlock resume runs/part\n")
    assert not alike(Path("runs/whole"), Path("runs/part"))
    Path("train.toml").write_text("hidden = 5\n")  # which the run does not have
    resumed = prints("resume", "runs/part").splitlines()
    assert resumed[1] == "run runs/part"
    assert alike(Path("runs/whole"), Path("runs/part"))
    assert "epoch 5/5" in prints("resume", "runs/part", "--epochs", 5)
    assert "epoch 5/5" in prints(*how[:-1], 5, "--set", "hidden=3", "--run", "runs/whole")
    assert alike(Path("runs/whole"), Path("runs/part"))
    assert "epochs = 5" in Path("runs/part/config.toml").read_text()
    assert prints("resume", "runs/part", "--quiet") == ""


def test_resume_refuses_fewer_epochs_than_there_are_and_changes_nothing(place, prints, refuses):
    prints("train", "model.py", *DATA, "--epochs", 3)
    before = {path: path.read_bytes() for path in Path("runs/model-1").rglob("*") if path.is_file()}
    assert refuses("resume", "runs/model-1", "--epochs", 2).splitlines()[-2:] == [
        'ArgumentError: "runs/model-1" already has 3 epochs, and --epochs is the total',
        "  Try: --epochs 5 trains 2 more    (oarlock explain ArgumentError)",
    ]
    assert {path: path.read_bytes() for path in Path("runs/model-1").rglob("*") if path.is_file()} == before


def test_the_program_of_a_run_is_shown_and_summed_up(place, prints, refuses):
    prints("train", "model.py", *DATA)
    program = load_run(Path("runs/model-1")).program
    assert prints("show", "runs/model-1") == program.to_text()
    assert prints("summary", "runs/model-1") == f"{ol.summary(program)}\n"
    Path("other").mkdir()
    assert 'MissingFileError: the folder "other" contains no run' in refuses("show", "other")


def test_an_error_of_a_script_has_the_lines_of_the_script_alone(place):
    Path("model.py").write_text(MODEL.replace("logits, kind)", "logits, knd)", 1))
    ended = run_oarlock(place, "train", "model.py", *DATA)
    assert ended.returncode == 1
    lines = ended.stderr.splitlines()
    assert lines[0] == "Traceback (most recent call last):"
    assert re.fullmatch(r'  File ".*model\.py", line \d+, in <module>', lines[1])
    assert lines[-1].startswith("NameError: name 'knd' is not defined")  # a later Python has a guess, too
    assert len(lines) <= 6


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--set", "hiden=3"], 'unknown setting "hiden" in --set hiden\n'),
        (["--set", "train.epoch=3"], 'did you mean "train.epochs"?'),
        (["--set", "train.epochs=many"], "\"train.epochs\" must be a whole number or none, not 'many'\n"),
        (["--set", "hidden=wide"], "\"hidden\" must be a whole number, such as 4, not 'wide'\n"),
        (["--optimizer", "adamm"], 'there is no optimizer "adamm"\n'),
        (["--optimizer", "adam(__import__('os'))"], "write an optimizer as adam or AdamW(1e-3, weight_decay=0.1), with plain"),
        (["--columns", "other=hight"], 'the data set has no column "hight"'),
        (["--epoch", "3"], "unknown argument '--epoch'\n  Try: did you mean --epochs?"),
        (["--batch-size", "0"], "batch_size must be an integer >= 1, not 0"),
        (["--save", "none/x.safetensors"], 'there is no folder "none"'),
        (["--config", "none.toml"], 'there is no file "none.toml"'),
        (["--plain", "--quiet"], "--plain and --quiet exclude each other"),
    ],
)
def test_what_is_wrong_is_refused_before_anything_is_trained_or_written(arguments, message, place, refuses):
    assert message in refuses("train", "model.py", *DATA, *arguments)
    assert not Path("runs").exists()


def test_a_script_without_data_or_without_a_cost_says_what_is_missing(place, refuses):
    assert refuses("train", "model.py") == (
        'ArgumentError: "model.py" does not train by itself, and no --data is given to train its model on\n'
        '  Try: --data table.csv:train --columns label=kind --columns "x=*"    (oarlock explain ArgumentError)'
    )
    script = Path("model.py").read_text()
    Path("model.py").write_text(script.replace("cost =", "loss ="))
    assert refuses("train", "model.py", *DATA) == (
        'ArgumentError: "model.py" defines no variable "cost" to minimize\n'
        "      its variables: x, kind, logits, predict, loss\n"
        "  Try: cost = ol.layer.cross_entropy(logits, label)    (oarlock explain ArgumentError)"
    )
    Path("model.py").write_text(script.replace("predict =", "told ="))
    assert 'defines no variable "predict"' in refuses("train", "model.py", *DATA, "--save", "kind.safetensors")


def test_columns_of_another_shape_are_refused_before_a_run_begins(place, refuses):
    columns = ("--columns", "x=width:kind", "--columns", "kind=kind")
    assert refuses("train", "model.py", "--data", "table.csv", *columns).startswith(
        'FeedError: "x" must have shape [n, 2], not [32, 3]\n  model.py:6      x = ol.layer.data("x", [2])\n'
    )
    numpy.savez("wide.npz", x=numpy.zeros((5, 3), "float32"), kind=numpy.zeros(5, "int64"))
    train = "ol.train(cost, dict(numpy.load('wide.npz')), run='runs/one')\n"
    Path("model.py").write_text("import numpy\n" + Path("model.py").read_text() + train)
    assert '"x" must have shape [n, 2], not [5, 3]' in refuses("train", "model.py")
    assert not Path("runs").exists()


# A script that trains by itself


def test_a_script_that_trains_by_itself_has_its_settings_and_a_folder_from_the_command(place, prints, refuses):
    printed = prints("train", "trains.py", "--set", "hidden=3", "--epochs", 2, "--run", "runs/one", "--plain").splitlines()
    assert [printed[0], printed[-1]] == [
        "run runs/one",
        "Next: oarlock evaluate runs/one, oarlock report runs/one; oarlock resume runs/one --epochs N trains up to N epochs in total",
    ]
    assert len(printed) == 4
    assert Path("runs/one/config.toml").read_text() == "hidden = 3\n\n[train]\nepochs = 2\nlr = 0.1\n"
    assert "epoch 4/4" in prints("resume", "runs/one", "--epochs", 4)
    assert "epochs = 4" in Path("runs/one/config.toml").read_text()
    assert prints("train", "trains.py", "--quiet") == ""
    said = refuses("train", "trains.py", "--data", "table.csv").replace("ArgumentError: ", "")
    assert said.startswith("--data needs a saved program, or a script that defines a model without training it; this script")
    assert "--batch-size needs a saved program" in refuses("train", "trains.py", "--batch-size", 5)
    assert 'unknown setting "hiden"' in refuses("train", "trains.py", "--set", "hiden=5")


def test_a_script_that_python_ran_goes_on_with_the_settings_that_it_had(place, prints, refuses, monkeypatch):
    text = Path("trains.py").read_text().replace("on_step=stop", 'run="runs/own", steps=2 if "short" in sys.argv else None, progress=False')
    Path("trains.py").write_text(text)
    monkeypatch.setattr(sys, "argv", ["trains.py", "short"])
    runpy.run_path("trains.py", run_name="__main__")
    assert Path("runs/own/config.toml").read_text() == "hidden = 4\n\n[train]\nepochs = 3\nlr = 0.1\n"
    Path("trains.py").write_text(text.replace('"hidden": 4', '"hidden": 6').replace('"short"', '"no more"'))
    assert refuses("resume", "runs/own", "--epochs", 5).startswith("ArgumentError: --epochs needs a run that `oarlock train` started;")
    assert prints("resume", "runs/own") == "trains.py short\n"
    assert json.loads(max(Path("runs/own/checkpoints").iterdir()).joinpath("manifest.json").read_text())["state"]["steps"] == 12
    assert "float32[2, 4]" in Path("runs/own/program.txt").read_text()


@pytest.mark.slow
def test_a_command_that_is_killed_is_resumed_to_the_bits_of_one_that_is_not(place):
    how = ["train", "model.py", *DATA, "--optimizer", "adam", "--epochs", "40", "--save-every", "7"]
    environment = {**os.environ, "PYTHONPATH": INSTALLED}
    started = subprocess.Popen([sys.executable, "-m", "oarlock", *how, "--run", "runs/killed"], env=environment, stdout=subprocess.DEVNULL)
    while not list(Path("runs/killed/checkpoints").glob("step-*")) and started.poll() is None:
        time.sleep(0.01)
    started.kill()
    assert started.wait() == -signal.SIGKILL, "it ended before"
    assert run_module(place, "resume", "runs/killed").stdout.splitlines()[-1].startswith("Next: oarlock evaluate runs/killed")
    assert run_oarlock(place, *how, "--run", "runs/whole", "--quiet").stdout == ""
    assert alike(Path("runs/whole"), Path("runs/killed"))


def test_the_note_of_an_error_and_the_last_line_after_ctrl_c_say_how_a_run_goes_on(place, oarlock, monkeypatch):
    ended = oarlock("train", "trains.py", "fail", "--run", "runs/one")
    assert ended.status == 1
    assert ended.error.splitlines()[-2:] == ["ZeroDivisionError: division by zero", "Next: oarlock resume runs/one"]
    text = Path("trains.py").read_text()
    Path("trains.py").write_text(text.replace("1 / 0", "signal.raise_signal(signal.SIGINT)").replace("import sys", "import signal, sys"))
    ended = oarlock("train", "trains.py", "fail", "--run", "runs/two")
    assert (ended.status, ended.error) == (130, "")
    assert ended.output.splitlines()[-2:] == ["interrupted after 1 steps", "Next: oarlock resume runs/two"]
    Path("trains.py").write_text(text.replace("1 / 0", "ol.fc(0.5, 10)"))
    ended = oarlock("train", "trains.py", "fail", "--run", "runs/three")
    assert ended.status == 1
    assert ended.error.splitlines()[-1] == "Next: oarlock resume runs/three"


def test_the_folder_that_a_script_names_is_not_overruled(place, refuses):
    Path("trains.py").write_text(Path("trains.py").read_text().replace("on_step=stop", 'run="runs/own"'))
    assert refuses("train", "trains.py", "--run", "runs/other") == (
        'ArgumentError: --run conflicts with the run folder that the script sets: "runs/own"'
    )
    assert not Path("runs").exists()


# evaluate


def test_evaluate_refuses_what_measures_nothing(place, prints, refuses):
    prints("train", "model.py", *DATA, "--save", "kind.safetensors", "--quiet")
    assert refuses("evaluate", "kind.safetensors", "--data", "table.csv") == (
        'ArgumentError: "kind.safetensors" has no loss or metric: it computes predict\n'
        "  Try: predict with oarlock infer; measure its run folder, or a file saved by ol.save_model([cost, accuracy], parameters, path)"
        "    (oarlock explain ArgumentError)"
    )
    model = ol.load_model(max(Path("runs/model-1/checkpoints").iterdir()) / "model.safetensors")
    ol.save_model(model.program.targets["loss"], model, "loss.safetensors")
    assert refuses("evaluate", "loss.safetensors").startswith("ArgumentError: no data to measure on\n")
    inside = "use a run inside it, such as runs/model-1 (the first of 1)"
    for verb in ("evaluate", "resume"):
        assert refuses(verb, "runs") == (
            f'MissingFileError: "runs" is not a run folder: it has no run.json\n  Try: {inside}    (oarlock explain MissingFileError)'
        )
    assert refuses("train", "runs/model-1").startswith(
        'ArgumentError: "runs/model-1" is a folder, but train needs a script or a saved program'
    )
    assert refuses("evaluate", "runs/model-1", "--batch-size", 0) == "ArgumentError: evaluate: batch_size must be an integer >= 1, not 0"
    columns = ("--columns", "x=width,height", "--columns", "kind=kind")
    told = prints("evaluate", "loss.safetensors", "--data", "table.csv:test", *columns)
    assert told == prints("evaluate", "runs/model-1").partition("  accuracy")[0].replace("loss", "predict") + "\n"


def test_settings_of_a_script_that_are_called_like_options_do_not_mislead_an_evaluation(place, prints):
    text = Path("trains.py").read_text().replace('"lr": 0.1', '"lr": 0.1, "columns": 3, "validate": [1, 2]')
    Path("trains.py").write_text(text)
    prints("train", "trains.py", "--run", "runs/one", "--quiet")
    columns = ("--columns", "x=width,height", "--columns", "kind=kind")
    assert prints("evaluate", "runs/one", "--data", "table.csv", *columns).startswith("table.csv  loss ")


# --import, --version


OPERATOR = """
import torch
from neighbour import FACTOR
from oarlock.registry import Case, operator


@operator("x: float[*b] -> y: float[*b]", cases=[Case(x=[1.0], y=[3.0])])
def threefold_of_mine(x):
    \"\"\"``y = 3 x``.\"\"\"
    return FACTOR * x
"""


@pytest.fixture
def own_model(place: Path):
    """A model that uses an operator of my_operators.py, which this process does not know any more."""
    (place / "neighbour.py").write_text("FACTOR = 3\n")
    (place / "my_operators.py").write_text(textwrap.dedent(OPERATOR))
    from oarlock.cli.options import import_operators
    from oarlock.registry import standard

    def forget() -> None:
        sys.modules.pop("my_operators", None)
        sys.modules.pop("neighbour", None)
        for kinds in (standard.operators, standard.gradient_operators):
            for name in [name for name in kinds if name.startswith("threefold_of_mine")]:
                del kinds[name]

    import_operators("my_operators.py")
    with ol.Program() as program:
        y = sys.modules["my_operators"].threefold_of_mine(ol.layer.data("x", [2]))
    ol.save_model(y, ol.init(program, ol.Scope()), place / "own.safetensors")
    forget()
    yield place / "own.safetensors"
    forget()


@pytest.mark.parametrize(
    "verb", [["check"], ["show"], ["summary"], ["hash"], ["plan"], ["infer", "--data", "table.csv", "--columns", "x=width,height"]]
)
def test_operators_of_ones_own_are_imported_for_a_verb(verb, own_model, prints, refuses):
    if verb[0] in ("check", "infer"):
        assert "UnknownOperatorError" in refuses(verb[0], own_model, *verb[1:])
    assert prints(verb[0], own_model, *verb[1:], "--import", "my_operators.py")


def test_what_is_imported_is_a_file_or_a_module_that_is_there_and_never_for_a_strangers_program(own_model, prints, refuses):
    assert "own.safetensors: a program of 1 block" in prints("check", own_model, "--import", "my_operators")
    assert refuses("check", own_model, "--import", "none.py") == 'MissingFileError: there is no file "none.py"'
    assert refuses("check", own_model, "--import", "no_such_module").startswith(
        'ArgumentError: --import: there is no module "no_such_module"'
    )
    assert refuses("check", own_model, "--untrusted", "--import", "my_operators.py") == (
        "ArgumentError: --import runs custom Python code, so it cannot be combined with --untrusted; only built-in operators are allowed"
    )
    Path("torch.py").write_text("")
    assert "has the name of an imported module" in refuses("check", own_model, "--import", "torch.py")


def test_operators_of_ones_own_have_pages(own_model, prints):
    assert prints("ops", "threefold_of_mine", "--import", "my_operators.py").startswith("threefold_of_mine(x: float[*b]) -> y: float[*b]\n")


def test_the_version_is_printed(prints):
    assert prints("--version") == f"oarlock {ol.__version__}\n"
