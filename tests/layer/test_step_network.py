"""Recurrent networks in the spellings of 2017: faces of one class, which emit one block."""

import numpy
import pytest
import torch
from tolerances import AUTOGRAD, ORACLES

import oarlock as ol

RANDOM = numpy.random.default_rng(23)


def refused(call, error, *lines):
    with pytest.raises(error) as caught:
        call()
    text = str(caught.value)
    assert text.splitlines()[0] == lines[0]
    for line in lines[1:]:
        assert line in text
    return caught.value


def run(program, feed, fetch):
    return ol.Executor(check=True).run(program, feed, fetch, scope=ol.init(program, ol.Scope()))


@pytest.mark.mission("B17", "B21")
def test_a_sequence_has_time_first_and_the_step_multiplies_adds_and_squashes_one_element():
    with ol.Program() as program:
        x, m = ol.sequence([10, 20, 30]), ol.var(0)
        w, u = ol.var(0.314, param=True), ol.var(0.375, param=True)
        rnn = ol.rnn()
        with rnn.step():
            h = rnn.memory(init=m)
            act = ol.layer.sigmoid(ol.op.add(w * rnn.step_input(x), u * rnn.previous_memory(h)))
            rnn.update_memory(h, act)
            rnn.output(act)
        out = rnn()
    assert (x.type_text, out.type_text) == ("float32[t, 1]", "float32[t, 1]")
    assert program.parameters() == [w, u]
    assert [op.type for op in program.blocks[1].ops] == ["multiply", "multiply", "add", "sigmoid"]
    numpy.testing.assert_allclose(run(program, {}, [out])[0].ravel(), [0.958513, 0.998694, 0.999944], rtol=ORACLES[0], atol=ORACLES[1])


# One class


def written(spelling, ragged):
    with ol.Program(seed=2) as program:
        a = ol.layer.data("a", [3], ragged=1) if ragged else ol.layer.data("a", [3], batch="t")
        if spelling == "layer":
            out = ol.layer.rnn(input=a, step_net=lambda x: ol.layer.fc(x, 2, name="net"))
        else:
            rnn = ol.rnn() if spelling == "rnn" else ol.create_rnn()
            with rnn.step() if spelling == "rnn" else rnn.stepnet():
                x = rnn.step_input(a) if spelling == "rnn" else a.as_step_input()
                rnn.output(ol.layer.fc(x, 2, name="net"))
            out = rnn()
        program.targets["out"] = out
    return program.to_text(source=False)


@pytest.mark.mission("C9", "B31", "B18")
@pytest.mark.parametrize("ragged", [False, True])
def test_three_spellings_emit_one_block(ragged):
    texts = [written(spelling, ragged) for spelling in ("rnn", "create_rnn", "layer")]
    assert "recurrent(" in texts[0]
    assert texts[1:] == texts[:1] * 2


@pytest.mark.mission("B31")
def test_a_variable_becomes_a_step_input_inside_a_step_only():
    with ol.Program():
        a = ol.layer.data("a", [3], batch="t")
        refused(a.as_step_input, ol.ProgramError, "as_step_input: no step is open", "call it inside `with rnn.step():`")
        rnn = ol.create_rnn()
        with rnn.stepnet():
            rnn.output(a.as_step_input())
            with ol.Program():
                other = ol.layer.data("b", [3], batch="t")
                refused(other.as_step_input, ol.ProgramError, "as_step_input: no step is open")
        rnn()
        refused(a.as_step_input, ol.ProgramError, "as_step_input: no step is open")


@pytest.mark.mission("B31")
def test_inside_two_steps_a_variable_is_the_step_input_of_the_inner_one():
    with ol.Program() as program:
        pages, lines = (ol.layer.data(name, [2], batch=batch) for name, batch in (("pages", "t"), ("lines", "s")))
        outer = ol.create_rnn()
        with outer.stepnet():
            page = pages.as_step_input()
            inner = ol.create_rnn()
            with inner.stepnet():
                inner.output(lines.as_step_input() * page)
            outer.output(ol.op.reduce_sum(inner(), axis=0))
        out = outer()
    feed = {"pages": numpy.array([[1, 2], [3, 4]], "float32"), "lines": numpy.ones((3, 2), "float32")}
    assert run(program, feed, [out])[0].tolist() == [[3, 6], [9, 12]]


@pytest.mark.mission("B18")
def test_a_step_left_by_an_exception_leaves_no_recurrence_open():
    with ol.Program() as program:
        a = ol.layer.data("a", [3], batch="t")
        rnn = ol.create_rnn()
        with pytest.raises(RuntimeError), rnn.stepnet():
            a.as_step_input()
            raise RuntimeError
        refused(a.as_step_input, ol.ProgramError, "as_step_input: no step is open")
    assert len(program.blocks) == 1


# Outputs and memories


@pytest.mark.mission("B33")
def test_an_outer_parameter_that_is_returned_is_stacked_once_a_step_and_its_gradient_is_the_sum():
    with ol.Program() as program:
        a = ol.layer.data("a", [2], batch="t")
        ol.layer.fc(a, 2, params=["fc.w", "fc.b"])
        rnn = ol.create_rnn()
        with rnn.stepnet():
            a.as_step_input()
            rnn.output(ol.get_variable("fc.w"))
        out = rnn()
        weights = ol.layer.data("weights", [2, 2], batch="t")
        found = ol.gradients([ol.op.reduce_sum(out * weights)], [program.main.var("fc.w")])
    feed = {"a": numpy.zeros((3, 2), "float32"), "weights": numpy.arange(12, dtype="float32").reshape(3, 2, 2)}
    stack, gradient, w = run(program, feed, [out, *found, "fc.w"])
    assert stack.tolist() == [w.tolist()] * 3
    assert gradient.tolist() == feed["weights"].sum(0).tolist()


@pytest.mark.mission("C10")
def test_what_comes_back_is_what_output_was_called_with_in_its_order():
    """The listing's C++ twin returns the activation and the hidden part; its Python returns a and b."""
    with ol.Program() as program:
        x = ol.layer.data("x", [], batch="t")
        rnn = ol.rnn()
        with rnn.step():
            step = rnn.step_input(x)
            a, b = step * 2.0, step * 3.0
            ol.op.sigmoid(a + b)
            rnn.output(a, b)
        o1, o2 = rnn()
    assert [value.tolist() for value in run(program, {"x": [1.0, 2.0]}, [o1, o2])] == [[2, 4], [3, 6]]


READ = "use rnn.previous_memory(memory) for its value before the step, rnn.final_memory(memory) for the value after the last"


@pytest.mark.mission("C11")
def test_a_memory_that_is_read_as_a_variable_says_how_it_is_read():
    with ol.Program():
        x = ol.layer.data("x", [2], batch="t")
        start = ol.op.full(shape=(2,), value=0.0)
        rnn = ol.rnn()
        with rnn.step():
            step = rnn.step_input(x)
            h = rnn.memory(init=start)
            for read, message in (
                (lambda: ol.op.tanh(h), "tanh: x must be a variable of the program, not Memory "),
                (lambda: ol.layer.fc(h, 2), "fc: input must be a variable of a program, not Memory "),
                (lambda: rnn.output(h), "rnn.output: value must be a variable of a program, not Memory "),
                (lambda: rnn.update_memory(h, h), "rnn.update_memory: value must be a variable of a program, not Memory "),
                (lambda: step + h, '"x.step_0" and Memory '),
                (lambda: h + step, "a memory is not a variable: it has a value before and a value after each step"),
                (lambda: 2.0 * h, "a memory is not a variable: it has a value before and a value after each step"),
                (lambda: h @ step, "a memory is not a variable: it has a value before and a value after each step"),
                (lambda: -h, "a memory is not a variable: it has a value before and a value after each step"),
            ):
                with pytest.raises(ol.ArgumentError) as caught:
                    read()
                assert caught.value.message.startswith(message)
                assert caught.value.hint == READ
            rnn.update_memory(h, step)
        rnn()
        assert rnn.final_memory(h).type_text == "float32[2]"


@pytest.mark.mission("E11", "C21", "E12")
def test_a_memory_has_a_value_in_each_step_and_its_last_one_in_the_scope_of_the_loop():
    """Outer scope, scope of the loop, scopes of the steps: each inside the one before."""
    with ol.Program() as program:
        x = ol.layer.data("x", [], batch="t")
        w = ol.layer.data("w", [], batch=None)
        start = ol.layer.data("start", [], batch=None)
        rnn = ol.rnn()
        with rnn.step():
            h = rnn.memory(init=start)
            rnn.update_memory(h, ol.op.add(rnn.step_input(x) * w, rnn.previous_memory(h), name="sum"))
        rnn()
        final = rnn.final_memory(h)
    name = h.previous.name
    feed = {"x": [1.0, 2.0, 3.0], "w": 10.0, "start": 5.0}
    with ol.Executor().run(program, feed, [final], scope=ol.Scope(), keep_scopes=True)[1] as scopes:
        outer, loop = scopes["main"], scopes["main/rnn_0"]
        steps = [scopes[f"main/rnn_0/{number}"] for number in range(3)]
        assert [step.parent for step in steps] == [loop] * 3
        assert loop.parent is outer
        assert [float(step[name]) for step in steps] == [5, 15, 35]
        assert float(loop[name]) == float(outer[final.name]) == 65
        assert list(loop) == [name]
        assert {float(step["w"]) for step in steps} == {10}
        assert all(step.find_local_var("w") is None for step in steps)
        assert float(steps[1]["x.step_0"]) == 2
        assert steps[1]["x.step_0"].untyped_storage().data_ptr() == outer["x"].untyped_storage().data_ptr()  # a slice, no copy


@pytest.mark.mission("C21")
def test_what_a_while_loop_carries_is_found_in_its_scope_too():
    with ol.Program() as program:
        y = ol.layer.data("y", [], batch=None)
        loop = ol.while_loop(y < 100.0, max_trips=9)
        with loop.block():
            after = y * 3.0
            loop.carry(y, after)
            loop.update_condition(after < 100.0)
        final = loop()
    (value,), scopes = ol.Executor().run(program, {"y": 1.0}, [final], scope=ol.Scope(), keep_scopes=True)
    with scopes:
        (name,) = scopes["main/while_0"]
        assert float(scopes["main/while_0"][name]) == float(value) == 243
        assert float(scopes["main/while_0/4"][name]) == 81


@pytest.mark.mission("E13", "E18", "C29")
def test_a_step_net_is_an_attribute_written_once_that_runs_in_each_steps_scope():
    with ol.Program() as program:
        x = ol.layer.data("x", [2], batch="t")
        calls = []

        def step_net(step):
            calls.append(step)
            return ol.layer.fc(step, 3)

        out = ol.layer.rnn(input=x, step_net=step_net)
    assert len(calls) == 1
    body = out.op.attributes["body"]
    assert body is program.blocks[1]
    attributes = {attribute.name: attribute for attribute in program.main.compile().ops[0].attributes}
    assert attributes["body"].block == 1  # a number, which a file can hold
    before = program.to_bytes()
    values, scopes = ol.Executor().run(
        program, {"x": numpy.ones((4, 2), "float32")}, [out], scope=ol.init(program, ol.Scope()), keep_scopes=True
    )
    with scopes:
        found = [scopes[f"main/rnn_0/{step}"][body.outputs[0].name].tolist() for step in range(4)]
    assert found == values[0].tolist()
    assert (program.to_bytes(), len(calls)) == (before, 1)


# ol.layer.rnn, add_to


def accumulated(xs, w, b):
    total = torch.zeros_like(xs[0])
    outputs = []
    for x in xs:
        total = total + x
        outputs.append(total @ w + b)
    return torch.stack(outputs), total


@pytest.mark.mission("E14", "E15", "E16")
@pytest.mark.parametrize("concat", [True, False])
@pytest.mark.parametrize("explicit", [True, False])
def test_the_functional_form_adds_the_steps_up_and_leaves_the_sum_in_the_tensor(concat, explicit):
    with ol.Program() as program:
        x = ol.layer.data("x", ["n", 2], dtype="float64", batch="t")
        accum = ol.framework.tensor()

        def of_step(step):
            return ol.layer.fc(ol.layer.add_to(accum, step), 3, name="net")

        def of_nothing():
            return ol.layer.fc(ol.layer.add_to(accum, None), 3, name="net")

        out = ol.layer.rnn(input=x, step_net=of_step if explicit else of_nothing, concat_output=concat)
        found = ol.gradients([ol.op.reduce_sum(ol.op.tanh(out)) + ol.op.reduce_sum(ol.op.square(accum))], [x])
    assert (out.type_text, accum.type_text) == ("float64[t, n, 3]" if concat else "float64[n, 3]", "float64[n, 2]")
    xs = torch.tensor(RANDOM.normal(size=(4, 5, 2)), requires_grad=True)
    value, total, slope, w, b = run(program, {"x": xs.detach().numpy()}, [out, accum, *found, "net.w", "net.b"])
    theirs, sum_ = accumulated(xs, torch.tensor(w), torch.tensor(b))
    theirs = theirs if concat else theirs[-1]
    (torch.tanh(theirs).sum() + (sum_**2).sum()).backward()
    for actual, hoped in ((value, theirs), (total, sum_), (slope, xs.grad)):
        numpy.testing.assert_allclose(actual, hoped.detach(), rtol=AUTOGRAD[0], atol=AUTOGRAD[1])


@pytest.mark.mission("E16")
def test_a_memory_is_an_output_that_needs_no_other_and_is_differentiated_as_one():
    """The outputs of the loop are not taken: the final memory is all that is read of it."""
    with ol.Program() as program:
        x = ol.layer.data("x", [], dtype="float64", batch="t")
        start = ol.op.full(shape=(), value=2.0, dtype="float64")
        rnn = ol.rnn()
        with rnn.step():
            total = rnn.memory(init=start)
            rnn.update_memory(total, rnn.previous_memory(total) * rnn.step_input(x))
            rnn.output(rnn.previous_memory(total))
        rnn()
        final = rnn.final_memory(total)
        (slope,) = ol.gradients([final], [x])
    feed = {"x": [3.0, 5.0, 7.0]}
    assert [value.tolist() for value in run(program, feed, [final, slope])] == [210.0, [70.0, 42.0, 30.0]]
    kept = ol.prune(program, {"final": final})
    assert [op.type for op in kept.blocks[1].ops] == ["multiply"]
    assert run(kept, feed, ["final"])[0].tolist() == 210.0


@pytest.mark.mission("E16")
def test_without_a_step_the_tensor_is_zeros_and_there_is_no_last_step():
    with ol.Program() as program:
        x = ol.layer.data("x", ["n", 2], batch="t")
        accum = ol.framework.tensor()
        last = ol.layer.rnn(input=x, step_net=lambda: ol.layer.add_to(accum, None), concat_output=False)
    feed = {"x": numpy.full((0, 3, 2), numpy.nan, "float32")}
    assert run(program, feed, [accum])[0].tolist() == [[0, 0]] * 3
    with pytest.raises(ol.ShapeError, match="axis 0 has size 0, so -1 to its end is out of range"):
        run(program, feed, [last])


@pytest.mark.mission("E14", "E16")
@pytest.mark.parametrize("reverse", [False, True])
def test_over_ragged_sequences_each_has_its_own_sum_and_its_own_last_step(reverse):
    with ol.Program() as program:
        x = ol.layer.data("x", [1], ragged=1)
        accum = ol.framework.tensor()
        last = ol.layer.rnn(input=x, step_net=lambda: ol.layer.add_to(accum, None) * 2.0, concat_output=False, reverse=reverse)
    feed = {"x": [[[1.0], [2.0]], [], [[5.0]]]}
    assert [value.tolist() for value in run(program, feed, [accum, last])] == [[[3], [0], [5]], [[6], [0], [10]]]


@pytest.mark.mission("E14")
def test_the_last_step_of_a_loop_that_runs_backwards_is_the_first_element():
    with ol.Program() as program:
        x = ol.layer.data("x", [], batch="t")
        last = ol.layer.rnn(input=x, step_net=lambda step: step * 2.0, concat_output=False, reverse=True)
    assert run(program, {"x": [1.0, 2.0, 3.0]}, [last])[0].tolist() == 2


@pytest.mark.mission("E19")
def test_labels_are_for_each_step_or_for_each_sequence_as_the_shapes_say():
    with ol.Program() as program:
        x = ol.layer.data("features", ["n", 4], batch="t")
        accum = ol.framework.tensor()
        steps = ol.layer.rnn(input=x, step_net=lambda: ol.layer.fc(ol.layer.add_to(accum, None), 8))
        each_step = ol.layer.mse(ol.layer.fc(steps, 1), ol.layer.data("tags", ["n", 1], batch="t"))
        each_sequence = ol.layer.mse(ol.layer.fc(accum, 1), ol.layer.data("labels", [1]))
    xs, tags, labels = (RANDOM.normal(size=shape).astype("float32") for shape in ((3, 2, 4), (3, 2, 1), (2, 1)))
    weights = [f"fc_{number}.{part}" for number in range(3) for part in "wb"]
    scope = ol.init(program, ol.Scope())
    found = ol.Executor().run(program, {"features": xs, "tags": tags, "labels": labels}, [each_step, each_sequence, *weights], scope=scope)
    step_w, step_b, each_w, each_b, whole_w, whole_b = found[2:]
    sums = xs.cumsum(axis=0)
    for_steps = ((sums @ step_w + step_b) @ each_w + each_b - tags) ** 2  # one label for each step of each sequence
    for_sequences = (sums[-1] @ whole_w + whole_b - labels) ** 2  # one for each sequence, of the sum after its last step
    numpy.testing.assert_allclose(found[:2], [for_steps.mean(), for_sequences.mean()], rtol=1e-5)


def test_what_is_no_step_net_is_refused_before_anything_is_written():
    with ol.Program() as program:
        x = ol.layer.data("x", [2], batch="t")
        before = program.to_bytes()
        refused(
            lambda: ol.layer.rnn(input=x, step_net=x),
            ol.ArgumentError,
            "layer.rnn: step_net must be a function that writes the step, not a variable",
            "values computed before the call are computed once, outside the loop; the step is written inside it",
        )
        refused(
            lambda: ol.layer.rnn(input=x, step_net=lambda a, b: a),
            ol.ArgumentError,
            "layer.rnn: step_net must take the step input or nothing, not (a, b)",
        )
        refused(
            lambda: ol.layer.rnn(input=x, step_net=lambda: None),
            ol.ArgumentError,
            "layer.rnn: the result of step_net must be a variable of a program, not NoneType None",
        )
        assert program.to_bytes() == before


def test_a_tensor_that_is_added_to_is_one_without_a_value_and_is_added_to_once():
    with ol.Program() as program:
        x = ol.layer.data("x", ["n", 2], batch="t")
        accum = ol.framework.tensor()
        refused(lambda: ol.layer.add_to(accum, None), ol.ProgramError, "add_to: no step is open")
        valued = ol.op.tanh(x)
        rnn = ol.rnn()
        with rnn.step():
            refused(
                lambda: ol.layer.add_to(accum, None),
                ol.ProgramError,
                "rnn.add_to: None means the step input, but there are 0",
            )
            step = rnn.step_input(x)
            refused(lambda: ol.layer.add_to(valued, step), ol.ArgumentError, 'rnn.add_to: "tanh_0" cannot become the sum over the steps')
            refused(
                lambda: ol.layer.add_to(accum, ol.op.concat([step, step], axis=1)),
                ol.ShapeError,
                "rnn.add_to: the state would start as zeros of float32[n, 4], which cannot be created before the first step",
            )
            rnn.output(ol.layer.add_to(accum, step))
            refused(lambda: ol.layer.add_to(accum, step), ol.ArgumentError, 'rnn.add_to: "tensor_0" cannot become the sum over the steps')
        rnn()
        ol.layer.fc(accum, 1)
    assert accum.op.type == "recurrent"
    assert [op.type for op in program.main.ops] == ["tanh", "full_batch_size_like", "recurrent", "linear"]


def test_a_loop_that_does_not_close_takes_back_what_it_wrote_around_itself():
    with ol.Program() as program:
        x = ol.layer.data("x", ["n", 2], batch="t")
        y = ol.layer.data("y", ["n", 2], batch="s")
        accum = ol.framework.tensor()
        before = program.to_text(source=False)
        rnn = ol.rnn()
        with rnn.step():
            rnn.output(ol.layer.add_to(accum, rnn.step_input(x)) * rnn.step_input(y))
        refused(rnn, ol.ShapeError, "recurrent: sequence 1 has s steps but sequence 0 has t")
        assert program.to_text(source=False) == before


# No steps, and what is around the loop


def test_a_loop_of_no_steps_gives_what_it_reads_of_outside_gradients_of_zeros_in_its_shape():
    with ol.Program() as program:
        xs = ol.layer.data("xs", ["n", 2], dtype="float64", batch="t")
        scale = ol.layer.data("scale", ["n", 2], dtype="float64", batch=None)
        table = ol.layer.data("table", ["k", 2], dtype="float64", batch=None)
        rnn = ol.rnn()
        with rnn.step():
            rnn.output(ol.op.tanh(rnn.step_input(xs) * scale) * ol.op.reduce_sum(table))
        first = ol.gradients([ol.op.reduce_sum(rnn())], [scale, table])
        second = ol.gradients([ol.op.reduce_sum(ol.op.square(first[0]))], [scale, table])
    for steps, any_ in ((0, False), (2, True)):
        feed = {"xs": numpy.ones((steps, 3, 2)), "scale": numpy.ones((3, 2)), "table": numpy.ones((5, 2))}
        for executor in (ol.Executor(), ol.Executor(check=True)):
            values = executor.run(program, feed, [*first, *second], scope=ol.Scope())
            assert [value.shape for value in values] == [(3, 2), (5, 2)] * 2
            assert [bool(value.any()) for value in values] == [any_] * 4
