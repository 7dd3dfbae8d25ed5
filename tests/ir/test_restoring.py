"""Changes to a program are undone where the writing fails: `undone_on_error`, which counts, and `restored_on_error`, which copies."""

import sys

import pytest

import oarlock as ol
from oarlock.ir.rollback import restored_on_error, undone_on_error


class InterruptionError(Exception):
    pass


@pytest.fixture
def trained():
    """A program with a tail: two parameters are updated at its end."""
    with ol.Program() as program:
        x = ol.layer.data("x", [3])
        ol.optimizer.SGD(0.1).minimize(ol.layer.mean(ol.layer.fc(x, 2)))
    assert len(program.main.tail) == 3
    return program


@pytest.mark.parametrize("guard", [undone_on_error, restored_on_error])
def test_ops_variables_parameters_and_blocks_are_taken_back_and_the_tail_stays_whole(trained, guard):
    before, ops = trained.to_text(source=False), list(trained.main.ops)
    with trained, pytest.raises(InterruptionError), guard(trained):
        x = trained.main.var("x")
        ol.layer.fc(x, 5)
        kept = trained.main.new_var("kept", ol.DType.FLOAT32, (), persistable=True)
        trained.main.commit(kept, ol.layer.mean(x))
        ol.cond(ol.layer.mean(x) > 0.0, lambda: x + 1.0, lambda: x)
        assert len(trained.blocks) == 3
        raise InterruptionError
    assert trained.to_text(source=False) == before
    assert trained.main.ops == ops


def test_what_a_block_wrote_around_itself_is_taken_back_with_it(trained):
    before = trained.to_text(source=False)
    with trained:
        x = trained.main.var("x")
        outer = ol.rnn()
        with pytest.raises(InterruptionError), outer.step():
            row = outer.step_input(x)
            inner = ol.rnn()
            with inner.step():
                element = inner.step_input(row)
                with trained.main:
                    shift = ol.op.reduce_sum(x)
                inner.output(ol.op.tanh(element + shift))
                raise InterruptionError
    assert trained.to_text(source=False) == before


def test_an_error_that_is_caught_inside_takes_back_no_more_than_its_own_block(trained):
    with trained:
        x = trained.main.var("x")
        outer = ol.rnn()
        with outer.step():
            row = outer.step_input(x)
            twice = row + row
            written = list(twice.block.ops)
            with pytest.raises(InterruptionError), undone_on_error(trained):
                ol.op.tanh(twice)
                raise InterruptionError
            assert twice.block.ops == written
            outer.output(twice)
        outer()
    assert [op.type for op in trained.blocks[1].ops] == ["add"]


def test_a_layer_that_fails_after_its_first_op_leaves_nothing(trained, monkeypatch):
    def broken(*_):
        raise InterruptionError

    before = trained.to_text(source=False)
    monkeypatch.setattr("oarlock.layer.dense.activate", broken)
    with trained, pytest.raises(InterruptionError):
        ol.layer.fc(trained.main.var("x"), 4)
    assert trained.to_text(source=False) == before


def count_instructions(function) -> int:
    """How many instructions of Python's are executed meanwhile."""
    count = 0

    def note(frame, event, _argument):
        nonlocal count
        frame.f_trace_opcodes = True
        count += event == "opcode"
        return note

    before = sys.gettrace()
    sys.settrace(note)
    try:
        function()
    finally:
        sys.settrace(before)
    return count


def write_loop(x):
    rnn = ol.rnn()
    with rnn.step():
        rnn.output(ol.layer.fc(rnn.step_input(x), 2))
    rnn()


def write_ragged_loop(words):
    rnn = ol.rnn()
    with rnn.step():
        rnn.output(ol.op.tanh(rnn.step_input(words)))
    rnn()


def write_while(x):
    total = ol.op.reduce_sum(x)
    loop = ol.while_loop(total < 3.0)
    with loop.block():
        after = total + 1.0
        loop.carry(total, after)
        loop.update_condition(after < 3.0)
    loop()


def write_if(x):
    ie = ol.ifelse()
    with ie.true_block():
        ie.output(x * 2.0)
    with ie.false_block():
        ie.output(x)
    ie(ol.op.reduce_sum(ol.op.reduce_sum(x, axis=2), axis=1) > 0.0)


@pytest.mark.parametrize("write", [write_loop, write_ragged_loop, write_while, write_if])
def test_a_loop_or_branch_costs_no_more_to_write_after_many_others(write):
    with ol.Program() as program, program:
        x = ol.layer.data("words", [2], ragged=1) if write is write_ragged_loop else ol.layer.data("x", ["n", 2], batch="t")
        write(x)
        early = count_instructions(lambda: write(x))
        for _ in range(300):
            write(x)
        late = count_instructions(lambda: write(x))
    assert late <= 1.2 * early  # names grow longer
