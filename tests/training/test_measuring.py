"""The measurements of a run: means of whole epochs, also of one that was resumed; a loss that is no number; validation by its name."""

import io
import math
import warnings

import numpy
import pytest
from classifiers import small_classifier, small_rows
from rich.console import Console

import oarlock as ol
from oarlock.training.progress import PlainDisplay

ROWS = small_rows(10)


def learn(cost: ol.Var | ol.TrainingResult | ol.Model, rows=ROWS, **options) -> ol.TrainingResult:
    return ol.train(cost, rows, progress=False, **options)


def accurate(**options) -> ol.TrainingResult:
    model = small_classifier()
    return learn(model.cost, show={"accuracy": model.accuracy}, epochs=3, batch_size=2, **options)


@pytest.mark.parametrize("stops", [[1], [4], [5], [2, 1, 4, 6]])
@pytest.mark.parametrize("saved", [False, True], ids=["in memory", "from a file"])
def test_an_epoch_that_was_taken_up_is_averaged_whole(stops, saved, tmp_path):
    expected = accurate()
    result, history = accurate(steps=stops[0]), []
    for steps in [*stops[1:], None]:
        history += result.history
        if saved:
            ol.save_model(result, tmp_path / "run")
        result = learn(ol.load_model(tmp_path / "run") if saved else result, steps=steps)
    assert [*history, *result.history] == expected.history
    assert sorted(result.parameters) == sorted(expected.parameters)
    assert result.program.to_bytes(source=False) == expected.program.to_bytes(source=False)


def test_sums_of_other_steps_are_not_gone_on_with():
    result = accurate(steps=3)
    result.parameters.set("@STEP", numpy.int64(2))
    assert learn(result).history[0] != accurate().history[0]
    assert "@EPOCH" not in result.parameters


def squared() -> ol.Var:
    return ol.layer.mean(ol.op.square(ol.layer.fc(ol.layer.data("x", shape=[3]), 1)))


def failing(rate: float, rows: dict[str, numpy.ndarray], cost=squared, **options) -> tuple[list[str], ol.TrainingResult]:
    with ol.Program():
        cost = cost()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = learn(cost, rows, optimizer=ol.optimizer.SGD(rate), batch_size=5, epochs=20, not_finite="warn", **options)
    assert {warning.category for warning in caught} <= {RuntimeWarning}
    assert all(warning.filename == __file__ for warning in caught)
    return [str(warning.message) for warning in caught], result


def test_a_loss_that_is_no_number_is_said_once_with_its_step_and_the_run_keeps_what_it_has():
    (said,), result = failing(1e6, {"x": ROWS["x"]})
    step = int(said.partition(" at step ")[2].partition(",")[0])
    losses = [failing(1e6, {"x": ROWS["x"]}, steps=count)[0] for count in (step - 1, step)]
    assert (losses[0], losses[1]) == ([], [said]), "the first step of which it is true"
    assert said == (
        f'"loss" is inf at step {step}, in epoch {(step + 1) // 2}: the inputs and the parameters after the step are finite. '
        "Training continues; try a smaller learning rate, or an earlier checkpoint"
    )
    assert (result.steps, len(result.history)) == (40, 20)


def test_a_number_that_was_fed_is_named_as_the_cause():
    rows = {"x": ROWS["x"].copy()}
    rows["x"][4, 1] = math.nan
    (said,), _ = failing(0.01, rows)
    assert said.startswith('"loss" is nan at step ')
    assert 'the input "x" contains NaN or infinity' in said
    assert failing(0.01, {"x": ROWS["x"]})[0] == []


@pytest.mark.parametrize("name", ["x", "y"])
def test_a_validation_that_is_no_number_is_said_once_with_its_cause(name):
    held_out = {"x": ROWS["x"][:4].copy(), "y": numpy.ones((4, 1), "float32")}
    held_out[name][3, 0] = math.nan if name == "x" else math.inf
    rows = {"x": ROWS["x"], "y": numpy.ones((10, 1), "float32")}

    def cost() -> ol.Var:
        x, y = ol.layer.data("x", shape=[3]), ol.layer.data("y", shape=[1])
        return ol.layer.mean(ol.op.square(ol.layer.fc(x, 1) - y))

    (said,), result = failing(0.01, rows, validate=held_out, cost=cost)
    assert said == (
        f'"loss" is {math.nan if name == "x" else math.inf} in the validation after step 2, of epoch 1: the input "{name}" contains '
        "NaN or infinity. Training continues; remove such rows"
    )
    assert not any(math.isfinite(record.validation["loss"]) for record in result.history)
    assert all(math.isfinite(record.training["loss"]) for record in result.history)
    said = failing(1e6, rows, validate=held_out, cost=cost)[0]
    assert ["validation" in each for each in said] == [True, False], "what comes later of the steps is said too"
    said = failing(1e6, rows, validate={"x": ROWS["x"], "y": rows["y"]}, cost=cost)[0]
    assert ["validation" in each for each in said] == [False], "where the steps diverge, the validation does too"


def test_the_warning_can_be_made_an_error():
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        with pytest.raises(RuntimeWarning, match='^"loss" is inf at step'), ol.Program():
            cost = ol.layer.mean(ol.op.square(ol.layer.fc(ol.layer.data("x", shape=[3]), 1)))
            learn(cost, {"x": ROWS["x"]}, optimizer=ol.optimizer.SGD(1e6), epochs=40, not_finite="warn")


def test_what_is_validated_is_shown_as_that():
    output = io.StringIO()
    ol.train(small_classifier().cost, ROWS, validate=small_rows(4), progress=PlainDisplay(Console(file=output, width=200)))
    assert "  validation loss " in output.getvalue()
    assert "test" not in output.getvalue()
