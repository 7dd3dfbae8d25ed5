"""Attributes that are variables: fed, or computed, when the op runs."""

import numpy as np
import pytest

import oarlock as ol
from oarlock.registry import parse_program


def program_with_a_fed_rate_and_shape():
    with ol.Program(seed=1) as program:
        x = ol.layer.data("x", shape=[4], dtype="float64")
        rate = ol.layer.data("rate", shape=[], batch=None)
        shape = ol.layer.data("shape", shape=[2], batch=None, dtype="int64")
        dropped = ol.layer.dropout(x, rate=rate)
        filled = ol.op.full(shape=shape, value=2.0, dtype="float64")
        program.targets |= {"dropped": dropped, "filled": filled, "reshaped": ol.op.reshape(x, shape=shape)}
    return program


def run(program, rate, shape, *, interpret=False):
    feed = {"x": np.ones((3, 4)), "rate": np.float32(rate), "shape": np.array(shape)}
    return ol.Executor(interpret=interpret).run(program, feed, list(program.targets), scope=ol.Scope(), training=True)


@pytest.mark.mission("F12", "C22")
@pytest.mark.parametrize("interpret", [False, True])
def test_an_attribute_may_be_a_variable_that_each_run_feeds(interpret):
    program = program_with_a_fed_rate_and_shape()
    dropped, filled, reshaped = run(program, 0.0, [2, 6], interpret=interpret)
    assert np.array_equal(dropped, np.ones((3, 4)))
    assert np.array_equal(filled, np.full((2, 6), 2.0))
    assert reshaped.shape == (2, 6)
    dropped, filled, reshaped = run(program, 1.0, [6, 2], interpret=interpret)
    assert np.array_equal(dropped, np.zeros((3, 4)))
    assert filled.shape == reshaped.shape == (6, 2)


@pytest.mark.mission("F12")
def test_what_an_attribute_reads_is_kept_by_pruning_and_by_the_file_and_the_text():
    program = program_with_a_fed_rate_and_shape()
    pruned = ol.prune(program, {"dropped": program.targets["dropped"]})
    assert [var.name for var in pruned.main.inputs] == ["x", "rate"]
    for copy in (ol.Program.from_bytes(program.to_bytes()), parse_program(program.to_text())):
        assert copy.to_text(source=False) == program.to_text(source=False)
        assert np.array_equal(run(copy, 0.5, [2, 6])[0], run(program, 0.5, [2, 6])[0])


@pytest.mark.mission("F12")
def test_an_attribute_may_be_computed_by_an_op():
    with ol.Program():
        x = ol.layer.data("x", shape=[2])
        doubled = ol.op.full(shape=(2,), value=ol.op.reduce_sum(x) * 2.0)
        assert np.array_equal(ol.eval(doubled, {"x": np.array([[1, 2]], dtype="float32")}), [6.0, 6.0])


@pytest.mark.mission("C22")
def test_a_variable_of_another_type_is_refused():
    with ol.Program():
        rate = ol.layer.data("rate", shape=[3])
        x = ol.layer.data("x", shape=[4])
        with pytest.raises(ol.ArgumentError, match=r'attribute rate must be one float, but "rate" is float32\[n, 3\]'):
            ol.layer.dropout(x, rate=rate)
        with pytest.raises(ol.ArgumentError, match=r'attribute shape must be int64\[r\] of known length, but "x" is float32\[n, 4\]'):
            ol.op.full(shape=x, value=0.0)


@pytest.mark.mission("C22", "F12")
def test_an_attribute_that_must_be_known_when_the_program_is_written_refuses_variables():
    with ol.Program():
        axis = ol.layer.data("axis", shape=[], batch=None, dtype="int64")
        with pytest.raises(
            ol.ArgumentError, match=r"attribute axis must be int \| tuple\[int, ...\] when the program is built, not a variable"
        ):
            ol.layer.mean(ol.layer.data("x", shape=[4]), axis=axis)
