"""The counts of a metric are state of its program: runs count, evaluation does not, a reset begins anew, and a saved run goes on."""

import math

import numpy
import pytest
import torch

import oarlock as ol
from oarlock.serving.served_model import ServedModel

ROWS = 50


def data(seed=0, rows=ROWS):
    random = numpy.random.default_rng(seed)
    x = random.normal(size=(rows, 3)).astype("float32")
    return {"x": x, "label": (x.sum(1) > 0).astype("int64")}


def model():
    with ol.Program(seed=1):
        x, label = ol.layer.data("x", [3]), ol.layer.data("label", [], dtype="int64")
        logits = ol.layer.fc(ol.layer.dropout(ol.layer.fc(x, 8, act="tanh"), rate=0.2), 2)
        cost, accuracy = ol.layer.cross_entropy(logits, label), ol.metric.accuracy(logits, label)
    return logits, cost, accuracy


def share_right(logits, parameters, rows):
    return float((ol.infer(logits, {"x": rows["x"]}, parameters).argmax(1) == rows["label"]).mean())


@pytest.fixture
def counting():
    """A metric of what is fed, its scope, and an executor."""
    with ol.Program() as program:
        mean = ol.metric.mean(ol.layer.data("x", []))
    return mean, ol.init(program, ol.Scope()), ol.Executor()


def count(counting, *values, **options):
    mean, scope, executor = counting
    return float(executor.run(mean.block.program, {"x": numpy.array(values, "float32")}, [mean], scope=scope, **options)[0])


def test_runs_count_whether_they_train_or_not(counting):
    assert count(counting, 1.0, 2.0) == 1.5
    assert count(counting, 6.0, training=False) == 3.0
    assert count(counting, 3.0, training=True) == 3.0
    assert int(counting[1]["mean_0.count"]) == 4


def test_a_run_that_is_told_not_to_measure_and_an_evaluation_count_nothing(counting):
    mean, scope, executor = counting
    count(counting, 1.0, 2.0)
    assert count(counting, 6.0, measure=False) == 3.0, "of the batches before and of this one"
    assert float(executor.eval(mean.block.program, [mean], {"x": numpy.full(1, 9.0, "float32")}, scope=scope)[0]) == 4.0
    assert executor.prepare(mean.block.program, [mean], scope=scope, measure=False)({"x": numpy.full(1, 9.0, "float32")}) == [4.0]
    assert int(scope["mean_0.count"]) == 2


def test_a_step_counts_as_a_run_does(counting):
    mean, scope, executor = counting
    step = executor.prepare(mean.block.program, [mean], scope=scope)
    assert [float(step({"x": numpy.full(1, value, "float32")})[0]) for value in (1.0, 2.0, 6.0)] == [1.0, 1.5, 3.0]


def test_a_batch_that_is_refused_is_not_counted():
    with ol.Program() as program:
        matrix = ol.metric.confusion_matrix(ol.layer.data("predict", [2]), ol.layer.data("label", [], dtype="int64"))
    for interpret in (False, True):
        scope, executor = ol.init(program, ol.Scope()), ol.Executor(interpret=interpret)
        with pytest.raises(ol.KernelError, match="x contains 2; allowed are 0 to 1"):
            executor.run(program, {"predict": numpy.eye(2, dtype="float32"), "label": [0, 2]}, [matrix], scope=scope)
        assert int(scope["confusion_matrix_0.counts"].sum()) == 0


def test_a_reset_begins_anew_those_metrics_that_are_named():
    with ol.Program() as program:
        x = ol.layer.data("x", [])
        one, other = ol.metric.mean(x), ol.metric.mean(x * 2.0, name="twice")
    scope, executor = ol.init(program, ol.Scope()), ol.Executor()

    def run(value):
        return [float(mean) for mean in executor.run(program, {"x": numpy.full(1, value, "float32")}, [one, other], scope=scope)]

    run(1.0)
    ol.metric.reset(one, scope)
    assert run(3.0) == [3.0, 4.0]
    ol.metric.reset(program, scope)
    assert run(5.0) == [5.0, 10.0]
    ol.metric.reset([one, other], scope)
    assert run(1.0) == [1.0, 2.0]


def test_training_measures_each_epoch_and_its_validation_by_themselves():
    logits, cost, accuracy = model()
    train, test = data(), data(1, 23)
    result = ol.train(cost, train, epochs=3, batch_size=8, validate=test, show={"accuracy": accuracy}, progress=False)
    assert result.history[-1].validation["accuracy"] == share_right(logits, result.parameters, test)
    assert result.history[-1].training["accuracy"] != result.history[0].training["accuracy"]
    assert int(result.parameters["accuracy_0.count"]) == 0, "what is measured next begins anew"
    assert float(ol.infer(accuracy, test, result.parameters)) == share_right(logits, result.parameters, test)


def test_a_mean_over_rows_and_a_metric_of_the_same_agree():
    logits, cost, accuracy = model()
    with cost.block.program:
        shown = {"by_rows": ol.layer.accuracy(logits, cost.block.program.main.var("label")), "accuracy": accuracy}
    record = ol.train(cost, data(), epochs=1, batch_size=8, validate=data(1, 23), show=shown, progress=False).history[0]
    assert record.training["by_rows"] == pytest.approx(record.training["accuracy"], rel=1e-6)
    assert record.validation["by_rows"] == pytest.approx(record.validation["accuracy"], rel=1e-6)


def test_a_run_that_stops_in_an_epoch_and_is_saved_goes_on_counting(tmp_path):
    _, cost, accuracy = model()
    whole = ol.train(cost, data(), epochs=2, batch_size=8, show={"accuracy": accuracy}, progress=False)
    part = ol.train(cost, data(), epochs=2, batch_size=8, show={"accuracy": accuracy}, progress=False, steps=10)
    ol.save_model(part, tmp_path / "run.safetensors")
    saved = ol.load_model(tmp_path / "run.safetensors")
    assert int(saved.scope["accuracy_0.count"]) == 24, "three batches of the second epoch"
    assert ol.train(saved, data(), progress=False).history == whole.history[1:]


def test_evaluate_measures_data_in_batches_and_changes_nothing(tmp_path):
    logits, cost, accuracy = model()
    result = ol.train(cost, data(), epochs=2, show={"accuracy": accuracy}, progress=False)
    test = data(1, 23)
    count_before = result.parameters["accuracy_0.count"] = numpy.int64(7)
    found = ol.evaluate({"accuracy": accuracy, "loss": cost}, test, result, batch_size=5)
    assert found["accuracy"] == share_right(logits, result.parameters, test)
    assert found["loss"] == pytest.approx(float(ol.infer(cost, test, result.parameters)), rel=1e-6)
    assert int(result.parameters["accuracy_0.count"]) == count_before
    ol.save_model({"accuracy": accuracy}, result, tmp_path / "measured.safetensors")
    assert ol.evaluate(ol.load_model(tmp_path / "measured.safetensors"), test, batch_size=4) == {"accuracy": found["accuracy"]}


def test_evaluate_gives_a_metric_of_several_numbers_as_an_array():
    logits, cost, _ = model()
    with cost.block.program as program:
        matrix = ol.metric.confusion_matrix(logits, program.main.var("label"), name="matrix")
    found = ol.evaluate(matrix, data(), ol.init(program, ol.Scope()), batch_size=7)
    assert list(found) == ["matrix.out"]
    assert found["matrix.out"].sum() == ROWS


def test_two_programs_of_one_scope_do_not_count_together():
    scope = ol.Scope()
    programs = []
    for _ in range(2):
        with ol.Program() as program:
            ol.metric.mean(ol.layer.data("x", []))
        programs.append(program)
    ol.init(programs[0], scope)
    with pytest.raises(ol.ScopeError, match="the scope holds the state of another program: mean_0.sum, mean_0.count"):
        ol.init(programs[1], scope)
    inside = ol.init(programs[1], scope.new_scope())
    executor = ol.Executor()
    executor.run(programs[1], {"x": numpy.ones(3, "float32")}, scope=inside)
    executor.run(programs[0], {"x": numpy.ones(1, "float32")}, scope=scope)
    assert int(inside["mean_0.count"]) == 3
    assert int(scope["mean_0.count"]) == 1
    with pytest.raises(ol.ScopeError):
        executor.run(programs[1], {"x": numpy.ones(1, "float32")}, scope=scope)


def test_a_server_counts_nothing(counting):
    mean, scope, _ = counting
    served = ServedModel("mean", ol.Model(ol.prune(mean.block.program, {"mean": mean}), scope))
    (answer,) = served.run([{"x": torch.full((1,), 3.0)}])
    assert float(answer["mean"]) == 3.0
    assert int(scope["mean_0.count"]) == 0


def test_the_text_of_a_program_says_what_metrics_count(counting):
    program = counting[0].block.program
    text = program.to_text(source=False)
    assert text.endswith("\n  count:\n  mean_0.sum <- mean_0.sum@NEXT\n  mean_0.count <- mean_0.count@NEXT\n}\n")
    assert ol.parse_program(text).to_text(source=False) == text
    assert ol.Program.from_bytes(program.to_bytes()).to_text(source=False) == text


def test_pruning_keeps_what_the_metrics_that_stay_count():
    with ol.Program() as program:
        x = ol.layer.data("x", [])
        kept = ol.metric.mean(x)
        ol.metric.mean(x * 2.0)
        plain = x + 1.0
    assert [op.writes[0].name for op in ol.prune(program, kept).main.tail] == ["mean_0.sum", "mean_0.count"]
    assert ol.prune(program, plain).main.tail == []
    assert not program.is_training


def test_a_metric_in_a_branch_is_refused_and_leaves_nothing():
    with ol.Program() as program:
        x = ol.layer.data("x", [])
        branches = ol.ifelse()
        with pytest.raises(ol.ProgramError, match="metric.mean: its state cannot be updated in main/"), branches.true_block():
            ol.metric.mean(x)
        assert [var.name for var in program.main.vars.values() if var.persistable] == []


def test_a_name_that_is_taken_is_refused():
    with ol.Program() as program:
        x = ol.layer.data("x", [])
        ol.metric.mean(x, name="m")
        before = program.to_text()
        with pytest.raises(ol.ProgramError, match=r'metric.mean: "m.sum" is already declared'):
            ol.metric.mean(x, name="m")
    assert program.to_text() == before


@pytest.mark.parametrize(
    ("write", "error", "message"),
    [
        (lambda x, y, label: ol.metric.mean_squared_error(x, y), ol.ShapeError, "predict and target have different shapes"),
        (lambda x, y, label: ol.metric.accuracy(x, label), ol.ShapeError, "labels and predictions do not match"),
        (
            lambda x, y, label: ol.metric.precision(y, label, average="mean"),
            ol.ArgumentError,
            'average must be "macro", "micro", "weighted" or None',
        ),
        (
            lambda x, y, label: ol.metric.top_k_accuracy(y, label, 0),
            ol.ArgumentError,
            "metric.top_k_accuracy: k must be an integer >= 1, not 0",
        ),
        (lambda x, y, label: ol.metric.auc(x, label, bins=1), ol.ArgumentError, "metric.auc: bins must be an integer >= 2, not 1"),
        (lambda x, y, label: ol.metric.edit_distance(label, label), ol.ArgumentError, "metric.edit_distance: hypothesis is not ragged"),
        (lambda x, y, label: ol.metric.mean(3.0), ol.ArgumentError, "metric.mean: x must be a variable of a program, not 3.0"),
        (lambda x, y, label: ol.metric.reset(x, ol.Scope()), ol.ArgumentError, '"x" is not a metric, so it cannot be reset'),
        (lambda x, y, label: ol.metric.reset([], ol.Scope()), ol.ArgumentError, "reset: expected a program or values of metrics"),
    ],
)
def test_what_fits_no_metric_is_refused_and_the_program_stays(write, error, message):
    with ol.Program() as program:
        x, y = ol.layer.data("x", [3, 2]), ol.layer.data("y", [3])
        label = ol.layer.data("label", [], dtype="int64")
        before = program.to_text()
        with pytest.raises(error) as raised:
            write(x, y, label)
    assert message in str(raised.value)
    assert program.to_text() == before


def test_a_metric_that_has_nothing_to_divide_by_yet_is_no_loss_that_went_wrong():
    with ol.Program(seed=0):
        x, label = ol.layer.data("x", [3]), ol.layer.data("label", [], dtype="int64")
        logits = ol.layer.fc(x, 2)
        cost = ol.layer.cross_entropy(logits, label)
        right = ol.metric.accuracy(logits, label, ignore_index=0)
    rows = data() | {"label": numpy.zeros(ROWS, "int64")}
    result = ol.train(cost, rows, epochs=1, show={"right": right}, progress=False)  # a warning is an error here
    assert math.isnan(result.history[0].training["right"])
