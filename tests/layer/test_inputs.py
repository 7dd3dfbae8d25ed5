"""`ol.layer.data`: what a program is fed."""

import re

import numpy
import pytest
import torch

import oarlock as ol


def message_of(raised: pytest.ExceptionInfo) -> str:
    """The message without the line of this file."""
    return re.sub(r"\n  \S+\.py:\d+[^\n]*", "", str(raised.value))


def test_a_batch_dimension_called_n_is_put_in_front():
    with ol.Program() as program:
        image = ol.layer.data("image", shape=[1, 8, 8])
        label = ol.layer.data("label", shape=[], dtype="int64")
    assert (image.shape, image.dtype) == (("n", 1, 8, 8), ol.DType.FLOAT32)
    assert (label.shape, label.dtype) == (("n",), ol.DType.INT64)
    assert program.main.inputs == [image, label]
    assert image.stop_gradient
    assert not image.persistable


def test_the_batch_dimension_has_another_name_or_none():
    with ol.Program():
        assert ol.layer.data("words", shape=["n", 3], batch="t").shape == ("t", "n", 3)
        assert ol.layer.data("matrix", shape=[2, 3], batch=None).shape == (2, 3)
        assert ol.layer.data("number", shape=[], batch=None).shape == ()


@pytest.mark.parametrize("dtype", ["float64", numpy.float64, numpy.dtype("float64"), torch.float64, ol.DType.FLOAT64], ids=str)
def test_a_dtype_is_spelled_as_numpy_or_pytorch_spell_it(dtype):
    with ol.Program():
        assert ol.layer.data("x", shape=[3], dtype=dtype).dtype is ol.DType.FLOAT64


def test_inputs_of_one_symbol_have_one_size_in_a_run():
    with ol.Program() as program:
        x = ol.layer.data("x", shape=["k"])
        w = ol.layer.data("w", shape=["k", 2], batch=None)
        y = ol.op.linear(x, w)
    assert y.shape == ("n", 2)
    executor, scope = ol.Executor(), ol.Scope()
    for k in (3, 5):
        (result,) = executor.run(program, {"x": numpy.ones((4, k), "float32"), "w": numpy.ones((k, 2), "float32")}, [y], scope=scope)
        assert numpy.array_equal(result, numpy.full((4, 2), k))
    with pytest.raises(ol.FeedError, match='"w" has k = 5, but "x" has k = 3'):
        executor.run(program, {"x": numpy.ones((4, 3), "float32"), "w": numpy.ones((5, 2), "float32")}, [y], scope=scope)


# Inputs that carry their values


@pytest.mark.parametrize(
    ("value", "dtype", "shape"),
    [
        (numpy.arange(6.0).reshape(3, 2), "float64", ("n", 2)),
        (numpy.arange(3), "int64", ("n",)),
        (numpy.array([True, False]), "bool", ("n",)),
        ([[1.0, 2.0]], "float32", ("n", 2)),
        ([1, 2, 3], "int64", ("n",)),
        (torch.arange(4, dtype=torch.int32), "int32", ("n",)),
        (numpy.zeros((0, 3), "float32"), "float32", ("n", 3)),
        (numpy.arange(6.0).reshape(2, 3).T, "float64", ("n", 2)),
    ],
    ids=str,
)
def test_an_input_takes_its_shape_and_dtype_from_the_value_that_it_carries(value, dtype, shape):
    with ol.Program() as program:
        x = ol.layer.data("x", value=value)
        y = ol.op.assign(x)
    assert (str(x.dtype), x.shape) == (dtype, shape)
    (result,) = ol.Executor().run(program, {}, [y], scope=ol.Scope())
    assert result.dtype == numpy.dtype(dtype)
    assert numpy.array_equal(result, numpy.asarray(value))


def test_what_is_fed_wins_over_the_value_that_an_input_carries():
    with ol.Program() as program:
        y = ol.op.assign(ol.layer.data("x", value=[1.0, 2.0]))
    (result,) = ol.Executor().run(program, {"x": [3.0]}, [y], scope=ol.Scope())
    assert result.tolist() == [3.0]


def test_a_value_is_copied_when_the_input_is_declared():
    value = numpy.ones(3, "float32")
    with ol.Program() as program:
        y = ol.op.assign(ol.layer.data("x", value=value))
    value[:] = 7.0
    assert ol.Executor().run(program, {}, [y], scope=ol.Scope())[0].tolist() == [1.0, 1.0, 1.0]


def test_a_carried_value_has_the_size_that_its_symbol_has_in_the_run():
    with ol.Program() as program:
        z = ol.layer.data("x", shape=[]) * ol.layer.data("y", value=[1.0, 2.0, 3.0])
    with pytest.raises(ol.FeedError) as raised:
        ol.Executor().run(program, {"x": numpy.ones(1, "float32")}, [z], scope=ol.Scope())
    assert message_of(raised) == (
        '"y" has n = 3, but "x" has n = 1\n  the program takes x: float32[n], y: float32[n]\n      "y" carries float32[3]'
    )


def test_a_carried_value_travels_with_the_program():
    with ol.Program() as program:
        y = ol.layer.data("x", value=[1.0, 2.0], batch=None) * 2.0
        program.targets["y"] = y
    loaded = ol.Program.from_bytes(program.to_bytes())
    assert ol.Executor().run(loaded, {}, ["y"], scope=ol.Scope())[0].tolist() == [2.0, 4.0]


# What is refused


@pytest.mark.parametrize("size", [-1, 2.0, True, None, "two words", "n!"], ids=repr)
def test_a_size_that_is_none_is_refused(size):
    with ol.Program() as program, pytest.raises(ol.ArgumentError) as raised:
        ol.layer.data("x", shape=[size])
    assert message_of(raised) == f"\"x\": {size!r} is not a size\n  a size is a number from 0, or a symbol such as 't'"
    assert program.main.inputs == []
    assert program.main.vars == {}


def test_an_input_needs_a_shape_or_a_value():
    with ol.Program(), pytest.raises(ol.ArgumentError) as raised:
        ol.layer.data("x")
    assert message_of(raised) == ('"x" needs a shape or a value\n  Try: ol.layer.data("x", shape=[784])    (oarlock explain ArgumentError)')


def test_one_number_is_no_minibatch():
    with ol.Program(), pytest.raises(ol.ArgumentError) as raised:
        ol.layer.data("x", value=5.0)
    assert message_of(raised) == '"x": one number is not a minibatch\n  Try: batch=None    (oarlock explain ArgumentError)'
    with ol.Program():
        assert ol.layer.data("x", value=5.0, batch=None).shape == ()


@pytest.mark.parametrize("value", [["a"], numpy.array([object()]), {"x": 1}], ids=["text", "objects", "dict"])
def test_a_value_that_is_no_numbers_is_refused(value):
    with ol.Program(), pytest.raises(ol.DTypeError, match="cannot be converted to a tensor|arrays of object are not supported"):
        ol.layer.data("x", value=value)


@pytest.mark.parametrize("name", ["", "a b", "x@GRAD", "main/x", "..", "a" * 257, 3], ids=repr)
def test_a_name_that_a_user_may_not_give_is_refused(name):
    with ol.Program() as program, pytest.raises(ol.ProgramError) as raised:
        ol.layer.data(name, shape=[1])
    assert raised.value.contract == "a name has 1 to 256 of the characters A-Z a-z 0-9 _ . - and no '..'"
    assert program.main.vars == {}


def test_inputs_are_declared_in_the_main_block():
    with ol.Program():
        rows = ol.layer.data("rows", shape=[3])
        rnn = ol.rnn()
        with rnn.step():
            rnn.step_input(rows)
            with pytest.raises(ol.ProgramError) as raised:
                ol.layer.data("inner", shape=[3])
    assert message_of(raised) == '"inner": inputs are declared in the main block, not in main/rnn_0.body'


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.bool, torch.uint8, torch.int16, torch.float64])
def test_an_input_carries_values_of_every_dtype_bit_for_bit(dtype):
    value = torch.tensor([[0.0, 1.0], [3.0, 0.5]]).to(dtype)
    with ol.Program() as program:
        x = ol.layer.data("x", value=value)
    copy = ol.Program.from_bytes(program.to_bytes())
    (found,) = ol.Executor().run(copy, fetch=["x"], scope=ol.Scope(), return_numpy=False)
    assert torch.equal(found, value)
    assert x.dtype is ol.DType.of(dtype)
