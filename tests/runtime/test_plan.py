"""The plan: what it computes, what its text is, and what it says where a line fails."""

import re
import threading

import numpy
import pytest
from rounding import require_as_interpreted
from sample_programs import nested_loops

import oarlock as ol
from oarlock.ir.substitution import replace_reads
from oarlock.registry.text import parse_program

op = ol.op
FEED = {"pages": numpy.linspace(-1, 1, 18, dtype="float32").reshape(2, 3, 3), "start": numpy.ones(3, "float32")}


def plan_of(executor):
    (prepared,) = executor._prepared.values()
    return prepared.plan


def test_without_passes_a_plan_computes_what_the_interpreter_computes():
    program = nested_loops()
    scope = ol.init(program, ol.Scope())
    names = list(program.main.vars)
    planned = ol.Executor(passes=()).run(program, FEED, names, scope=scope)
    interpreted = ol.Executor(interpret=True).run(program, FEED, names, scope=scope)
    require_as_interpreted(program, dict(zip(names, planned, strict=True)), dict(zip(names, interpreted, strict=True)))


def test_the_text_of_a_plan_has_a_line_for_an_op_and_lets_go_of_what_has_ended():
    with ol.Program() as program:
        x = ol.layer.data("x", shape=[2])
        y = ol.op.square(ol.op.tanh(x))
    executor = ol.Executor()
    executor.run(program, {"x": [[1.0, 2.0]]}, [y], scope=ol.Scope())
    assert plan_of(executor).text == (
        "def plan(context_of, device, x_1):\n"
        "    tanh_0_2 = tanh_3(x_1)\n"
        "    square_0_4 = square_in_place_5(tanh_0_2)\n"
        "    del tanh_0_2\n"
        "    return [square_0_4]\n"
    )


def test_names_of_a_file_are_spelled_anew_in_a_plan():
    with ol.Program() as program:
        x = ol.layer.data("x", shape=[2])
        y = ol.op.tanh(x, name="import.os-None")
        z = ol.op.tanh(y, name="0")
    executor = ol.Executor()
    executor.run(program, {"x": [[1.0, 2.0]]}, [z], scope=ol.Scope())
    text = plan_of(executor).text
    assert "import_os_None_2 = tanh_3(x_1)" in text
    assert "v0_4 = tanh_in_place_5(import_os_None_2)" in text


def test_a_kernel_that_fails_in_a_plan_is_explained_as_the_interpreter_explains_it():
    with ol.Program() as program:
        x = ol.layer.data("x", shape=["n", 2], batch="t")
        rows = ol.layer.data("rows", shape=["n"], dtype="int64", batch="t")
        rnn = ol.rnn()
        with rnn.step():
            rnn.output(ol.op.gather(rnn.step_input(x), rnn.step_input(rows)))
        y = rnn()
    feed = {"x": numpy.zeros((3, 2, 2), "float32"), "rows": [[0, 1], [1, 5], [0, 0]]}
    messages = []
    for executor in (ol.Executor(interpret=True), ol.Executor(passes=())):
        with pytest.raises(ol.KernelError) as caught:
            executor.run(program, feed, [y], scope=ol.Scope())
        messages.append(str(caught.value))
    assert messages[0] == messages[1]
    assert "scope main/rnn_0/1" in messages[0]


def test_a_plan_shows_in_the_traceback():
    with ol.Program() as program:
        x = ol.layer.data("x", shape=[2])
        y = ol.op.gather(x, ol.layer.data("rows", shape=[], dtype="int64", batch="k"))
    with pytest.raises(ol.KernelError) as caught:
        ol.Executor().run(program, {"x": numpy.zeros((1, 2), "float32"), "rows": [3]}, [y], scope=ol.Scope())
    trace = caught.value.__cause__.__traceback__
    lines = []
    while trace is not None:
        lines.append((trace.tb_frame.f_code.co_filename[:6], trace.tb_frame.f_code.co_name))
        trace = trace.tb_next
    assert ("<plan ", "plan") in lines


def test_loops_without_a_trip_and_branches_not_taken_have_zeros_of_the_right_shape():
    with ol.Program() as program:
        x = ol.layer.data("x", shape=["n", 2], batch="t", dtype="float64")
        w = ol.layer.data("w", shape=["n", 2], batch=None, dtype="float64")
        rnn = ol.rnn()
        with rnn.step():
            rnn.output(ol.op.tanh(rnn.step_input(x) * w))
        cost = ol.op.reduce_sum(rnn())
        (dw,) = ol.gradients([cost], [w])
    feed = {"x": numpy.zeros((0, 3, 2)), "w": numpy.ones((3, 2))}
    for executor in (ol.Executor(), ol.Executor(passes=()), ol.Executor(interpret=True)):
        (value,) = executor.run(program, feed, [dw], scope=ol.Scope())
        assert value.tolist() == [[0.0, 0.0]] * 3


def test_a_prepared_run_is_a_run():
    with ol.Program(seed=3) as program:
        x = ol.layer.data("x", shape=[2])
        cost = ol.layer.mean(ol.op.square(ol.layer.fc(x, 1)))
        ol.optimizer.SGD(0.1).minimize(cost)
    scopes = [ol.init(program, ol.Scope()) for _ in range(2)]
    executor = ol.Executor()
    step = executor.prepare(program, [cost], scope=scopes[0])
    feed = {"x": [[1.0, 2.0]]}
    for _ in range(3):
        (one,), (other,) = step(feed), executor.run(program, feed, [cost], scope=scopes[1])
        assert one.tobytes() == other.tobytes()
    assert scopes[0]["fc_0.w"].tolist() == scopes[1]["fc_0.w"].tolist()


def test_a_prepared_run_goes_on_with_the_program_as_it_was():
    with ol.Program() as program:
        x = ol.layer.data("x", shape=[1])
        y = ol.op.square(x)
        step = ol.Executor().prepare(program, [y], scope=ol.Scope())
        ol.layer.data("late", shape=[1])
    assert step({"x": [[3.0]]})[0].tolist() == [[9.0]]


def test_threads_share_one_plan():
    program = nested_loops()
    scope = ol.init(program, ol.Scope())
    executor = ol.Executor()
    results = []

    def work():
        for _ in range(5):
            results.append(executor.run(program, FEED, ["cost"], scope=scope)[0].tobytes())

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(results) == 20
    assert len(set(results)) == 1


# Passes


def recurrence(**options):
    """A recurrence whose input product may be lifted, and whose weight gradients may be sunk."""
    with ol.Program(seed=1) as program:
        x = ol.layer.data("x", shape=["n", 3], batch="t", dtype="float64")
        start = ol.layer.data("start", shape=[4], dtype="float64")
        rnn = ol.rnn(**options)
        with rnn.step():
            state = rnn.memory(init=start)
            after = ol.op.tanh(ol.layer.fc(rnn.step_input(x), 4) + ol.layer.fc(rnn.previous_memory(state), 4, bias=False))
            rnn.update_memory(state, after)
            rnn.output(after)
        cost = ol.layer.mean(ol.op.square(rnn()))
        program.targets["cost"] = cost
        pairs = ol.append_backward(cost)
        gradients = [gradient for _, gradient in pairs]
    return program, [cost, *gradients]


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("steps", [0, 1, 5])
def test_lifting_and_sinking_keep_values_and_gradients(steps, reverse):
    program, fetched = recurrence(reverse=reverse)
    scope = ol.init(program, ol.Scope())
    random = numpy.random.default_rng(0)
    feed = {"x": random.normal(size=(steps, 2, 3)), "start": random.normal(size=(2, 4))}
    expected = ol.Executor(interpret=True).run(program, feed, fetched, scope=scope)
    for passes in ((), ("licm",), ("batch_prologue",), ("batch_epilogue",), ("licm", "batch_prologue", "batch_epilogue")):
        actual = ol.Executor(passes=passes).run(program, feed, fetched, scope=scope)
        for one, other in zip(actual, expected, strict=True):
            numpy.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-14, equal_nan=True)


@pytest.mark.parametrize(
    "passes", [(), ("batch_epilogue",), ("batch_prologue", "batch_epilogue"), None], ids=["none", "batch_epilogue", "lift and sink", "all"]
)
@pytest.mark.parametrize("stays", ["in itself", "in turn"])
def test_a_memory_that_stays_is_not_written_over_in_the_gradient_of_a_ragged_loop(stays, passes):
    """The output of each step is one and the same tensor, or one of two."""
    with ol.Program() as program:
        x = ol.layer.data("x", shape=[3], dtype="float64", ragged=1)
        keys = ol.layer.data("keys", shape=[3], dtype="float64")
        initial = [ol.op.neg(keys), ol.op.square(keys)]
        rnn = ol.rnn()
        with rnn.step():
            step = rnn.step_input(x)
            memories = [rnn.memory(init=var) for var in initial[: 1 if stays == "in itself" else 2]]
            before = [rnn.previous_memory(memory) for memory in memories]
            for memory, var in zip(memories, reversed(before), strict=True):
                rnn.update_memory(memory, var)
            rnn.output(ol.op.exp(step * before[0]) * step)
        gradients = ol.gradients([ol.op.reduce_sum(ol.op.square(rnn()))], [x, keys])
    random = numpy.random.default_rng(0)
    feed = {"x": random.standard_normal((7, 3)), "x.splits": [0, 2, 2, 5, 7], "keys": random.standard_normal((4, 3))}
    executor = ol.Executor(poison=True) if passes is None else ol.Executor(passes=passes, poison=True)
    expected = ol.Executor(interpret=True).eval(program, gradients, feed, scope=ol.Scope())
    for actual, value in zip(executor.eval(program, gradients, feed, scope=ol.Scope()), expected, strict=True):
        numpy.testing.assert_allclose(actual, value, rtol=1e-10, atol=1e-10)


def test_steps_of_some_rows_are_not_taken_for_steps_of_others():
    """A sequence that one ragged loop returns is read by another, with row splits of its own."""
    with ol.Program() as program:
        sequences = [ol.layer.data(name, shape=[2], dtype="float64", ragged=1) for name in ("a", "b")]
        for x in sequences:
            rnn = ol.rnn()
            with rnn.step():
                step, memory = rnn.step_input(x), rnn.memory(shape=[2])
                after = ol.op.tanh(rnn.previous_memory(memory) + step)
                rnn.update_memory(memory, after)
                rnn.output(after)
            program.targets[x.name] = rnn()
    replace_reads(program.main, {sequences[1]: program.targets["a"]})
    text = program.to_text(source=False).replace("b: float64[b.t, 2], ", "").replace(" row_splits_of b.t", "").replace("b.t", "a.t")
    program, values = parse_program(text), numpy.random.default_rng(0).standard_normal((6, 2))
    feed = {"a": values, "a.splits": [0, 2, 2, 5, 6], "b.splits": [0, 1, 4, 4, 6]}
    expected = ol.Executor(interpret=True).eval(program, [program.targets["b"]], feed, scope=ol.Scope())
    assert numpy.array_equal(ol.Executor(passes=()).eval(program, [program.targets["b"]], feed, scope=ol.Scope()), expected)


def cells(cell, *, ragged=False, reverse=False):
    """The results of a loop whose memory becomes `cell(x, h)`, and the gradient of the sequence that it steps through."""
    with ol.Program(seed=1) as program:
        x = ol.layer.data("x", [6], dtype="float64", ragged=1) if ragged else ol.layer.data("x", ["n", 6], dtype="float64", batch="t")
        start = ol.layer.data("start", [6], dtype="float64")
        sequence = op.square(x)
        rnn = ol.rnn(reverse=reverse)
        with rnn.step():
            state = rnn.memory(init=start)
            after = cell(rnn.step_input(sequence), rnn.previous_memory(state))
            rnn.update_memory(state, after)
            rnn.output(after)
        y = rnn()
        return program, [y, *ol.gradients([op.reduce_sum(op.square(y))], [x])]


def halves(x, axis=-1):
    return ol.layer.split(x, sections=2, axis=axis)


def gated(x, h):
    """The sum is computed in the step, and its parts are read alone."""
    a, b = halves(op.tanh(x + h))
    return op.concat([op.sigmoid(a) * b, b], axis=-1)


def swapped(x, h):
    """The slices are stacked for the gradient, in a buffer."""
    a, b = halves(op.sigmoid(op.linear(h, ol.layer.create_parameter([6, 6], dtype="float64"))))
    c, d = halves(x)
    return op.concat([b * c, op.tanh(a + d)], axis=-1)


def of_rows(x, h):
    """Rows are cut, not columns."""
    a, b = halves(op.reshape(op.tanh(x + h), shape=[-1, 2, 3]), axis=1)
    return op.concat([op.reshape(b, shape=[-1, 3]), op.reshape(a * a, shape=[-1, 3])], axis=-1)


def of_a_memory(x, h):
    """A memory lies wherever the trip before left it."""
    a, b = halves(h)
    return x + op.concat([b, a], axis=-1)


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("ragged", [False, True])
@pytest.mark.parametrize("passes", [(), tuple(ol.Executor().passes)], ids=["no passes", "all passes"])
@pytest.mark.parametrize("cell", [gated, swapped, of_rows, of_a_memory])
def test_what_a_trip_cuts_is_what_the_interpreter_cuts(cell, passes, ragged, reverse):
    program, fetched = cells(cell, ragged=ragged, reverse=reverse)
    random = numpy.random.default_rng(0)
    feed = {"x": random.normal(size=(7, 6) if ragged else (5, 4, 6)), "start": random.normal(size=(4, 6))}
    feed |= {"x.splits": [0, 2, 2, 5, 7]} if ragged else {}
    scope = ol.init(program, ol.Scope())
    expected = ol.Executor(interpret=True).run(program, feed, fetched, scope=scope)
    for poison in (False, True):
        actual = ol.Executor(passes=passes, poison=poison).run(program, feed, fetched, scope=scope)
        if not passes:
            names = [var.name for var in fetched]
            require_as_interpreted(program, dict(zip(names, actual, strict=True)), dict(zip(names, expected, strict=True)))
        for one, other in zip(actual, expected, strict=True):
            numpy.testing.assert_allclose(one, other, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize(
    ("cell", "ragged", "whole"),
    [
        (gated, False, "square_0_buffer"),  # the sequence, whose steps are written over
        (gated, True, "tanh_0_buffer"),
        (swapped, False, "sigmoid_0_buffer"),
        (swapped, True, "sigmoid_0_buffer"),
        (of_rows, False, None),
        (of_a_memory, False, None),
    ],
)
def test_what_lies_in_parts_of_a_whole_is_cut_before_the_loop(cell, ragged, whole):
    program, fetched = cells(cell, ragged=ragged)
    _, _, text = ol.Executor().plan(program, fetched).text.partition("    for ")
    loop, *lines = text.splitlines()
    body = lines[: next(number for number, line in enumerate(lines) if not line.startswith(" " * 8))]
    columns = re.findall(r"(\w+)_\d+(?:\[\.\.\., |\.columns\()(\d)(?::|, )(\d)", loop)
    assert [each for each in columns if each[0] != "concat_0_buffer"] == ([(whole, "0", "3"), (whole, "3", "6")] if whole else [])
    assert any(re.search(r" = split_\d+\(", line) for line in body) is (whole is None)


def test_what_a_while_stacks_is_computed_part_by_part():
    """Its space moves as it grows: the places of the parts are taken from that of the whole, in each trip."""
    with ol.Program() as program:
        x = ol.layer.data("x", [6], dtype="float64", batch="n")
        loop = ol.while_loop(ol.op.mean(x) < 5.0)
        with loop.block():
            a, b = halves(x)
            whole = ol.op.concat([a + b, ol.op.exp(b)], axis=-1)
            loop.carry(x, x + whole)
            loop.update_condition(ol.op.mean(x + whole) < 5.0)
            loop.output(whole)
        fetched = list(loop())
    feed = {"x": numpy.linspace(-2, -1, 12).reshape(2, 6)}
    expected = ol.Executor(interpret=True).run(program, feed, fetched, scope=ol.Scope())
    assert len(expected[1]) > 4
    for executor in (ol.Executor(passes=()), ol.Executor(passes=(), poison=True)):
        assert "exp_out_" in executor.plan(program, fetched).text
        for _ in range(2):
            found = executor.run(program, feed, fetched, scope=ol.Scope())
            assert [one.tobytes() for one in found] == [other.tobytes() for other in expected]


def test_the_input_product_is_lifted_and_every_parameter_gradient_is_sunk():
    program, fetched = recurrence()
    executor = ol.Executor()
    feed = {"x": numpy.zeros((5, 2, 3)), "start": numpy.zeros((2, 4))}
    executor.run(program, feed, fetched, scope=ol.init(program, ol.Scope()))
    applied = plan_of(executor).applied
    assert (applied["licm"], applied["batch_prologue"], applied["batch_epilogue"]) == (0, 1, 3)


def test_what_is_the_same_in_every_trip_is_computed_once():
    with ol.Program() as program:
        x = ol.layer.data("x", shape=[2], dtype="float64", batch="t")
        start = ol.layer.data("start", shape=[2], dtype="float64", batch=None)
        w = ol.layer.data("w", shape=[2], dtype="float64", batch=None)
        rnn = ol.rnn()
        with rnn.step():
            state = rnn.memory(init=start)
            before = rnn.previous_memory(state)
            after = (1 - ol.op.sigmoid(w)) * before + rnn.step_input(x)
            rnn.update_memory(state, after)
            rnn.output(after)
        y = rnn()
    executor = ol.Executor(passes=("licm",))
    for steps in (0, 3):
        feed = {"x": numpy.ones((steps, 2)), "start": [1.0, 2.0], "w": [0.5, -0.5]}
        (planned,) = executor.run(program, feed, [y], scope=ol.Scope())
        (interpreted,) = ol.Executor(interpret=True).run(program, feed, [y], scope=ol.Scope())
        assert planned.tobytes() == interpreted.tobytes()
    assert plan_of(executor).applied == {"licm": 3}


def test_what_may_refuse_its_values_stays_in_a_loop_that_makes_no_trip():
    with ol.Program() as program:
        x = ol.layer.data("x", shape=[2], batch="t")
        rows = ol.layer.data("rows", shape=[], dtype="int64", batch="k")
        table = ol.layer.data("table", shape=[2], batch="v")
        rnn = ol.rnn()
        with rnn.step():
            rnn.output(rnn.step_input(x) + ol.op.reduce_sum(ol.op.gather(table, rows)))
        y = rnn()
    feed = {"x": numpy.zeros((0, 2), "float32"), "rows": [7], "table": numpy.zeros((3, 2), "float32")}
    assert ol.Executor().run(program, feed, [y], scope=ol.Scope())[0].shape == (0, 2)


def test_a_gradient_of_the_shape_of_what_no_step_changes_is_not_lifted():
    with ol.Program() as program:
        x = ol.layer.data("x", shape=[2], batch=None)
        uppers = ol.layer.data("uppers", shape=[2], batch="t")
        rnn = ol.rnn()
        with rnn.step():
            rnn.output(ol.op.clip(x, upper=rnn.step_input(uppers)))
        (gradient,) = ol.gradients([rnn()], [x])
    feed = {"x": numpy.array([1.0, 2.0], "float32"), "uppers": numpy.array([[2.0, 1.0], [2.0, 3.0], [0.0, 3.0]], "float32")}
    for passes in ((), ("batch_prologue",), ("licm", "batch_prologue", "batch_epilogue")):
        assert ol.Executor(passes=passes).run(program, feed, [gradient], scope=ol.Scope())[0].tolist() == [2.0, 2.0]


def test_what_a_trip_draws_is_not_lifted():
    with ol.Program(seed=1) as program:
        x = ol.layer.data("x", shape=["n", 3], batch="t")
        rnn = ol.rnn()
        with rnn.step():
            rnn.output(ol.layer.dropout(rnn.step_input(x), rate=0.5))
        y = rnn()
    executor = ol.Executor()
    feed = {"x": numpy.ones((4, 2, 3), "float32")}
    (planned,) = executor.run(program, feed, [y], scope=ol.Scope(), training=True)
    (interpreted,) = ol.Executor(interpret=True).run(program, feed, [y], scope=ol.Scope(), training=True)
    assert set(plan_of(executor).applied.values()) == {0}
    assert planned.tobytes() == interpreted.tobytes()
    assert len({row.tobytes() for row in planned}) > 1


@pytest.mark.parametrize("interpret", [False, True])
def test_a_run_in_a_dropped_scope_is_refused(interpret):
    with ol.Program() as program:
        y = ol.op.relu(ol.layer.data("x", shape=[2]))
    scope, executor = ol.Scope(), ol.Executor(interpret=interpret)
    step = executor.prepare(program, [y], scope=scope)
    feed = {"x": numpy.ones((1, 2), "float32")}
    step(feed)
    scope.drop()
    for refused in (lambda: step(feed), lambda: executor.run(program, feed, [y], scope=scope)):
        with pytest.raises(ol.ScopeError) as raised:
            refused()
        assert raised.value.message == "this scope was dropped"
