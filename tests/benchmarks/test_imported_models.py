"""The command that times imported models beside PyTorch: here on one of `torch.nn` alone, and without a compiler."""

import re

import imported_models
import pytest

MODEL = "nn/mlp"


@pytest.mark.slow
def test_a_model_takes_turns_with_pytorch(monkeypatch, capsys):
    given = ["imported_models.py", "--models", MODEL, "--seconds", "0.2", "--batch", "3", "--without-compile", "--optimizer", "adam"]
    monkeypatch.setattr("sys.argv", given)
    imported_models.main()
    header, line, last = capsys.readouterr().out.splitlines()
    assert header.split() == ["model", "oarlock", "ms", "eager", "ms", "ratio", "fastest", "export", "s", "first", "s"]
    name, *numbers = line.split()
    assert name == MODEL
    ours, theirs, ratio, fastest, export, first = map(float, numbers)
    assert min(ours, theirs, ratio, fastest, export, first) > 0
    assert re.fullmatch(r"geometric mean of 1: ([\d.]+)  fastest ([\d.]+)", last).groups() == (f"{ratio:.3f}", f"{fastest:.3f}")


def test_a_side_that_trains_otherwise_is_told(monkeypatch):
    class Trained:
        def __init__(self, side, *given):
            self.begun = {"losses": [1.0, 0.9, 0.8] if side == "oarlock" else [1.5, 0.9, 0.8]}

        def end(self):
            pass

    monkeypatch.setattr(imported_models, "Runner", Trained)
    with pytest.raises(RuntimeError, match=r"^nn/mlp: the first losses are \[1.0, 0.9, 0.8\] here and \[1.5, 0.9, 0.8\] there$"):
        imported_models.compare("nn/mlp", imported_models.Setting(2, "sgd"), 0.1)
