"""Preparing a plan: in time that grows as the program does, and anew for a program that has changed."""

import gc
import math
import time

import numpy
import pytest
import torch

import oarlock as ol
from oarlock.runtime import preparation
from oarlock.runtime.feed import check_feed
from oarlock.runtime.plan.source import Source

STEEPEST = 1.2
"""Of the exponents e of time = c * size ** e; 1 is linear."""


def chain(count):
    """A straight line of ops that cannot be shared, of which each reads the one before."""
    with ol.Program() as program:
        x = ol.layer.data("x", shape=[2])
        y = x
        for number in range(count):
            y = ol.op.add(y, x) if number % 10 == 9 else ol.op.tanh(y)
    return program, y


def loops(count):
    """One loop after another, with gradients."""
    with ol.Program() as program:
        x = ol.layer.data("x", shape=[2], batch="t")
        start = ol.layer.data("start", shape=[2], batch=None)
        y = start
        for _ in range(count):
            rnn = ol.rnn()
            with rnn.step():
                state = rnn.memory(init=y)
                after = ol.op.tanh(rnn.step_input(x) + rnn.previous_memory(state))
                rnn.update_memory(state, after)
            rnn()
            y = rnn.final_memory(state)
    return program, y


def seconds_to_prepare(build, size, passes):
    """Of CPU time, without the collector, which walks every object again."""
    program, fetched = build(size)
    executor = ol.Executor() if passes else ol.Executor(passes=())
    gc.collect()
    gc.disable()
    try:
        start = time.process_time()
        executor.plan(program, [fetched])
        return time.process_time() - start
    finally:
        gc.enable()


@pytest.mark.parametrize("passes", [False, True], ids=["as it is", "after all passes"])
@pytest.mark.parametrize(("build", "sizes"), [(chain, (300, 1800)), (loops, (20, 100))], ids=["ops", "loops"])
def test_the_time_to_prepare_grows_with_the_program_and_no_faster(build, sizes, passes):
    least = dict.fromkeys(sizes, math.inf)
    for _ in range(10):  # a processor that others use too is slow for seconds: what grows faster does so each time
        for size in sizes:
            least[size] = min(least[size], seconds_to_prepare(build, size, passes))
        slope = math.log(least[sizes[-1]] / least[sizes[0]]) / math.log(sizes[-1] / sizes[0])
        if slope < STEEPEST:
            break
    assert slope < STEEPEST, f"{least}"


# Programs that change


def test_a_program_that_has_changed_is_prepared_anew():
    with ol.Program() as program:
        x = ol.layer.data("x", shape=[], dtype="float64", batch=None)
        y = ol.op.multiply(x, ol.op.full(shape=(), value=2.0, dtype="float64"))
    executor = ol.Executor()
    (fill,) = (op for op in program.main.ops if op.type == "full")
    for value in (3.0, 4.0, 2.0):
        fill.attributes = {**fill.attributes, "value": value}
        program.changed()
        assert executor.run(program, {"x": 10.0}, [y], scope=ol.Scope())[0] == 10 * value


def test_programs_made_where_others_were_are_not_taken_for_these():
    executor, serials = ol.Executor(), set()
    for number in range(200):  # more than are kept; each is gone when others are made, so addresses come again
        with ol.Program() as program:
            x = ol.layer.data("x", shape=[], dtype="float64", batch=None)
            y = x + float(number)
        assert executor.run(program, {"x": 1.0}, [y.name], scope=ol.Scope())[0] == 1.0 + number
        serials.add(program.serial)
        del program, x, y
    assert len(serials) == 200


def test_a_fetch_a_kind_of_run_and_an_update_have_plans_of_their_own():
    with ol.Program() as program:
        x = ol.layer.data("x", shape=[2], dtype="float64")
        w = program.main.new_var("w", ol.DType.FLOAT64, (2,), persistable=True, parameter=True, trainable=True)
        cost = ol.op.reduce_sum(ol.op.square(x * w))
    executor, scope = ol.Executor(), ol.Scope()
    scope.set("w", numpy.array([1.0, 2.0]))
    feed = {"x": [[1.0, 1.0]]}
    assert executor.run(program, feed, [cost], scope=scope)[0] == 5.0
    with program:
        ol.optimizer.SGD(0.25).minimize(cost)
    ol.init(program, scope)
    scope.set("w", numpy.array([1.0, 2.0]))
    assert executor.eval(program, [cost], feed, scope=scope)[0] == 5.0
    assert scope["w"].tolist() == [1.0, 2.0]
    assert executor.run(program, feed, [w], scope=scope)[0].tolist() == [1.0, 2.0]
    assert scope["w"].tolist() == [0.5, 1.0]
    assert executor.run(program, feed, [cost], scope=scope)[0] == 1.25


def test_what_a_plan_binds_it_holds_so_that_an_address_is_never_two_things():
    source, names = Source(), {}
    for number in range(1000):
        names[source.bind("value", [number])] = number  # nobody else holds the list
    assert {name: source.bound[name][0] for name in names} == names


def test_what_is_prepared_for_a_scope_sees_what_comes_nearer_what_is_reset_and_what_is_dropped():
    with ol.Program() as program:
        held = program.main.new_var("held", ol.DType.FLOAT32, (), persistable=True)
        y = ol.layer.data("x", shape=[], batch=None) * held
    around = ol.Scope()
    around.set("held", numpy.float32(2.0))
    scope = around.new_scope()
    step = ol.Executor().prepare(program, [y], scope=scope)
    feed = {"x": numpy.float32(3.0)}
    assert step(feed)[0] == 6.0
    scope.set("held", numpy.float32(5.0))
    assert [step(feed)[0] for _ in range(2)] == [15.0, 15.0]
    scope.set("held", numpy.float32(7.0))
    assert step(feed)[0] == 21.0
    scope.find_var("held").reset()
    with pytest.raises(ol.UnsetVarError, match='multiply reads "held", which has no value'):
        step(feed)
    scope.drop()
    with pytest.raises(ol.ScopeError, match="dropped"):
        step(feed)


def test_two_sizes_of_batches_in_turn_are_known_without_a_closer_look(monkeypatch):
    with ol.Program() as program:
        x = ol.layer.data("x", [2])
        program.targets["y"] = ol.layer.mean(x)
    step = ol.Executor().prepare(program, ["y"], scope=ol.Scope())
    looked = []
    monkeypatch.setattr(preparation, "check_feed", lambda *given: looked.append(given[1]["x"].shape) or check_feed(*given))
    feeds = [{"x": torch.full((rows, 2), float(rows))} for rows in (4, 4, 3, 4, 3, 3, 4, 5, 4, 5, 3)]
    assert [float(step(feed)[0]) for feed in feeds] == [4, 4, 3, 4, 3, 3, 4, 5, 4, 5, 3]
    assert [shape[0] for shape in looked] == [4, 3, 5, 3]
    with pytest.raises(ol.FeedError):
        step({"x": torch.zeros(4, 2, dtype=torch.float64)})
    assert float(step({"x": torch.ones(4, 2)})[0]) == 1
