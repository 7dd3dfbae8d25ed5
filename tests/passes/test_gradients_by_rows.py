"""Gradients of tables by rows: wherever the lookups stand, they are the rows of the gradient that is a table."""

import numpy
import pytest
from tolerances import AUTOGRAD, FINITE_DIFFERENCE_STEP, FINITE_DIFFERENCES

import oarlock as ol
from oarlock.ir.verification import verify_program
from oarlock.registry import standard, typecheck

RANDOM = numpy.random.default_rng(3)
IDS = RANDOM.integers(0, 7, (5, 4))
EXECUTORS = {"plan": ol.Executor(), "plan without passes": ol.Executor(passes=()), "interpreter": ol.Executor(check=True)}


def words(ids: ol.Var, *, sparse: bool) -> ol.Var:
    return ol.layer.embedding(ids, (7, 3), dtype="float64", params=["words"], sparse=sparse)


def plainly(sparse):
    ids = ol.layer.data("ids", shape=[4], dtype="int64")
    return ol.op.tanh(words(ids, sparse=sparse))


def one_number(sparse):
    ids = ol.layer.data("ids", shape=[4], dtype="int64")
    return ol.op.square(words(ol.op.reduce_max(ol.op.reduce_max(ids, axis=1), axis=0), sparse=sparse))


def twice(sparse):
    """One lookup asks for rows; the other has another number of dimensions, and is of the same table."""
    ids = ol.layer.data("ids", shape=[4], dtype="int64")
    return ol.op.reduce_sum(ol.op.square(words(ids, sparse=sparse)), axis=1) * words(ol.op.reduce_max(ids, axis=1), sparse=False)


def steps(sparse, *, inside=lambda ids, row, sparse: words(ids, sparse=sparse), output=True):
    ids = ol.layer.data("ids", shape=[4], dtype="int64", batch="t")
    start = ol.op.full(shape=(4, 3), value=0.5, dtype="float64")
    rnn = ol.rnn()
    with rnn.step():
        h = rnn.memory(init=start)
        step = rnn.step_input(ids)
        row = rnn.previous_memory(h)
        after = ol.op.tanh(row * inside(step, row, sparse))
        rnn.update_memory(h, after)
        rnn.output(after)
    stacked = rnn()
    return stacked if output else rnn.final_memory(h)


def numbers_computed_in_steps(sparse):
    return steps(sparse, inside=lambda ids, row, sparse: words(ol.op.remainder(ids * 3, 7), sparse=sparse) * words(ids, sparse=sparse))


def the_same_numbers_in_each_step(sparse):
    return steps(sparse, inside=lambda ids, row, sparse: words(ol.op.full(shape=(4,), value=2, dtype="int64"), sparse=sparse))


def another_number_in_each_step(sparse):
    """How many rows a step looks up depends on its values, so there is no stack of them."""

    def inside(ids, row, sparse):
        few = ol.op.gather(ids, ol.op.nonzero(ids > 2))
        return row + ol.op.reduce_sum(ol.op.tanh(words(few, sparse=sparse)), axis=0)

    return steps(sparse, inside=inside)


def steps_in_steps(sparse):
    def inside(ids, row, sparse):
        rnn = ol.rnn()
        with rnn.step():
            h = rnn.memory(init=row)
            each = rnn.step_input(ids)
            after = ol.op.tanh(rnn.previous_memory(h) * words(each, sparse=sparse))
            rnn.update_memory(h, after)
        rnn()
        return rnn.final_memory(h)

    return steps(sparse, inside=inside, output=False)


def as_long_as(sparse):
    ids = ol.layer.data("ids", shape=[4], dtype="int64")
    total = ol.op.reduce_sum(words(ids, sparse=False) * 0.0, axis=1)
    trip = ol.op.full(shape=(), value=0, dtype="int64")
    loop = ol.while_loop(trip < 3)
    with loop.block():
        rows = words(ol.op.remainder(ol.op.reduce_max(ids, axis=1) + trip, 7), sparse=sparse)
        loop.carry(total, ol.op.tanh(total + rows))
        after = trip + 1
        loop.carry(trip, after)
        loop.update_condition(after < 3)
    return loop()[0]


def branches_by_rows(sparse):
    ids = ol.op.reduce_max(ol.layer.data("ids", shape=[4], dtype="int64"), axis=1)
    branches = ol.ifelse()
    with branches.true_block():
        branches.output(ol.op.tanh(words(ids, sparse=sparse)))
    with branches.false_block():
        branches.output(ol.op.square(words(ol.op.remainder(ids + 2, 7), sparse=sparse)))
    return branches(ids > 5)


def one_of_two_branches(sparse):
    ids = ol.layer.data("ids", shape=[4], dtype="int64")
    return ol.cond(
        ol.op.reduce_max(ol.op.reduce_max(ids, axis=1), axis=0) > 5,
        lambda: ol.op.tanh(words(ids, sparse=sparse)),
        lambda: ol.op.square(words(ids, sparse=sparse)),
    )


def ragged_steps(sparse):
    ids = ol.layer.data("ids", shape=[], dtype="int64", ragged=1)
    start = ol.layer.data("start", shape=[3], dtype="float64")
    rnn = ol.rnn()
    with rnn.step():
        step = rnn.step_input(ids)
        h = rnn.memory(init=start)
        after = ol.op.tanh(rnn.previous_memory(h) * words(step, sparse=sparse) + words(ol.op.remainder(step * 2, 7), sparse=sparse))
        rnn.update_memory(h, after)
        rnn.output(after)
    return rnn()


def the_same_numbers_in_each_ragged_step(sparse):
    """The numbers of a step have nothing to do with its rows, so they are stacked step by step."""
    lengths = ol.layer.data("lengths", shape=[3], dtype="float64", ragged=1)
    rnn = ol.rnn()
    with rnn.step():
        rows = words(ol.op.full(shape=(2,), value=2, dtype="int64"), sparse=sparse)
        rnn.output(ol.op.tanh(rnn.step_input(lengths) * ol.op.reduce_sum(rows, axis=0)))
    return rnn()


RAGGED = ol.Ragged.from_lengths(RANDOM.integers(0, 7, 6), [2, 0, 3, 1])
FEEDS = {
    ragged_steps: {"ids": RAGGED, "start": RANDOM.normal(size=(4, 3))},
    the_same_numbers_in_each_ragged_step: {"lengths": ol.Ragged.from_lengths(RANDOM.normal(size=(6, 3)), [2, 0, 3, 1])},
}
BY_ROWS = [
    plainly, one_number, twice, steps, numbers_computed_in_steps, the_same_numbers_in_each_step, steps_in_steps, as_long_as,
    branches_by_rows, one_of_two_branches, ragged_steps, the_same_numbers_in_each_ragged_step,
]  # fmt: skip


def gradient_of(write, *, sparse: bool) -> tuple[ol.Program, ol.Var, ol.Var | ol.RowGradient]:
    with ol.Program(seed=0) as program:
        cost = ol.layer.mean(ol.op.square(write(sparse) + 0.25))
        ((_, gradient),) = ol.append_backward(cost, [program.main.var("words")], sparse=True)
    return program, cost, gradient


def table_of(program, gradient, feed, name) -> numpy.ndarray:
    with program:
        whole = ol.op.scatter_add(gradient.values, gradient.rows, gradient.table) if isinstance(gradient, ol.RowGradient) else gradient
    verify_program(program)
    typecheck(program, standard)
    return EXECUTORS[name].run(program, feed, [whole], scope=ol.init(program, ol.Scope()))[0]


@pytest.mark.parametrize("name", list(EXECUTORS))
@pytest.mark.parametrize("write", BY_ROWS, ids=lambda write: write.__name__)
def test_rows_are_those_of_the_table_of_gradients(write, name):
    feed = FEEDS.get(write, {"ids": IDS})
    program, _, rows = gradient_of(write, sparse=True)
    assert isinstance(rows, ol.RowGradient)
    assert rows.values.shape == (*rows.rows.shape, 3)
    whole_program, _, whole = gradient_of(write, sparse=False)
    assert isinstance(whole, ol.Var)
    expected = table_of(whole_program, whole, feed, name)
    assert numpy.count_nonzero(expected) >= 3
    numpy.testing.assert_allclose(table_of(program, rows, feed, name), expected, rtol=AUTOGRAD[0], atol=AUTOGRAD[1])


def test_steps_that_look_up_another_number_of_rows_give_a_table():
    """A sum over the steps, made of the rows of each."""
    program, _, gradient = gradient_of(another_number_in_each_step, sparse=True)
    assert isinstance(gradient, ol.Var)
    whole_program, _, whole = gradient_of(another_number_in_each_step, sparse=False)
    expected = table_of(whole_program, whole, {"ids": IDS}, "interpreter")
    assert numpy.count_nonzero(expected) >= 3
    for name in EXECUTORS:
        numpy.testing.assert_allclose(table_of(program, gradient, {"ids": IDS}, name), expected, rtol=AUTOGRAD[0], atol=AUTOGRAD[1])


@pytest.mark.parametrize("reader", ["linear", "square", "a block"])
def test_a_table_that_is_read_otherwise_has_a_whole_gradient_and_a_warning_says_why(reader):
    with ol.Program(seed=0) as program:
        ids = ol.layer.data("ids", shape=[4], dtype="int64")
        rows = words(ids, sparse=True)
        table = program.main.var("words")
        if reader == "linear":
            y = ol.op.linear(ol.op.reduce_sum(rows, axis=1), ol.op.matrix_transpose(table))
        elif reader == "square":
            y = ol.op.reduce_sum(rows) + ol.op.reduce_sum(ol.op.square(table))
        else:
            y = rows + ol.op.reduce_sum(ol.cond(ol.op.reduce_sum(rows) > 0.0, lambda: table, lambda: table))
        cost = ol.layer.mean(ol.op.square(y))
        called = {"linear": "matrix_transpose", "square": "square", "a block": "conditional_block"}[reader]
        with pytest.warns(
            UserWarning, match=f'^the gradient of "words" is a whole table, .* "{called}" reads it too, at .*by_rows'
        ) as caught:
            ((_, gradient),) = ol.append_backward(cost, sparse=True)
    assert caught[0].filename == __file__
    assert isinstance(gradient, ol.Var)
    assert gradient.name == "words@GRAD"


def test_only_who_asks_is_given_rows():
    with ol.Program(seed=0):
        ids = ol.layer.data("ids", shape=[4], dtype="int64")
        cost = ol.layer.mean(words(ids, sparse=True))
        ((table, gradient),) = ol.append_backward(cost)
        assert isinstance(gradient, ol.Var)
        assert [found.shape for found in ol.gradients(cost, [table])] == [(7, 3)]


def test_what_has_no_dimensions_of_its_own_is_no_table():
    with ol.Program(seed=0):
        ids = ol.layer.data("ids", shape=[], dtype="int64")
        bias = ol.layer.create_parameter([5], name="bias", dtype="float64")
        cost = ol.layer.mean(ol.op.square(ol.op.gather(bias, ids, sparse=True)))
        ((_, gradient),) = ol.append_backward(cost, sparse=True)
    assert isinstance(gradient, ol.RowGradient)
    assert gradient.values.type_text == "float64[n]"


def test_a_program_that_was_written_to_text_asks_for_rows_too():
    with ol.Program(seed=0) as program:
        words(ol.layer.data("ids", shape=[4], dtype="int64"), sparse=True)
    read = ol.parse_program(program.to_text(source=False))
    with read:
        ((_, gradient),) = ol.append_backward(ol.layer.mean(read.main.var("embedding_0.out")), sparse=True)
    assert isinstance(gradient, ol.RowGradient)
    assert "sparse" not in plain_text(), "a lookup that does not ask is what it was"


def plain_text() -> str:
    with ol.Program(seed=0) as program:
        words(ol.layer.data("ids", shape=[4], dtype="int64"), sparse=False)
    return program.to_text(source=False)


def test_rows_of_a_gradient_that_holds_a_gradient():
    """The cost is the square of a slope at the rows: what it depends on the table by are lookups, twice over."""
    found = []
    for sparse in (True, False):
        with ol.Program(seed=0) as program:
            ids = ol.layer.data("ids", shape=[4], dtype="int64")
            rows = words(ids, sparse=sparse)
            (slope,) = ol.gradients([ol.op.reduce_sum(ol.op.tanh(rows))], [rows])
            cost = ol.op.reduce_sum(ol.op.square(slope))
            ((_, gradient),) = ol.append_backward(cost, sparse=True)
        assert isinstance(gradient, ol.RowGradient) is sparse
        found.append(table_of(program, gradient, {"ids": IDS}, "plan"))
    numpy.testing.assert_allclose(found[0], found[1], rtol=AUTOGRAD[0], atol=AUTOGRAD[1])


@pytest.mark.parametrize("write", [twice, numbers_computed_in_steps], ids=lambda write: write.__name__)
def test_rows_are_the_slopes_that_differences_show(write):
    program, cost, gradient = gradient_of(write, sparse=True)
    whole = table_of(program, gradient, {"ids": IDS}, "plan")
    scope = ol.init(program, ol.Scope())
    start = scope["words"].numpy().copy()
    for place in [(0, 0), (3, 1), (6, 2), (2, 1)]:
        ends = []
        for change in (FINITE_DIFFERENCE_STEP, -FINITE_DIFFERENCE_STEP):
            moved = start.copy()
            moved[place] += change
            scope["words"] = moved
            ends.append(float(EXECUTORS["plan"].run(program, {"ids": IDS}, [cost], scope=scope)[0]))
        slope = (ends[0] - ends[1]) / (2 * FINITE_DIFFERENCE_STEP)
        numpy.testing.assert_allclose(whole[place], slope, rtol=FINITE_DIFFERENCES[0], atol=FINITE_DIFFERENCES[1])
