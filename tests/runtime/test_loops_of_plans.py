"""What the loops of a plan leave out: in the last trip, whatever only the next one would read."""

import numpy
import pytest

import oarlock as ol

RANDOM = numpy.random.default_rng(3)


def recurrence(*, reverse=False, final=False, start=False, refusing=False):
    """The gradients of a recurrence: that of its matrix, and what is asked for besides."""
    with ol.Program(seed=1) as program:
        x = ol.layer.data("x", ["n", 3], batch="t", dtype="float64")
        begun = ol.layer.data("begun", [3], batch="n", dtype="float64")
        begun.stop_gradient = False
        rows = ol.layer.data("rows", [], batch="n", dtype="int64")
        u = ol.layer.create_parameter([3, 3], name="u", dtype="float64")
        rnn = ol.rnn(reverse=reverse)
        with rnn.step():
            state = rnn.memory(begun)
            after = ol.op.tanh(rnn.step_input(x) + ol.op.linear(rnn.previous_memory(state), u))
            rnn.output(after)
            rnn.update_memory(state, ol.op.take(after, rows) if refusing else ol.op.square(after) * 0.5)
        values = [rnn()]
        if final:
            values.append(rnn.final_memory(state))
        cost = ol.op.reduce_sum(ol.op.square(values[0]))
        fetched = [*values, *ol.gradients([cost], [u, begun] if start else [u])]
    return program, fetched


def feed_of(steps):
    x, begun = (RANDOM.standard_normal(shape) for shape in ((steps, 2, 3), (2, 3)))
    return {"x": x, "begun": begun, "rows": numpy.array([1, 0])}


def left_out(program, fetched, passes=()):
    """What the lines of a plan that some trips leave out would call."""
    text = ol.Executor(passes=passes).plan(program, fetched).text
    return [line.split("(")[0].split(" = ")[1].rpartition("_")[0] for line in text.splitlines() if line.endswith(" else None")]


@pytest.mark.parametrize("poison", [False, True])
@pytest.mark.parametrize("passes", [(), None], ids=["as it is", "all passes"])
@pytest.mark.parametrize("steps", [0, 1, 4])
@pytest.mark.parametrize("asked", ["reverse", "final", "start", "refusing", None])
def test_the_values_are_those_of_the_interpreter(asked, steps, passes, poison):
    program, fetched = recurrence(**({asked: True} if asked else {}))
    scope = ol.init(program, ol.Scope())
    executor = ol.Executor(poison=poison) if passes is None else ol.Executor(passes=passes, poison=poison)
    feed = feed_of(steps)
    expected = ol.Executor(interpret=True).run(program, feed, fetched, scope=scope)
    for _ in range(2):
        for actual, value in zip(executor.run(program, feed, fetched, scope=scope), expected, strict=True):
            if passes == ():
                assert actual.tobytes() == value.tobytes()
            else:
                numpy.testing.assert_allclose(actual, value, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize(("reverse", "condition"), [(False, " + 1 < count_"), (True, " if trip_")])
def test_the_last_trip_leaves_out_what_its_memory_would_become(reverse, condition):
    with ol.Program() as program:
        x = ol.layer.data("x", ["n", 3], batch="t")
        rnn = ol.rnn(reverse=reverse)
        with rnn.step():
            step = rnn.step_input(x)
            state = rnn.memory(shape=[3])
            before = rnn.previous_memory(state)
            rnn.output(step + before)
            rnn.update_memory(state, ol.op.square(ol.op.tanh(before + 1.0)))
        program.targets["y"] = rnn()
    text = ol.Executor(passes=()).plan(program, ["y"]).text
    lines = [line for line in text.splitlines() if line.endswith(" else None")]
    assert [line.split(" = ")[1].split("_")[0] for line in lines] == ["add", "tanh", "square"]
    assert all(condition in line for line in lines)


def test_what_is_read_after_the_loop_is_computed_in_every_trip():
    program, fetched = recurrence()
    assert "square" in left_out(program, fetched[:1])
    program, fetched = recurrence(final=True)
    assert left_out(program, fetched[:2]) == []


def test_a_gradient_that_is_wanted_is_computed_in_every_trip():
    for start in (False, True):
        program, fetched = recurrence(start=start)
        assert ("linear_dx" in left_out(program, fetched)) is not start


def test_what_may_refuse_its_values_is_not_left_out():
    program, fetched = recurrence(refusing=True)
    assert "take" not in left_out(program, fetched[:1])
    feed = feed_of(1) | {"rows": numpy.array([7, 0])}
    for executor in (ol.Executor(interpret=True), ol.Executor()):
        with pytest.raises(ol.KernelError, match="take"):
            executor.run(program, feed, fetched[:1], scope=ol.init(program, ol.Scope()))


def test_what_is_handed_out_of_the_trips_is_not_left_out():
    """A memory that is stacked is one space with what follows it, and the last of that is there too."""
    with ol.Program() as program:
        x = ol.layer.data("x", ["n", 3], batch="t")
        rnn = ol.rnn()
        with rnn.step():
            step = rnn.step_input(x)
            state = rnn.memory(shape=[3])
            before = rnn.previous_memory(state)
            rnn.update_memory(state, ol.op.tanh(before + step))
            rnn.output(before)
        program.targets["y"] = rnn()
    assert left_out(program, ["y"]) == []
