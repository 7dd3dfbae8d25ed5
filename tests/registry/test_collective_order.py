"""The rule that no exchange stands where one worker may run it and another not."""

from collections.abc import Callable

import pytest
from worker_models import MODELS

import oarlock as ol
from oarlock.passes import data_parallel, shard_optimizer
from oarlock.registry import standard
from oarlock.registry.type_check import require_legal


def program_of(build: Callable[[ol.Var, ol.Var], object]) -> ol.Program:
    """A program of an input with rows and a parameter."""
    with ol.Program(seed=0) as program:
        x = ol.layer.data("x", [3])
        w = ol.layer.create_parameter([3], name="w")
        build(x, w)
    return program


def total(x: ol.Var) -> ol.Var:
    return ol.op.all_reduce([ol.op.reduce_sum(x)])[0]


def branch(condition: ol.Var, x: ol.Var) -> ol.Var:
    return ol.cond(condition, lambda: total(x), lambda: ol.op.reduce_sum(x))


def own_rows(x: ol.Var, w: ol.Var) -> None:
    branch(ol.op.reduce_sum(x) > 0.0, x)


def own_number(x: ol.Var, w: ol.Var) -> None:
    branch(ol.op.worker_index() > 0, x)


def in_an_inner_loop(x: ol.Var, w: ol.Var) -> None:
    ol.cond(ol.op.reduce_sum(x) > 0.0, lambda: counted(x, w), lambda: ol.op.reduce_sum(x))


def own_length(x: ol.Var, w: ol.Var) -> None:
    loop = ol.while_loop(total(w) < 1.0, max_trips=3)
    with loop.block():
        after = x + total(x)
        loop.carry(x, after)
        loop.update_condition(ol.op.reduce_sum(after) < 9.0)
    loop()


def own_sequences(x: ol.Var, w: ol.Var) -> None:
    words = ol.layer.data("words", [3], ragged=1)
    rnn = ol.rnn()
    with rnn.step():
        rnn.output(rnn.step_input(words) + total(w))
    rnn()


def own_state(x: ol.Var, w: ol.Var) -> None:
    """A number that is kept, and becomes a worker's own after it was read."""
    main = x.block
    kept = main.new_var("kept", ol.DType.FLOAT32, (), persistable=True, initializer=ol.initializer.constant(0.0)(()))
    branch(kept > 0.0, x)
    main.commit(kept, ol.op.reduce_sum(x))


def counted(x: ol.Var, w: ol.Var) -> ol.Var:
    """A loop as long as a counter says, which also carries rows."""
    first = ol.op.full([], value=0.0)
    sums = ol.op.reduce_sum(x)
    loop = ol.while_loop(first < 3.0, max_trips=5)
    with loop.block():
        following = first + 1.0
        loop.carry(first, following)
        loop.carry(sums, sums + total(x))
        loop.update_condition(following < 3.0)
    return loop()[1]


def steps(sequence: ol.Var) -> None:
    rnn = ol.rnn()
    with rnn.step():
        rnn.output(ol.op.all_reduce([rnn.step_input(sequence)])[0])
    rnn()


REFUSED = {
    own_rows: "greater_0",
    own_number: "greater_0",
    in_an_inner_loop: "greater_0",
    own_length: "less_1",
    own_sequences: "words.splits",
    own_state: "greater_0",
}


@pytest.mark.parametrize("build", REFUSED, ids=lambda build: build.__name__)
def test_an_exchange_that_one_worker_may_run_and_another_not_is_refused(build):
    with pytest.raises(ol.VerifyError, match="workers exchange tensors in its block") as raised:
        require_legal(program_of(build), standard)
    if REFUSED[build]:
        assert f'because "{REFUSED[build]}" differs between workers' in raised.value.message
    assert raised.value.location is not None


LEGAL = {
    "by a sum over all workers": lambda x, w: branch(total(x) > 0.0, x),
    "by a parameter": lambda x, w: branch(ol.op.reduce_sum(w) > 0.0, x),
    "by a counter": counted,
    "without an exchange": lambda x, w: ol.cond(ol.op.reduce_sum(x) > 0.0, lambda: ol.op.reduce_sum(x), lambda: ol.op.reduce_sum(w)),
    "steps of a length that is written": lambda x, w: steps(ol.op.slice(ol.op.reshape(x, (-1, 3)), start=0, stop=2, clip=False)),
}


@pytest.mark.parametrize("name", LEGAL)
def test_what_all_workers_run_alike_is_legal(name):
    require_legal(program_of(LEGAL[name]), standard)


@pytest.mark.parametrize("name", MODELS)
def test_programs_that_passes_write_are_legal(name):
    program = MODELS[name][0](2)
    data_parallel(program)
    require_legal(program, standard)
    shard_optimizer(program, workers=2)
    require_legal(program, standard)


def test_rows_along_the_second_axis_are_a_worker_s_own():
    """Sequences of five steps that come time first: nothing leads with a symbol."""
    with ol.Program() as program:
        x = ol.layer.data("x", [5, "n", 3], batch=None)
        ol.cond(ol.op.reduce_sum(x) > 0.0, lambda: ol.op.all_reduce([ol.op.reduce_sum(x)])[0], lambda: ol.op.reduce_sum(x))
    with pytest.raises(ol.VerifyError, match="workers exchange tensors in its block"):
        require_legal(program, standard)
