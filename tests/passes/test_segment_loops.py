"""Loops that compute forward values again go through their sequences a segment of steps at a time, and compute the same."""

import io

import allocation
import numpy
import pytest
import torch
from rewritten import require_same_values, rewritten

import oarlock as ol
from oarlock.ir.dtype import DType
from oarlock.ir.size import names_in
from oarlock.ir.traversal import walk
from oarlock.op.control.recurrent_loop import segments_of
from oarlock.passes.pipeline import PASSES, optimize
from oarlock.registry.catalogue import standard
from oarlock.registry.type_check import typecheck

RANDOM = numpy.random.default_rng(5)
TOLERANCE = 1e-12
STEPS = [0, 1, 4, 5, 8, 23, 24, 25, 31]


def cell(
    *, reverse: bool = False, length: int | None = None, of_final: bool = False, again: bool = True
) -> tuple[ol.Program, list[ol.Var]]:
    """A recurrent cell, its cost and gradients, which compute again what they read of the cell."""
    with ol.Program(seed=1) as program:
        shape = ["n", 3] if length is None else [length, "n", 3]
        x = ol.layer.data("x", shape, batch="t" if length is None else None, dtype="float64")
        x.stop_gradient = False
        start = ol.layer.data("start", [4], batch="n", dtype="float64")
        start.stop_gradient = False
        u = ol.layer.create_parameter([4, 4], name="u", dtype="float64")
        w = ol.layer.create_parameter([3, 4], name="w", dtype="float64")
        rnn = ol.rnn(reverse=reverse)
        with rnn.step():
            state = rnn.memory(start)
            before = rnn.previous_memory(state)
            both = ol.op.linear(rnn.step_input(x), w) + ol.op.linear(before, u)
            after = ol.op.tanh(both) + ol.op.sigmoid(both) * before
            rnn.update_memory(state, after)
            rnn.output(after)
        outputs = rnn()
        cost = ol.op.reduce_sum(ol.op.square(rnn.final_memory(state) if of_final else outputs))
        found = [cost, *(each for each in ol.gradients([cost], [u, w, x, start]) if each is not None)]
    if again:
        ol.passes.recompute(program, segments=1)
    return program, found


def lookup() -> tuple[ol.Program, list[ol.Var]]:
    """An LSTM over rows of a table."""
    with ol.Program(seed=1) as program:
        ids = ol.layer.data("ids", ["n"], batch="t", dtype="int64")
        hidden = ol.layer.embedding(ids, (5, 3), dtype="float64")
        hidden, _, _ = ol.layer.lstm(hidden, 4)
        cost = ol.layer.mean(ol.op.square(hidden))
        found = [each for each in ol.gradients([cost], program.parameters()) if each is not None]
    ol.passes.recompute(program, segments=1)
    return program, [cost, *found]


def feed_of(steps: int, rows: int = 2) -> dict[str, object]:
    return {"x": RANDOM.normal(size=(steps, rows, 3)), "start": RANDOM.normal(size=(rows, 4))}


def cut(program: ol.Program, wanted: list[ol.Var]) -> ol.Program:
    """A copy whose loops are cut, which is legal."""
    copy = program.clone()
    assert optimize(copy, [copy.main.vars[var.name] for var in wanted], standard, ("segment_loops",), checked=True) == {"segment_loops": 1}
    return copy


def test_a_loop_goes_through_the_steps_of_a_segment_inside_one_that_goes_through_the_segments():
    lines, applied = rewritten(*cell(of_final=True), "segment_loops")
    assert applied == {"segment_loops": 1}
    begun = next(number for number, line in enumerate(lines) if "segments=6" in line)
    assert lines[begun : begun + 6] == [
        "x@GRAD: float64[t, n, 3], start@GRAD: float64[n, 4], [w@GRAD: float64[3, 4], u@GRAD: float64[4, 4]] = recurrent("
        "sequences=[memory_0@STACK_0, x], initial=rnn_0.final.0@GRAD, free=[w, u], body={rnn_0@GRAD@SEGMENT_0.body}, reverse=true, "
        "segments=6, summed=2)",
        "block rnn_0@GRAD@SEGMENT_0.body(memory_0@SEGMENT_0: float64[steps_0, n, 4], x@SEGMENT_0: float64[steps_0, n, 3], "
        "rnn_0.final.0@SEGMENT_0: float64[n, 4]) -> (x@SEGMENT_1, start@SEGMENT_0, w@SEGMENT_0, u@SEGMENT_0) {",
        "x@SEGMENT_1: float64[steps_0, n, 3], start@SEGMENT_0: float64[n, 4], [w@SEGMENT_0: float64[3, 4], u@SEGMENT_0: float64[4, 4]] "
        "= recurrent(sequences=[memory_0@SEGMENT_0, x@SEGMENT_0], initial=rnn_0.final.0@SEGMENT_0, free=[w, u], body={rnn_0@GRAD.body}, "
        "reverse=true, summed=2)",
        "block rnn_0@GRAD.body(memory_0@STEP_1: float64[n, 4], x@STEP_0: float64[n, 3], memory_0@STEP_0: float64[n, 4]) -> "
        "(x.step_0@GRAD, memory_0@GRAD, w@GRAD, u@GRAD) {",
        "sigmoid_0@GRAD: float64[n, 4] = multiply(x=memory_0@STEP_0, y=memory_0@STEP_1)",
        "linear_0@RECOMPUTED_0: float64[n, 4] = linear(x=x@STEP_0, w=w)",
    ]
    assert "optimization_barrier" not in "".join(lines[begun:])


@pytest.mark.parametrize("steps", STEPS)
@pytest.mark.parametrize("options", [{}, {"reverse": True}, {"of_final": True}], ids=["", "reverse", "of the final value"])
def test_values_are_the_same_but_for_the_order_of_sums(steps, options):
    program, found = cell(**options)
    for rows in (1, 3):
        for passes in (("segment_loops",), tuple(PASSES)):
            require_same_values(program, feed_of(steps, rows), found, *passes, tolerance=TOLERANCE)


@pytest.mark.parametrize("steps", STEPS)
def test_the_interpreter_and_a_plan_run_such_a_loop_to_the_same_bits(steps):
    copy = cut(*cell())
    scope, feed = ol.init(copy, ol.Scope()), feed_of(steps)
    fetch = [var.name for var in copy.targets.values()]
    expected = ol.Executor(interpret=True).eval(copy, fetch, feed, scope=scope)
    actual = ol.Executor(passes=()).eval(copy, fetch, feed, scope=scope)
    assert all(numpy.array_equal(one, other) for one, other in zip(actual, expected, strict=True))


@pytest.mark.parametrize("steps", STEPS)
def test_rows_of_a_table_are_taken_again_and_their_gradients_added_up_segment_by_segment(steps):
    program, found = lookup()
    feed = {"ids": RANDOM.integers(0, 5, (steps, 2))}
    for passes in (("segment_loops",), tuple(PASSES)):
        require_same_values(program, feed, found[1:], *passes, tolerance=TOLERANCE)


def test_rows_of_a_table_are_no_sequence_of_the_gradient():
    copy = cut(*lookup())
    (loop,) = [op for op in copy.main.ops if op.attributes.get("segments")]
    assert "embedding_0.out" not in [var.name for var in loop.reads]
    assert [op.type for op in loop.blocks[0].ops] == ["gather", "recurrent", "scatter_add"]
    assert [op.type for op in copy.main.ops].count("scatter_add") == 0
    assert [op.type for op in copy.main.ops].count("gather") == 1


def test_a_table_that_is_added_to_twice_is_added_to_as_before():
    with ol.Program(seed=1) as program:
        ids = ol.layer.data("ids", ["n"], batch="t", dtype="int64")
        rows = ol.layer.embedding(ids, (5, 4), dtype="float64")
        hidden, _, _ = ol.layer.lstm(rows, 4)
        cost = ol.layer.mean(ol.op.square(hidden + rows))
        found = [each for each in ol.gradients([cost], program.parameters()) if each is not None]
    ol.passes.recompute(program, segments=1)
    copy = cut(program, found)
    assert [op.type for op in copy.main.ops].count("scatter_add") == 1
    require_same_values(program, {"ids": RANDOM.integers(0, 5, (13, 2))}, found, *PASSES, tolerance=TOLERANCE)


def test_what_is_computed_again_and_the_gradients_of_weights_are_products_of_all_steps_of_a_segment():
    program, found = lookup()
    copy = program.clone()
    optimize(copy, [copy.main.vars[var.name] for var in found], standard, tuple(PASSES), checked=True)
    (loop,) = [op for op in copy.main.ops if op.attributes.get("segments")]
    (steps,) = [op for op in loop.blocks[0].ops if op.type == "recurrent"]
    products = [op.type for op in loop.blocks[0].ops if "linear" in op.type or "addmm" in op.type]
    assert products == ["embedding_linear", "addmm", "linear_dw", "embedding_linear_backward"]
    inside = {op.type for op in steps.blocks[0].ops}
    assert inside.isdisjoint({"sigmoid", "tanh", "linear_dw", "optimization_barrier"})


@pytest.mark.parametrize("length", [8, 9])
def test_few_steps_are_left_as_they_are(length):
    program, found = cell(length=length)
    assert rewritten(program, found, "segment_loops")[1] == {"segment_loops": int(length > 8)}
    require_same_values(program, feed_of(length), found, *PASSES, tolerance=TOLERANCE)


def test_a_loop_that_computes_nothing_again_is_left_as_it_is():
    assert rewritten(*cell(again=False), "segment_loops")[1] == {"segment_loops": 0}


def test_barriers_behind_one_another_and_one_that_a_step_returns_are_taken_away():
    with ol.Program(seed=1) as program:
        x = ol.layer.data("x", ["n", 3], batch="t", dtype="float64")
        rnn = ol.rnn()
        with rnn.step():
            step = rnn.step_input(x)
            first = ol.op.optimization_barrier(step)
            second = ol.op.optimization_barrier(first)
            rnn.output(second * 2.0, second, first)
        outputs = rnn()
    found = list(outputs)
    assert rewritten(program, found, "segment_loops")[1] == {"segment_loops": 1}
    require_same_values(program, {"x": RANDOM.normal(size=(10, 2, 3))}, found, *PASSES)


def test_loops_that_draw_are_left_as_they_are():
    with ol.Program(seed=1) as program:
        x = ol.layer.data("x", ["n", 3], batch="t", dtype="float64")
        rnn = ol.rnn()
        with rnn.step():
            step, state = rnn.step_input(x), rnn.memory(shape=[3])
            after = ol.op.dropout(ol.op.tanh(ol.layer.fc(step, 3) + rnn.previous_memory(state)), rate=0.5)
            rnn.update_memory(state, after)
            rnn.output(after)
        cost = ol.layer.mean(ol.op.square(rnn()))
        found = [each for each in ol.gradients([cost], program.parameters()) if each is not None]
    ol.passes.recompute(program, segments=1)
    assert rewritten(program, found, "segment_loops")[1] == {"segment_loops": 0}


def test_ragged_sequences_are_left_as_they_are():
    with ol.Program(seed=1) as program:
        words = ol.layer.data("words", [3], ragged=1, dtype="float64")
        cost = ol.layer.mean(ol.op.square(ol.layer.lstm(words, 4)[0]))
        found = [each for each in ol.gradients([cost], program.parameters()) if each is not None]
    ol.passes.recompute(program, segments=1)
    assert rewritten(program, found, "segment_loops")[1] == {"segment_loops": 0}


def test_two_lstms_learn_in_less_than_half_of_the_memory():
    peak, losses = [], []
    for again in (False, True):
        with ol.Program(seed=1) as program:
            ids = ol.layer.data("ids", ["n"], batch="t", dtype="int64")
            hidden = ol.layer.embedding(ids, (16, 32))
            for _ in range(2):
                hidden, _, _ = ol.layer.lstm(hidden, 32)
            cost = ol.layer.mean(ol.op.square(hidden))
            ol.optimizer.SGD(0.1).minimize(cost)
        if again:
            ol.passes.recompute(program, segments=1)
        scope = ol.init(program, ol.Scope())
        step = ol.Executor().prepare(program, [cost], scope=scope, return_numpy=False)
        step({"ids": numpy.zeros((2, 1), "int64")})
        feed = {"ids": numpy.random.default_rng(1).integers(0, 16, (60, 32))}
        peak.append(allocation.peak_bytes(lambda: losses.append(step(feed)[0].item())))  # noqa: B023
    assert peak[1] < 0.5 * peak[0]
    assert losses[0] == pytest.approx(losses[1], rel=1e-5)


# The loop itself


@pytest.mark.parametrize(
    ("steps", "lengths"), [(0, []), (3, [3]), (4, [4]), (9, [4, 4, 1]), (25, [5, 5, 5, 5, 5]), (100, [17, 17, 17, 17, 17, 15])]
)
def test_there_are_so_many_segments_at_most_of_four_steps_or_more(steps, lengths):
    assert [len(segment) for segment in segments_of(6, torch.zeros(steps, 2))[0]] == lengths


def test_sequences_that_are_no_tensors_or_of_other_lengths_are_not_cut():
    with pytest.raises(ValueError, match="a sequence with steps of different sizes cannot be split into segments"):
        segments_of(2, [torch.zeros(2), torch.zeros(3)])
    with pytest.raises(ValueError, match="sequences of different lengths: 2, 3"):
        segments_of(2, torch.zeros(2), torch.zeros(3))


def test_a_loop_over_segments_has_no_gradient():
    copy = cut(*cell())
    total = next(op.outputs["sums"][0] for op in copy.main.ops if op.attributes.get("segments"))
    with copy, pytest.raises(ol.GradientError, match="recurrent: a loop over segments, which a pass creates, has no gradient"):
        ol.gradients([ol.op.reduce_sum(total)], [copy.main.vars["u"]])


def test_a_loop_over_segments_is_not_exported():
    copy = cut(*cell())
    with pytest.raises(ol.OarlockError, match="a loop over segments of sequences, created by a pass"):
        ol.to_onnx(copy, io.BytesIO(), ol.init(copy, ol.Scope()))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda loop: loop.attributes.update(segments=-1), "segments must be at least 0, not -1"),
        (lambda loop: loop.inputs.update(splits=(loop.block.new_var("splits", DType.INT64, ("r",)),)), "cannot be split into segments"),
        (lambda loop: setattr(_returned(loop), "shape", (2, *_returned(loop).shape[1:])), "for a segment of steps_"),
        (lambda loop: setattr(loop.blocks[0].inputs[0], "shape", ("n", *loop.blocks[0].inputs[0].shape[1:])), "but receives"),
    ],
    ids=["negative", "ragged", "returned", "given"],
)
def test_such_a_loop_that_is_not_legal_is_refused(change, message):
    copy = cut(*cell())
    (loop,) = [op for op in copy.main.ops if op.attributes.get("segments")]
    change(loop)
    copy.changed()
    with pytest.raises(ol.VerifyError, match=message):
        typecheck(copy, standard)


def _returned(loop):
    return loop.blocks[0].outputs[0]


def test_the_steps_of_a_segment_have_a_name_of_their_own():
    copy = cut(*cell())
    (loop,) = [op for op in copy.main.ops if op.attributes.get("segments")]
    steps = loop.blocks[0].inputs[0].shape[0]
    outside = {name for op in copy.main.ops for var in op.writes for size in var.shape or () for name in names_in(size)}
    assert steps not in outside
    assert all(var.shape[0] == steps for var in loop.blocks[0].inputs[: len(loop.inputs["sequences"])])
    assert sum(op.type == "recurrent" for op in walk(copy.main)) == 3
