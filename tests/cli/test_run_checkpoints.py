"""From a run to a model: its best checkpoint, the newest, or that of a step, predicts, is measured, and is saved as a file."""

import hashlib
import json
from pathlib import Path

import numpy
import pytest
import torch

import oarlock as ol
from oarlock.cli.prediction_text import format_rows
from oarlock.io.container import write_container
from oarlock.io.listings import PREDICTION
from oarlock.report.prediction import find_compared
from oarlock.training.run_folder import load_run
from oarlock.training.run_record import RunRecord

MODEL = """
import oarlock as ol

with ol.Program(seed=3):
    x, kind = ol.layer.data("x", [2]), ol.layer.data("kind", [], dtype="int64")
    logits = ol.layer.fc(ol.layer.batch_norm(x), 2, name="logits")
    PREDICT
    cost = ol.layer.cross_entropy(logits, kind)
"""
DATA = ("--data", "table.csv:train", "--validate", "table.csv:test", "--columns", "x=width,height", "--columns", "kind=kind")
EPOCHS = 4


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working folder: tables of 50 rows and of 3, and a script, of which the cost does not compute what predicts."""
    monkeypatch.chdir(tmp_path)
    random = numpy.random.default_rng(0)
    lines = [f"{width:.6f},{height:.6f},{int(width > height)}\n" for width, height in random.normal(size=(50, 2))]
    Path("table.csv").write_text("width,height,kind\n" + "".join(lines))
    Path("few.csv").write_text("width,height\n" + "".join(line.rpartition(",")[0] + "\n" for line in lines[:3]))
    Path("model.py").write_text(MODEL.replace("PREDICT", "predict = ol.layer.softmax(logits)"))
    return tmp_path


@pytest.fixture
def run(place, prints) -> Path:
    """A run of which the second epoch is the best one: so its log says, as of one that learnt too long."""
    prints("train", "model.py", *DATA, "--epochs", EPOCHS, "--save", "last.safetensors", "--quiet")
    return make_best(Path("runs/model-1"), 2)


def make_best(run: Path, epoch: int) -> Path:
    lines = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    for line in lines:
        if line.get("epoch") == epoch and "training" in line:
            line["validation"]["loss"] = 0.001
    (run / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    best = RunRecord.read(run).best("validation loss")
    assert best is not None
    assert best.epoch == epoch
    return run


def steps(run: Path) -> list[int]:
    return [checkpoint.step for checkpoint in RunRecord.read(run).checkpoints]


def logits_of(run: Path) -> str:
    compared = find_compared(load_run(run).program)
    assert compared is not None
    return compared.predicted.name


def predicted(prints, model: object, *words: object) -> numpy.ndarray:
    prints("infer", model, "--data", "few.csv", "--output", "predicted.npy", *words)
    return numpy.load("predicted.npy")


def test_a_run_predicts_by_its_best_checkpoint_and_says_so(run, prints):
    second, newest = steps(run)[-3], steps(run)[-1]
    for words, said in [
        ((), f"step {second} of runs/model-1, the best checkpoint\n"),
        (("--checkpoint", "newest"), f"step {newest} of runs/model-1, the newest checkpoint\n"),
        (("--checkpoint", steps(run)[-2]), f"step {steps(run)[-2]} of runs/model-1\n"),
    ]:
        printed = prints("infer", "runs/model-1", "--data", "few.csv", *words)
        assert printed.startswith(said + "row  class  certainty\n  0 ")
        assert len(printed.splitlines()) == 5
    best, last = predicted(prints, "runs/model-1"), predicted(prints, "runs/model-1", "--checkpoint", "newest")
    assert not numpy.array_equal(best, last)
    assert numpy.array_equal(last, predicted(prints, "last.safetensors"))
    assert numpy.array_equal(best, predicted(prints, "runs/model-1", "--checkpoint", second))


def test_a_model_file_of_a_run_is_the_one_that_save_writes(run, prints):
    assert prints("prune", "runs/model-1", "--checkpoint", "newest", "-o", "newest.safetensors") == (
        f"saved newest.safetensors: step {steps(run)[-1]} of runs/model-1, the newest checkpoint\n"
    )
    assert Path("newest.safetensors").read_bytes() == Path("last.safetensors").read_bytes()
    prints("prune", "runs/model-1", "--output", "best.safetensors")
    assert numpy.array_equal(predicted(prints, "best.safetensors"), predicted(prints, "runs/model-1"))
    prints("prune", "runs/model-1", logits_of(run), "--checkpoint", "newest", "-o", "logits.safetensors")
    shares = torch.softmax(torch.from_numpy(predicted(prints, "logits.safetensors")), 1).numpy()
    assert numpy.allclose(shares, predicted(prints, "last.safetensors"), atol=1e-6)


def test_evaluate_measures_the_newest_checkpoint_unless_told_otherwise(run, prints):
    newest = prints("evaluate", "runs/model-1")
    assert newest.startswith("table.csv:test  loss ")
    assert prints("evaluate", "runs/model-1", "--checkpoint", "newest") == (
        f"step {steps(run)[-1]} of runs/model-1, the newest checkpoint\n" + newest
    )
    said, best = prints("evaluate", "runs/model-1", "--checkpoint", "best").splitlines()
    assert said == f"step {steps(run)[-3]} of runs/model-1, the best checkpoint"
    assert best != newest.rstrip()


def test_a_run_that_goes_on_keeps_what_predicts(run, prints):
    prints("resume", "runs/model-1", "--epochs", EPOCHS + 1, "--quiet")
    assert prints("infer", "runs/model-1", "--checkpoint", "newest", "--data", "few.csv").startswith(f"step {steps(run)[-1]} of ")
    assert numpy.array_equal(predicted(prints, "runs/model-1", "--checkpoint", "newest"), predicted(prints, "last.safetensors"))


def test_a_checkpoint_that_is_trained_on_as_a_file_keeps_what_predicts(run, prints):
    saved = max((run / "checkpoints").iterdir()) / "model.safetensors"
    prints("train", saved, *DATA, "--epochs", EPOCHS + 1, "--run", "runs/two", "--save", "two.safetensors", "--quiet")
    prints("infer", "runs/two", "--data", "few.csv")


def test_a_run_without_a_validation_and_one_without_its_best_checkpoint_predict_by_what_is_there(run, prints):
    prints("train", "model.py", *DATA[:2], *DATA[4:], "--quiet")
    newest = steps(Path("runs/model-2"))[-1]
    assert prints("infer", "runs/model-2", "--data", "few.csv").startswith(f"step {newest} of runs/model-2, the best checkpoint\n")
    make_best(run, 1)  # of which the checkpoint is gone
    newest = steps(run)[-1]
    assert prints("infer", "runs/model-1", "--data", "few.csv").startswith(f"step {newest} of runs/model-1, the newest checkpoint\n")


def test_what_a_run_does_not_have_is_refused(run, prints, refuses):
    there = ", ".join(map(str, steps(run)))
    for verb, *words in (["infer", "--data", "few.csv"], ["evaluate"], ["prune", "-o", "none.safetensors"]):
        assert refuses(verb, "runs/model-1", *words, "--checkpoint", 7777) == (
            'MissingFileError: "runs/model-1" has no checkpoint of step 7777\n'
            f"      steps with a checkpoint: {there}\n"
            "  Try: --checkpoint best, or newest    (oarlock explain MissingFileError)"
        )
        assert refuses(verb, "runs/model-1", *words, "--checkpoint", "last") == (
            "ArgumentError: --checkpoint takes best, newest or a step number, not 'last'"
        )
        assert refuses(verb, "last.safetensors", *words, "--checkpoint", "best") == (
            'ArgumentError: --checkpoint needs a run folder, but "last.safetensors" is not a folder\n'
            "  Try: oarlock runs lists run folders    (oarlock explain ArgumentError)"
        )
        assert refuses(verb, "runs", *words).startswith('MissingFileError: "runs" is not a run folder: it has no run.json\n')
    assert refuses("prune", "last.safetensors", "-o", "none.safetensors") == (
        'ArgumentError: no variable of the model file "last.safetensors" is given\n'
        "      it computes predict\n"
        "  Try: oarlock prune last.safetensors predict --output none.safetensors    (oarlock explain ArgumentError)"
    )
    newest = max((run / "checkpoints").iterdir()) / "model.safetensors"
    newest.write_bytes(newest.read_bytes()[:-1] + b"?")
    assert refuses("infer", "runs/model-1", "--data", "few.csv", "--checkpoint", steps(run)[-1]) == (
        f'FormatError: the checkpoint "{newest.parent}" is damaged: "model.safetensors" has a wrong size or checksum'
    )
    assert prints("infer", "runs/model-1", "--data", "few.csv", "--checkpoint", "newest").startswith(f"step {steps(run)[-2]} of ")
    for folder in (run / "checkpoints").iterdir():
        (folder / "manifest.json").unlink()
    assert refuses("infer", "runs/model-1", "--data", "few.csv") == (
        'MissingFileError: "runs/model-1" has no intact checkpoint\n'
        "  Try: oarlock resume runs/model-1 continues the run    (oarlock explain MissingFileError)"
    )
    assert not Path("none.safetensors").exists()


def test_a_run_that_does_not_know_what_predicts_says_how_to_get_a_model(place, prints, refuses):
    Path("model.py").write_text(MODEL.replace("PREDICT", ""))
    prints("train", "model.py", *DATA, "--quiet")
    name = logits_of(Path("runs/model-1"))
    for verb in (["infer", "runs/model-1", "--data", "few.csv"], ["prune", "runs/model-1", "-o", "predict.safetensors"]):
        assert refuses(*verb) == (
            'ArgumentError: "runs/model-1" has no prediction program: '
            "`oarlock train` stores one if the script defines `predict`\n"
            f"  Try: oarlock prune runs/model-1 {name} --output predict.safetensors saves the part that computes a variable"
            "    (oarlock explain ArgumentError)"
        )
    prints("prune", "runs/model-1", name, "--output", "predict.safetensors")
    assert predicted(prints, "predict.safetensors").shape == (3, 2)


@pytest.mark.parametrize("held", [b"", b"no program", b"program main"])
def test_what_is_no_program_is_refused_when_it_is_to_predict(held, run, prints, refuses):
    newest = max((run / "checkpoints").iterdir())
    model = ol.load_model(newest / "model.safetensors")
    tensors = {name: model.scope[name] for name in model.scope} | {PREDICTION: torch.tensor(list(held), dtype=torch.uint8)}
    write_container(newest / "model.safetensors", model.program.to_bytes(), tensors)
    manifest = json.loads((newest / "manifest.json").read_text())
    (newest / "manifest.json").write_text(json.dumps(manifest | {"files": files_of(newest)}))
    assert prints("evaluate", "runs/model-1").startswith("table.csv:test  loss ")
    said = refuses("infer", "runs/model-1", "--data", "few.csv", "--checkpoint", "newest")
    assert said.startswith(("FormatError: ", "VerifyError: "))


def files_of(folder: Path) -> dict[str, dict[str, object]]:
    files = {path.name: path.read_bytes() for path in folder.iterdir() if path.name != "manifest.json"}
    return {name: {"bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()} for name, data in files.items()}


# The rows that infer prints


@pytest.mark.parametrize(
    ("rows", "labels", "expected"),
    [
        ([[0.25, 0.75], [1.0, 0.0]], None, "row  class  certainty\n  0      1     75.0 %\n  1      0    100.0 %"),
        ([[0.25, 0.75]], [3], "row  label  class  certainty\n  0      3      1     75.0 %"),
        ([[0.25, 0.5], [1.0, 0.0]], None, "row  read_0  read_1\n  0    0.25     0.5\n  1       1       0"),
        ([[-0.5, 1.5]], None, "row  read_0  read_1\n  0    -0.5     1.5"),
        ([[float("nan"), 1.0]], None, "row  read_0  read_1\n  0     nan       1"),
        ([[1.0], [12345.6]], None, "row  read_0\n  0       1\n  1  12,346"),
        ([0.5, -2.0], None, "row  read\n  0   0.5\n  1    -2"),
        ([[0.5] * 20] * 20, None, None),
        ([0.5] * 21, None, None),
        ([[]], None, None),
        ([], None, None),
        (0.5, None, None),
        ([[[0.5]]], None, None),
    ],
)
def test_the_rows_of_a_prediction_are_printed_where_they_are_few(rows, labels, expected):
    given = None if labels is None else numpy.array(labels)
    assert format_rows("read", numpy.array(rows, "float32"), given) == expected


def test_whole_numbers_are_printed_as_they_are():
    assert format_rows("read", numpy.array([12345678, -1]), None) == "row      read\n  0  12345678\n  1        -1"


def test_infer_prints_a_few_rows_and_the_type_of_many(run, prints):
    assert prints("infer", "last.safetensors", "--data", "few.csv").startswith("row  class  certainty\n")
    assert prints("infer", "last.safetensors", "--data", "table.csv") == "predicted float32[50, 2]\n"
    assert prints("infer", "last.safetensors", "--data", "few.csv", "--output", "few.npy") == "saved few.npy\npredicted float32[3, 2]\n"
