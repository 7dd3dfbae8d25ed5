"""A step whose loss, or whose update, is not finite: training stops before it, and says which operator made that, where and of what."""

import math
import time

import numpy
import pytest
import torch
from printed import settle

import oarlock as ol

RANDOM = numpy.random.default_rng(0)
X = RANDOM.normal(size=(40, 3)).astype("float32")
WORDS = [[1, 2, 3], [4], [2, 2], [], [3, 1]] * 8
KEPT = "The state before this step is the `result` of this error    (oarlock explain NotFiniteError)"
SMALLER = f'  Try: a smaller learning rate or clip=ol.optimizer.ClipByGlobalNorm(1.0); not_finite="warn" continues training. {KEPT}'


def train(build, data=None, *, rate: float | ol.optimizer.Optimizer = 0.01, **options) -> ol.TrainingResult:
    with ol.Program(seed=1):
        cost = build()
    optimizer = ol.optimizer.SGD(rate) if isinstance(rate, float) else rate
    given = {"batch_size": 5, "epochs": 3} | options
    return ol.train(cost, {"x": X} if data is None else data, optimizer=optimizer, progress=False, **given)


def stopped(build, data=None, **options) -> ol.NotFiniteError:
    with pytest.raises(ol.NotFiniteError) as raised:
        train(build, data, **options)
    result = raised.value.result
    assert isinstance(result, ol.TrainingResult)
    assert all(bool(torch.isfinite(result.parameters[name]).all()) for name in result.parameters)
    return raised.value


def lines(error: ol.NotFiniteError) -> list[str]:
    """The message without the line of this file that the location shows, which is tested by itself."""
    return [line for number, line in enumerate(str(error).splitlines()) if number != 1]


def hidden(**options) -> ol.Var:
    return ol.layer.fc(ol.layer.data("x", [3]), 4, name="h", **options)


def logarithm() -> ol.Var:
    return ol.layer.mean(ol.op.log(ol.op.relu(hidden())))


def squares() -> ol.Var:
    return ol.layer.mean(ol.op.square(hidden()))


def roots() -> ol.Var:
    return ol.layer.mean(ol.op.sqrt(ol.op.square(hidden(bias=False))))


ZERO = X.copy()
ZERO[17] = 0


def test_a_forward_operator_is_named_with_its_line_and_the_ranges_of_its_inputs():
    error = stopped(logarithm)
    assert error.op == "log"
    assert error.location.text == "return ol.layer.mean(ol.op.log(ol.op.relu(hidden())))"
    expected = [
        '"loss" is -inf at step 1, in epoch 1: log made -inf',
        "  running   main, op 2 of 17, scope main",
        '      x = "relu_0" float32[5, 4], 0 to 1.42079',
        '      gave y = "log_0" float32[5, 4], -2.74249 to 0.35121, 7 -inf of 20',
        SMALLER,
    ]
    assert [settle(line, wanted) for line, wanted in zip(lines(error), expected, strict=True)] == expected
    assert error.result.steps == 0


def test_an_operator_of_a_gradient_is_named_and_what_made_a_nan_of_its_infinity():
    error = stopped(roots, {"x": ZERO})
    assert error.location.text == "return ol.layer.mean(ol.op.sqrt(ol.op.square(hidden(bias=False))))"
    expected = [
        '"h.w" would not be finite after step 6, in epoch 1: divide in the gradient of this line made inf',
        "  running   main, op 8 of 18, scope main",
        '      x = "sqrt_0@GRAD" float32[5, 4], 0.05 to 0.05',
        '      y = "multiply_0" float32[5, 4], 0 to 4.00572',
        '      gave z = "square_0@GRAD" float32[5, 4], 0.0124821 to 1.19014, 4 inf of 20',
        "      multiply in the gradient of this line made nan of it",
        '        x = "square_0@GRAD" float32[5, 4], 0.0124821 to 1.19014, 4 inf of 20',
        '        y = "h.out" float32[5, 4], -2.00286 to 1.43148',
        SMALLER,
    ]
    assert [settle(line.partition(", at ")[0], wanted) for line, wanted in zip(lines(error), expected, strict=True)] == expected
    assert error.result.steps == 5


def test_an_update_is_named():
    error = stopped(lambda: squares() * 1e3, rate=1e38)
    assert lines(error)[:2] == [
        '"h.w" would not be finite after step 1, in epoch 1: sgd in the update made inf',
        "  running   main, op 15 of 20, scope main",
    ]
    assert error.op == "sgd"
    assert error.result.steps == 0


def test_what_was_fed_is_named_where_no_operator_made_it():
    rows = X.copy()
    rows[3, 1] = math.nan
    error = stopped(squares, {"x": rows})
    step = error.result.steps + 1
    assert lines(error) == [
        f'"loss" is nan at step {step}, in epoch 1: the input "x" contains NaN or infinity',
        lines(error)[1],
        f"  Try: remove such rows. {KEPT}",
    ]
    assert lines(error)[1].startswith('      "x" float32[5, 3], ')
    assert lines(error)[1].endswith(", 1 nan of 15")


def branch() -> ol.Var:
    total = ol.op.reduce_sum(ol.op.square(hidden()))
    return ol.cond(total > 0.0, lambda: ol.op.log(total - total), lambda: ol.op.square(total))


def loop() -> ol.Var:
    total = ol.op.reduce_sum(ol.op.square(hidden()))
    growing = ol.while_loop(total < 1e30, max_trips=200)
    with growing.block():
        more = ol.op.exp(total)
        growing.carry(total, more)
        growing.update_condition(more < 1e30)
    return growing()


def recurrence() -> ol.Var:
    """The gradient of the root is infinite in the second trip of one row, where the state is 0 times 0."""
    x, words = ol.layer.data("x", [3]), ol.layer.data("words", [], dtype="int64", ragged=1)
    start = ol.layer.fc(x, 3, name="start")
    rnn = ol.rnn()
    with rnn.step():
        factor = ol.op.cast(rnn.step_input(words), dtype="float32") - 2.0
        state = rnn.memory(init=start)
        following = ol.op.sqrt(ol.op.square(ol.op.multiply(rnn.previous_memory(state), ol.op.reshape(factor, [-1, 1]))))
        rnn.update_memory(state, following)
    rnn()
    return ol.layer.mean(rnn.final_memory(state))


def test_an_operator_in_a_branch_is_named_where_it_stands():
    error = stopped(branch)
    assert (error.op, error.result.steps) == ("log", 0)
    assert error.location.text.startswith("return ol.cond(total > 0.0")
    assert lines(error)[1] == "  running   main/cond_0.true, op 1 of 2, scope main/cond_0.true"


def test_an_operator_in_a_loop_is_named_with_its_trip():
    error = stopped(loop)
    assert (error.op, error.location.text) == ("exp", "more = ol.op.exp(total)")
    assert lines(error)[1] == "  running   main/while_0.body, op 0 of 3, scope main/while_0/1"


def test_an_operator_in_the_gradient_of_a_loop_is_named():
    error = stopped(recurrence, {"x": X, "words": WORDS})
    assert lines(error)[0] == ('"start.w" would not be finite after step 1, in epoch 1: divide in the gradient of this line made inf')
    assert error.location.text.startswith("following = ol.op.sqrt(")
    assert "@GRAD" in error.running
    assert error.running.rpartition("/")[2].isdigit()


def masked() -> ol.Var:
    """The softmax of a row that is masked whole is NaN; masks of others, and what `where` drops, are as they should be."""
    value = hidden()
    kept = ol.op.where(value > -1.0, value, ol.op.full_like(value, value=-math.inf, dtype="float32"))
    safe = ol.op.where(value > 1e9, ol.op.log(value - value - 1.0), kept)
    return ol.layer.mean(ol.op.reduce_max(ol.op.softmax(safe), axis=1)[0])


def test_what_is_dropped_or_written_so_is_not_blamed():
    assert train(masked).steps == 24
    rows = X.copy()
    rows[9] *= 1e4
    with ol.Program(seed=1):
        value = ol.layer.data("x", [3])
        kept = ol.op.where(value < 100.0, value, ol.op.full_like(value, value=-math.inf, dtype="float32"))
        dropped = ol.op.where(value > 1e9, ol.op.log(value - value - 1.0), kept)
        cost = ol.layer.mean(ol.layer.fc(ol.op.softmax(dropped), 2, name="h"))
    with pytest.raises(ol.NotFiniteError) as raised:
        ol.train(cost, {"x": numpy.abs(rows) * 1e4}, batch_size=5, progress=False)
    assert raised.value.message == '"loss" is nan at step 1, in epoch 1: softmax made nan'


# The last good state


def table() -> ol.Var:
    """A row of the table becomes NaN in one step, and is looked up again much later: until then the loss is finite."""
    row = ol.layer.embedding(ol.layer.data("word", [], dtype="int64"), (60, 2), name="table")
    return ol.layer.mean(ol.op.sqrt(ol.op.square(row * ol.layer.data("factor", [1]))))


FACTORS = numpy.ones((60, 1), "float32")
FACTORS[41] = 0.0
TABLE = {"word": numpy.arange(60), "factor": FACTORS}


def same(left: ol.TrainingResult, right: ol.TrainingResult) -> bool:
    return left.steps == right.steps and all(torch.equal(left.parameters[name], right.parameters[name]) for name in right.parameters)


@pytest.mark.parametrize("run", [False, True])
@pytest.mark.parametrize("rows", [1, 3])
def test_a_bad_step_that_shows_later_is_found_and_the_state_is_that_before_it(rows, run, tmp_path):
    options = {"batch_size": rows, "rate": ol.optimizer.Momentum(0.1)}
    kept = {"run": ol.training.Run(tmp_path / "run", save_every=7)} if run else {}
    error = stopped(table, TABLE, **options, **kept)
    before = error.result.steps
    assert 0 < before < 60 // rows
    assert error.message.startswith(f'"table.w" would not be finite after step {before + 1}, in epoch 1: divide in the gradient')
    good = train(table, TABLE, **options, steps=before)
    assert same(error.result, good)
    spoilt = train(table, TABLE, **options, steps=before + 1, not_finite="warn")
    assert not bool(torch.isfinite(spoilt.parameters["table.w"]).all())
    if run:  # goes on from the step before, and stops there
        again = stopped(table, TABLE, **options, **kept)
        assert (again.message, again.result.steps) == (error.message, before)
        assert same(again.result, good)


def test_measures_and_random_draws_go_back_too():
    """With dropout, a metric and a running mean, what is stopped goes on as if it had been stopped there by `steps`."""

    def build() -> ol.Var:
        x, factor = ol.layer.batch_norm(ol.layer.data("x", [3])), ol.layer.data("factor", [1])
        rows = ol.op.reduce_sum(ol.op.square(ol.layer.fc(x, 2, name="h")), axis=1, keepdim=True) * factor
        return ol.layer.mean(ol.op.sqrt(rows)) + 0.1 * ol.layer.mean(ol.layer.dropout(ol.layer.fc(x, 2), 0.3))

    factors = numpy.ones((40, 1), "float32")
    factors[23] = 0.0
    error = stopped(build, {"x": X, "factor": factors})
    before = error.result.steps
    assert before > 1
    good = train(build, {"x": X, "factor": factors}, steps=before)
    assert same(error.result, good)  # the sums of the epoch, too: "@EPOCH"
    assert "@EPOCH" in good.parameters


def test_the_scope_that_was_given_is_as_before_the_step_and_the_run_goes_on_in_it():
    scope = ol.Scope()
    with ol.Program(seed=1):
        cost = table()
    with pytest.raises(ol.NotFiniteError) as raised:
        ol.train(cost, TABLE, batch_size=3, scope=scope, progress=False)
    assert raised.value.result.parameters is scope
    assert bool(torch.isfinite(scope["table.w"]).all())
    with pytest.raises(ol.NotFiniteError) as again:
        ol.train(cost, TABLE, batch_size=3, scope=scope, progress=False)
    assert again.value.message == raised.value.message


def test_steps_that_do_not_repeat_are_gone_back_behind():
    """A function of the user's changes the parameters after each step, and not again when the steps are run once more."""
    scope = ol.Scope()

    def shrink(step: int, values: dict[str, float]) -> None:
        scope.set("table.w", scope["table.w"] * 0.9)

    with pytest.raises(ol.NotFiniteError) as raised, ol.Program(seed=1):
        ol.train(table(), TABLE, batch_size=1, scope=scope, progress=False, on_step=shrink)
    assert raised.value.message.endswith(
        "since step 0 gave different results when repeated, so the cause is unknown. The state is that after that step"
    )
    assert raised.value.result.steps == 0


@pytest.mark.parametrize(("seconds", "looks"), [(0.0, 5), (0.1, 1)])
def test_a_state_that_takes_long_to_copy_is_copied_less_often(seconds, looks, monkeypatch):
    """Of 201 quick steps each fiftieth is looked after, unless a copy takes as long as hundreds of them."""
    from oarlock.training.state_copy import StateCopy

    take, taken = StateCopy.take, []

    def slow(copy: StateCopy) -> None:
        taken.append(time.sleep(seconds))
        take(copy)

    monkeypatch.setattr(StateCopy, "take", slow)
    monkeypatch.setattr("oarlock.training.last_good._SHARE", 0.01 if seconds else 1e9)
    rows = numpy.ones((201, 1), "float32")
    train(lambda: ol.layer.mean(ol.layer.fc(ol.layer.data("x", [1]), 1)), {"x": rows}, batch_size=1, epochs=1)
    assert len(taken) == looks


def test_a_kernel_that_refuses_what_a_step_made_is_not_what_stops_the_run():
    def build() -> ol.Var:
        x = hidden(bias=False)
        values = ol.op.eigh(ol.op.matmul(ol.op.transpose(x, axes=[1, 0]), x) + ol.op.eye(rows=4))[0]
        return ol.layer.mean(ol.op.square(x)) * 1e3 + 0.0 * ol.op.reduce_sum(ol.op.stop_gradient(values))

    error = stopped(build, rate=1e38)
    assert error.message.startswith('"h.w" would not be finite after step 1, in epoch 1: ')
    assert isinstance(error.__cause__, ol.OarlockError)
    assert "eigh" in str(error.__cause__)


def test_another_error_stays_what_it_is():
    with pytest.raises(ZeroDivisionError):
        train(squares, on_step=lambda *_: 1 // 0)


# Going on, and steps that are skipped by design


def test_a_run_may_go_on_with_a_warning():
    with pytest.warns(RuntimeWarning, match="Training continues"):
        result = train(logarithm, not_finite="warn")
    assert result.steps == 24
    with pytest.raises(ol.ArgumentError, match='^not_finite must be "stop" or "warn", not \'go on\'$'):
        train(squares, not_finite="go on")


def test_steps_that_loss_scaling_skips_are_good_ones():
    with ol.Program(seed=1) as program:
        cost = squares()
    ol.passes.mixed_precision(program, "float16")
    scope = ol.Scope()
    scaled = ol.optimizer.LossScaling(ol.optimizer.Adam(1e-2), initial=2.0**30)
    result = ol.train(cost, {"x": X}, optimizer=scaled, batch_size=5, epochs=6, scope=scope, progress=False)
    skipped = result.steps - int(scope["loss_scale_0.updates"])
    assert result.steps == 48
    assert 5 < skipped < 40


def test_a_parameter_that_was_not_finite_before_the_run_stops_nothing():
    with ol.Program(seed=1):
        cost = ol.layer.mean(ol.op.relu(hidden()))
    scope = ol.Scope()
    scope.set("h.b", numpy.array([0.0, 1.0, 2.0, -math.inf], "float32"))
    assert ol.train(cost, {"x": X}, batch_size=5, epochs=2, scope=scope, progress=False).steps == 16


def test_a_run_that_fails_logs_why_and_does_not_say_how_to_go_on(tmp_path):
    with pytest.raises(ol.NotFiniteError) as raised, ol.Program(seed=1):
        ol.train(table(), TABLE, batch_size=3, run=tmp_path / "run", progress=False)
    record = ol.training.RunRecord.read(tmp_path / "run")
    assert (record.state, record.log.failed) == ("failed", raised.value.message)
    assert not hasattr(raised.value, "__notes__")
