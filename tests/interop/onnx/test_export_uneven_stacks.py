"""Values that have another size in each trip of a loop, which its gradient reads: under ONNX Runtime they are what they are here."""

import pytest

pytest.importorskip("onnxruntime")

import numpy
from interop.onnx.onnx_sessions import session_of

import oarlock as ol

RANDOM = numpy.random.default_rng(0)
WITHIN = {"rtol": 1e-12, "atol": 1e-13}  # everything here is float64


def require_same(program: ol.Program, feed: dict[str, object], opset: int = 18) -> list[numpy.ndarray]:
    labels = list(program.targets)
    expected = ol.Executor().eval(program, labels, feed, scope=ol.Scope())
    results = session_of(program, ol.Scope(), opset=opset).run(feed)
    for label, value in zip(labels, expected, strict=True):
        numpy.testing.assert_allclose(results[label], value, **WITHIN, err_msg=label)
    return expected


def rows_in_a_loop(reverse: bool) -> ol.Program:
    """A loop in whose steps the rows take two ways: how many go each way is another number in each step."""
    with ol.Program() as program:
        x, w = ol.layer.data("x", ["n", 3], "float64", batch="t"), ol.layer.data("w", [3], "float64", batch=None)
        start = ol.layer.data("start", [3], "float64")
        rnn = ol.rnn(reverse=reverse)
        with rnn.step():
            step, state = rnn.step_input(x), rnn.memory(init=start)
            both = ol.layer.tanh(step + rnn.previous_memory(state) * w)
            ie = ol.ifelse()
            with ie.true_block():
                ie.output(ol.op.square(both) * w)
            with ie.false_block():
                ie.output(ol.layer.sigmoid(both))
            after = ie(ol.op.slice(both, axis=1, stop=1) > 0)
            rnn.update_memory(state, after)
            rnn.output(after)
        y = rnn()
        cost = ol.op.reduce_sum(ol.op.square(y))
        first = ol.gradients([cost], [x, w])
        second = ol.gradients([ol.op.reduce_sum(ol.op.square(first[1]))], [x, w])
    program.targets = {"y": y, "dx": first[0], "dw": first[1], "ddx": second[0], "ddw": second[1]}
    return program


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("opset", [17, 23])
def test_rows_that_take_two_ways_in_a_loop_and_gradients_of_two_orders(reverse, opset):
    program = rows_in_a_loop(reverse)
    for steps, rows in ((4, 5), (1, 2), (3, 1)):
        feed = {"x": RANDOM.normal(size=(steps, rows, 3)), "w": RANDOM.normal(size=3), "start": RANDOM.normal(size=(rows, 3))}
        require_same(program, feed, opset)


def test_a_step_that_takes_one_of_two_ways_keeps_what_that_way_computed():
    with ol.Program() as program:
        steps = ol.layer.data("steps", [], "float64", batch="t")
        rnn = ol.rnn()
        with rnn.step():
            x = rnn.step_input(steps)
            rnn.output(ol.case([(x < 0.0, lambda: -x * x)], lambda: ol.op.sqrt(x)))
        y = rnn()
        (dx,) = ol.gradients([y], [steps])
    program.targets = {"y": y, "dx": dx}
    values = require_same(program, {"steps": numpy.array([4.0, -4.0, 0.25])})
    assert [value.tolist() for value in values] == [[2.0, -16.0, 0.5], [0.25, 8.0, 1.0]]


def loops_in_a_loop() -> ol.Program:
    """In each step of the outer loop another number of trips is made, in each of which the rows take two ways."""
    with ol.Program() as program:
        counts, x = ol.layer.data("counts", [], "int64", batch="t"), ol.layer.data("x", [2], "float64")
        outer = ol.rnn()
        with outer.step():
            count = outer.step_input(counts)
            state = outer.memory(init=x)
            start, trips = outer.previous_memory(state), ol.op.full(shape=(), value=0, dtype="int64")
            loop = ol.while_loop(trips < count)
            with loop.block():
                ie = ol.ifelse()
                with ie.true_block():
                    ie.output(ol.layer.tanh(start) * 1.5)
                with ie.false_block():
                    ie.output(ol.op.square(start) - 0.3)
                loop.carry(start, ie(ol.op.slice(start, axis=1, stop=1) > 0))
                loop.carry(trips, trips + 1)
                loop.update_condition(trips + 1 < count)
            last, _ = loop()
            outer.update_memory(state, last)
            outer.output(last)
        y = outer()
        (dx,) = ol.gradients([ol.op.reduce_sum(ol.op.square(y))], [x])
    program.targets = {"y": y, "dx": dx}
    return program


def test_stacks_of_such_stacks():
    program = loops_in_a_loop()
    for counts in ([2, 0, 3], [1], [0], [4, 1]):
        require_same(program, {"counts": numpy.array(counts), "x": RANDOM.normal(size=(4, 2))})


@pytest.mark.parametrize("reverse", [False, True])
def test_a_loop_in_the_steps_of_ragged_rows(reverse):
    """Its stacks have as many trips and rows as a step has: in front stands the number of trips."""
    with ol.Program() as program:
        x, w = ol.layer.data("x", [3], "float64", ragged=1), ol.layer.data("w", [3], "float64", batch=None)
        start = ol.layer.data("start", [3], "float64")
        rnn = ol.rnn(reverse=reverse)
        with rnn.step():
            step, state = rnn.step_input(x), rnn.memory(init=start)
            after, trips = rnn.previous_memory(state) + step, ol.op.full(shape=(), value=0, dtype="int64")
            loop = ol.while_loop(trips < 3)
            with loop.block():
                following = ol.layer.tanh(after * w)
                loop.carry(after, following)
                loop.carry(trips, trips + 1)
                loop.update_condition((trips + 1 < 3) & (ol.op.reduce_sum(following) > -1.0))
            last, _ = loop()
            rnn.update_memory(state, last)
            rnn.output(last)
        y = rnn()
        gradients = ol.gradients([ol.op.reduce_sum(ol.op.square(y))], [x, w, start])
    program.targets = {"y": y, "dx": gradients[0], "dw": gradients[1], "dstart": gradients[2]}
    rows = [RANDOM.normal(size=(length, 3)) for length in (2, 0, 4)]
    flat = {"x": numpy.concatenate(rows), "x.splits": numpy.array([0, 2, 2, 6])}
    require_same(program, flat | {"w": RANDOM.normal(size=3), "start": RANDOM.normal(size=(3, 3))})


def test_a_stack_that_is_fetched_is_refused_by_its_name():
    program = rows_in_a_loop(reverse=False)
    kept = next(var for op in program.main.ops if op.type == "recurrent" for var in op.writes if "n.true" in var.type_text)
    program.targets = {"kept": kept}
    with pytest.raises(ol.ProgramError, match="1 op cannot be expressed in ONNX") as raised:
        session_of(program, ol.Scope())
    assert f'the values of "{kept.name}", {kept.type_text}, differ in size between iterations, but it is an output' in raised.value.given[0]
