"""`ol.train`: what it returns, what it leaves alone, in which order it takes the rows, and what it says."""

import io
import itertools
import re

import numpy
import pytest
import torch
from classifiers import Classifier, small_classifier, small_rows
from rich.console import Console
from tolerances import MEANS, close

import oarlock as ol
from oarlock.training import trainer
from oarlock.training.metrics import Means
from oarlock.training.progress import LiveDisplay, PlainDisplay, SilentDisplay, select_display


@pytest.fixture
def small() -> Classifier:
    return small_classifier()


@pytest.fixture
def fed(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, numpy.ndarray]]:
    """The feeds of the training steps, in order."""
    steps: list[dict[str, numpy.ndarray]] = []

    class Recorder(ol.Executor):
        def prepare(self, program, fetch=(), **options):
            step = super().prepare(program, fetch, **options)

            def recorded(feed):
                if options["training"]:
                    steps.append({name: torch.as_tensor(value).numpy().copy() for name, value in feed.items()})
                return step(feed)

            return recorded

    monkeypatch.setattr(trainer, "Executor", Recorder)
    return steps


def numbered_rows(count: int = 10) -> dict[str, numpy.ndarray]:
    """Rows that tell which they are, by their first number."""
    rows = small_rows(count)
    rows["x"][:, 0] = numpy.arange(count)
    return rows


def orders(fed: list[dict[str, numpy.ndarray]], epochs: int) -> list[list[int]]:
    """The rows of each epoch, in the order in which they were fed."""
    per_epoch = len(fed) // epochs
    numbers = [[int(number) for number in feed["x"][:, 0]] for feed in fed]
    return [[row for batch in numbers[start : start + per_epoch] for row in batch] for start in range(0, len(fed), per_epoch)]


def same_values(left: ol.Scope, right: ol.Scope) -> bool:
    """Whether two scopes hold the same names with the same bits."""
    return sorted(left) == sorted(right) and all(torch.equal(left[name], right[name]) for name in left)


def copy_of(scope: ol.Scope) -> ol.Scope:
    copied = ol.Scope()
    for name in scope:
        copied.set(name, scope[name].clone())
    return copied


# What it returns


def test_a_run_records_every_epoch_and_counts_its_steps(small):
    result = ol.train(small.cost, small_rows(10), epochs=3, batch_size=4, progress=False)
    assert [record.epoch for record in result.history] == [1, 2, 3]
    assert [sorted(record.training) for record in result.history] == [["loss"]] * 3
    assert [record.validation for record in result.history] == [{}] * 3
    assert result.steps == 9
    assert int(result.parameters["@STEP"]) == 9
    assert result.program.is_training
    assert result.program.training == ol.ir.Training(batch_size=4, epochs=3)


def test_training_lowers_the_cost(small):
    result = ol.train(small.cost, small_rows(100), optimizer=ol.optimizer.Adam(0.1), epochs=10, progress=False)
    assert result.history[-1].training["loss"] < result.history[0].training["loss"] / 2


def test_one_epoch_of_thirty_two_rows_a_step_with_sgd_unless_told_otherwise(small):
    result = ol.train(small.cost, small_rows(40), progress=False)
    assert (result.steps, len(result.history)) == (2, 1)
    assert float(result.parameters["sgd_0.learning_rate"]) == 0.01
    assert result.program.training.batch_size == 32


def test_what_is_recorded_are_means_over_rows_and_not_over_batches(small, fed):
    result = ol.train(small.cost, small_rows(10), epochs=1, batch_size=4, progress=False, show={"accuracy": small.accuracy})
    by_hand, scope = small.program.clone(), ol.Scope()
    cost = by_hand.main.var(small.cost.name)
    ol.optimizer.SGD().minimize(cost)
    ol.init(by_hand, scope)
    totals = numpy.zeros(2)
    for feed in fed:
        totals += numpy.array(ol.Executor().run(by_hand, feed, [cost, small.accuracy.name], scope=scope, training=True)) * len(
            feed["label"]
        )
    assert [len(feed["label"]) for feed in fed] == [4, 4, 2]
    assert close(result.history[0].training["loss"], totals[0] / 10, MEANS)
    assert close(result.history[0].training["accuracy"], totals[1] / 10, MEANS)


def test_training_is_the_executor_and_minimize_and_nothing_else(small, fed):
    result = ol.train(small.cost, small_rows(10), optimizer=ol.optimizer.Adam(0.01), epochs=2, batch_size=4, progress=False)
    by_hand = small_classifier()
    ol.optimizer.Adam(0.01).minimize(by_hand.cost)
    scope = ol.init(by_hand.program, ol.Scope())
    for feed in fed:
        ol.Executor().run(by_hand.program, feed, scope=scope, training=True)
    assert same_values(result.parameters, scope)


def test_show_reports_further_variables_in_the_order_given(small):
    rows = small_rows(10)
    result = ol.train(small.cost, rows, progress=False, show={"share": small.accuracy, "predict": small.predict})
    assert list(result.history[0].training) == ["loss", "share", "predict"]
    assert close(result.history[0].training["predict"], 0.5, MEANS), "a row of two probabilities has the mean 1/2"


def test_validation_measures_what_the_parameters_of_the_epoch_infer():
    dropping = small_classifier(dropout=0.5)
    held_out = small_rows(20, seed=1)
    result = ol.train(dropping.cost, small_rows(10), progress=False, validate=held_out, show={"accuracy": dropping.accuracy})
    measured = ol.infer(dropping.cost, held_out, result), ol.infer(dropping.accuracy, held_out, result)
    assert result.history[0].validation == {"loss": float(measured[0]), "accuracy": float(measured[1])}


def test_validation_changes_nothing(small):
    plain = ol.train(small.cost, small_rows(10), epochs=2, progress=False)
    validated = ol.train(small.cost, small_rows(10), epochs=2, progress=False, validate=small_rows(7, seed=1))
    assert same_values(plain.parameters, validated.parameters)


def test_training_drops_out():
    dropping = small_classifier(dropout=0.9)
    kept, dropped = (ol.train(each.cost, small_rows(10), progress=False) for each in (small_classifier(), dropping))
    assert not torch.equal(kept.parameters["fc_0.w"], dropped.parameters["fc_0.w"])


# What it leaves alone, and what it fills


def test_the_program_of_the_cost_stays_as_it_is(small):
    before = small.program.to_bytes(), small.program.revision
    ol.train(small.cost, small_rows(10), progress=False, show={"accuracy": small.accuracy}, validate=small_rows(3))
    assert (small.program.to_bytes(), small.program.revision) == before


def test_a_scope_keeps_the_parameters_it_has_and_receives_the_others(small):
    scope = ol.Scope()
    scope.set("fc_0.w", numpy.full((3, 2), 0.25, "float32"))
    result = ol.train(small.cost, small_rows(10), steps=0, scope=scope, progress=False)
    assert result.parameters is scope
    assert torch.equal(scope["fc_0.w"], torch.full((3, 2), 0.25))
    assert sorted(scope) == ["@STEP", "fc_0.b", "fc_0.w", "sgd_0.learning_rate"]


def test_the_data_stays_as_it_is(small):
    rows = small_rows(10)
    copies = {name: array.copy() for name, array in rows.items()}
    ol.train(small.cost, rows, epochs=2, progress=False)
    assert all(numpy.array_equal(rows[name], copies[name]) for name in rows)


# The order of the rows


def test_every_epoch_takes_every_row_once_and_the_last_batch_may_be_smaller(small, fed):
    ol.train(small.cost, numbered_rows(10), epochs=2, batch_size=4, progress=False)
    assert [len(feed["x"]) for feed in fed] == [4, 4, 2, 4, 4, 2]
    first, second = orders(fed, 2)
    assert sorted(first) == sorted(second) == list(range(10))
    assert first != second, "epochs differ in their order"
    assert first != list(range(10)), "rows are shuffled"


def test_rows_stay_together(small, fed):
    rows = numbered_rows(10)
    ol.train(small.cost, rows, batch_size=4, progress=False)
    for feed in fed:
        chosen = feed["x"][:, 0].astype(int)
        assert numpy.array_equal(feed["label"], rows["label"][chosen])
        assert numpy.array_equal(feed["x"], rows["x"][chosen])


def test_the_order_follows_from_the_seed_and_the_epoch_and_from_nothing_else(small, fed):
    def order(cost: ol.Var, **options: object) -> list[list[int]]:
        fed.clear()
        ol.train(cost, numbered_rows(10), epochs=3, progress=False, **options)
        return orders(fed, 3)

    plain = order(small.cost)
    torch.manual_seed(1)
    assert order(small.cost) == plain, "no generator of the process plays a part"
    assert order(small.cost, batch_size=3) == plain
    assert order(small.cost, optimizer=ol.optimizer.Adam()) == plain
    assert order(small_classifier(dropout=0.5).cost) == plain
    assert order(small_classifier(seed=1).cost) != plain


def test_a_short_run_on_few_rows_makes_few_epochs_ahead(small, monkeypatch):
    """Two mebibytes of these rows would be thousands of epochs, seconds to wait for."""
    drawn, order = [], trainer.Batches.order
    monkeypatch.setattr(trainer.Batches, "order", lambda batches, epoch: drawn.append(epoch) or order(batches, epoch))
    ol.train(small.cost, {name: numpy.repeat(column[:1], 16, 0) for name, column in small_rows().items()}, epochs=3, progress=False)
    assert drawn == [0, 1, 2, 3]


def test_a_run_that_is_taken_up_goes_on_in_the_middle_of_the_epoch(small, fed):
    unbroken = ol.train(small.cost, small_rows(10), epochs=2, batch_size=4, progress=False)
    expected = list(fed)
    fed.clear()
    result = ol.train(small.cost, small_rows(10), epochs=2, batch_size=4, steps=2, progress=False)
    assert result.steps == 2
    result = ol.train(result, small_rows(10), steps=2, progress=False)
    assert result.steps == 4
    result = ol.train(result, small_rows(10), progress=False)
    assert result.steps == 6
    assert all(numpy.array_equal(a["x"], b["x"]) for a, b in zip(fed, expected, strict=True))
    assert same_values(result.parameters, unbroken.parameters)


def test_more_epochs_may_be_asked_for_later(small):
    at_once = ol.train(small.cost, small_rows(10), epochs=3, progress=False)
    result = ol.train(small.cost, small_rows(10), epochs=1, progress=False)
    result = ol.train(result, small_rows(10), epochs=3, progress=False)
    assert [record.epoch for record in result.history] == [2, 3]
    assert same_values(result.parameters, at_once.parameters)


def test_a_run_that_is_complete_takes_no_further_step(small):
    result = ol.train(small.cost, small_rows(10), progress=False)
    before = copy_of(result.parameters)
    again = ol.train(result, small_rows(10), progress=False)
    assert (again.steps, again.history) == (1, [])
    assert same_values(again.parameters, before)


# Inputs that carry their values, and programs that have an optimizer


def test_the_life_cycle_of_the_seeds_needs_no_data_set(tmp_path):
    rows = small_rows(10)
    targets = rows["x"].sum(axis=1, keepdims=True)
    with ol.Program(seed=0):
        predict = ol.layer.fc(ol.layer.data("x", value=rows["x"]), 1)
        cost = ol.layer.mse(predict, ol.layer.data("y", value=targets))
    parameters = ol.train(cost, optimizer=ol.optimizer.SGD(0.1), epochs=100, progress=False)
    assert parameters.steps == 100, "an epoch is one step on all the rows"
    assert parameters.history[-1].training["loss"] < 1e-3
    assert numpy.abs(ol.infer(predict, parameters) - targets).max() < 0.1
    ol.save_model(cost, {}, parameters, tmp_path / "filename")
    loaded = ol.load_model(predict, tmp_path / "filename")
    other = small_rows(4, seed=2)["x"]
    assert numpy.array_equal(ol.infer(loaded, {"x": other}), ol.infer(predict, {"x": other}, parameters))


def test_inputs_that_carry_their_values_are_measured_on_these_without_other_data():
    with ol.Program(seed=0):
        cost = ol.layer.mean(ol.op.square(ol.layer.fc(ol.layer.data("x", value=small_rows(10)["x"]), 1)))
    result = ol.train(cost, validate={}, progress=False)
    assert result.history[0].validation == {"loss": float(ol.infer(cost, result))}


def test_a_program_that_minimizes_already_is_trained_as_it_is(small):
    expected = ol.train(small.cost, small_rows(10), optimizer=ol.optimizer.Momentum(0.1), epochs=2, progress=False)
    own = small_classifier()
    ol.optimizer.Momentum(0.1).minimize(own.cost)
    before = own.program.to_bytes()
    result = ol.train(own.cost, small_rows(10), epochs=2, progress=False)
    assert same_values(result.parameters, expected.parameters)
    assert own.program.to_bytes() == before


# Errors: the whole message


def message_of(raised: pytest.ExceptionInfo) -> str:
    """The message, without the line of this file that it names."""
    return re.sub(r"classifiers\.py:\d+", "classifiers.py:#", str(raised.value))


def test_a_missing_array_is_named(small):
    with pytest.raises(ol.FeedError) as raised:
        ol.train(small.cost, {"x": small_rows()["x"], "digit": small_rows()["label"]}, progress=False)
    assert message_of(raised) == (
        'the data set has no "label"\n'
        '  classifiers.py:# in small_classifier      label = ol.layer.data("label", shape=[], dtype="int64")\n'
        "      it has x, digit\n"
        '  Try: name its column with ol.data.read(data, columns={"label": "COLUMN"}), or --columns "label=COLUMN"    '
        "(oarlock explain FeedError)"
    )


def test_no_data_at_all_is_said(small):
    with pytest.raises(ol.FeedError) as raised:
        ol.train(small.cost, progress=False)
    assert message_of(raised) == (
        'the data set has no "x"\n  classifiers.py:# in small_classifier      x = ol.layer.data("x", shape=[3])\n      it has nothing'
    )


def test_arrays_of_different_lengths_are_named(small):
    rows = small_rows()
    with pytest.raises(ol.FeedError) as raised:
        ol.train(small.cost, rows | {"label": rows["label"][:4]}, progress=False)
    assert message_of(raised) == (
        'the arrays of the data set have different numbers of rows\n      "x" has 10 rows\n      "label" has 4 rows'
    )


def test_a_data_set_without_rows_is_refused(small):
    with pytest.raises(ol.FeedError) as raised:
        ol.train(small.cost, small_rows(0), progress=False)
    assert message_of(raised) == 'the data set has no rows\n      "x" has 0 rows\n      "label" has 0 rows'


def test_an_array_beside_a_value_that_would_not_be_shuffled_with_it_is_refused():
    rows = small_rows()
    with ol.Program():
        x, y = ol.layer.data("x", value=rows["x"]), ol.layer.data("y", value=rows["x"][:, :1])
        cost = ol.layer.mse(ol.layer.fc(x, 1), y)
    with pytest.raises(ol.FeedError) as raised:
        ol.train(cost, {"x": rows["x"]}, progress=False)
    assert raised.value.message == 'the data set has no "y"'
    assert raised.value.hint == "its stored value cannot be shuffled with the rows: add it to the data set"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"batch_size": 0}, "batch_size must be an integer >= 1, not 0"),
        ({"batch_size": 2.5}, "batch_size must be an integer >= 1, not 2.5"),
        ({"epochs": 0}, "epochs must be an integer >= 1, not 0"),
        ({"epochs": -1}, "epochs must be an integer >= 1, not -1"),
        ({"epochs": True}, "epochs must be an integer >= 1, not True"),
        ({"steps": -1}, "steps must be an integer >= 0, not -1"),
        ({"optimizer": 0.1}, "optimizer must be an optimizer such as ol.optimizer.Adam(1e-3), not float 0.1"),
        ({"show": ["accuracy"]}, 'show must be a dict of labels and variables, such as {"accuracy": accuracy}'),
        ({"data": [1, 2]}, "a data set must be a dict of arrays or one of the types below, not list"),
        ({"validate": [1, 2]}, "a data set must be a dict of arrays or one of the types below, not list"),
    ],
)
def test_an_argument_that_makes_no_sense_is_refused(small, options, message):
    data = options.pop("data", small_rows())
    scope = ol.Scope()
    with pytest.raises(ol.ArgumentError) as raised:
        ol.train(small.cost, data, scope=scope, progress=False, **options)
    assert str(raised.value).splitlines()[0] == message
    assert len(scope) == 0, "nothing was begun"


def test_something_that_is_no_cost_is_refused():
    with pytest.raises(ol.ArgumentError) as raised:
        ol.train(0.5, small_rows(), progress=False)
    assert str(raised.value) == "train takes a cost, or a model or result to continue, not float 0.5"


def test_the_label_of_the_cost_is_taken(small):
    with pytest.raises(ol.ArgumentError) as raised:
        ol.train(small.cost, small_rows(), show={"loss": small.accuracy}, progress=False)
    assert raised.value.message == 'show: the label "loss" is reserved for the cost; use another one'


def test_a_cost_of_many_numbers_is_refused(small):
    with pytest.raises(ol.GradientError) as raised:
        ol.train(small.predict, small_rows(), progress=False)
    assert message_of(raised) == (
        'the cost must be one float, yet "softmax_0" is float32[n, 2]\n'
        "  classifiers.py:# in _classify      predict = ol.layer.softmax(logits)\n"
        "  Try: ol.layer.mean(x) makes a cost of many values    (oarlock explain GradientError)"
    )


def test_a_cost_without_parameters_is_refused():
    with ol.Program():
        cost = ol.layer.mean(ol.layer.data("x", shape=[3]))
    with pytest.raises(ol.ProgramError) as raised:
        ol.train(cost, small_rows(), progress=False)
    assert raised.value.message == '"mean_0" depends on no trainable parameter: there is nothing to update'


def test_an_optimizer_is_given_once(small):
    ol.optimizer.SGD().minimize(small.cost)
    with pytest.raises(ol.ProgramError) as raised:
        ol.train(small.cost, small_rows(), optimizer=ol.optimizer.SGD(), progress=False)
    assert str(raised.value) == (
        "the program already has an optimizer\n  Try: omit `optimizer`, or do not call minimize    (oarlock explain ProgramError)"
    )


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"optimizer": ol.optimizer.SGD()},
            "a training program has its own optimizer and targets; optimizer and show cannot be given",
        ),
        ({"batch_size": 5}, "this run has a batch size of 32, which cannot be changed"),
        ({"scope": ol.Scope()}, "a training program has its own parameters; scope can only be given with a cost"),
        ({"epochs": 0}, "epochs must be an integer >= 1, not 0"),
    ],
)
def test_a_run_that_is_taken_up_keeps_what_it_is(small, options, message):
    result = ol.train(small.cost, small_rows(), progress=False)
    before = result.program.to_bytes()
    with pytest.raises(ol.ArgumentError) as raised:
        ol.train(result, small_rows(), progress=False, **options)
    assert raised.value.message == message
    assert result.program.to_bytes() == before


def test_data_that_is_refused_leaves_a_run_that_is_taken_up_as_it_was(small):
    result = ol.train(small.cost, small_rows(), progress=False)
    before = result.program.to_bytes()
    with pytest.raises(ol.FeedError, match="the data set has no"):
        ol.train(result, {"x": small_rows()["x"]}, epochs=9, progress=False)
    assert result.program.to_bytes() == before


@pytest.fixture
def backends(monkeypatch: pytest.MonkeyPatch) -> list[str | None]:
    """The backend of each executor of a run; none of them compiles anything."""
    seen: list[str | None] = []

    class Recorder(ol.Executor):
        def __init__(self, place=None, *, backend=None, **options):
            seen.append(backend)
            super().__init__(place, **options)

    monkeypatch.setattr(trainer, "Executor", Recorder)
    return seen


def test_a_run_goes_on_with_its_backend_until_another_is_given(small, backends, tmp_path):
    path, options = tmp_path / "run.safetensors", {"progress": False, "steps": 1}
    ol.save_model(ol.train(small.cost, small_rows(), epochs=9, backend="inductor", **options), path)
    for given in ({}, {"epochs": 7}, {"backend": "none"}, {}, {"backend": "inductor"}, {}):
        result = ol.train(ol.load_model(path), small_rows(), **given, **options)
        ol.save_model(result, path)
    ol.train(result, small_rows(), **options)
    assert backends == ["inductor", "inductor", "inductor", None, None, "inductor", "inductor", "inductor"]
    assert "batch_size=32 epochs=7 backend=inductor\n" in result.program.to_text()
    ol.train(small.cost, small_rows(), backend="none", **options)
    assert backends[-1] is None


@pytest.mark.parametrize(
    ("backend", "untrusted", "message"),
    [
        ("inductor", True, "backends need a plan, but limits uses the interpreter"),
        ("cuda_graphs", False, 'backend="cuda_graphs" needs a GPU, not CPUPlace()'),
        ("xla", False, 'backend must be "inductor", "cuda_graphs", "numpy" or None, not \'xla\''),
    ],
)
def test_a_saved_backend_that_cannot_be_gone_on_with_is_refused_until_none_is_asked_for(small, backend, untrusted, message, tmp_path):
    path = tmp_path / "run.safetensors"
    result = ol.train(small.cost, small_rows(), epochs=3, steps=1, progress=False)
    result.program.training = ol.ir.program.Training(32, 3, backend)
    ol.save_model(result, path)
    model = ol.load_model(path, untrusted=untrusted)
    before, held = model.program.to_bytes(), copy_of(model.scope)
    with pytest.raises(ol.ArgumentError) as raised:
        ol.train(model, small_rows(), epochs=2, progress=False)
    assert raised.value.message == message
    assert raised.value.hint == f'the saved run uses the backend "{backend}": give another one, or "none"'
    assert model.program.to_bytes() == before
    assert same_values(model.scope, held)
    assert ol.train(model, small_rows(), epochs=2, progress=False, backend="none").steps == 2


def test_a_model_that_only_predicts_cannot_be_taken_up(small, tmp_path):
    ol.save_model(small.predict, ol.train(small.cost, small_rows(), progress=False), tmp_path / "model.safetensors")
    with pytest.raises(ol.ArgumentError) as raised:
        ol.train(ol.load_model(tmp_path / "model.safetensors"), small_rows(), progress=False)
    assert str(raised.value) == (
        "this model has no training program\n  Try: save one with ol.save_model(result, path)    (oarlock explain ArgumentError)"
    )


def test_a_scope_whose_values_do_not_fit_is_left_as_it_is(small):
    scope = ol.Scope()
    scope.set("fc_0.b", numpy.zeros(3, "float32"))
    with pytest.raises(ol.ShapeError) as raised:
        ol.train(small.cost, small_rows(), scope=scope, progress=False)
    assert raised.value.message == '"fc_0.b" is float32[3] in the scope, but float32[2] in the program'
    assert list(scope) == ["fc_0.b"]


# A step that raises changes nothing


@pytest.mark.parametrize(
    "optimizer", [ol.optimizer.SGD(0.1), ol.optimizer.Momentum(0.1), ol.optimizer.Adam(0.1)], ids=["sgd", "momentum", "adam"]
)
def test_a_label_out_of_range_in_the_middle_of_an_epoch_leaves_the_last_good_step(small, fed, optimizer):
    rows = numbered_rows(10)
    ol.train(small.cost, rows, epochs=2, batch_size=2, progress=False)
    culprit = int(fed[7]["x"][0, 0])  # a row of the third step of the second epoch, which the first epoch sees too
    first = next(number for number, feed in enumerate(fed) if culprit in feed["x"][:, 0])
    good = ol.train(small.cost, rows, optimizer=optimizer, epochs=2, batch_size=2, steps=first, progress=False)

    spoiled = rows | {"label": rows["label"].copy()}
    spoiled["label"][culprit] = 2
    scope = ol.Scope()
    with pytest.raises(ol.KernelError) as raised:
        ol.train(small.cost, spoiled, optimizer=optimizer, epochs=2, batch_size=2, scope=scope, progress=False)
    assert raised.value.message == "softmax_with_cross_entropy: label 2 is not one of the classes 0 to 1"
    assert int(scope["@STEP"]) == first > 0
    assert same_values(scope, good.parameters)

    unbroken = ol.train(small.cost, rows, optimizer=optimizer, epochs=2, batch_size=2, progress=False)
    ol.train(small.cost, rows, optimizer=optimizer, epochs=2, batch_size=2, scope=scope, progress=False)
    assert same_values(scope, unbroken.parameters), "with the label corrected, the run goes on as if nothing had happened"


@pytest.mark.parametrize(
    "spoil",
    [
        lambda feed: feed | {"x": feed["x"].astype("float64")},
        lambda feed: feed | {"x": feed["x"][:, :2]},
        lambda feed: feed | {"label": feed["label"][:1]},
        lambda feed: {"x": feed["x"]},
        lambda feed: feed | {"images": feed["x"]},
        lambda feed: feed | {"label": feed["label"] - 7},
    ],
    ids=["dtype", "shape", "rows", "missing", "unknown", "label"],
)
def test_a_bad_feed_in_the_middle_of_an_epoch_changes_nothing(small, fed, spoil):
    ol.train(small.cost, small_rows(10), batch_size=2, progress=False)
    ol.optimizer.Adam(0.1).minimize(small.cost)
    scope, executor = ol.init(small.program, ol.Scope()), ol.Executor()
    for feed in fed[:3]:
        executor.run(small.program, feed, scope=scope, training=True)
    before = copy_of(scope)
    with pytest.raises((ol.FeedError, ol.KernelError)):
        executor.run(small.program, spoil(fed[3]), [small.cost], scope=scope, training=True)
    assert same_values(scope, before)
    assert scope.children == [], "what the failed step computed is gone"
    executor.run(small.program, fed[3], scope=scope, training=True)
    assert int(scope["@STEP"]) == 4


def test_a_display_is_stopped_when_a_step_raises(small):
    class Stopping(SilentDisplay):
        stopped = False

        def stop(self) -> None:
            self.stopped = True

    display = Stopping()
    rows = small_rows()
    with pytest.raises(ol.KernelError):
        ol.train(small.cost, rows | {"label": rows["label"] + 5}, progress=display)
    assert display.stopped


# What it says while it runs


def terminal() -> Console:
    return Console(file=io.StringIO(), force_terminal=True, width=120, legacy_windows=False)


def plain() -> Console:
    return Console(file=io.StringIO(), width=40)


def printed(console: Console) -> str:
    return console.file.getvalue()


def without_control_codes(console: Console) -> str:
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", printed(console))


def test_a_terminal_gets_a_live_display_and_anything_else_plain_lines():
    assert isinstance(select_display(terminal()), LiveDisplay)
    assert isinstance(select_display(plain()), PlainDisplay)


def test_a_display_may_be_asked_for():
    assert isinstance(select_display(terminal(), kind="plain"), PlainDisplay)
    assert isinstance(select_display(plain(), kind="live"), LiveDisplay)
    assert isinstance(select_display(terminal(), kind="quiet"), SilentDisplay)


def test_the_live_display_shows_epoch_loss_accuracy_speed_and_the_time_left():
    console = terminal()
    display = LiveDisplay(console)
    clock = itertools.count()
    display.progress.get_time = lambda: float(next(clock))  # a second passes whenever the display looks
    display.start(done=0, total=400, epochs=20, unit="images")
    means = Means()
    means.add({"loss": None, "accuracy": None}, [1.23456, 0.875], 32)
    for _ in range(20):
        display.step(epoch=3, rows=32, means=means)
    display.progress.refresh()
    line = without_control_codes(console).splitlines()[-1]
    assert re.search(r"epoch 3/20 .*loss 1\.2346  accuracy 87\.5 % [\d,]+ images/s 0:\d\d:\d\d", line), line
    display.epoch(epoch=3, metrics={"loss": 1.0, "accuracy": 0.9, "test accuracy": 0.95})
    display.stop()
    assert "epoch  3  loss 1.0000  accuracy 90.0 %  test accuracy 95.0 %" in without_control_codes(console)


def test_training_on_a_terminal_moves_the_live_display(small):
    console = terminal()
    ol.train(small.cost, small_rows(10), epochs=2, progress=LiveDisplay(console), show={"accuracy": small.accuracy})
    text = without_control_codes(console)
    assert re.search(r"epoch  1  loss \d\.\d{4}  accuracy \d+\.\d %\s+epoch", text), text
    assert re.search(r"epoch 2/2 .* rows/s", text), text


def test_a_file_gets_one_plain_line_per_epoch(small):
    console = plain()
    display = PlainDisplay(console)
    ol.train(small.cost, small_rows(10), epochs=3, progress=display, show={"accuracy": small.accuracy}, validate=small_rows(4))
    lines = printed(console).splitlines()
    loss, share = r"loss \d\.\d{4}", r"accuracy \d+\.\d %"
    assert len(lines) == 3
    for epoch, line in enumerate(lines, start=1):
        metrics = rf"{loss}  {share}  validation {loss}  validation {share}"
        assert re.fullmatch(rf"epoch {epoch}/3  {metrics}  [\d,]+ rows/s  \d+ s left", line), line
    assert "\x1b" not in printed(console)
    assert lines[-1].endswith(" 0 s left")


def test_rows_of_images_are_called_images():
    console = plain()
    with ol.Program():
        cost = ol.layer.mean(ol.layer.fc(ol.layer.data("image", shape=[3]), 1))
    ol.train(cost, {"image": small_rows()["x"]}, progress=PlainDisplay(console))
    assert re.search(r" images/s  0 s left$", printed(console).strip())


def test_silence_is_asked_for_by_false(small, capsys):
    ol.train(small.cost, small_rows(10), progress=False)
    assert capsys.readouterr() == ("", "")
    ol.train(small.cost, small_rows(10))
    assert capsys.readouterr().out.startswith("epoch 1/1  loss ")


def test_a_variable_that_is_frozen_in_the_midst_of_a_run_stays_as_it_is_from_then_on(small):
    frozen = []

    def on_step(step, _):
        name = small.program.parameters()[0].name
        if step == 3:
            scope.var(name).estimated = False
        frozen.append(scope[name].numpy().copy())

    scope = ol.Scope()
    ol.train(small.cost, small_rows(10), batch_size=2, scope=scope, on_step=on_step, progress=False)
    assert not numpy.array_equal(frozen[1], frozen[2])
    assert numpy.array_equal(frozen[2], frozen[4])


@pytest.mark.parametrize("batch_size", [2, 16], ids=["beside cache lines", "at cache lines"])
def test_batches_are_the_same_and_lie_alike_wherever_a_run_is_taken_up(batch_size):
    program = ol.Program(seed=3)
    with program:
        ol.layer.data("x", [3])
        ol.layer.data("label", [], dtype="int64")
    rows = {"x": numpy.random.default_rng(0).random((70, 3), "float32"), "label": numpy.arange(70)}
    found = trainer.Batches.of(rows, program, batch_size)
    whole = list(itertools.islice(found.after(0), 2 * found.per_epoch))
    for step in (1, found.per_epoch - 1, found.per_epoch + 1):
        for batch, same in zip(found.after(step), whole[step:], strict=False):
            by_rows = found.batch(found.order(same.epoch), same.number)
            assert batch[:3] == same[:3]
            assert {name: batch.feed[name].data_ptr() % 64 for name in rows} == {"x": 0, "label": 0}
            assert all(torch.equal(batch.feed[name], torch.from_numpy(by_rows[name])) for name in rows)
