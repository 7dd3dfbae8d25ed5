"""Validation every so many steps, and what stops a run by it; the best state, which is restored."""

import json
from pathlib import Path

import pytest
import torch
from classifiers import small_classifier, small_rows

import oarlock as ol

ROWS, HELD_OUT = small_rows(23), small_rows(9)
OPTIONS = {"epochs": 3, "batch_size": 4, "validate": HELD_OUT, "validate_every": 4, "progress": False}


def train(**options) -> ol.TrainingResult:
    """18 steps, 6 in an epoch."""
    small = small_classifier(dropout=0.3)
    with small.cost.block.program:
        counted = ol.metric.accuracy(*_scores(small))
    given = {"optimizer": ol.optimizer.Momentum(0.5), "show": {"accuracy": counted}} | OPTIONS | options
    return ol.train(small.cost, ROWS, **given)


def _scores(small) -> tuple[ol.Var, ol.Var]:
    loss = next(op for op in small.cost.block.ops if "cross_entropy" in op.type)
    return loss.reads[0], loss.reads[1]


def state(result: ol.TrainingResult) -> dict[str, torch.Tensor]:
    return {name: result.parameters[name].clone() for name in result.parameters}


def same(left: dict[str, torch.Tensor], right: dict[str, torch.Tensor]) -> bool:
    return left.keys() == right.keys() and all(torch.equal(left[name], right[name]) for name in left)


@pytest.fixture(scope="module")
def unbroken() -> ol.TrainingResult:
    return train()


def test_validation_by_steps_measures_what_evaluation_does_and_leaves_the_training_as_it_is(unbroken):
    plain = train(validate=None, validate_every=None)
    assert same(state(unbroken), state(plain))
    assert [record.training for record in unbroken.history] == [record.training for record in plain.history]
    assert [(record.epoch, record.step) for record in unbroken.validations] == [(1, 4), (2, 8), (2, 12), (3, 16)]
    for record in unbroken.validations:
        part = train(validate=None, validate_every=None, steps=record.step)
        measured = ol.evaluate(_model(part), HELD_OUT)
        assert record.validation == pytest.approx(measured)


def _model(result: ol.TrainingResult) -> ol.Model:
    return ol.Model(result.program, result.parameters)


def test_an_epoch_has_the_last_validation_that_was_made_in_it(unbroken):
    assert [record.validation for record in unbroken.history] == [unbroken.validations[number].validation for number in (0, 2, 3)]
    assert train(validate_every=100).validations == []
    assert [record.validation for record in train(validate_every=13).history] == [
        {},
        {},
        train(validate_every=13).validations[0].validation,
    ]


@pytest.mark.parametrize("stop", [1, 4, 6, 8, 11, 12])
def test_a_run_that_is_taken_up_validates_where_it_would_have(stop, unbroken, tmp_path):
    train(run=ol.training.Run(tmp_path / "run", save_every=3), steps=stop)
    result = train(run=ol.training.Run(tmp_path / "run", save_every=3))
    assert (result.history, result.validations) == (unbroken.history, unbroken.validations)
    assert same(state(result), state(unbroken))
    lines = [json.loads(line) for line in (tmp_path / "run/metrics.jsonl").read_text().splitlines()]
    logged = [
        {name: line[name] for name in ("epoch", "validation", "step")} for line in lines if "validation" in line and "training" not in line
    ]
    assert logged == [{"epoch": r.epoch, "validation": r.validation, "step": r.step} for r in unbroken.validations]


@pytest.mark.parametrize("step", [8, 12], ids=["in an epoch", "at its end"])
def test_a_validation_that_was_interrupted_is_made_when_the_run_goes_on(step, unbroken, tmp_path, monkeypatch):
    from oarlock.training.loop import Loop

    measure = Loop._measure

    def interrupted(loop: Loop, epoch: int, *arguments) -> dict[str, float]:
        if loop.result.steps == step:
            raise KeyboardInterrupt
        return measure(loop, epoch, *arguments)

    with monkeypatch.context() as patch:
        patch.setattr(Loop, "_measure", interrupted)
        with pytest.raises(KeyboardInterrupt):
            train(run=ol.training.Run(tmp_path / "run", save_every=1))
    assert not (tmp_path / f"run/checkpoints/step-{step:09d}").exists()
    assert train(run=ol.training.Run(tmp_path / "run", save_every=1)).validations == unbroken.validations


def test_a_target_that_a_validation_reaches_ends_the_run_in_the_middle_of_an_epoch(unbroken, tmp_path):
    losses = [record.validation["loss"] for record in unbroken.validations]
    target = losses[1]
    assert target < losses[0]
    stopping = ol.training.EarlyStopping(target=target)
    for _ in range(2):  # the second time it is over
        result = train(early_stopping=stopping, run=tmp_path / "run")
        assert (result.steps, len(result.history), result.validations) == (8, 1, unbroken.validations[:2])


@pytest.mark.parametrize("every", [None, 4])
@pytest.mark.parametrize("where", ["in memory", "in a folder", "taken up"])
def test_the_best_state_is_restored_whole(where, every, tmp_path):
    """The rate grows so that the loss does; the best one is before the end."""
    rate = ol.optimizer.schedule.ExponentialDecay(0.3, 1.7)
    options = {"optimizer": ol.optimizer.Momentum(rate), "validate_every": every, "epochs": 4}
    plain = train(**options)
    measured = plain.history if every is None else plain.validations
    stopping = ol.training.EarlyStopping(patience=9, restore_best=True)
    best = stopping.best(measured)
    assert 0 < best.step < plain.steps
    kept = {} if where == "in memory" else {"run": ol.training.Run(tmp_path / "run", keep=1)}
    if where == "taken up":
        train(**options, **kept, early_stopping=stopping, steps=best.step + 3)
    result = train(**options, **kept, early_stopping=stopping)
    assert (result.steps, result.history, result.validations) == (best.step, plain.history, plain.validations)
    expected = state(train(**options, steps=best.step))
    expected.pop("@EPOCH", None)
    found = state(result)
    found.pop("@EPOCH", None)
    assert same(found, expected)
    if kept:
        again = train(**options, **kept, early_stopping=stopping)
        assert same({name: value for name, value in state(again).items() if name != "@EPOCH"}, expected)


def test_a_best_state_that_is_not_there_any_more_is_said(tmp_path):
    rate = ol.optimizer.schedule.ExponentialDecay(0.3, 1.7)
    options = {"optimizer": ol.optimizer.Momentum(rate), "epochs": 4, "run": ol.training.Run(tmp_path / "run", keep=1)}
    stopping = ol.training.EarlyStopping(patience=9, restore_best=True)
    best = train(**options, early_stopping=stopping).steps
    for path in (tmp_path / "run/checkpoints").glob(f"step-*{best}/model.safetensors"):
        path.write_bytes(path.read_bytes()[:-1])
    with pytest.warns(RuntimeWarning, match=f"^the checkpoint of step {best}, the best one, no longer exists; the last state is kept$"):
        assert train(**options, early_stopping=stopping).steps == 24


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"validate": None}, "validate_every needs data to validate on"),
        ({"validate_every": 0}, "validate_every must be an integer >= 1, not 0"),
        ({"validate_every": 2.0}, "validate_every must be an integer >= 1, not 2.0"),
    ],
)
def test_what_cannot_be_is_refused_before_anything_is_written(options, message, tmp_path):
    with pytest.raises(ol.ArgumentError) as raised:
        train(**options, run=tmp_path / "run")
    assert raised.value.message == message
    assert not Path(tmp_path / "run").exists()
