"""Small tensors that are the same in each run: a plan makes them once, nobody writes over them, and nobody is handed them."""

import itertools

import numpy
import pytest

import oarlock as ol


def constant(value=2.0, shape=(2,)):
    return ol.op.full(shape=shape, value=value, dtype="float32")


def planned(program, fetch):
    return ol.Executor(passes=()).plan(program, fetch)


def run_twice(program, fetch, feed=None, scope=None, **options):
    """The results of a second run, after the caller has written over all those of the first one."""
    executor, scope = ol.Executor(passes=(), poison=True, **options), scope or ol.Scope()
    for value in executor.run(program, feed or {}, fetch, scope=scope, return_numpy=False):
        value.fill_(7)
    return [value.tolist() for value in executor.run(program, feed or {}, fetch, scope=scope)]


def test_what_is_only_read_is_made_once():
    with ol.Program() as program:
        y = ol.layer.data("x", shape=[2]) * constant()
    plan = planned(program, [y])
    assert plan.text == "def plan(context_of, device, x_1):\n    multiply_0_3 = multiply_4(x_1, full_0_2)\n    return [multiply_0_3]\n"
    assert [(name, op.type) for name, op in plan.constants.items()] == [("full_0_2", "full")]
    assert run_twice(program, [y], {"x": [[1.0, 2.0]]}) == [[[2.0, 4.0]]]


def test_what_is_returned_is_made_each_time():
    with ol.Program() as program:
        fetch = [constant(), ol.op.reshape(constant(3.0), shape=(1, 2))]
    assert not planned(program, fetch).constants
    assert run_twice(program, fetch) == [[2.0, 2.0], [[3.0, 3.0]]]


@pytest.mark.parametrize("trips", [0, 3])
def test_what_a_loop_may_return_as_it_was_is_made_each_time(trips):
    with ol.Program() as program:
        x, first, rnn = ol.layer.data("x", shape=[2], batch="t"), constant(), ol.rnn()
        with rnn.step():
            memory = rnn.memory(first)
            rnn.update_memory(memory, rnn.previous_memory(memory) * rnn.step_input(x))
            rnn.output(rnn.previous_memory(memory))
        rnn()
        final = rnn.final_memory(memory)
    assert not planned(program, [final]).constants
    assert run_twice(program, [final], {"x": numpy.full((trips, 2), 2.0, "float32")}) == [[2.0 * 2.0**trips] * 2]


def test_a_constant_of_a_loop_s_body_is_made_once():
    with ol.Program() as program:
        x, rnn = ol.layer.data("x", shape=[2], batch="t"), ol.rnn()
        with rnn.step():
            rnn.output(rnn.step_input(x) * constant())
        y = rnn()
    plan = planned(program, [y])
    assert len(plan.constants) == 1
    assert run_twice(program, [y], {"x": [[1.0, 2.0], [3.0, 4.0]]}) == [[[2.0, 4.0], [6.0, 8.0]]]


def test_nobody_writes_over_a_constant():
    with ol.Program() as program:
        c = constant()
        y = ol.op.tanh(c)
        z = ol.op.tanh(ol.op.reshape(c, shape=(1, 2)))
    plan = planned(program, [y, z])
    assert len(plan.constants) == 1
    assert "in_place" not in plan.text
    flat, row = run_twice(program, [y, z])
    assert [flat] == row
    assert flat == pytest.approx([numpy.tanh(2.0)] * 2)


def test_a_next_value_is_the_scope_s_own():
    with ol.Program() as program:
        held = program.main.new_var("held", ol.DType.FLOAT32, (2,), persistable=True)
        program.main.commit(held, constant())
    scope = ol.Scope()
    scope.set("held", numpy.zeros(2, "float32"))
    executor = ol.Executor()
    assert not executor.plan(program).constants
    for _ in range(2):
        executor.run(program, scope=scope)
        assert scope["held"].tolist() == [2.0, 2.0]
        scope["held"].fill_(7)


def test_large_tensors_and_those_of_fed_sizes_are_made_each_time():
    with ol.Program() as program:
        x = ol.layer.data("x", shape=[5000])
        fetch = [x + constant(shape=(5000,)), x + ol.op.full_like(x, value=1.0)]
    assert not planned(program, fetch).constants


def test_an_op_that_fails_does_so_when_it_runs():
    with ol.Program() as program:
        y = ol.op.full(shape=(2,), value=float("inf"), dtype="int64") + ol.layer.data("x", shape=[2], dtype="int64")
    assert not planned(program, [y]).constants
    with pytest.raises(ol.KernelError, match="full"):
        ol.Executor(passes=()).run(program, {"x": [[1, 2]]}, [y], scope=ol.Scope())


def test_operators_of_others_may_do_with_their_inputs_what_they_like():
    catalogue = ol.registry.Catalogue()
    catalogue.operators.update(ol.registry.standard.operators)

    @ol.operator("x: float[*b] -> y: float[*b]", catalogue=catalogue)
    def careless(x):
        return x.mul_(2.0).clone()

    with ol.Program() as program:
        y = careless(constant())
    assert not ol.Executor(catalogue=catalogue, passes=()).plan(program, [y]).constants
    assert run_twice(program, [y], catalogue=catalogue) == [[4.0, 4.0]]


def test_a_line_that_fails_tells_of_its_constants():
    with ol.Program() as program:
        rows = ol.op.full(shape=(1,), value=9, dtype="int64")
        y = ol.op.gather(ol.layer.data("x", shape=[2]), rows)
    messages = []
    for executor in (ol.Executor(interpret=True), ol.Executor(passes=())):
        with pytest.raises(ol.KernelError) as caught:
            executor.run(program, {"x": [[1.0, 2.0]]}, [y], scope=ol.Scope())
        messages.append(str(caught.value))
    assert messages[0] == messages[1]
    assert '"full_0"' in messages[0]


def of_parts(parts, *, reverse):
    """A program with a loop that stacks a concatenation of `parts`, functions of a step and of the memory; and that stack."""
    with ol.Program() as program:
        x, first = ol.layer.data("x", [2], "float64", batch="t"), ol.layer.data("first", [2], "float64", batch=None)
        rnn = ol.rnn(reverse=reverse)
        with rnn.step():
            step, memory = rnn.step_input(x), rnn.memory(first)
            rnn.update_memory(memory, ol.op.tanh(step + rnn.previous_memory(memory)))
            rnn.output(ol.op.concat([part(step, rnn.previous_memory(memory)) for part in parts], axis=-1))
        stacked = rnn()
    return program, stacked


PARTS = {
    "computed": lambda x, memory: ol.op.tanh(x),
    "given": lambda x, memory: x,
    "a memory": lambda x, memory: memory,
    "a constant": lambda x, memory: ol.op.full(shape=(2,), value=0.5, dtype="float64"),
    "a wider one": lambda x, memory: ol.op.full(shape=(3,), value=-0.5, dtype="float64"),
    "made of one": lambda x, memory: ol.op.tanh(ol.op.full(shape=(2,), value=0.25, dtype="float64")),
    "its sign": lambda x, memory: ol.op.neg(ol.op.full(shape=(1,), value=0.25, dtype="float64")),
}


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize(
    "names", [*itertools.permutations(PARTS, 2), ("a constant", "computed", "a wider one", "given")], ids=" beside ".join
)
def test_constant_parts_of_a_wider_value_are_written_in_every_trip(names, reverse):
    program, stacked = of_parts([PARTS[name] for name in names], reverse=reverse)
    x, first = numpy.linspace(-1, 1, 8).reshape(4, 2), numpy.array([0.1, 0.2])
    memories = numpy.stack([*itertools.accumulate(x[::-1] if reverse else x, lambda m, row: numpy.tanh(row + m), initial=first)][:-1])
    values = {
        "computed": numpy.tanh(x), "given": x, "a memory": memories[::-1] if reverse else memories,
        "a constant": numpy.full((4, 2), 0.5), "a wider one": numpy.full((4, 3), -0.5),
        "made of one": numpy.full((4, 2), numpy.tanh(0.25)), "its sign": numpy.full((4, 1), -0.25),
    }  # fmt: skip
    expected = numpy.concatenate([values[name] for name in names], axis=1)
    for executor in (ol.Executor(poison=True), *(ol.Executor(passes=passes, poison=True) for passes in ((), ("inline",), ("licm",)))):
        for _ in range(2):
            (found,) = executor.run(program, {"x": x, "first": first}, [stacked], scope=ol.Scope())
            numpy.testing.assert_allclose(found, expected, rtol=1e-15)
