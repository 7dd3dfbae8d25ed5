"""A product at the end of a trip goes to the beginning of the next, where a sum takes it in."""

import numpy
import pytest
from rewritten import require_same_values, rewritten

import oarlock as ol
from oarlock.passes.pipeline import PASSES

RANDOM = numpy.random.default_rng(3)
FEED = {"x": RANDOM.standard_normal((5, 2, 3)), "start": RANDOM.standard_normal((2, 4))}
TOLERANCE = 1e-10


def cell(*, gates: int = 1, begun: bool = False, of_final: bool = False, reverse: bool = False):
    """A program with the gradients of a recurrent cell; its state is 4 numbers, of which `gates` times as many are computed."""
    with ol.Program(seed=1) as program:
        x = ol.layer.data("x", ["n", 3], batch="t", dtype="float64")
        start = ol.layer.data("start", [4], batch="n", dtype="float64")
        start.stop_gradient = False
        u = ol.layer.create_parameter([4, 4 * gates], name="u", dtype="float64")
        w = ol.layer.create_parameter([3, 4 * gates], name="w", dtype="float64")
        rnn = ol.rnn(reverse=reverse)
        with rnn.step():
            step = rnn.step_input(x)
            state = rnn.memory(start) if begun else rnn.memory(shape=[4])
            before = rnn.previous_memory(state)
            parts = ol.op.split(ol.op.linear(step, w) + ol.op.linear(before, u), sections=gates, axis=1)
            after = ol.op.tanh(parts[0])
            for part in parts[1:]:
                after = after * ol.op.sigmoid(part)
            rnn.update_memory(state, after)
            rnn.output(after)
        outputs = rnn()
        cost = ol.op.reduce_sum(ol.op.square(rnn.final_memory(state) if of_final else outputs))
        found = [var for var in ol.gradients([cost], [u, w, *([start] if begun else [])]) if var is not None]
    return program, found


def loop_back(lines: list[str]) -> list[str]:
    """The loop of the gradients, and what stands in it."""
    begun = next(number for number, line in enumerate(lines) if "@GRAD.body}" in line)
    return lines[begun:]


def test_the_product_of_a_gradient_is_computed_onto_the_gradient_that_arrives():
    program, found = cell()
    lines, applied = rewritten(program, found, "loop_retiming")
    assert applied == {"loop_retiming": 1}
    assert "full_like_1@ROTATED_0: float64[n, 4] = full_like(like=full_like_1, dtype=float64, value=0.0)" in lines
    assert loop_back(lines)[1:4] == [
        "block rnn_0@GRAD.body(rnn_0.stacked.0@STEP_0: float64[n, 4], rnn_0.stacked.0@STEP_1: float64[n, 4], "
        "memory_0@STEP_1: float64[n, 4], x@STEP_0: float64[n, 3], memory_0@ROTATED_0: float64[n, 4]) -> (add_0@GRAD, w@GRAD, u@GRAD) {",
        "memory_0@STEP_0: float64[n, 4] = linear_dx(w=u, dout=memory_0@ROTATED_0)",
        "tanh_0@GRAD: float64[n, 4] = sum(xs=[rnn_0.stacked.0@STEP_0, memory_0@STEP_0])",
    ]
    lines, _ = rewritten(program, found, "loop_retiming", "fuse_sums")
    assert any("addmm_nt(base=rnn_0.stacked.0@STEP_0, w=u, x=memory_0@ROTATED_0)" in line for line in loop_back(lines))
    assert not any(" = linear_dx(" in line for line in lines)


def test_the_gradient_of_the_first_state_is_the_product_once_more_after_the_loop():
    program, found = cell(gates=3, begun=True)
    lines, applied = rewritten(program, found, "loop_retiming")
    assert applied == {"loop_retiming": 1}
    assert (
        "full_like_1@ROTATED_0: float64[n, 12] = full_batch_size_like(like=full_like_1, axis=0, dtype=float64, shape=shape[12], value=0.0)"
        in lines
    )
    assert lines[-1] == "start@GRAD: float64[n, 4] = linear_dx(w=u, dout=start@ROTATED_0)"


@pytest.mark.parametrize("steps", [0, 1, 5])
@pytest.mark.parametrize("passes", [("loop_retiming",), tuple(ol.Executor().passes)], ids=["alone", "among all"])
@pytest.mark.parametrize("options", [{}, {"gates": 2, "reverse": True}, {"gates": 3, "begun": True}], ids=["state", "reverse", "begun"])
def test_rotated_loops_compute_the_same(options, passes, steps):
    program, found = cell(**options)
    require_same_values(program, {**FEED, "x": FEED["x"][:steps]}, found, *passes, tolerance=TOLERANCE)


def test_a_memory_that_does_not_begin_as_zeros_stays():
    program, found = cell(of_final=True)
    _, applied = rewritten(program, found, "loop_retiming")
    assert applied == {"loop_retiming": 0}


@pytest.mark.parametrize("steps", [0, 1, 5])
@pytest.mark.parametrize("begun", [0.5, 1.0, "start"])
def test_a_product_that_begins_as_something_else_than_zeros_stays_the_memory(begun, steps):
    """Rows of zeros have the product zeros, and no other."""
    program, found = product(begun=begun)
    assert rewritten(program, found, "loop_retiming")[1] == {"loop_retiming": 0}
    feed = {"x": FEED["x"][:steps], "start": FEED["start"][:, :3]}
    require_same_values(program, feed if begun == "start" else {"x": feed["x"]}, found, *PASSES, tolerance=TOLERANCE)


def product(read: str = "added", begun: str | float = 0.0) -> tuple[ol.Program, list[ol.Var]]:
    """A loop whose memory is a product, which is `read` besides, or otherwise; what it returns, and its last memory.

    The memory begins as a number, or as an input.
    """
    with ol.Program(seed=1) as program:
        x = ol.layer.data("x", ["n", 3], batch="t", dtype="float64")
        start = ol.layer.data("start", [3], batch="n", dtype="float64") if isinstance(begun, str) else None
        start = ol.op.full_batch_size_like(x, axis=1, shape=(3,), value=begun, dtype="float64") if start is None else start
        u = ol.layer.create_parameter([3, 3], name="u", dtype="float64")
        rnn = ol.rnn()
        with rnn.step():
            step, state = rnn.step_input(x), rnn.memory(start)
            before = rnn.previous_memory(state)
            added = ol.op.tanh(step * before if read == "multiplied" else step + before)
            after = ol.op.linear(added, u)
            rnn.update_memory(state, after)
            rnn.output(after if read == "returned" else added)
        return program, [rnn(), rnn.final_memory(state)]


@pytest.mark.parametrize("read", ["returned", "multiplied"])
def test_a_product_that_more_than_a_sum_reads_stays(read):
    program, found = product(read)
    _, applied = rewritten(program, found[:1], "loop_retiming")
    assert applied == {"loop_retiming": 0}


def test_a_memory_that_is_a_product_is_rotated_without_gradients_too():
    program, found = product()
    lines, applied = rewritten(program, found, "loop_retiming")
    assert applied == {"loop_retiming": 1}
    assert "linear_0: float64[n, 3] = linear(x=tanh_0, w=u)" not in lines
    require_same_values(program, {"x": FEED["x"]}, found, "loop_retiming", tolerance=TOLERANCE)
