"""Runs of which each worker keeps a share of the optimizer's state: what they compute, and what their checkpoints hold."""

import warnings

import numpy
import pytest
import safetensors.torch
import torch
from thread_workers import train_together

import oarlock as ol
from oarlock.cli.main import run
from oarlock.errors import FormatError
from oarlock.report.prediction import read_sample
from oarlock.training import checkpoint_writing
from oarlock.training.run_folder import load_run
from oarlock.training.run_record import RunRecord
from oarlock.training.shares import load_checkpoint

RANDOM = numpy.random.default_rng(0)
DATA = {"x": RANDOM.normal(size=(50, 5)), "y": RANDOM.integers(0, 3, size=50)}
HELD_OUT = {"x": RANDOM.normal(size=(20, 5)), "y": RANDOM.integers(0, 3, size=20)}


def train(**options) -> ol.TrainingResult:
    """A run of 20 steps whose matrices have 35 and 21 elements, which neither 2 nor 4 workers divide."""
    with ol.Program(seed=0):
        x, y = ol.layer.data("x", [5], dtype="float64"), ol.layer.data("y", [], dtype="int64")
        cost = ol.layer.cross_entropy(ol.layer.fc(ol.layer.fc(x, 7, act="tanh"), 3), y)
    given = {"epochs": 4, "batch_size": 10, "optimizer": ol.optimizer.AdamW(1e-2, weight_decay=0.1), "progress": False, "tune": False}
    return ol.train(cost, DATA, **given | options)


def shared(count: int, **options) -> list[ol.TrainingResult]:
    return train_together(count, lambda index: train(shard_optimizer=True, **options))


def values_of(result: ol.TrainingResult) -> dict[str, numpy.ndarray]:
    return {var.name: numpy.asarray(result.parameters[var.name]) for var in result.program.persistables()}


def require_close(result: ol.TrainingResult | ol.Model, expected: ol.TrainingResult, within: float = 1e-12) -> None:
    scope = result.scope if isinstance(result, ol.Model) else result.parameters
    for name, value in values_of(expected).items():
        numpy.testing.assert_allclose(numpy.asarray(scope[name]), value, rtol=within, atol=within, err_msg=name)


@pytest.fixture(scope="module")
def alone() -> ol.TrainingResult:
    return train()


@pytest.mark.parametrize("count", [1, 2, 4])
def test_the_result_is_that_of_one_worker_and_whole(count, alone):
    for result in shared(count):
        assert result.steps == 20
        require_close(result, alone)


def test_each_worker_keeps_and_saves_a_share(tmp_path):
    seen = {}

    def work(index: int) -> None:
        scope = ol.Scope()
        looks = lambda step, _: seen.setdefault(index, {name: scope[name].numel() for name in scope})  # noqa: E731
        train(shard_optimizer=True, scope=scope, run=ol.training.Run(tmp_path / "run", save_every=5), on_step=looks)

    train_together(4, work)
    assert [seen[index]["fc_0.w@MOMENT1"] for index in range(4)] == [9] * 4  # of 35
    assert [seen[index]["fc_0.w"] for index in range(4)] == [35] * 4
    newest = max((tmp_path / "run/checkpoints").iterdir())
    assert sorted(path.name for path in newest.iterdir()) == [
        "manifest.json",
        "model.safetensors",
        *(f"share-{index}-of-4.safetensors" for index in range(4)),
    ]


@pytest.mark.parametrize("count", [1, 2, 3])
def test_a_checkpoint_of_four_workers_goes_on_with_others(count, alone, tmp_path):
    run = ol.training.Run(tmp_path / "run", save_every=5)
    shared(4, run=run, steps=10)
    require_close(load_run(tmp_path / "run"), train(steps=10))
    for result in shared(count, run=run):
        assert result.steps == 20
        require_close(result, alone)


def test_a_checkpoint_without_one_of_its_shares_is_none(tmp_path):
    run = ol.training.Run(tmp_path / "run", save_every=5)
    shared(2, run=run)
    *_, before, newest = sorted((tmp_path / "run/checkpoints").iterdir())
    (newest / "share-1-of-2.safetensors").unlink()
    assert train(run=run, steps=0).steps == int(before.name[5:])


@pytest.mark.parametrize("spoil", ["missing", "other", "short"])
def test_shares_that_do_not_fit_are_refused(spoil, tmp_path):
    run = ol.training.Run(tmp_path / "run", save_every=5)
    shared(2, run=run)
    folder = max((tmp_path / "run/checkpoints").iterdir())
    share = folder / "share-1-of-2.safetensors"
    if spoil == "missing":
        share.unlink()
        expected = "does not contain the shares of all workers"
    elif spoil == "other":
        share.write_bytes(safetensors.torch.save({"fc_0.w@MOMENT1": torch.zeros(3)}))
        expected = "do not match its shape or dtype"
    else:
        share.write_bytes(share.read_bytes()[:-8])
        expected = "is not a valid safetensors file, or is truncated"
    with pytest.raises(FormatError, match=expected):
        load_checkpoint(folder)


def test_a_share_that_does_not_come_is_warned_of_and_the_run_goes_on(alone, tmp_path, monkeypatch):
    monkeypatch.setattr(checkpoint_writing, "TO_COME", 0.2)
    monkeypatch.setattr("oarlock.training.together.write_part", lambda *_: None)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for result in shared(2, run=ol.training.Run(tmp_path / "run", save_every=10)):
            require_close(result, alone)
    assert any('another worker did not write "share-1-of-2.safetensors". Training continues' in str(warning.message) for warning in caught)
    assert list((tmp_path / "run/checkpoints").iterdir()) == []


@pytest.mark.parametrize("from_folder", [False, True])
def test_the_best_state_is_restored_whole(from_folder, tmp_path):
    def options(name: str) -> dict:
        stopping = ol.training.EarlyStopping("validation loss", patience=2, restore_best=True)
        data = {name: column[:7] for name, column in HELD_OUT.items()}
        optimizer = ol.optimizer.AdamW(0.3, weight_decay=0.1)
        return {"early_stopping": stopping, "validate": data, "optimizer": optimizer, "run": tmp_path / name, "epochs": 30}

    expected = train(**options("alone"))
    assert expected.steps < max(record.step for record in expected.history), "the best state is that of the last step"
    if from_folder:  # a process that has seen the best state nowhere else
        shared(2, **options("shared"), steps=expected.steps)
    for result in shared(2, **options("shared")):
        assert result.steps == expected.steps
        require_close(result, expected, within=1e-9)


def test_a_run_that_is_not_finite_gives_what_was_trained_whole():
    rows = DATA["x"].copy()
    rows[23] = 1e200
    with ol.Program(seed=0):
        x = ol.layer.data("x", [5], dtype="float64")
        cost = ol.layer.mean(ol.op.square(ol.op.square(ol.layer.fc(x, 7))))

    def work(index: int) -> ol.NotFiniteError:
        with pytest.raises(ol.NotFiniteError) as raised:
            ol.train(cost, {"x": rows}, batch_size=5, optimizer=ol.optimizer.Adam(1e-3), shard_optimizer=True, progress=False, tune=False)
        return raised.value

    alone, *others = (train_together(count, work) for count in (1, 2))
    for error in others[0]:
        assert error.result.steps == alone[0].result.steps
        require_close(error.result, alone[0].result)


def test_what_reads_a_run_reads_its_shares(tmp_path):
    shared(2, run=tmp_path / "run", validate=HELD_OUT)
    measured = ol.evaluate(tmp_path / "run", HELD_OUT)
    recorded = RunRecord.read(tmp_path / "run").history[-1].validation
    assert measured["loss"] == pytest.approx(recorded["loss"], rel=1e-9)
    sample = read_sample(RunRecord.read(tmp_path / "run"))
    assert sample is not None
    assert sample.fault is None


def test_the_command_line_says_what_workers_share(tmp_path, monkeypatch):
    ol.save_model(train(steps=0), tmp_path / "start.safetensors")
    numpy.savez(tmp_path / "rows.npz", **DATA)
    monkeypatch.chdir(tmp_path)
    words = ["oarlock", "train", "start.safetensors", "--data", "rows.npz", "--shard-optimizer", "--no-sync-batch-norm", "--quiet"]
    monkeypatch.setattr("sys.argv", words)
    asked = []
    names = "shard_optimizer", "sync_batch_norm"
    monkeypatch.setattr("oarlock.cli.train_call.train", lambda model, **options: asked.append(tuple(options[name] for name in names)))
    with pytest.raises(SystemExit):
        run()
    assert asked == [(True, False)]
