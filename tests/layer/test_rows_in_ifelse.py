"""Which rows a block of `ol.ifelse` sees, where generated programs once found that it saw others."""

import numpy
import pytest
import torch
from tolerances import AUTOGRAD

import oarlock as ol

X = numpy.array([[1.0], [-2.0], [3.0]])
every_executor = pytest.mark.parametrize(
    "executor", [ol.Executor(check=True), ol.Executor(passes=()), ol.Executor()], ids=["interpreter", "plan", "passes"]
)


def run(program, fetch, **arrays):
    (value,) = ol.Executor(check=True).run(program, arrays, [fetch], scope=ol.Scope())
    return value


@pytest.mark.mission("B13")
def test_a_variable_returned_as_it_is_stands_for_the_rows_of_its_block():
    with ol.Program() as program:
        x = ol.layer.data("x", [1], dtype="float64")
        ie = ol.ifelse()
        with ie.true_block():
            ie.output(x)
        with ie.false_block():
            ie.output(-x)
        y = ie(x > 0)
    assert run(program, y, x=X).tolist() == [[1.0], [2.0], [3.0]]


@pytest.mark.mission("B13")
def test_where_rows_are_counted_by_a_number_only_what_input_returned_means_the_rows_of_a_block():
    with ol.Program() as program:
        x = ol.layer.data("x", [3, 1], dtype="float64", batch=None)
        ie = ol.ifelse()
        with ie.true_block():
            ie.output(ie.input(x) * ol.op.reduce_sum(x))
        with ie.false_block():
            ie.output(ie.input(x))
        y = ie(x > 0)
    assert run(program, y, x=X).tolist() == [[2.0], [-2.0], [6.0]]


@pytest.mark.mission("B13")
def test_all_rows_are_had_where_their_number_is_called_by_a_name_with_a_dot():
    with ol.Program() as program:
        x = ol.layer.data("x", [1], dtype="float64", batch="words.t")
        ie = ol.ifelse()
        with ie.true_block():
            ie.output(x * ol.op.reduce_sum(ie.whole(x)))
        with ie.false_block():
            ie.output(x)
        y = ie(x > 0)
    assert run(program, y, x=X).tolist() == [[2.0], [-2.0], [6.0]]


@pytest.fixture(scope="module")
def pairs():
    """Attention of each row to all rows, in one block; in the other what a row gives the others."""
    with ol.Program() as program:
        x = ol.layer.data("x", [2], dtype="float64")
        y = ol.layer.data("y", ["n", "n"], dtype="float64", batch=None)
        ie = ol.ifelse()
        with ie.true_block():
            ie.output(ol.op.matmul(ol.op.softmax(ie.input(y)), ie.whole(x)) * x)
        with ie.false_block():
            ie.output(x * ol.op.reduce_sum(ol.op.tanh(ie.input(y)), axis=1, keepdim=True))
        out = ie(ol.op.reduce_sum(x, axis=1) > 0)
        found = ol.gradients([ol.op.square(out)], [x, y])
    return program, [out, *found]


@pytest.mark.mission("B13")
@pytest.mark.parametrize("taken", [[True, False, True], [True, True], [False], []])
@every_executor
def test_of_rows_by_rows_a_block_sees_its_rows_and_each_of_them_whole(pairs, executor, taken):
    program, fetch = pairs
    count = len(taken)
    random = numpy.random.default_rng(count)
    x, y = random.uniform(0.5, 2.0, (count, 2)), random.normal(size=(count, count))
    x *= numpy.where(taken, 1.0, -1.0).reshape(-1, 1)
    values = executor.run(program, {"x": x, "y": y}, fetch, scope=ol.Scope())
    a, b = torch.tensor(x, requires_grad=True), torch.tensor(y, requires_grad=True)
    expected = torch.where(torch.tensor(taken, dtype=torch.bool)[:, None], b.softmax(1) @ a * a, a * b.tanh().sum(1, keepdim=True))
    expected.square().sum().backward()
    for value, reference in zip(values, (expected.detach(), a.grad, b.grad), strict=True):
        numpy.testing.assert_allclose(value, reference, rtol=AUTOGRAD[0], atol=AUTOGRAD[1])


@pytest.mark.mission("B13")
def test_rows_by_rows_are_returned_and_merged_as_they_are_and_may_be_cut_again():
    with ol.Program() as program:
        x = ol.layer.data("x", ["n", "2*n+1", "n"], dtype="float64", batch=None)
        c, d = (ol.layer.data(name, ["n"], dtype="bool", batch=None) for name in "cd")
        ie = ol.ifelse()
        with ie.true_block():
            rows = ie.input(x)
            inner = ol.ifelse()
            with inner.true_block():
                inner.output(inner.input(rows) * 2.0)
            with inner.false_block():
                inner.output(inner.input(rows) * 3.0)
            ie.output(inner(d))
        with ie.false_block():
            ie.output(-ie.input(x))
        y = ie(c)
        (dx,) = ol.gradients([y], [x])
    assert y.shape == dx.shape == x.shape
    array = numpy.random.default_rng(3).normal(size=(3, 7, 3))
    for fetch, expected in ((y, array), (dx, numpy.ones_like(array))):
        value = run(program, fetch, x=array, c=numpy.array([True, False, True]), d=numpy.array([False, False, True]))
        numpy.testing.assert_array_equal(value, expected * numpy.array([3.0, -1.0, 2.0]).reshape(3, 1, 1))


def test_rows_by_rows_that_are_read_both_as_they_are_and_by_input_are_refused():
    with ol.Program():
        x = ol.layer.data("x", ["n", "n"], dtype="float64", batch=None)
        c = ol.layer.data("c", ["n"], dtype="bool", batch=None)
        ie = ol.ifelse()
        with ie.true_block():
            ie.input(x)
            ie.output(x + 1.0)
        with ie.false_block():
            ie.output(ie.input(x))
        with pytest.raises(ol.ShapeError, match='ifelse: "x" has the size n of the condition in more than one dimension'):
            ie(c)


@pytest.mark.parametrize("shape", [["n", "words"], ["words", "n"], ["words", "words"]])
def test_elements_of_rows_by_which_rows_or_elements_are_counted_too_are_refused(shape):
    with ol.Program() as program:
        words = ol.layer.data("words", [2], dtype="float64", ragged=1)
        shape = [words.shape[0] if size == "words" else size for size in shape]
        x = ol.layer.data("x", shape, dtype="float64", batch=None)
        z = ol.layer.data("z", [2], dtype="float64")
        ie = ol.ifelse()
        with ie.true_block():
            ie.output(ol.layer.sequence_pool(words * ol.op.reduce_sum(x), "sum") + z)
        with ie.false_block():
            ie.output(z)
        with pytest.raises(ol.ShapeError, match='ifelse: "x" has the size .* outside its first dimension'):
            ie(ol.op.reduce_sum(z, axis=1) > 0)
    assert [block.name for block in program.blocks] == ["main"]
