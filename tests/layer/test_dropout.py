"""Dropout: only in training; a function of the seed, the op and the step, and of nothing else."""

import math

import numpy
import pytest
import torch
from tolerances import MOMENTS

import oarlock as ol

ROWS = numpy.ones((100, 100), "float32")


def two_dropouts(seed: int = 0, rate: float = 0.25) -> tuple[ol.Program, list[ol.Var]]:
    with ol.Program(seed=seed) as program:
        x = ol.layer.data("x", shape=[100])
        outputs = [ol.layer.dropout(x, rate=rate), ol.layer.dropout(x, rate=rate)]
        program.targets = {"first": outputs[0], "second": outputs[1]}
    return program, outputs


def run(program: ol.Program, *, step: int = 0, training: bool = True, rows: numpy.ndarray = ROWS) -> list[numpy.ndarray]:
    scope = ol.Scope()
    scope.set("@STEP", torch.tensor(step))
    return ol.Executor().run(program, {"x": rows}, ["first", "second"], scope=scope, training=training)


def same(left: list[numpy.ndarray], right: list[numpy.ndarray]) -> bool:
    return all(numpy.array_equal(a, b) for a, b in zip(left, right, strict=True))


def test_nothing_is_dropped_outside_training():
    program, _ = two_dropouts()
    assert same(run(program, training=False), [ROWS, ROWS])
    scope = ol.Scope()
    assert same(ol.Executor().run(program, {"x": ROWS}, ["first", "second"], scope=scope), [ROWS, ROWS])


def test_in_training_a_share_is_dropped_and_the_rest_makes_up_for_it():
    program, _ = two_dropouts(rate=0.25)
    (first, _) = run(program)
    assert set(numpy.unique(first)) == {numpy.float32(0.0), numpy.float32(1.0) / numpy.float32(0.75)}
    dropped = (first == 0).mean()
    assert abs(dropped - 0.25) < MOMENTS * math.sqrt(0.25 * 0.75 / first.size)
    assert abs((first == 0).mean(axis=0) - 0.25).max() < 0.25, "no column is spared or lost"


def test_a_step_that_is_repeated_drops_the_same():
    program, _ = two_dropouts()
    first = run(program, step=3)
    torch.manual_seed(1)
    numpy.random.seed(1)
    assert same(run(program, step=3), first)
    assert same(run(ol.Program.from_bytes(program.to_bytes()), step=3), first), "so does a program that was loaded"
    assert same(run(program.clone(), step=3), first)


def test_steps_ops_and_seeds_drop_differently():
    program, _ = two_dropouts()
    first, second = run(program, step=0)
    assert not numpy.array_equal(first, second), "two ops of one program"
    assert not numpy.array_equal(first, run(program, step=1)[0]), "two steps of one op"
    assert not numpy.array_equal(first, run(two_dropouts(seed=1)[0])[0]), "two seeds"
    for other in (second, run(program, step=1)[0], run(two_dropouts(seed=1)[0])[0]):
        both = ((first == 0) & (other == 0)).mean()
        assert abs(both - 0.25**2) < MOMENTS * math.sqrt(0.25**2 / first.size), "and they are independent"


def test_what_an_op_drops_survives_pruning():
    program, outputs = two_dropouts()
    pruned = ol.prune(program, {"second": outputs[1]})
    scope = ol.Scope()
    (alone,) = ol.Executor().run(pruned, {"x": ROWS}, ["second"], scope=scope, training=True)
    assert numpy.array_equal(alone, run(program)[1])


def test_the_steps_of_a_loop_drop_differently():
    with ol.Program(seed=0) as program:
        rows = ol.layer.data("rows", shape=[100], batch="t")
        rnn = ol.rnn()
        with rnn.step():
            rnn.output(ol.layer.dropout(rnn.step_input(rows), rate=0.5))
        program.targets["y"] = rnn()
    (dropped,) = ol.Executor().run(program, {"rows": ROWS[:4]}, ["y"], scope=ol.Scope(), training=True)
    assert len({row.tobytes() for row in dropped}) == 4


@pytest.mark.parametrize("training", [False, True])
def test_a_rate_of_zero_drops_nothing_and_a_rate_of_one_everything(training):
    assert same(run(two_dropouts(rate=0.0)[0], training=training), [ROWS, ROWS])
    expected = numpy.zeros_like(ROWS) if training else ROWS
    assert same(run(two_dropouts(rate=1.0)[0], training=training), [expected, expected])


@pytest.mark.parametrize("rate", [-0.1, 1.1, math.nan])
def test_a_rate_that_is_no_share_is_refused(rate):
    with ol.Program():
        x = ol.layer.data("x", shape=[3])
        with pytest.raises(ol.ArgumentError) as raised:
            ol.layer.dropout(x, rate=rate)
    assert raised.value.message == f"dropout: rate must be from 0 to 1, not {rate}"


def test_a_rate_may_be_a_variable_and_is_then_looked_at_in_the_run():
    with ol.Program() as program:
        x = ol.layer.data("x", shape=[100])
        y = ol.layer.dropout(x, rate=ol.layer.data("rate", shape=[], batch=None))
    executor = ol.Executor()
    (dropped,) = executor.run(program, {"x": ROWS, "rate": 0.5}, [y], scope=ol.Scope(), training=True)
    assert set(numpy.unique(dropped)) == {0.0, 2.0}
    with pytest.raises(ol.KernelError) as raised:
        executor.run(program, {"x": ROWS, "rate": 1.5}, [y], scope=ol.Scope(), training=True)
    assert raised.value.message == "dropout: rate must be from 0 to 1, not 1.5"


def test_the_gradient_flows_where_nothing_was_dropped():
    with ol.Program() as program:
        x = ol.layer.data("x", shape=[100])
        y = ol.layer.dropout(x, rate=0.5)
        (dx,) = ol.gradients([ol.op.reduce_sum(y)], [x])
    for rate, training in ((2.0, True), (1.0, False)):
        value, gradient = ol.Executor().run(program, {"x": ROWS}, [y, dx], scope=ol.Scope(), training=training)
        assert numpy.array_equal(gradient, numpy.where(value == 0, 0.0, rate))


@pytest.mark.parametrize("interpret", [True, False])
def test_what_a_block_calls_as_the_count_of_draws_is_called_is_not_that(interpret):
    def drawn(name):
        with ol.Program(seed=3) as program:
            xs = ol.layer.data("xs", [4], batch="t")
            rnn = ol.rnn()
            with rnn.step():
                squashed = ol.op.tanh(rnn.step_input(xs), name="squashed")
                rnn.output(ol.op.dropout(squashed, rate=0.5))
            out = rnn()
        if name != squashed.name:
            squashed.block.rename(squashed, name)
        feed = {"xs": numpy.ones((3, 4), "float32")}
        executor = ol.Executor(interpret=interpret)
        return executor.run(program, feed, [out], scope=ol.init(program, ol.Scope()), training=True)[0].tolist()

    assert drawn("@RANDOM") == drawn("squashed")
