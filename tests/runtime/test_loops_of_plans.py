"""The work that the loops of a plan leave out, and the memories they write over: the results of a program show neither."""

import numpy
import pytest
from rounding import require_as_interpreted

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
            rnn.update_memory(state, ol.op.gather(after, rows) if refusing else ol.op.square(after) * 0.5)
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
    """The kernels called in lines of a plan that some iterations leave out."""
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
    names = [var.name for var in fetched]
    for _ in range(2):
        found = executor.run(program, feed, fetched, scope=scope)
        if passes == ():
            require_as_interpreted(program, dict(zip(names, found, strict=True)), dict(zip(names, expected, strict=True)))
        for actual, value in zip(found, expected, strict=True):
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
    assert "gather" not in left_out(program, fetched[:1])
    feed = feed_of(1) | {"rows": numpy.array([7, 0])}
    for executor in (ol.Executor(interpret=True), ol.Executor()):
        with pytest.raises(ol.KernelError, match="gather"):
            executor.run(program, feed, fetched[:1], scope=ol.init(program, ol.Scope()))


def test_what_is_returned_of_the_trips_is_not_left_out():
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


# Memories that are written over


def two_memories(become):
    """A loop with two memories that begin as one value; `become` says what they become, what is returned, and what is wanted besides."""
    with ol.Program() as program:
        x = ol.layer.data("x", ["n", 3], batch="t", dtype="float64")
        begun = ol.op.neg(ol.layer.data("begun", [3], batch="n", dtype="float64"))
        rnn = ol.rnn()
        with rnn.step():
            step = rnn.step_input(x)
            memories = [rnn.memory(begun), rnn.memory(begun)]
            before = [rnn.previous_memory(memory) for memory in memories]
            following, out = become(step, *before)
            for memory, var in zip(memories, following, strict=True):
                rnn.update_memory(memory, var)
            rnn.output(out)
        stacked = rnn()
        return program, [stacked, *(rnn.final_memory(memory) for memory in memories), ol.op.exp(begun), ol.op.exp(x)]


def apart(step, a, b):
    return (ol.op.tanh(step * a), ol.op.sigmoid(b + step)), ol.op.exp(step)


def crossed(step, a, b):
    return (ol.op.tanh(step * b), ol.op.sigmoid(a + step)), ol.op.exp(step)


def exchanged(step, a, b):
    return (b, ol.op.tanh(a * step)), ol.op.exp(step)


def one_value_for_both(step, a, b):
    value = ol.op.tanh(a * step + b)
    return (value, value), ol.op.exp(step)


def returned_before(step, a, b):
    return (ol.op.tanh(step * a), ol.op.sigmoid(b + step)), a


def returned_after(step, a, b):
    after = ol.op.tanh(step * a)
    return (after, ol.op.sigmoid(b + step)), after


def a_view_of_it_returned(step, a, b):
    return (ol.op.tanh(step * a), ol.op.sigmoid(b + step)), ol.op.reshape(a, shape=[-1])


def read_again(step, a, b):
    after = ol.op.tanh(step * a)
    return (after + a, ol.op.sigmoid(b + step)), ol.op.exp(a * step)


def a_step(step, a, b):
    return (step, ol.op.tanh(b)), ol.op.exp(step) * ol.op.reduce_sum(ol.op.sigmoid(a))


def itself(step, a, b):
    return (a, ol.op.tanh(b * step)), ol.op.exp(b)


def a_part(step, a, b):
    halves = ol.op.split(ol.op.concat([step * a, step + a], axis=-1), sections=2, axis=-1)
    return (halves[1], ol.op.sigmoid(b)), ol.op.exp(step)


WAYS = {
    apart: 2, crossed: 0, exchanged: 0, one_value_for_both: 0, returned_before: 1, returned_after: 1, a_view_of_it_returned: 1,
    read_again: 1, a_step: 1, itself: 0, a_part: 1,
}  # fmt: skip


@pytest.mark.parametrize("poison", [False, True])
@pytest.mark.parametrize("steps", [0, 1, 2, 5])
@pytest.mark.parametrize("become", list(WAYS), ids=lambda become: become.__name__)
def test_memories_have_the_bits_of_the_interpreter(become, steps, poison):
    program, fetched = two_memories(become)
    feed = {"x": RANDOM.standard_normal((steps, 2, 3)), "begun": RANDOM.standard_normal((2, 3))}
    expected = ol.Executor(interpret=True).run(program, feed, fetched, scope=ol.Scope())
    executor = ol.Executor(passes=(), poison=poison)
    for _ in range(2):
        found = executor.run(program, feed, fetched, scope=ol.Scope())
        assert [one.tobytes() for one in found] == [other.tobytes() for other in expected]


@pytest.mark.parametrize("become", list(WAYS), ids=lambda become: become.__name__)
def test_a_memory_is_written_over_where_nothing_else_lies_in_it(become):
    program, fetched = two_memories(become)
    text = ol.Executor(passes=()).plan(program, fetched).text
    assert text.count(".clone()") == WAYS[become]
