"""Recomputation: gradients compute forward values again, with the same random numbers, and come out the same to the bit."""

import textwrap
from collections.abc import Callable, Mapping
from random import Random

import allocation
import numpy
import pytest
from generated.making import make
from generated.recomputing import check_recomputation

import oarlock as ol
from oarlock.passes.pipeline import PASSES
from oarlock.registry.catalogue import standard
from oarlock.registry.type_check import require_legal

ROWS = numpy.random.default_rng(0).normal(size=(4, 3, 6))


def stack_of_layers(layers: int = 6) -> tuple[ol.Program, ol.Var, list[ol.Var], dict[str, numpy.ndarray]]:
    """A training program, its cost, what each layer hands on, and a feed."""
    with ol.Program(seed=3) as program:
        hidden = ol.layer.data("x", ["n", 6], batch="t", dtype="float64")
        handed_on = []
        for _ in range(layers):
            hidden = ol.op.dropout(ol.op.tanh(ol.layer.fc(hidden, 8)), rate=0.3)
            handed_on.append(hidden)
        cost = ol.layer.mean(ol.op.square(hidden))
        ol.optimizer.Adam(0.01).minimize(cost)
    return program, cost, handed_on, {"x": ROWS}


def gated(state: ol.Var, step: ol.Var) -> ol.Var:
    """A cell that draws."""
    gate = ol.op.sigmoid(ol.layer.fc(state, 8, name="gate"))
    proposed = ol.op.dropout(ol.op.tanh(ol.layer.fc(step, 8, name="of_step") + ol.layer.fc(state, 8, name="of_state")), rate=0.2)
    return gate * proposed + (1.0 - gate) * state


def recurrent() -> tuple[ol.Program, ol.Var, dict[str, object]]:
    with ol.Program(seed=3) as program:
        x = ol.layer.data("x", ["n", 6], batch="t", dtype="float64")
        start = ol.layer.data("start", [8], dtype="float64")
        rnn = ol.rnn()
        with rnn.step():
            state = rnn.memory(init=start)
            after = gated(rnn.previous_memory(state), rnn.step_input(x))
            rnn.update_memory(state, after)
            rnn.output(after)
        cost = ol.layer.mean(ol.op.square(rnn()))
        ol.optimizer.SGD(0.1).minimize(cost)
    return program, cost, {"x": ROWS, "start": numpy.ones((3, 8))}


def ragged() -> tuple[ol.Program, ol.Var, dict[str, object]]:
    with ol.Program(seed=3) as program:
        words = ol.layer.data("words", [6], ragged=1, dtype="float64")
        start = ol.layer.data("start", [8], dtype="float64")
        rnn = ol.rnn()
        with rnn.step():
            state = rnn.memory(init=start)
            after = gated(rnn.previous_memory(state), rnn.step_input(words))
            rnn.update_memory(state, after)
        rnn()
        cost = ol.layer.mean(ol.op.square(rnn.final_memory(state)))
        ol.optimizer.SGD(0.1).minimize(cost)
    return program, cost, {"words": [ROWS[0], ROWS[1, :1], ROWS[2, :0]], "start": numpy.ones((3, 8))}


def nested() -> tuple[ol.Program, ol.Var, dict[str, object]]:
    with ol.Program(seed=3) as program:
        x = ol.layer.data("x", ["s", 6], batch="t", dtype="float64")
        start = ol.layer.data("start", [8], batch=None, dtype="float64")
        outer = ol.rnn()
        with outer.step():
            state, chunk = outer.memory(init=start), outer.step_input(x)
            inner = ol.rnn()
            with inner.step():
                inside = inner.memory(init=outer.previous_memory(state))
                after = gated(inner.previous_memory(inside), inner.step_input(chunk))
                inner.update_memory(inside, after)
            inner()
            outer.update_memory(state, inner.final_memory(inside))
        outer()
        cost = ol.layer.mean(ol.op.square(outer.final_memory(state)))
        ol.optimizer.SGD(0.1).minimize(cost)
    return program, cost, {"x": ROWS, "start": numpy.ones(8)}


def repeated() -> tuple[ol.Program, ol.Var, dict[str, object]]:
    with ol.Program(seed=3) as program:
        start = ol.layer.data("start", [8], dtype="float64")
        count = ol.op.full(shape=(), value=0.0, dtype="float64")
        loop = ol.while_loop(count < 3.0)
        with loop.block():
            after, counted = gated(start, start), count + 1.0
            loop.carry(start, after)
            loop.carry(count, counted)
            loop.update_condition(counted < 3.0)
        cost = ol.layer.mean(ol.op.square(loop()[0]))
        ol.optimizer.SGD(0.1).minimize(cost)
    return program, cost, {"start": numpy.ones((3, 8))}


def branching() -> tuple[ol.Program, ol.Var, dict[str, object]]:
    with ol.Program(seed=3) as program:
        x = ol.layer.data("x", [8], dtype="float64")
        branches = ol.ifelse()
        with branches.true_block():
            branches.output(gated(x, x))
        with branches.false_block():
            branches.output(ol.op.tanh(ol.layer.fc(x, 8)))
        cost = ol.layer.mean(ol.op.square(branches(ol.op.reduce_sum(x, axis=-1) > 0.0)))
        ol.optimizer.SGD(0.1).minimize(cost)
    return program, cost, {"x": numpy.random.default_rng(1).normal(size=(5, 8))}


WRITTEN: list[Callable] = [recurrent, ragged, nested, repeated, branching]


def train(program: ol.Program, cost: ol.Var, feed: Mapping[str, object], **options: object) -> list[numpy.ndarray]:
    """The costs of three steps, and what the parameters are then."""
    scope, executor = ol.Scope(), ol.Executor(**options)  # type: ignore[arg-type]
    ol.init(program, scope=scope)
    costs = [executor.run(program, feed, [cost], scope=scope)[0] for _ in range(3)]
    return [*costs, *(scope[var.name].numpy() for var in program.parameters())]


def require_same(found: list[numpy.ndarray], expected: list[numpy.ndarray]) -> None:
    assert all(numpy.array_equal(one, other) for one, other in zip(found, expected, strict=True))


@pytest.mark.parametrize("options", [{"interpret": True}, {"passes": ()}, {}], ids=["interpreter", "plan", "passes"])
def test_layers_learn_the_same_to_the_bit(options):
    expected = train(*(item for item in stack_of_layers() if not isinstance(item, list)), **options)
    for arguments in ({}, {"segments": 3}, {"checkpoints": [1, 3]}):
        program, cost, handed_on, feed = stack_of_layers()
        checkpoints = [handed_on[number] for number in arguments.pop("checkpoints", ())]  # type: ignore[union-attr]
        assert ol.passes.recompute(program, checkpoints, **arguments) > 0
        require_legal(program, standard)
        require_same(train(program, cost, feed, **options), expected)


@pytest.mark.parametrize("write", WRITTEN)
@pytest.mark.parametrize("options", [{"interpret": True}, {"passes": ()}], ids=["interpreter", "plan"])
def test_loops_and_branches_learn_the_same_to_the_bit(write, options):
    expected = train(*write(), **options)
    program, cost, feed = write()
    assert ol.passes.recompute(program, segments=1) > 0
    require_legal(program, standard)
    require_same(train(program, cost, feed, **options), expected)


@pytest.mark.parametrize("write", WRITTEN)
def test_after_the_passes_they_learn_the_same_but_for_rounding(write):
    expected = train(*write())
    program, cost, feed = write()
    ol.passes.recompute(program)
    for found, other in zip(train(program, cost, feed), expected, strict=True):
        numpy.testing.assert_allclose(found, other, rtol=1e-12, atol=1e-14)


def test_a_loop_stacks_what_its_steps_are_given_and_no_more():
    program, _, _ = recurrent()
    loop = next(op for op in program.main.ops if op.type == "recurrent")
    assert len(loop.outputs["stacked"]) == 7
    ol.passes.recompute(program)
    assert [var.name for var in loop.outputs["stacked"]] == ["rnn_0.stacked.0", "memory_0@STACK_0"]
    gradient = [op for op in program.main.ops if op.type == "recurrent"][1]
    drawn = [op.attributes["random_id"] for op in gradient.blocks[0].ops if op.type == "dropout"]
    assert drawn == [op.attributes["random_id"] for op in loop.blocks[0].ops if op.type == "dropout"]


def test_a_loop_is_computed_again_as_a_whole_where_loops_stay_as_they_are():
    program, cost, feed = recurrent()
    expected = train(program, cost, feed, interpret=True)
    ol.passes.recompute(program, segments=2, loops=False)
    bodies = [op.blocks[0].name for op in program.main.ops if op.type == "recurrent"]
    assert bodies == ["rnn_0.body", "rnn_0@RECOMPUTED_0.body", "rnn_0@GRAD.body"]
    require_same(train(program, cost, feed, interpret=True), expected)


def test_what_a_checkpoint_ends_with_is_kept_and_the_rest_computed_again():
    program, _, handed_on, _ = stack_of_layers(3)
    assert ol.passes.recompute(program, [handed_on[0].name, handed_on[1]]) == 6
    text = textwrap.dedent(program.to_text(source=False).partition("backward:")[2].partition("update:")[0])
    assert [line.partition(":")[0] for line in text.splitlines() if "@RECOMPUTED" in line.partition(":")[0]] == [
        "fc_1.out@RECOMPUTED_0",
        "tanh_1@RECOMPUTED_0",
        "dropout_1.y@RECOMPUTED_0",
        "fc_0.out@RECOMPUTED_0",
        "tanh_0@RECOMPUTED_0",
        "dropout_0.y@RECOMPUTED_0",
    ]
    assert "tanh_1@GRAD: float64[t, n, 8] = dropout_dx(mask=dropout_1.mask@RECOMPUTED_0, dy=dropout_1.y@GRAD)" in text
    assert "dropout_0.y@KEPT_0: float64[t, n, 8] = optimization_barrier(x=dropout_0.y)" in text


def test_the_passes_of_a_plan_leave_what_is_computed_again():
    program, cost, _, feed = stack_of_layers()
    before = ol.Executor().plan(program, [cost]).text.count("tanh")
    peak = {}
    for recomputed in (False, True):
        program, cost, _, _ = stack_of_layers()
        if recomputed:
            ol.passes.recompute(program)
        scope = ol.Scope()
        ol.init(program, scope=scope)
        step = ol.Executor().prepare(program, [cost], scope=scope)
        step({"x": feed["x"][:1]})
        peak[recomputed] = allocation.peak_bytes(lambda: step({"x": numpy.ones((40, 64, 6))}))  # noqa: B023
    assert ol.Executor().plan(program, [cost]).text.count("tanh") > before
    assert peak[True] < 0.7 * peak[False]


def test_what_is_computed_again_in_a_loop_is_not_stacked_for_a_product_after_it():
    texts = []
    for recomputed in (False, True):
        with ol.Program(seed=3) as program:
            x, start = ol.layer.data("x", ["n", 6], batch="t"), ol.layer.data("start", [8])
            rnn = ol.rnn()
            with rnn.step():
                state = rnn.memory(init=start)
                before = rnn.previous_memory(state)
                wide = ol.op.tanh(ol.layer.fc(before, 32, name="in") + ol.layer.fc(rnn.step_input(x), 32, name="of_step"))
                rnn.update_memory(state, before + ol.layer.fc(wide, 8, name="out"))
            rnn()
            cost = ol.layer.mean(ol.op.square(rnn.final_memory(state)))
            ol.optimizer.Adam(0.01).minimize(cost)
        if recomputed:
            ol.passes.recompute(program)
        passes = [name for name in PASSES if name != "segment_loops"]  # of a segment, it would be stacked
        texts.append(ol.Executor(passes=passes).plan(program, [cost]).text.splitlines())
    inside = [[line for line in text if line.startswith("        ") and "linear_dw" in line] for text in texts]
    assert [len(lines) for lines in inside] == [
        0,
        1,
    ]  # of `out`, which reads what is computed again; the others are products after the loop
    assert sum("linear_dw" in line for line in texts[1]) == 3


def test_programs_of_chance_compute_the_same():
    counts = [check_recomputation(make(11, number), Random(number)) for number in range(40)]
    assert sum(count > 0 for count in counts) > 10


def test_what_cannot_be_done_is_refused():
    program, cost, _, _ = stack_of_layers(2)
    with pytest.raises(ol.ProgramError, match='"x" is not computed by a forward op, so no segment ends with it'):
        ol.passes.recompute(program, ["x"])
    with pytest.raises(ol.UndefinedVarError, match='"tanh_7" is not visible in main'):
        ol.passes.recompute(program, "tanh_7")
    with pytest.raises(ol.ArgumentError, match="segments are a number from 1, not 0"):
        ol.passes.recompute(program, segments=0)
    with pytest.raises(ol.ArgumentError, match="by checkpoints or into a number of segments, not by both"):
        ol.passes.recompute(program, ["tanh_0"], segments=2)
    with pytest.raises(ol.ArgumentError, match="recompute takes a program, not <Var"):
        ol.passes.recompute(cost)
    with pytest.raises(ol.ProgramError, match="computes no gradients, so there is nothing to compute again"):
        ol.passes.recompute(ol.prune(program, [cost]))
