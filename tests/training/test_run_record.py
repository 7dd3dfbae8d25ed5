"""The folder of a run, as it is read by who looks at it: finished, running, killed, old, or a stranger's."""

import json
import math
import os
from pathlib import Path

import numpy
import pytest
from classifiers import small_classifier, small_rows

import oarlock as ol
from oarlock.training import checkpoint_writing
from oarlock.training.checkpoint import find_checkpoints, find_latest
from oarlock.training.metric_log import read_log
from oarlock.training.run_record import RunRecord, higher_is_better


def train(folder: Path, *, epochs: int = 3, **options) -> ol.TrainingResult:
    made = small_classifier()
    rows = small_rows(20)
    given = {"validate": rows, "show": {"accuracy": made.accuracy}, "batch_size": 8, "progress": False} | options
    return ol.train(made.cost, rows, epochs=epochs, run=folder, **given)


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, ol.TrainingResult]:
    folder = tmp_path_factory.mktemp("runs") / "one"
    return folder, train(folder)


def write(folder: Path, lines: str | list, **about) -> Path:
    """A folder of a run with such a log."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "run.json").write_text(json.dumps({"program": "ab" * 32, "training": {"batch_size": 8, "epochs": 3}} | about))
    text = lines if isinstance(lines, str) else "".join(json.dumps(line) + "\n" for line in lines)
    (folder / "metrics.jsonl").write_text(text)
    return folder


def test_a_finished_run_is_read_as_it_was(finished):
    folder, result = finished
    record = RunRecord.read(folder)
    assert record.history == result.history
    assert (record.name, record.state, record.steps, record.epochs) == ("one", "finished", 9, 3)
    assert record.log.measured["loss"][0].tolist() == list(range(1, 10))
    assert list(record.log.measured) == ["loss", "accuracy"]
    assert record.log.rows.tolist() == [8, 8, 4] * 3
    assert [(c.step, c.is_whole) for c in record.checkpoints] == [(3, True), (6, True), (9, True)]
    assert 0 < record.log.seconds < 600
    assert len(record.log.durations) == 6
    assert record.judged_by == "validation loss"
    assert record.best("validation loss") == min(result.history, key=lambda epoch: epoch.validation["loss"])
    assert record.best("accuracy") == max(result.history, key=lambda epoch: epoch.training["accuracy"])


def test_a_run_that_was_cut_off_is_stopped_and_one_that_ended_early_is_finished(tmp_path):
    train(tmp_path / "cut", steps=4)
    assert RunRecord.read(tmp_path / "cut").state == "stopped"
    train(tmp_path / "early", early_stopping=ol.training.EarlyStopping("loss", target=1e9))
    early = RunRecord.read(tmp_path / "early")
    assert (early.state, len(early.history)) == ("finished", 1)
    train(tmp_path / "more", epochs=1)
    train(tmp_path / "more", epochs=2, steps=1)
    more = RunRecord.read(tmp_path / "more")
    assert (more.state, more.epochs, [session.step for session in more.log.sessions]) == ("stopped", 2, [0, 3])


def test_a_run_that_trains_now_is_running(tmp_path):
    seen = []
    train(tmp_path / "run", on_epoch=lambda epoch: seen.append(RunRecord.read(tmp_path / "run").state))
    assert seen == ["running"] * 3


def test_of_a_step_that_was_logged_twice_the_last_word_counts_and_broken_lines_are_counted(tmp_path):
    lines = [
        {"step": 2, "epoch": 1, "rows": 4, "loss": 5.0},
        {"step": 1, "epoch": 1, "rows": 4, "loss": 9.0},
        {"step": 2, "epoch": 1, "rows": 4, "loss": 4.0, "accuracy": 0.5},
        {"step": 3, "epoch": 1, "rows": 4, "loss": math.nan},
        {"step": "4", "rows": 4, "loss": 1.0},
        {"step": -1, "rows": 4, "loss": 1.0},
        {"step": 4, "rows": 4, "loss": "low", "flag": True, "big": 10**400},
        [1],
    ]
    text = "".join(json.dumps(line) + "\n" for line in lines) + "[" * 5000 + "\n" + '{"step": ' + "7" * 100_000 + "}\n" + '{"st'
    log = read_log(write(tmp_path / "run", text) / "metrics.jsonl")
    assert log.steps.tolist() == [1, 2, 3, 4]
    steps, losses = log.measured["loss"]
    assert (steps.tolist(), losses[:2].tolist(), math.isnan(losses[2])) == ([1, 2, 3], [9.0, 4.0], True)
    assert log.measured["big"][1].tolist() == [math.inf]
    assert list(log.measured) == ["loss", "accuracy", "big"]
    assert log.skipped == 5  # and not the last one, which was being written
    assert log.seconds is None
    assert math.isnan(log.times[0])


def test_time_counts_while_a_run_ran(tmp_path):
    lines = [
        {"step": 0, "environment": {}, "time": 100.0},
        *({"step": step, "rows": 4, "loss": 1.0, "time": 100.0 + step} for step in range(1, 4)),
        {"step": 3, "epoch": 1, "training": {"loss": 1.0}, "validation": {}, "time": 110.0},
        {"step": 3, "environment": {}, "time": 5000.0},
        {"step": 4, "rows": 4, "loss": 1.0, "time": 5002.0},
        {"step": 5, "rows": 4, "loss": 1.0, "time": 5002.5},
    ]
    log = read_log(write(tmp_path / "run", lines) / "metrics.jsonl")
    assert log.seconds == 10.0 + 2.5
    assert log.durations.tolist() == [1.0, 1.0, 0.5]


def test_times_that_are_none_are_not_counted(tmp_path):
    times = [math.inf, math.inf, -math.inf, 1e300, math.nan, "now", 10.0, 11.0]
    lines = [{"step": step, "rows": 4, "loss": 1.0, "time": time} for step, time in enumerate(times, 1)]
    log = read_log(write(tmp_path / "run", [{"step": 0, "environment": {}, "time": math.inf}, *lines]) / "metrics.jsonl")
    assert log.durations.tolist() == [1.0]
    assert log.seconds is None


def test_a_run_without_a_log_has_measured_nothing(tmp_path):
    (write(tmp_path / "run", "") / "metrics.jsonl").unlink()
    record = RunRecord.read(tmp_path / "run")
    assert (record.steps, record.history, record.checkpoints, record.state) == (0, [], [], "stopped")
    assert record.judged_by is None


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("", "it is not valid JSON"),
        ("[" * 100_000, "it is not valid JSON"),
        ("[]", 'it has no valid "program"'),
        ('{"program": "a"}', '"training" has no valid "batch_size"'),
        ('{"program": "a", "training": {"batch_size": 8, "epochs": true}}', '"training" has no valid "epochs"'),
    ],
)
def test_a_folder_that_does_not_describe_a_run_is_refused(content, said, tmp_path):
    (tmp_path / "run.json").write_text(content)
    with pytest.raises(ol.FormatError) as raised:
        RunRecord.read(tmp_path)
    assert raised.value.message == f'"{tmp_path / "run.json"}" does not describe a run: {said}'


def test_a_folder_without_a_run_is_refused_and_one_of_runs_names_the_first(tmp_path):
    with pytest.raises(ol.MissingFileError, match="is not a run folder: it has no run.json") as raised:
        RunRecord.read(tmp_path)
    assert raised.value.hint is None
    write(tmp_path / "b", "")
    write(tmp_path / "a", "")
    with pytest.raises(ol.MissingFileError) as raised:
        RunRecord.read(tmp_path)
    assert raised.value.hint == f"use a run inside it, such as {tmp_path / 'a'} (the first of 2)"


def test_a_stranger_s_log_is_bounded(tmp_path):
    folder = write(tmp_path / "run", [{"step": 1, "rows": 1, **{f"m{number}": 1.0 for number in range(201)}}])
    with pytest.raises(ol.LimitError, match="a run has more than 200 metrics"):
        RunRecord.read(folder)
    lines = [{"step": n, "epoch": n, "training": {f"a{n}": 1.0}, "validation": {f"b{n}": 1.0}} for n in range(1, 102)]
    assert len(RunRecord.read(write(tmp_path / "run", lines[:100])).history) == 100
    with pytest.raises(ol.LimitError, match="a run has more than 200 metrics"):
        RunRecord.read(write(tmp_path / "run", lines))
    folder = write(tmp_path / "large", "")
    os.truncate(folder / "metrics.jsonl", 4 * 2**30 + 1)
    with pytest.raises(ol.LimitError, match=r"has 4,294,967,297 bytes, but the limit is 4,294,967,296"):
        RunRecord.read(folder)


def test_an_untrusted_folder_has_no_links(tmp_path):
    write(tmp_path / "run", "")
    (tmp_path / "run/metrics.jsonl").rename(tmp_path / "elsewhere")
    (tmp_path / "run/metrics.jsonl").symlink_to(tmp_path / "elsewhere")
    RunRecord.read(tmp_path / "run")
    with pytest.raises(ol.FormatError, match="symbolic link"):
        RunRecord.read(tmp_path / "run", untrusted=True)
    for place in ("checkpoints", "checkpoints/step-000000001"):
        folder = write(tmp_path / place.replace("/", "-"), "") / place
        folder.parent.mkdir(exist_ok=True)
        folder.symlink_to(tmp_path, target_is_directory=True)
        with pytest.raises(ol.FormatError, match=f'{place}" is a symbolic link, which is not allowed in an untrusted folder'):
            RunRecord.read(tmp_path / place.replace("/", "-"), untrusted=True)


def test_a_checkpoint_that_lacks_a_file_is_not_whole(finished, tmp_path):
    train(tmp_path / "run", epochs=2)
    (tmp_path / "run/checkpoints/step-000000003/model.safetensors").unlink()
    (tmp_path / "run/checkpoints/step-000000006/manifest.json").write_text("[]")
    assert [checkpoint.is_whole for checkpoint in RunRecord.read(tmp_path / "run").checkpoints] == [False, False]


def test_a_manifest_of_strange_numbers_is_none(tmp_path):
    train(tmp_path / "run", epochs=2)
    newest = tmp_path / "run/checkpoints/step-000000006/manifest.json"
    spoilt = json.loads(newest.read_text())
    spoilt["files"]["model.safetensors"]["bytes"] = math.inf
    for manifest in (json.dumps(spoilt), "[" * 5000):
        newest.write_text(manifest)
        assert [checkpoint.is_whole for checkpoint in RunRecord.read(tmp_path / "run").checkpoints] == [True, False]
        assert find_latest(tmp_path / "run/checkpoints")[0] == 3


def test_a_list_of_checkpoints_reads_the_beginning_of_their_manifests(tmp_path):
    train(tmp_path / "run", epochs=2)
    newest = tmp_path / "run/checkpoints/step-000000006/manifest.json"
    text = newest.read_text()
    newest.write_text(text.replace('"state": {', '"state": {"more": [' + "[], " * 2**20 + "[]], "))
    assert [checkpoint.is_whole for checkpoint in RunRecord.read(tmp_path / "run").checkpoints] == [True, True]
    assert find_latest(tmp_path / "run/checkpoints")[0] == 3
    newest.write_text(text.replace('"files": ', '"others": '))
    assert [checkpoint.is_whole for checkpoint in RunRecord.read(tmp_path / "run").checkpoints] == [True, False]


@pytest.mark.skipif(not hasattr(os, "symlink"), reason="there are no links")
def test_a_folder_of_checkpoints_that_leads_to_itself_has_none(tmp_path):
    (tmp_path / "checkpoints").symlink_to("checkpoints")
    assert find_latest(tmp_path / "checkpoints") is None


@pytest.mark.skipif(not hasattr(os, "symlink"), reason="there are no links")
def test_a_checkpoint_that_leads_to_itself_does_not_hide_the_others(tmp_path):
    (tmp_path / "step-000000003").mkdir()
    (tmp_path / "step-000000009").symlink_to("step-000000009")
    assert list(find_checkpoints(tmp_path)) == [3]


def test_a_folder_that_is_made_while_it_is_looked_for_has_no_checkpoints(tmp_path, monkeypatch):
    """The first of several workers makes it, while the others look."""
    scan = os.scandir

    def scan_too_early(folder: str) -> object:
        try:
            return scan(folder)
        finally:
            os.makedirs(folder, exist_ok=True)

    monkeypatch.setattr(checkpoint_writing.os, "scandir", scan_too_early)
    assert find_checkpoints(tmp_path / "checkpoints") == {}


@pytest.mark.parametrize(
    ("label", "expected"),
    [
        ("accuracy", True),
        ("validation top_5 accuracy", True),
        ("f1", True),
        ("mean iou", True),
        ("loss", False),
        ("score-error", True),
        ("perplexity", False),
    ],
)
def test_whether_more_is_better_is_told_by_the_word(label, expected):
    assert higher_is_better(label) is expected


def test_runs_are_plotted_together_whatever_each_measured(finished, tmp_path):
    folder, _ = finished
    other = write(tmp_path / "one", [{"step": 1, "rows": 4, "loss": math.nan, "error": 2.0}])
    train(tmp_path / "killed", steps=2)
    plot = ol.training.plot(folder, other, tmp_path / "killed", smooth=0.0)
    assert {chart.label: [(c.run, c.part, len(c.steps)) for c in chart.curves] for chart in plot.charts} == {
        "loss": [(str(folder), "training", 9), (str(folder), "validation", 3), (str(other), "training", 1), ("killed", "training", 2)],
        "accuracy": [(str(folder), "training", 9), (str(folder), "validation", 3), ("killed", "training", 2)],
        "error": [(str(other), "training", 1)],
    }
    assert [chart.label for chart in ol.training.plot(folder, metrics=["accuracy"]).charts] == ["accuracy"]
    assert "a " in str(plot)


def test_validations_in_the_middle_of_epochs_are_read_and_drawn_where_they_were(tmp_path):
    result = train(tmp_path / "run", validate_every=2)
    record = RunRecord.read(tmp_path / "run")
    assert (record.history, record.validations) == (result.history, result.validations)
    for plot in (ol.training.plot(tmp_path / "run"), result.plot()):
        assert plot.charts[0].curves[1].steps.tolist() == [2, 4, 6, 8]
    assert record.best("validation loss") == min(result.validations, key=lambda each: each.validation["loss"])


def test_a_result_is_plotted_by_its_epochs(finished, tmp_path):
    _, result = finished
    plot = result.plot(tmp_path / "one.svg", metrics=["loss"], log=True)
    training, validation = plot.charts[0].curves
    assert training.steps.tolist() == validation.steps.tolist() == [3, 6, 9]
    assert validation.values.tolist() == [epoch.validation["loss"] for epoch in result.history]
    assert numpy.array_equal(training.values, [epoch.training["loss"] for epoch in result.history])
    assert (tmp_path / "one.svg").read_text() == plot._repr_svg_()


def test_a_plot_of_nothing_says_so(tmp_path):
    empty = write(tmp_path / "run", [{"step": 0, "environment": {}}])
    for call in (lambda: ol.training.plot(empty), lambda: train(tmp_path / "none", steps=0).plot()):
        with pytest.raises(ol.ArgumentError, match="^there are no metrics to draw yet"):
            call()
    with pytest.raises(ol.ArgumentError, match="plot needs one or more run folders"):
        ol.training.plot()
    with pytest.raises(ol.ArgumentError, match='no metric is called "lost"') as raised:
        ol.training.plot(write(tmp_path / "other", [{"step": 1, "rows": 1, "loss": 1.0}]), metrics="lost")
    assert raised.value.given == ("metrics: loss",)
