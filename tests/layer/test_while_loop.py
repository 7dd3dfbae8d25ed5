"""While: as many trips as the data decide, values that are carried from trip to trip, and stacks of what each returns."""

import numpy
import pytest
from twins import run

import oarlock as ol
from oarlock.op.control.conditional import conditional_block
from oarlock.registry import standard


def number(name, dtype="float64"):
    return ol.layer.data(name, shape=[], dtype=dtype, batch=None)


def doubled_until(limit, x, **settings):
    """(x after the last trip, x after each): doubled while it is less than `limit`."""
    loop = ol.while_loop(x < limit, **settings)
    with loop.block():
        after = x + x
        loop.carry(x, after)
        loop.update_condition(after < limit)
        loop.output(after)
    return loop()


@pytest.mark.mission("B51", "B3")
@pytest.mark.parametrize(("x", "trips"), [(1.0, 4), (9.0, 1), (10.0, 0), (-3.0, 2)])
def test_the_data_decide_how_many_trips_there_are(x, trips):
    with ol.Program() as program:
        start = number("x")
        final, every = doubled_until(10.0, ol.op.abs(start))
        (slope,) = ol.gradients([final + ol.op.reduce_sum(every)], [start])
    x0 = abs(x)
    values = run(program, {"x": x}, [final, every, slope])
    assert values[0] == x0 * 2**trips
    assert values[1].tolist() == [x0 * 2**count for count in range(1, trips + 1)]
    assert values[2] == numpy.sign(x) * (2**trips + sum(2**count for count in range(1, trips + 1)))


@pytest.mark.mission("B51")
def test_more_trips_than_were_allowed_raise_and_nothing_is_changed():
    with ol.Program() as program:
        x = ol.layer.data("x", shape=[1], dtype="float64")
        h = ol.layer.fc(x, 1, bias=False, name="h")
        final, _ = doubled_until(10.0, ol.op.reduce_sum(h), max_trips=3)
        program.targets["cost"] = final
        ol.optimizer.SGD(0.1).minimize(final)
    scope = ol.init(program, ol.Scope())
    executor = ol.Executor()
    scope.set("h.w", numpy.array([[1.0]]))
    before = {name: scope[name].numpy().tobytes() for name in scope}
    with pytest.raises(ol.KernelError, match="^while: the condition is still true after max_trips=3 iterations"):
        executor.run(program, {"x": numpy.array([[1.0]])}, ["cost"], scope=scope)
    assert {name: scope[name].numpy().tobytes() for name in scope} == before
    assert scope.children == []
    assert executor.run(program, {"x": numpy.array([[2.0]])}, ["cost"], scope=scope)[0] == 16.0  # three trips are allowed
    assert {name: scope[name].numpy().tobytes() for name in scope} != before


@pytest.mark.mission("B51")
@pytest.mark.parametrize("trips", range(4))
def test_two_values_change_places_in_one_trip(trips):
    """Carried values are read at the start of the iteration, all of them, whatever the order of `carry`."""
    with ol.Program() as program:
        a, b, count = number("a"), number("b"), number("count", "int64")
        loop = ol.while_loop(count > 0)
        with loop.block():
            loop.carry(a, b)
            loop.carry(count, count - 1)
            loop.carry(b, a)
            loop.update_condition(count - 1 > 0)
        last_a, last_count, last_b = loop()
        found = ol.gradients([last_a], [a, b])
    values = run(program, {"a": 1.0, "b": 2.0, "count": trips}, [last_a, last_b, last_count, *found])
    assert values == ([1.0, 2.0, 0, 1.0, 0.0] if trips % 2 == 0 else [2.0, 1.0, 0, 0.0, 1.0])


def test_several_values_are_returned_after_those_that_are_carried():
    with ol.Program() as program:
        x, count = ol.layer.data("x", shape=[2], dtype="float64", batch=None), number("count", "int64")
        loop = ol.while_loop(count < 3)
        with loop.block():
            loop.output(x, count)
            loop.carry(count, count + 1)
            loop.output(x * 2.0)
            loop.carry(x, x + 1.0)
            loop.update_condition(count + 1 < 3)
        results = loop()
    assert [var.type_text for var in results[:2]] == ["int64[]", "float64[2]"]
    assert [len(var.shape) for var in results] == [0, 1, 2, 1, 2]
    values = run(program, {"x": [1.0, 2.0], "count": 1}, results)
    assert [value.tolist() for value in values] == [3, [3.0, 4.0], [[1.0, 2.0], [2.0, 3.0]], [1, 2], [[2.0, 4.0], [4.0, 6.0]]]
    values = run(program, {"x": [1.0, 2.0], "count": 5}, results)
    assert [value.shape for value in values] == [(), (2,), (0, 2), (0,), (0, 2)]


def test_one_carried_value_is_a_variable_and_no_tuple():
    with ol.Program() as program:
        x = number("x")
        loop = ol.while_loop(x < 10.0)
        with loop.block():
            loop.carry(x, x * 3.0)
            loop.update_condition(x * 3.0 < 10.0)
        y = loop()
    assert run(program, {"x": 1.0}, [y]) == [27.0]


def test_counters_and_flags_carry_no_gradient_and_no_zeros_are_made_for_them():
    with ol.Program() as program:
        x, count, flag = number("x"), number("count", "int64"), number("flag", "bool")
        loop = ol.while_loop(count < 3)
        with loop.block():
            loop.carry(x, x * ol.op.cast(count, dtype="float64"))
            loop.carry(count, count + 1)
            loop.carry(flag, ol.op.logical_not(flag))
            loop.update_condition(count + 1 < 3)
        y, last, flipped = loop()
        (dx,) = ol.gradients([y], [x])
    assert run(program, {"x": 5.0, "count": 1, "flag": True}, [y, last, flipped, dx]) == [10.0, 3, True, 2.0]
    backward = next(op for op in program.main.ops if op.type == "recurrent")
    assert [var.type_text for var in backward.inputs["initial"]] == ["float64[]"]
    gradients = [var for block in program.blocks for var in block.vars.values() if "@GRAD" in var.name]
    assert gradients
    assert all(var.dtype.is_floating for var in gradients)
    assert not [op for op in program.main.ops if op.type == "full_like" and not op.writes[0].name.startswith("while_0.final.0@GRAD")]


def test_a_condition_of_one_element_is_one_condition():
    with ol.Program() as program:
        x = ol.layer.data("x", shape=[1], dtype="float64", batch=None)
        y, every = doubled_until(5.0, x)
    final, stack = run(program, {"x": [1.0]}, [y, every])
    assert (final.tolist(), stack.tolist()) == ([8.0], [[2.0], [4.0], [8.0]])


def test_a_carried_value_may_be_one_from_outside_from_then_on():
    with ol.Program() as program:
        x, w, count = number("x"), number("w"), number("count", "int64")
        loop = ol.while_loop(count > 0)
        with loop.block():
            loop.output(x * x)
            loop.carry(x, w)
            loop.carry(count, count - 1)
            loop.update_condition(count - 1 > 0)
        final, _, every = loop()
        found = ol.gradients([final, every], [x, w])
    values = run(program, {"x": 3.0, "w": 5.0, "count": 3}, [final, every, *found])
    assert [value.tolist() for value in values] == [5.0, [9.0, 25.0, 25.0], 6.0, 21.0]


def test_what_is_carried_keeps_its_name_outside_and_its_value_too():
    with ol.Program() as program:
        x = number("x")
        y, _ = doubled_until(10.0, x)
        after = x + 0.0
    assert run(program, {"x": 3.0}, [y, after]) == [12.0, 3.0]


def test_an_exception_in_the_body_takes_it_back_and_it_may_be_written_again():
    with ol.Program() as program:
        x = number("x")
        loop = ol.while_loop(x < 10.0)
        with pytest.raises(KeyError), loop.block():
            loop.carry(x, x + x)
            loop.update_condition(x < 1.0)
            loop.output(x)
            raise KeyError
        assert [block.name for block in program.blocks] == ["main"]
        with loop.block():
            loop.carry(x, x * 4.0)
            loop.update_condition(x * 4.0 < 10.0)
        y = loop()
    assert run(program, {"x": 1.0}, [y]) == [16.0]


def test_a_loop_that_is_refused_leaves_no_block_behind():
    with ol.Program() as program:
        x = number("x")
        loop = ol.while_loop(x < 10.0)
        with loop.block():
            loop.carry(x, x + x)
        with pytest.raises(ol.ProgramError):
            loop()
        assert [block.name for block in program.blocks] == ["main"]


@pytest.mark.mission("B53")
def test_there_is_no_way_out_of_a_block_but_its_end_and_no_way_back_into_it():
    """No operator is a break, a continue or a return; three own blocks, and of a program that is written none can own itself."""
    operators = {operator.type: operator for operator in standard}
    assert not {"break", "continue", "return", "goto", "call"} & set(operators)
    with_blocks = {type for type, operator in operators.items() if operator.block_attributes}
    assert with_blocks == {"conditional_block", "recurrent", "while"}
    with ol.Program() as program:
        x = number("x")
        block = program.new_block("f.body", program.main)
        with block, pytest.raises(ol.ProgramError) as caught:
            block.outputs = [x + x]
            conditional_block([], [x], body=block)
    assert caught.value.message == "conditional_block: an op cannot own a block outside main/f.body"
    assert caught.value.contract == "the parent of an op's blocks is the block of the op"
