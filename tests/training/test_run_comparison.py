"""Runs beside each other: settings in which they differ, the best of each measure, and those that cannot be read."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

import oarlock as ol
from oarlock.cli import main
from oarlock.training.run_comparison import RunComparison


def write(folder: Path, losses: list[float], *, program: str = "ab" * 32, batch_size: int = 8, validated: bool = True, **about) -> Path:
    """The folder of a run of three epochs, of which those were over that have a loss."""
    folder.mkdir(parents=True)
    (folder / "run.json").write_text(json.dumps({"program": program, "training": {"batch_size": batch_size, "epochs": 3}} | about))
    lines = [
        {"epoch": n, "training": {"loss": loss}, "validation": {"accuracy": 1 - loss} if validated else {}, "step": 10 * n}
        for n, loss in enumerate(losses, 1)
    ]
    (folder / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return folder


def shown(*arguments: object, width: int = 200) -> list[list[str]]:
    done = CliRunner().invoke(main.app, ["runs", *map(str, arguments)], env={"COLUMNS": str(width)})
    assert done.exit_code == 0, done.exception
    return [line.split() for line in done.output.splitlines()]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write(tmp_path / "a", [0.5, 0.2, 0.3], config={"lr": 0.1, "name": "x"})
    write(tmp_path / "b", [0.4], program="cd" * 32, batch_size=16, config={"lr": 0.2, "name": "x"})
    write(tmp_path / "c", [], seed=1)
    return tmp_path


def test_runs_are_compared_by_what_differs_between_them(folder):
    found = RunComparison.read([folder])
    assert found.settings == {
        "batch_size": ["8", "16", "8"],
        "config.lr": ["0.1", "0.2", ""],
        "config.name": ["x", "x", ""],
        "seed": ["", "", "1"],
    }
    assert found.labels == ["loss", "validation accuracy"]
    assert [[run.name for run in group] for group in found.programs.values()] == [["a", "c"], ["b"]]
    assert found.winner("loss") is found.runs[0]
    assert found.winner("validation accuracy") is found.runs[0]
    assert RunComparison.read([folder / "a", folder / "b"]).settings == {"batch_size": ["8", "16"], "config.lr": ["0.1", "0.2"]}


def test_settings_of_a_file_are_compared_too(folder):
    for name, rate in (("a", 0.1), ("b", 0.25)):
        (folder / name / "config.toml").write_text(f"hidden = 16\n[train]\nlr = {rate}\nepochs = {rate}\nsave = '{name}'\n")
    (folder / "c/config.toml").write_text("hidden = [\n")  # which is none
    found = RunComparison.read([folder]).settings
    assert (found["hidden"], found["train.lr"]) == (["16", "16", ""], ["0.1", "0.25", ""])
    assert not {"train.epochs", "train.save"} & set(found)


def test_the_best_run_is_first_where_that_is_asked_for(folder):
    write(folder / "d", [0.1], validated=False)
    by_loss = RunComparison.read([folder]).ordered_by("loss")
    assert [run.name for run in by_loss.runs] == ["d", "a", "b", "c"]
    assert [run.name for run in by_loss.ordered_by("best loss").runs] == ["d", "a", "b", "c"]
    by_accuracy = RunComparison.read([folder]).ordered_by("validation accuracy")
    assert [run.name for run in by_accuracy.runs] == ["a", "b", "c", "d"]
    with pytest.raises(ol.ArgumentError, match='^no run measured "speed"') as raised:
        by_loss.ordered_by("speed")
    assert raised.value.given == ("metrics: loss, validation accuracy",)


def test_the_command_lists_them(folder):
    head, a, b, c, alike = shown(folder)
    assert " ".join(head) == "run program state batch_size config.lr config.name seed epochs step time loss validation accuracy best loss"
    assert a == ["a", "abababab", "finished", "8", "0.1", "x", "3/3", "30", "0.3", "*", "0.7", "*", "0.2,", "epoch", "2", "*"]
    assert b == ["b", "cdcdcdcd", "stopped", "16", "0.2", "x", "1/3", "10", "0.4", "0.6", "0.4,", "epoch", "1"]
    assert c == ["c", "abababab", "stopped", "8", "1", "0/3", "0"]
    assert alike == ["runs", "of", "the", "same", "program:", "a,", "c"]
    assert [line[0] for line in shown(folder / "b", folder / "a", "--by", "loss")] == ["run", "a", "b"]


def test_the_star_of_the_best_epoch_is_not_always_that_of_the_last(tmp_path):
    write(tmp_path / "once", [0.1, 0.9])
    write(tmp_path / "now", [0.5, 0.4])
    once, now = shown(tmp_path / "once", tmp_path / "now")[1:3]
    assert (once[-1], once.count("*")) == ("*", 1)
    assert (now[-1], now.count("*")) == ("2", 2)


def test_a_run_that_failed_says_why_until_it_has_gone_on(folder):
    with open(folder / "b/metrics.jsonl", "a") as log:
        log.write('{"step": 12, "failed": "\\"loss\\" is inf at step 13"}\n')
    lines = shown(folder)
    assert [line[2] for line in lines[1:4]] == ["finished", "failed", "stopped"]
    assert " ".join(lines[4]) == 'b failed: "loss" is inf at step 13'
    with open(folder / "b/metrics.jsonl", "a") as log:
        log.write('{"step": 12, "epochs": 3, "environment": {}}\n')
    assert shown(folder)[2][2] == "stopped"


def test_in_a_narrow_terminal_runs_are_columns(folder):
    lines = shown(folder, width=60)
    assert lines[0] == ["run", "a", "b", "c"]
    assert ["batch_size", "8", "16", "8"] in lines
    assert ["loss", "0.3", "*", "0.4"] in lines


def test_a_run_that_cannot_be_read_is_told_and_the_others_are_listed(folder):
    (folder / "b/run.json").write_text('{"prog')
    lines = shown(folder)
    assert [line[0] for line in lines[:3]] == ["run", "a", "c"]
    assert " ".join(lines[-1]) == f'b: "{folder / "b" / "run.json"}" does not describe a run: it is not valid JSON'


def test_a_name_steers_no_terminal(tmp_path):
    write(tmp_path / "a\x1b[2J[bold]", [0.5], data="[red]\x1b")
    write(tmp_path / "b", [0.5])
    done = CliRunner().invoke(main.app, ["runs", str(tmp_path)])
    assert "a\\x1b[2J[bold]" in done.output
    assert "[red]\\x1b" in done.output
    assert "\x1b" not in done.output


def test_no_runs_are_said_and_no_folder_is_refused(tmp_path):
    assert shown(tmp_path) == [["no", "runs", "in", str(tmp_path)]]
    done = CliRunner().invoke(main.app, ["runs", str(tmp_path / "nothing")])
    assert str(done.exception) == f'there is no folder "{tmp_path / "nothing"}"'
