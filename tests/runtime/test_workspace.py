"""Memory that is held between runs: what it is given back for, and that no value of a run is ever in it afterwards."""

import gc
import sys
import threading

import numpy
import pytest
import torch

import oarlock as ol
from oarlock import op
from oarlock.runtime.plan.workspace import Buffer, Growth, Workspace

CPU = torch.device("cpu")


def recurrent(*, fetch_states=False, update=True):
    """A recurrent network whose cost depends on all states; its first steps' states are fed."""
    with ol.Program(seed=3) as program:
        x = ol.layer.data("x", ["n", 3], dtype="float64", batch="t")
        start = ol.layer.data("start", [4], dtype="float64", batch="n")
        rnn = ol.rnn()
        with rnn.step():
            state = rnn.memory(init=start)
            before = rnn.previous_memory(state)
            after = op.tanh(ol.layer.fc(rnn.step_input(x), 4) + ol.layer.fc(before, 4))
            rnn.update_memory(state, after)
            rnn.output(after)
        states = rnn()
        cost = op.reduce_sum(op.square(states))
        program.targets["states"], program.targets["cost"] = states, cost
        if update:
            ol.optimizer.SGD(0.01).minimize(cost)
    return program, ["cost", "states"] if fetch_states else ["cost"]


def repeated():
    """A `while` that makes as many trips as is fed, and its gradient."""
    with ol.Program(seed=3) as program:
        x = ol.layer.data("x", [4], dtype="float64", batch="n")
        count = ol.layer.data("count", [], dtype="int64", batch=None)
        w = ol.layer.create_parameter([4, 4], dtype="float64")
        number, value = op.full(shape=[], dtype="int64", value=0), op.tanh(x)
        loop = ol.while_loop(number < count)
        with loop.block():
            more = number + op.full(shape=[], dtype="int64", value=1)
            loop.carry(number, more)
            loop.carry(value, op.tanh(op.linear(value, w)))
            loop.update_condition(more < count)
        _, y = loop()
        cost = op.reduce_sum(op.square(y))
        program.targets["cost"] = cost
        ol.optimizer.SGD(0.01).minimize(cost)
    return program


def feed(length=5, rows=2, seed=0):
    random = numpy.random.default_rng(seed)
    return {"x": random.normal(size=(length, rows, 3)), "start": random.normal(size=(rows, 4))}


def prepared(program, fetch, executor=None, *, training=True):
    scope = ol.init(program, ol.Scope())
    executor = executor or ol.Executor()
    return executor.prepare(program, fetch, scope=scope, training=training, return_numpy=False), scope


def interpreted(program, fetch, feeds, *, training=True):
    """The values that the interpreter fetches, step by step."""
    step, _ = prepared(program, fetch, ol.Executor(interpret=True), training=training)
    return [[value.clone() for value in step(each)] for each in feeds]


def require_close(actual, expected):
    for one, other in zip(actual, expected, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-10, atol=1e-12)


# A workspace by itself


def test_a_buffer_that_was_given_back_is_taken_again_with_its_steps():
    workspace = Workspace(CPU)
    buffer = workspace.take(torch.float32, 3, 2, 4)
    buffer.whole.copy_(torch.arange(24.0).reshape(3, 2, 4))
    steps, columns = buffer.steps, buffer.columns(1, 3)
    assert [step.data_ptr() for step in steps] == [row.data_ptr() for row in buffer.whole]
    assert torch.equal(torch.stack(columns), buffer.whole[..., 1:3])
    assert workspace.take(torch.float32, 3, 2, 4) is not buffer  # it is not idle
    workspace.give_back(buffer)
    assert workspace.take(torch.float64, 3, 2, 4) is not buffer
    assert workspace.take(torch.float32, 3, 4, 2) is not buffer
    assert workspace.take(torch.float32, 3, 2, 4) is buffer
    assert buffer.steps is steps
    assert buffer.columns(1, 3) is columns


def test_what_a_run_did_not_take_is_let_go_of_when_it_ends():
    workspace = Workspace(CPU)
    buffer, other = workspace.take(torch.float32, 3), workspace.take(torch.float32, 4)
    workspace.give_back(buffer, other)
    workspace.end_run()
    assert workspace.take(torch.float32, 3) is buffer
    workspace.give_back(buffer)
    workspace.end_run()
    assert workspace.take(torch.float32, 4) is not other
    assert workspace.take(torch.float32, 3) is buffer


def test_a_buffer_that_grows_keeps_its_values_and_is_held_unless_it_is_much_too_large():
    workspace, growth = Workspace(CPU), Growth(torch.float64)

    def fill(count):
        buffer = workspace.take_growing(growth, 2)
        for number in range(count):
            buffer.next_destination().fill_(number)
        buffer.filled()
        assert torch.equal(buffer.whole, torch.arange(count, dtype=torch.float64)[:, None].expand(count, 2))
        assert [step.data_ptr() for step in buffer.steps] == [row.data_ptr() for row in buffer.whole]
        workspace.give_back(buffer)
        return buffer

    buffer = fill(40)
    assert fill(50) is buffer
    assert fill(20) is buffer
    views = buffer.steps, buffer.columns(0, 1)
    assert fill(20) is buffer
    assert buffer.steps is views[0]  # where as many come again, none is made
    assert buffer.columns(0, 1) is views[1]
    assert fill(2) is buffer  # which was given back as too large
    assert fill(2) is not buffer
    assert growth.expected == 2


@pytest.mark.parametrize(("sizes", "is_held"), [((3, 2, 4), True), ((9, 1024), True), ((9, 1025), False), ((0, 4), True)])
def test_what_is_returned_is_a_copy_of_a_borrowed_buffer_if_its_steps_are_small(sizes, is_held):
    workspace = Workspace(CPU)
    buffer = workspace.borrow(torch.float32, *sizes)
    values = torch.rand(sizes)
    buffer.whole.copy_(values)
    returned = workspace.export(buffer)
    workspace.end_run()
    next_one = workspace.borrow(torch.float32, *sizes)
    assert (next_one is buffer) is is_held
    next_one.whole.zero_()
    assert torch.equal(returned, values)


# Plans


@pytest.mark.parametrize("poison", [False, True])
@pytest.mark.parametrize("passes", [(), tuple(ol.Executor().passes)], ids=["no passes", "all passes"])
@pytest.mark.parametrize("fetch_states", [False, True])
def test_steps_with_sizes_that_alternate_are_those_of_the_interpreter(fetch_states, passes, poison):
    program, fetch = recurrent(fetch_states=fetch_states)
    feeds = [
        feed(length, rows, seed) for seed, (length, rows) in enumerate([(5, 2), (5, 2), (3, 2), (5, 2), (1, 4), (0, 2), (5, 2), (5, 2)])
    ]
    step, _ = prepared(program, fetch, ol.Executor(passes=passes, poison=poison))
    for each, expected in zip(feeds, interpreted(program, fetch, feeds), strict=True):
        require_close(step(each), expected)


@pytest.mark.parametrize("poison", [False, True])
def test_whiles_with_other_numbers_of_trips_are_those_of_the_interpreter(poison):
    program = repeated()
    random = numpy.random.default_rng(0)
    feeds = [{"x": random.normal(size=(2, 4)), "count": count} for count in (3, 3, 40, 1, 40, 0, 2, 2, 9)]
    step, _ = prepared(program, ["cost"], ol.Executor(poison=poison))
    for each, expected in zip(feeds, interpreted(program, ["cost"], feeds), strict=True):
        require_close(step(each), expected)


def test_a_plan_takes_no_memory_for_its_stacks_in_the_second_run():
    program, fetch = recurrent()
    step, _ = prepared(program, fetch)
    step(feed())
    made = []
    make = Workspace.make

    def noted(self, *key):
        made.append(key)
        return make(self, *key)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Workspace, "make", noted)
        step(feed(seed=1))
        assert made == []
        step(feed(length=6))
        assert made  # sizes that are new


def test_values_that_were_returned_are_not_written_over_by_later_runs():
    """The stack of states is fetched; with it stays the memory that it lies in."""
    program, fetch = recurrent(fetch_states=True, update=False)
    step, _ = prepared(program, fetch, training=False)
    fetched = [step(feed(seed=seed))[1] for seed in range(4)]
    kept = [value.clone() for value in fetched]
    for seed in range(4, 8):
        step(feed(seed=seed))
    assert all(torch.equal(one, other) for one, other in zip(fetched, kept, strict=True))
    assert len({value.untyped_storage().data_ptr() for value in fetched}) == 4


@pytest.mark.parametrize("poison", [False, True])
@pytest.mark.parametrize("rows", [2, 200])
@pytest.mark.parametrize("beside", ["nothing", "the last", "a square of the last", "the same again"])
def test_a_stack_that_is_returned_may_be_copied_unless_somebody_reads_what_lies_beside_it(beside, rows, poison):
    """200 rows are more than is copied. The last value of the memory lies in the stack."""
    with ol.Program(seed=3) as program:
        x = ol.layer.data("x", ["n", 4], dtype="float64", batch="t")
        start = ol.layer.data("start", [4], dtype="float64", batch="n")
        rnn = ol.rnn()
        with rnn.step():
            state = rnn.memory(init=start)
            after = op.tanh(rnn.step_input(x) + rnn.previous_memory(state))
            rnn.update_memory(state, after)
            rnn.output(after)
            rnn.output(after)
        stacks, last = rnn(), rnn.final_memory(state)
        again = ol.rnn()  # takes as much memory
        with again.step():
            again.output(op.square(again.step_input(stacks[0])))
        fetched = {"nothing": [], "the last": [last], "a square of the last": [op.square(last)], "the same again": [stacks[1]]}[beside]
        for number, var in enumerate([stacks[0], again(), *fetched]):
            program.targets[str(number)] = var
    names, random = list(program.targets), numpy.random.default_rng(0)
    feeds = [{"x": random.normal(size=(5, rows, 4)), "start": random.normal(size=(rows, 4))} for _ in range(4)]
    executor = ol.Executor(passes=(), poison=poison)  # `batch_prologue` would leave no second loop
    step, _ = prepared(program, names, executor, training=False)
    values = [step(each) for each in feeds]
    for found, expected in zip(values, interpreted(program, names, feeds, training=False), strict=True):
        assert all(map(torch.equal, found, expected))
    plan = executor.plan(program, [program.targets[name] for name in names])
    assert plan.text.count("workspace.export(") == (2 if beside == "nothing" else 1)  # and the squares


@pytest.mark.parametrize("poison", [False, True])
@pytest.mark.parametrize("passes", [(), tuple(ol.Executor().passes)], ids=["no passes", "all passes"])
@pytest.mark.parametrize("nested", [False, True])
@pytest.mark.parametrize("kept", [False, True])
def test_what_the_trips_made_of_the_steps_of_a_sequence_stays_where_it_is_returned(kept, nested, passes, poison):
    """The sequence is computed for a loop whose trips write over it; the last step of it is fetched, or a variable's next value."""
    with ol.Program(seed=3) as program:
        x = ol.layer.data("x", [2, 3], dtype="float64", batch="t")
        held = program.main.new_var("held", ol.DType.FLOAT64, (3,) if nested else (2, 3), persistable=True)
        sequence, rnn = op.square(x), ol.rnn()
        with rnn.step():
            state = rnn.memory(init=held)
            value = rnn.step_input(sequence)
            if nested:
                inside = ol.rnn()
                with inside.step():
                    inner = inside.memory(init=held)
                    inside.update_memory(inner, op.tanh(inside.step_input(value)))
                    inside.output(inside.previous_memory(inner))
                inside()
                value = inside.final_memory(inner)
            else:
                value = op.tanh(value)
            rnn.update_memory(state, value)
            rnn.output(rnn.previous_memory(state))
        rnn()
        final = rnn.final_memory(state)
        program.targets["final"] = final
        if kept:
            program.main.commit(held, final)
    feeds = [{"x": feed(seed=seed)["x"]} for seed in range(4)]

    def run(executor):
        scope = ol.Scope()
        scope.set("held", numpy.ones(held.shape))
        step = executor.prepare(program, [] if kept else ["final"], scope=scope, return_numpy=False)
        values = []
        for each in feeds:
            fetched = step(each)
            values.append([scope.var("held").value] if kept else fetched)
        return values

    fetched = run(ol.Executor(passes=passes, poison=poison))
    for one, other in zip(fetched, run(ol.Executor(interpret=True)), strict=True):
        require_close(one, other)


def test_a_run_after_one_that_failed_midway_is_right():
    """Classes that are none: the loss refuses them, after the loop and before its gradient."""
    with ol.Program(seed=3) as program:
        x = ol.layer.data("x", ["n", 3], dtype="float64", batch="t")
        start = ol.layer.data("start", [4], dtype="float64", batch="n")
        label = ol.layer.data("label", ["n"], dtype="int64", batch="t")
        rnn = ol.rnn()
        with rnn.step():
            state = rnn.memory(init=start)
            after = op.tanh(ol.layer.fc(rnn.step_input(x), 4) + ol.layer.fc(rnn.previous_memory(state), 4))
            rnn.update_memory(state, after)
            rnn.output(after)
        logits = op.reshape(rnn(), shape=[-1, 4])
        cost = ol.layer.mean(op.softmax_with_cross_entropy(logits, op.reshape(label, shape=[-1])))
        program.targets["cost"] = cost
        ol.optimizer.SGD(0.01).minimize(cost)
    good = [{**feed(seed=seed), "label": numpy.full((5, 2), seed % 4)} for seed in range(4)]
    expected = interpreted(program, ["cost"], good)
    step, _ = prepared(program, ["cost"])
    for number, each in enumerate(good):
        with pytest.raises(ol.KernelError):
            step({**each, "label": numpy.full((5, 2), 7)})
        require_close(step(each), expected[number])


def test_memory_does_not_grow_with_the_sizes_that_were_run():
    program, fetch = recurrent()
    step, _ = prepared(program, fetch)

    def held():
        gc.collect()
        return sum(found.whole.numel() for found in gc.get_objects() if type(found) is Buffer and found.whole.dtype is torch.float64)

    before = held()
    step(feed(30))
    once = held() - before
    for length in (*range(1, 30), 30):
        step(feed(length))
    assert 0 < held() - before <= once


def test_sixteen_threads_that_run_a_loop_at_once_get_the_bits_of_one():
    program, fetch = recurrent(fetch_states=True)
    executor = ol.Executor()
    before = sys.getswitchinterval(), torch.get_num_threads()
    torch.set_num_threads(1)
    alone, _ = prepared(program, fetch, ol.Executor())
    expected = [[value.clone() for value in alone(feed(20, seed=seed))] for seed in range(6)]
    failures = []

    def work(step):
        torch.set_num_threads(1)
        for seed, values in enumerate(expected):
            if not all(map(torch.equal, step(feed(20, seed=seed)), values)):
                failures.append(seed)

    steps = [prepared(program, fetch, executor)[0] for _ in range(16)]
    threads = [threading.Thread(target=work, args=(step,)) for step in steps]
    try:
        sys.setswitchinterval(1e-6)
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(before[0])
        torch.set_num_threads(before[1])
    assert failures == []


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int64, torch.float16, torch.float64, torch.complex64])
def test_a_workspace_fills_new_memory_with_the_byte_that_an_executor_is_given(dtype):
    workspace, growth = Workspace(CPU, 171), Growth(dtype)
    growing = workspace.take_growing(growth, 2)
    for _ in range(growth.expected + 1):  # one more than there is memory for, so that it grows
        destination = growing.next_destination()
        assert destination.view(torch.uint8).eq(171).all()
    assert workspace.take(dtype, 3, 2).whole.view(torch.uint8).eq(171).all()


def test_a_workspace_fills_new_memory_with_nan_by_default_if_it_is_poisoned():
    assert Workspace(CPU, True).make(torch.float32, 3).whole.isnan().all()
    assert Workspace(CPU, True).make(torch.int32, 3).whole.eq(torch.iinfo(torch.int32).min).all()


@pytest.mark.parametrize("byte", [0, 85])
def test_a_plan_that_fills_memory_with_a_byte_computes_the_same(byte):
    program, fetch = recurrent(fetch_states=True)
    feed = {"x": numpy.ones((5, 2, 3)), "start": numpy.ones((2, 4))}
    expected = ol.Executor(passes=()).run(program, feed, fetch, scope=ol.init(program, ol.Scope()))
    executor, scope = ol.Executor(passes=(), poison=byte), ol.init(program, ol.Scope())
    found = executor.run(program, feed, fetch, scope=scope)
    assert [value.tobytes() for value in found] == [value.tobytes() for value in expected]


@pytest.mark.parametrize("poison", [256, -1, "yes", None, 0.5])
def test_a_poison_that_is_no_byte_is_refused(poison):
    with pytest.raises(ol.ArgumentError, match="poison must be True, False or a byte from 0 to 255, not"):
        ol.Executor(poison=poison)
