"""Ops that move behind a loop read there what they read inside: stacks of what differs between iterations, and all else as it is."""

import numpy
import pytest
from rewritten import require_same_values, rewritten
from tolerances import PASSES_DIFFER

import oarlock as ol

LENGTHS = [(3, 2), (2, 2), (0, 2), (1, 0), (0, 0)]


def ragged_product() -> tuple[ol.Program, list[ol.Var]]:
    """Rows from outside, each times the square of a number, for each step that they have; and the gradient of the number."""
    with ol.Program() as program:
        x = ol.layer.data("x", [1], dtype="float64")
        s = ol.layer.data("s", [], dtype="float64", batch=None)
        q = ol.layer.data("q", [1], dtype="float64", ragged=1)
        rnn = ol.rnn()
        with rnn.step():
            rnn.step_input(q)
            rnn.output(x * (s * s))
        return program, ol.gradients([ol.op.reduce_sum(ol.op.square(rnn()))], [s, x])


@pytest.mark.parametrize("lengths", LENGTHS)
@pytest.mark.parametrize("passes", [("licm", "batch_epilogue"), tuple(ol.passes.pipeline.PASSES)], ids=["two", "all"])
def test_what_a_step_computes_of_values_from_outside_is_read_behind_the_loop_as_it_is(passes, lengths):
    program, gradients = ragged_product()
    x, s = numpy.array([[1.0], [2.0]]), 2.0
    feed = {"x": x, "s": s, "q": [[[0.0]] * length for length in lengths]}
    ds, dx = ol.Executor(passes=passes).run(program, feed, gradients, scope=ol.Scope())
    count = numpy.array(lengths)[:, None]
    numpy.testing.assert_allclose(ds, numpy.sum(count * 4 * x**2 * s**3), *PASSES_DIFFER)
    numpy.testing.assert_allclose(dx, count * 2 * x * s**4, *PASSES_DIFFER)


def test_what_is_hoisted_and_sunk_has_the_declared_types():
    program, gradients = ragged_product()
    lines, applied = rewritten(program, gradients, "licm", "batch_epilogue")  # which checks them after each
    assert applied["licm"] > 0
    assert applied["batch_epilogue"] > 0
    assert any("multiply(x=x_0@STACK_0, y=multiply_0@HOISTED_0)" in line for line in lines)


def test_a_loop_over_time_reads_what_no_step_changes_as_it_is():
    with ol.Program() as program:
        q = ol.layer.data("q", [2, 1], dtype="float64", batch="t")
        s = ol.layer.data("s", [], dtype="float64", batch=None)
        start = ol.op.full(shape=(2, 1), value=0.5, dtype="float64")
        rnn = ol.rnn()
        with rnn.step():
            step, memory = rnn.step_input(q), rnn.memory(init=start)
            after = ol.op.tanh(rnn.previous_memory(memory)) + step
            rnn.update_memory(memory, after)
            rnn.output(after * (s * s))
        ys = rnn()
        found = [ys, *ol.gradients([ol.op.reduce_sum(ol.op.square(ys))], [s, q])]
    assert rewritten(program, found, "licm", "batch_epilogue")[1]["batch_epilogue"] > 0
    for steps in (3, 1, 0):
        feed = {"q": numpy.random.default_rng(0).normal(size=(steps, 2, 1)), "s": 2.0}
        require_same_values(program, feed, found, "licm", "batch_epilogue", tolerance=1e-10)
        require_same_values(program, feed, found, *ol.passes.pipeline.PASSES, tolerance=1e-10)


def joined_in_a_branch(size: int) -> tuple[ol.Program, list[ol.Var]]:
    """In each ragged step, of the rows that take a branch two values that are joined; and the gradients."""
    with ol.Program(seed=1) as program:
        r = ol.layer.data("r", [2], dtype="float64", ragged=1)
        rnn = ol.rnn()
        with rnn.step():
            word = rnn.step_input(r)
            ie = ol.ifelse()
            with ie.true_block():
                parts = [ol.layer.fc(word, size, act="tanh", name=name) for name in "ab"]
                ie.output(ol.layer.fc(ol.layer.concat(parts, axis=1), 1, act="tanh", name="c"))
            with ie.false_block():
                ie.output(ol.op.reduce_sum(word, axis=1, keepdim=True))
            rnn.output(ie(ol.op.reduce_sum(word, axis=1) > 0.0))
        return program, ol.gradients([ol.op.reduce_sum(rnn())], program.parameters())


UP, DOWN = [1.0, 2.0], [-3.0, 1.0]


@pytest.mark.parametrize("size", [1, 2])
@pytest.mark.parametrize(
    "rows", [[[UP, UP]], [[UP, UP], [UP, UP]], [[DOWN, DOWN]], [[UP, UP], [UP]], [[UP, DOWN], [], [DOWN, UP, UP]], [[], []], []]
)
def test_what_is_joined_of_other_rows_in_each_step_is_returned_part_by_part(size, rows):
    program, gradients = joined_in_a_branch(size)
    feed = {"r": ol.Ragged.from_lengths(numpy.array([word for row in rows for word in row]).reshape(-1, 2), [len(row) for row in rows])}
    require_same_values(program, feed, gradients, "batch_epilogue", tolerance=1e-10)
    require_same_values(program, feed, gradients, *ol.passes.pipeline.PASSES, tolerance=1e-10)


def test_what_is_joined_of_no_rows_is_stacked_step_by_step():
    """A ragged loop stacks what has no rows in front with a dimension more, in which axes are others."""
    with ol.Program(seed=1) as program:
        q = ol.layer.data("q", [1], dtype="float64", ragged=1)
        v = ol.layer.data("v", [3, 1], dtype="float64", batch=None)
        start = ol.op.full(shape=(3, 1), value=0.5, dtype="float64")
        rnn = ol.rnn()
        with rnn.step():
            rnn.step_input(q)
            memory = rnn.memory(init=start)
            before = ol.op.tanh(rnn.previous_memory(memory) * v)
            both = ol.op.concat([before, ol.op.sigmoid(before)], axis=1)
            rnn.update_memory(memory, ol.op.reduce_max(both, axis=1, keepdim=True))
            rnn.output(both, before)
        ys, first = rnn()
        found = [ys, first, *ol.gradients([ol.op.reduce_sum(ol.op.square(ys))], [v])]
    for lengths in LENGTHS:
        feed = {"q": ol.Ragged.from_lengths(numpy.zeros((sum(lengths), 1)), lengths), "v": numpy.array([[0.3], [-0.7], [1.1]])}
        require_same_values(program, feed, found, "batch_epilogue", tolerance=1e-10)
        require_same_values(program, feed, found, *ol.passes.pipeline.PASSES, tolerance=1e-10)
