"""The example that a stranger runs first."""

import runpy
import sys
from pathlib import Path

import pytest

import oarlock as ol
from oarlock.cli.main import run

EXAMPLE = Path(__file__).parent.parent.parent / "examples" / "digits.py"


@pytest.fixture
def main():
    """The example's `main`, without running it."""
    return runpy.run_path(str(EXAMPLE), run_name="digits")["main"]


def test_three_epochs_read_nine_digits_of_ten(main, tmp_path, capsys):
    path = tmp_path / "digits.safetensors"
    accuracy = main(seed=0, epochs=3, path=str(path))
    assert accuracy > 0.9
    lines = capsys.readouterr().out.splitlines()
    assert [line.partition("  ")[0] for line in lines] == [
        "epoch 1/3",
        "epoch 2/3",
        "epoch 3/3",
        f"saved {path}",
    ]
    _, test = ol.datasets.digits.split(seed=0)
    read = ol.infer(ol.load_model(path), {"image": test["image"]}).argmax(1)
    assert (read == test["label"]).mean() == pytest.approx(accuracy)


def test_twenty_epochs_read_97_percent_of_the_digits_never_seen(main, tmp_path, capsys):
    assert main(seed=0, path=str(tmp_path / "digits.safetensors")) >= 0.97
    assert len(capsys.readouterr().out.splitlines()) == 21


def test_the_command_line_trains_it_and_reads_with_what_it_saved(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["oarlock", "train", str(EXAMPLE), "--epochs", "1", "--seed", "4", "--path", "four.safetensors"])
    with pytest.raises(SystemExit) as ended:
        run()
    assert ended.value.code in (0, None)
    trained = capsys.readouterr().out.splitlines()
    assert trained[-1] == "saved four.safetensors"
    assert ol.load_model("four.safetensors").program.seed == 4
    monkeypatch.setattr(sys, "argv", ["oarlock", "infer", "four.safetensors", "--data", "digits:test"])
    with pytest.raises(SystemExit):
        run()
    share = capsys.readouterr().out.splitlines()[0]
    assert share.startswith("test accuracy ")
    assert f"  {share.replace('test', 'validation')}  " in trained[0], "the same rows, and the same bits: the last epoch's validation"


def test_the_example_is_short():
    assert len(EXAMPLE.read_text().splitlines()) < 120
