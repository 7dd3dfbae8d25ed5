"""Which program a layer joins: that of its inputs, the innermost `with`, or the default one."""

import asyncio
import threading

import numpy
import pytest

import oarlock as ol
from oarlock.ir import block_stack


@pytest.fixture
def default(monkeypatch: pytest.MonkeyPatch) -> ol.Program:
    """The default program of a process that has just begun."""
    monkeypatch.setattr(block_stack, "_default", [])
    return ol.default_program()


def test_without_a_with_layers_join_the_default_program(default):
    x = ol.layer.data("x", shape=[3])
    cost = ol.layer.mse(ol.layer.fc(x, 1), ol.layer.data("y", shape=[1]))
    assert cost.block.program is default is ol.default_program()
    assert [var.name for var in default.main.inputs] == ["x", "y"]
    data = {"x": numpy.eye(3, dtype="float32"), "y": numpy.ones((3, 1), "float32")}
    result = ol.train(cost, data, optimizer=ol.optimizer.SGD(0.5), epochs=50, progress=False)
    assert result.history[-1].training["loss"] < 1e-3


def test_the_default_program_is_one_and_a_with_is_another(default):
    with ol.Program() as program:
        assert ol.layer.data("x", shape=[3]).block.program is program
    assert ol.layer.data("x", shape=[3]).block.program is default


def test_outside_its_with_an_operator_joins_the_program_of_its_inputs():
    with ol.Program() as program:
        x = ol.layer.data("x", shape=[3])
    y = ol.layer.relu(x) + 1
    z = ol.layer.fc(y, 2)
    assert {var.block for var in (y, z)} == {program.main}
    assert [op.type for op in program.main.ops] == ["relu", "full", "add", "linear"]


def test_inside_the_with_of_another_program_an_operator_on_a_variable_of_a_closed_one_is_refused():
    with ol.Program() as first:
        x = ol.layer.data("x", shape=[3])
    before = first.to_bytes()
    with (
        ol.Program() as second,
        pytest.raises(ol.ProgramError, match='^relu: "x" belongs to a program that is not open, but another program is'),
    ):
        ol.layer.relu(x)
    assert first.to_bytes() == before
    assert (second.main.ops, second.main.vars) == ([], {})


def test_an_operator_joins_the_innermost_open_block_of_its_program():
    with ol.Program() as program:
        rows = ol.layer.data("rows", shape=[3])
        outer = ol.layer.relu(rows)
        rnn = ol.rnn()
        with rnn.step():
            inner = ol.layer.tanh(rnn.step_input(rows)) + ol.op.reduce_sum(outer)
            rnn.output(inner)
        after = ol.layer.tanh(rnn())
    assert inner.block.path == "main/rnn_0.body"
    assert after.block is program.main


def test_a_with_ends_where_an_exception_leaves_it(default):
    with pytest.raises(RuntimeError), ol.Program():
        raise RuntimeError("out")
    assert ol.layer.data("x", shape=[3]).block.program is default


def test_a_step_that_raises_is_as_if_it_had_not_been_opened():
    with ol.Program() as program:
        rows = ol.layer.data("rows", shape=[3])
        rnn = ol.rnn()
        with pytest.raises(RuntimeError), rnn.step():
            ol.layer.fc(rnn.step_input(rows), 3)
            raise RuntimeError("out")
        assert len(program.blocks) == 1
        with rnn.step():
            rnn.output(ol.layer.relu(rnn.step_input(rows)))
        y = rnn()
    assert y.shape == ("n", 3)


def test_threads_and_tasks_fill_programs_of_their_own():
    def build(found: list[ol.Program], barrier: threading.Barrier) -> None:
        with ol.Program() as program:
            barrier.wait(timeout=30)
            x = ol.layer.data("x", shape=[3])
            barrier.wait(timeout=30)
            ol.layer.fc(x, 2)
            barrier.wait(timeout=30)
        found.append(program)

    programs: list[ol.Program] = []
    barrier = threading.Barrier(3)
    threads = [threading.Thread(target=build, args=(programs, barrier)) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({program.to_bytes(source=False) for program in programs}) == 1
    assert len(programs) == 3

    async def task() -> ol.Program:
        with ol.Program() as program:
            for number in range(3):
                ol.layer.data(f"x{number}", shape=[3])
                await asyncio.sleep(0)
        return program

    async def tasks() -> list[ol.Program]:
        return await asyncio.gather(task(), task())

    assert [list(program.main.vars) for program in asyncio.run(tasks())] == [["x0", "x1", "x2"]] * 2


@pytest.mark.parametrize(
    "append",
    [
        lambda cost, x: ol.gradients([cost], [x]),
        lambda cost, x: ol.append_backward(cost),
        lambda cost, x: ol.optimizer.SGD(0.1).minimize(cost),
    ],
    ids=["gradients", "append_backward", "minimize"],
)
def test_gradients_and_updates_are_not_appended_while_another_program_is_open(append):
    with ol.Program() as first:
        x = ol.layer.data("x", shape=[2])
        cost = ol.layer.mean(ol.layer.fc(x, 1))
    before = first.to_text()
    with ol.Program() as second, pytest.raises(ol.ProgramError) as raised:
        append(cost, x)
    assert raised.value.message == f'gradients: "{cost.name}" belongs to a program that is not open, but another program is'
    assert (first.to_text(), second.main.ops) == (before, [])
    with ol.Program(), first:
        append(cost, x)
    assert first.to_text() != before


def test_an_op_and_a_target_are_of_one_program():
    with ol.Program():
        x = ol.layer.data("x", shape=[2])
    with ol.Program() as second:
        y = ol.layer.data("y", shape=[2])
    with pytest.raises(ol.ProgramError) as raised:
        second.main.new_op("relu", {"x": x}, {"y": y})
    assert raised.value.message == '"x" belongs to another program'
    assert second.main.ops == []
    second.targets = {"answer": x}
    with pytest.raises(ol.VerifyError) as raised:
        ol.Executor().run(second, {"y": [[1.0, 2.0]]}, ["y"], scope=ol.Scope())
    assert raised.value.message == 'target "answer": "x" belongs to another program'
