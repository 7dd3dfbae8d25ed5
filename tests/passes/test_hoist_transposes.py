"""A value that each iteration of a loop would transpose is transposed before it, as a view."""

import numpy
import pytest
from rewritten import require_same_values, rewritten

import oarlock as ol
from oarlock.passes.pipeline import PASSES

RANDOM = numpy.random.default_rng(5)
FEED = {"x": RANDOM.standard_normal((4, 2, 3)), "start": RANDOM.standard_normal((2, 3))}


def cell(*, scaled: bool = False, twice: bool = False):
    """A program with the gradients of a recurrent cell; where it is `scaled`, each step makes its matrix anew, or it multiplies `twice`."""
    with ol.Program(seed=1) as program:
        x = ol.layer.data("x", ["n", 3], batch="t", dtype="float64")
        start = ol.layer.data("start", [3], batch="n", dtype="float64")
        start.stop_gradient = False
        u = ol.layer.create_parameter([3, 3], name="u", dtype="float64")
        rnn = ol.rnn()
        with rnn.step():
            step = rnn.step_input(x)
            state = rnn.memory(start)
            matrix = u * ol.op.reduce_sum(step) if scaled else u
            product = ol.op.linear(rnn.previous_memory(state), matrix)
            after = ol.op.tanh(step + (ol.op.linear(ol.op.sigmoid(product), matrix) if twice else product))
            rnn.update_memory(state, after)
            rnn.output(after)
        cost = ol.op.reduce_sum(ol.op.square(rnn()))
        found = [var for var in ol.gradients([cost], [u, start]) if var is not None]
    return program, found


def nested():
    """The same in a loop of three rounds, each of which begins where the one before has ended."""
    with ol.Program(seed=1) as program:
        x = ol.layer.data("x", ["n", 3], batch="t", dtype="float64")
        start = ol.layer.data("start", [3], batch="n", dtype="float64")
        start.stop_gradient = False
        rounds = ol.layer.data("rounds", [], batch="k", dtype="float64")
        u = ol.layer.create_parameter([3, 3], name="u", dtype="float64")
        outer = ol.rnn()
        with outer.step():
            weight = outer.step_input(rounds)
            begun = outer.memory(start)
            first = outer.previous_memory(begun) * weight
            inner = ol.rnn()
            with inner.step():
                state = inner.memory(first)
                after = ol.op.tanh(inner.step_input(x) + ol.op.linear(inner.previous_memory(state), u))
                inner.update_memory(state, after)
                inner.output(after)
            inner()
            ended = inner.final_memory(state)
            outer.update_memory(begun, ended)
            outer.output(ended)
        cost = ol.op.reduce_sum(ol.op.square(outer()))
        found = [var for var in ol.gradients([cost], [u, start]) if var is not None]
    return program, found


def test_a_matrix_that_a_loop_reads_is_transposed_before_it():
    program, found = cell()
    lines, applied = rewritten(program, found, "hoist_transposes")
    assert applied == {"hoist_transposes": 1}
    (view,) = [number for number, line in enumerate(lines) if "matrix_transpose" in line]
    assert lines[view] == "u@TRANSPOSED_0: float64[3, 3] = matrix_transpose(x=u)"
    assert "recurrent(" in lines[view + 1]
    assert any(" = linear(x=add_0@GRAD, w=u@TRANSPOSED_0)" in line for line in lines[view + 1 :])
    assert not any(" = linear_dx(" in line for line in lines)


def test_a_product_that_is_added_takes_the_view_too():
    program, found = cell()
    lines, applied = rewritten(program, found, "loop_retiming", "fuse_sums", "hoist_transposes")
    assert applied["hoist_transposes"] == 1
    assert sum("matrix_transpose" in line for line in lines) == 1


def test_products_with_one_matrix_share_a_view():
    program, found = cell(twice=True)
    lines, applied = rewritten(program, found, "hoist_transposes")
    assert applied == {"hoist_transposes": 2}
    assert sum("matrix_transpose" in line for line in lines) == 1


def test_the_view_is_taken_before_the_outermost_loop_that_it_is_the_same_in():
    program, found = nested()
    lines, applied = rewritten(program, found, "hoist_transposes")
    assert applied == {"hoist_transposes": 1}
    (view,) = [number for number, line in enumerate(lines) if "matrix_transpose" in line]
    assert not any(line.startswith("block ") for line in lines[:view] if "@GRAD" in line)


def test_a_matrix_that_each_trip_computes_stays():
    program, found = cell(scaled=True)
    _, applied = rewritten(program, found, "hoist_transposes")
    assert applied == {"hoist_transposes": 0}


def test_a_product_outside_of_loops_stays():
    with ol.Program(seed=1) as program:
        x = ol.layer.data("x", [3], dtype="float64")
        x.stop_gradient = False
        u = ol.layer.create_parameter([3, 2], name="u", dtype="float64")
        (gradient,) = ol.gradients([ol.op.reduce_sum(ol.op.square(ol.op.linear(x, u)))], [x])
    _, applied = rewritten(program, [gradient], "hoist_transposes")
    assert applied == {"hoist_transposes": 0}


@pytest.mark.parametrize("steps", [0, 1, 4])
def test_the_bits_are_the_same(steps):
    program, found = cell()
    require_same_values(program, {**FEED, "x": FEED["x"][:steps]}, found, "hoist_transposes")


@pytest.mark.parametrize("passes", [("licm", "batch_prologue", "batch_epilogue", "hoist_transposes"), tuple(PASSES)], ids=["loops", "all"])
@pytest.mark.parametrize(
    "written", [cell, lambda: cell(scaled=True), lambda: cell(twice=True), nested], ids=["cell", "scaled", "twice", "nested"]
)
def test_values_are_the_same_among_other_passes(written, passes):
    program, found = written()
    feed = {name: value for name, value in {**FEED, "rounds": [0.5, 1.5, -1.0]}.items() if name in program.main.vars}
    require_same_values(program, feed, found, *passes, tolerance=1e-10)
