"""Ops that move out of a loop: before it those that only sequences determine, after it those that no step reads, and views of outputs."""

import re
from collections import Counter

import numpy
import pytest
from rewritten import require_same_values, rewritten

import oarlock as ol

TOLERANCE = 1e-10


def data(name: str = "x", shape=("n", 4), batch: str | None = "t") -> ol.Var:
    return ol.layer.data(name, shape=list(shape), dtype="float64", batch=batch)


def body_of(lines: list[str]) -> list[str]:
    """The types of the ops of each step, in order."""
    start = next(number for number, line in enumerate(lines) if line.startswith("block "))
    return [line.partition(" = ")[2].partition("(")[0] for line in lines[start + 1 :] if " = " in line]


def before_and_behind(lines: list[str]) -> list[str]:
    start = next((number for number, line in enumerate(lines) if line.startswith("block ")), len(lines))
    return [line.partition(" = ")[2] for line in lines[:start] if " = " in line]


def stepped(write, *, shape=("n", 4)) -> tuple[ol.Program, ol.Var]:
    """A loop that returns what `write` makes of a step, and of a memory."""
    with ol.Program(seed=1) as program:
        x = data(shape=shape)
        rnn = ol.rnn()
        with rnn.step():
            rnn.output(write(rnn.step_input(x)))
        return program, rnn()


FEED = {"x": numpy.random.default_rng(0).standard_normal((5, 3, 4))}


@pytest.mark.parametrize(
    ("write", "lifted"),
    [
        (lambda x: ol.op.split(x, sections=2, axis=-1)[1], "split(x=x, axis=-1, sections=2)"),
        (lambda x: ol.op.split(x, sections=2, axis=1)[1], "split(x=x, axis=2, sections=2)"),
        (lambda x: ol.op.concat([x, x], axis=0), "concat(xs=[x, x], axis=1)"),
        (lambda x: ol.op.slice(x, axis=1, start=1, stop=3), "slice(x=x, axis=2, start=1, stop=3)"),
        (lambda x: ol.op.transpose(x, axes=(1, 0)), "transpose(x=x, axes=[0, 2, 1])"),
        (lambda x: ol.op.flatten(x, start=0), "flatten(x=x, start=1)"),
        (lambda x: ol.op.stack([x, x], axis=1), "stack(xs=[x, x], axis=2)"),
        (lambda x: ol.op.reduce_max(x, axis=0), "reduce_max(x=x, axis=1, keepdim=false)"),
        (lambda x: ol.op.mean(x, axis=-1), "mean(x=x, axis=-1, keepdim=false)"),
    ],
)
def test_what_moves_or_reduces_axes_is_lifted_with_the_axes_of_the_sequence(write, lifted):
    program, ys = stepped(write)
    lines, applied = rewritten(program, [ys], "batch_prologue")
    assert applied == {"batch_prologue": 1}
    assert lifted in before_and_behind(lines)
    assert body_of(lines) == []
    require_same_values(program, FEED, [ys], "batch_prologue")


@pytest.mark.parametrize(
    "write",
    [
        lambda x: ol.op.reduce_sum(x),
        lambda x: ol.op.reduce_max(x),
        lambda x: ol.op.reshape(x, shape=(-1, 2)),
    ],
)
def test_what_is_computed_across_all_axes_stays(write):
    program, ys = stepped(write)
    assert rewritten(program, [ys], "batch_prologue")[1] == {"batch_prologue": 0}


def ragged(write) -> tuple[ol.Program, list[ol.Var]]:
    """A loop over ragged sequences with a memory, and its gradient."""
    with ol.Program(seed=1) as program:
        x = ol.layer.data("x", shape=[4], dtype="float64", ragged=1)
        rnn = ol.rnn()
        with rnn.step():
            step = rnn.step_input(x)
            memory = rnn.memory(shape=[2])
            after = ol.op.tanh(write(step) + rnn.previous_memory(memory))
            rnn.update_memory(memory, after)
            rnn.output(after)
        ys = rnn()
        return program, [ys, *ol.gradients([ol.op.reduce_sum(ol.op.square(ys))], [x])]


RAGGED = {"x": numpy.random.default_rng(0).standard_normal((6, 4)), "x.splits": numpy.array([0, 2, 2, 5, 6])}


@pytest.mark.parametrize(
    ("write", "lifted"),
    [
        (lambda x: ol.op.split(x, sections=2, axis=-1)[1], "split(x=x, axis=-1, sections=2)"),
        (lambda x: ol.op.split(x, sections=2, axis=1)[0], "split(x=x, axis=1, sections=2)"),
    ],
)
def test_rows_of_ragged_sequences_follow_one_another_and_keep_their_axes(write, lifted):
    program, found = ragged(write)
    lines, applied = rewritten(program, found, "batch_prologue")
    assert applied["batch_prologue"] > 0
    assert lifted in before_and_behind(lines)
    require_same_values(program, RAGGED, found, "batch_prologue", "batch_epilogue", tolerance=TOLERANCE)


def test_what_is_computed_across_the_rows_of_ragged_sequences_stays():
    program, found = ragged(lambda x: ol.op.reduce_max(ol.op.slice(x, axis=1, stop=2), axis=0))
    lines, applied = rewritten(program, found[:1], "batch_prologue")
    assert applied == {"batch_prologue": 1}  # the slice, of each row alone
    assert "reduce_max" in body_of(lines)
    require_same_values(program, RAGGED, found, "batch_prologue", "batch_epilogue", tolerance=TOLERANCE)


def test_what_is_computed_of_a_step_that_is_an_uneven_stack_stays_in_the_loop():
    """Loops in loops in loops: of what the trips of the innermost have returned, a gradient loop is given lists, as its steps."""
    with ol.Program(seed=1) as program:
        x, w = data(shape=("m", 2)), data("w", shape=(2, 2), batch=None)
        rnn = ol.rnn()
        with rnn.step():
            inner = ol.rnn()
            with inner.step():
                state = inner.step_input(rnn.step_input(x))
                left = ol.op.reduce_sum(state)
                loop = ol.while_loop(left > 0.0)
                with loop.block():
                    loop.carry(state, ol.op.tanh(ol.op.linear(state, w)))
                    loop.carry(left, left - 1.0)
                    loop.update_condition(left > 1.0)
                inner.output(loop()[0])
            rnn.output(inner())
        gradients = ol.gradients([ol.op.reduce_sum(ol.op.square(rnn()))], [x, w])
    random = numpy.random.default_rng(0)
    feed = {"x": random.uniform(0.2, 2.0, size=(3, 4, 2)), "w": random.standard_normal((2, 2))}
    _, scopes = ol.Executor().run(program, feed, scope=ol.Scope(), keep_scopes=True)
    trips = Counter(path.rpartition("/")[0] for path in scopes if re.fullmatch(r"main/rnn_0/./rnn_1/./while_0/.", path))
    assert len(set(trips.values())) > 1
    _, applied = rewritten(program, gradients, "batch_prologue", "batch_epilogue")
    assert applied["batch_epilogue"] > 0
    for passes in ((), ("batch_prologue",), ("batch_epilogue",), ("batch_prologue", "batch_epilogue")):
        require_same_values(program, feed, gradients, *passes, tolerance=TOLERANCE)


def gated() -> tuple[ol.Program, list[ol.Var]]:
    """Parts of a product with the memory, and one part of it joined with others: what a gated cell is made of."""
    with ol.Program(seed=1) as program:
        x = data(shape=("n", 6))
        u = ol.layer.create_parameter([2, 6], dtype="float64", name="u")
        rnn = ol.rnn()
        with rnn.step():
            given = ol.op.split(rnn.step_input(x), sections=3, axis=-1)
            state = rnn.memory(shape=[2])
            before = rnn.previous_memory(state)
            back = ol.op.split(ol.op.linear(before, u), sections=3, axis=-1)
            gate = ol.op.sigmoid(given[0] + back[0])
            after = ol.op.tanh(given[1] + gate * back[1]) * ol.op.sigmoid(given[2] + back[2]) + gate * before
            rnn.update_memory(state, after)
            rnn.output(after)
        ys = rnn()
        return program, [ys, *ol.gradients([ol.op.reduce_sum(ol.op.square(ys))], [x, u])]


def test_parts_of_a_product_are_taken_of_its_stack_and_the_joined_of_parts_is_a_stack():
    program, found = gated()
    lines, applied = rewritten(program, found, "batch_prologue", "batch_epilogue")
    outside = [line.partition(" = ")[2] for line in lines]
    assert applied["batch_prologue"] > 0
    assert "split(x=x, axis=-1, sections=3)" in outside  # of the sequence
    assert any(line.startswith("split(x=linear_0@STACK_0") for line in outside)  # of the products, for the gradient
    assert "concat(xs=[add_0@STACK_0, add_1@STACK_0, add_2@STACK_0], axis=-1)" in outside  # the sequence's gradient, which no step reads
    assert sum(line.startswith("slice(x=linear_0@STACK_1") for line in outside) == 2
    assert sum("split(x=linear_0, " in line for line in lines) == 1
    assert sum("concat(xs=[add_0@GRAD, split_1.1@GRAD, add_2@GRAD]" in line for line in lines) == 1  # for the product that leads back
    for steps in (0, 1, 5):
        feed = {"x": numpy.random.default_rng(1).standard_normal((steps, 3, 6))}
        require_same_values(program, feed, found, "batch_prologue", "batch_epilogue", tolerance=TOLERANCE)


def test_a_small_part_of_a_product_is_returned_by_itself():
    with ol.Program(seed=1) as program:
        x = data()
        u = ol.layer.create_parameter([1, 5], dtype="float64", name="u")
        rnn = ol.rnn()
        with rnn.step():
            step = ol.op.slice(rnn.step_input(x), axis=1, stop=1)
            state = rnn.memory(shape=[1])
            wide = ol.op.linear(ol.op.tanh(rnn.previous_memory(state)), u)
            part = ol.op.slice(wide, axis=1, stop=1)
            rnn.update_memory(state, ol.op.reduce_max(wide, axis=1, keepdim=True) + part * step)
            rnn.output(part)
        ys = rnn()
    assert rewritten(program, [ys], "batch_epilogue")[1] == {"batch_epilogue": 0}
