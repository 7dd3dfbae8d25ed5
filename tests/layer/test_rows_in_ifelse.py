"""Which rows a block of `ol.ifelse` sees, where generated programs once found that it saw others."""

import numpy
import pytest

import oarlock as ol

X = numpy.array([[1.0], [-2.0], [3.0]])


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
