"""Numbers in the place of variables: the dtype that they take, and what is refused since it is ambiguous or would be lost."""

import numpy
import pytest

import oarlock as ol

X = numpy.array([[-2.0, 0.5, 3.0]], "float32")
I = numpy.array([[-2, 0, 3]], "int64")  # noqa: E741

TAKEN = {
    "clip(x, lower=0.0)": (lambda x, i: ol.op.clip(x, lower=0.0), lambda: numpy.maximum(X, 0)),
    "clip(x, 0, 1)": (lambda x, i: ol.op.clip(x, 0, 1), lambda: numpy.clip(X, 0, 1)),
    "maximum(x, 0)": (lambda x, i: ol.op.maximum(x, 0), lambda: numpy.maximum(X, 0)),
    "maximum(0, x)": (lambda x, i: ol.op.maximum(0, x), lambda: numpy.maximum(X, 0)),
    "maximum(i, 1)": (lambda x, i: ol.op.maximum(i, 1), lambda: numpy.maximum(I, 1)),
    "maximum(i, 1.0)": (lambda x, i: ol.op.maximum(i, 1.0), lambda: numpy.maximum(I, 1)),
    "power(x, 2)": (lambda x, i: ol.op.power(x, 2), lambda: X**2),
    "power(2, x)": (lambda x, i: ol.op.power(2, x), lambda: numpy.float32(2) ** X),
    "where(c, x, 0.0)": (lambda x, i: ol.op.where(i > 0, x, 0.0), lambda: numpy.where(I > 0, X, 0).astype("float32")),
    "where(c, 1, x)": (lambda x, i: ol.op.where(i > 0, 1, x), lambda: numpy.where(I > 0, 1, X).astype("float32")),
    "where(c, c, False)": (lambda x, i: ol.op.where(i > 0, x > 1, False), lambda: (I > 0) & (X > 1)),
    "logical_or(c, True)": (lambda x, i: ol.op.logical_or(i > 0, True), lambda: I == I),
    "bitwise_and(i, 1)": (lambda x, i: ol.op.bitwise_and(i, 1), lambda: I & 1),
    "less(x, numpy.float32(1))": (lambda x, i: ol.op.less(x, numpy.float32(1)), lambda: X < 1),
    "multiply(i, numpy.int32(3))": (lambda x, i: ol.op.multiply(i, numpy.int32(3)), lambda: I * 3),
    "subtract(1, x)": (lambda x, i: ol.op.subtract(1, x), lambda: 1 - X),
    "a scalar of its own dtype": (lambda x, i: ol.op.sgd(x, x, 0.5), lambda: X / 2),
}


@pytest.mark.parametrize("spelling", TAKEN)
def test_a_number_has_the_dtype_of_what_it_stands_beside(spelling):
    write, expected = TAKEN[spelling]
    with ol.Program() as program:
        x, i = ol.layer.data("x", shape=[3]), ol.layer.data("i", shape=[3], dtype="int64")
        y = write(x, i)
        (computed,) = ol.Executor().run(program, {"x": X, "i": I}, [y], scope=ol.Scope())
    assert computed.dtype == expected().dtype
    assert numpy.array_equal(computed, expected())


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float64", "int8", "uint8"])
def test_so_it_does_whatever_the_dtype(dtype):
    with ol.Program():
        x = ol.layer.data("x", shape=[3], dtype=dtype)
        assert ol.op.maximum(x, 3).dtype is ol.DType.of(dtype)


def test_gradients_pass_it_by():
    with ol.Program() as program:
        x = ol.layer.create_parameter([3], initializer=ol.layer.initializer.constant(2.0), name="x")
        (slope,) = ol.gradients(ol.op.reduce_sum(ol.op.power(x, 3)), [x])
        scope = ol.init(program, ol.Scope())
        (computed,) = ol.Executor().run(program, {}, [slope], scope=scope)
    assert computed.tolist() == [12.0] * 3


REFUSED = {
    "ambiguous": (
        lambda x, i, h: ol.op.where(x > 0, 1.0, 0.0),
        ol.ArgumentError,
        "where: x is the number 1.0, but its dtype cannot be inferred",
        'pass ol.op.full(shape=(), value=1.0, dtype="float32")',
    ),
    "a fraction": (
        lambda x, i, h: ol.op.maximum(i, 0.5),
        ol.DTypeError,
        'maximum: "i" is int8, which cannot represent 0.5',
        'use ol.op.cast(x, dtype="float32") to convert it',
    ),
    "beyond an integer": (
        lambda x, i, h: ol.op.maximum(i, 128),
        ol.DTypeError,
        'maximum: "i" is int8, which cannot represent 128',
        'use ol.op.cast(x, dtype="int64") for a larger range',
    ),
    "beyond an integer, by an operator of Python": (
        lambda x, i, h: i + -129,
        ol.DTypeError,
        '"i" is int8, which cannot represent -129',
        'use ol.op.cast(x, dtype="int64") for a larger range',
    ),
    "infinite in half precision": (
        lambda x, i, h: ol.op.where(h > 0, h, -1e9),
        ol.DTypeError,
        'where: "h" is float16, which cannot represent -1000000000.0',
        'use ol.op.cast(x, dtype="float64") for a larger range',
    ),
    "infinite in every dtype": (
        lambda x, i, h: x * 10**400,
        ol.DTypeError,
        f'"x" is float32, which cannot represent {10**59}',
        None,
    ),
    "no number for an integer": (
        lambda x, i, h: ol.op.add(i, float("nan")),
        ol.DTypeError,
        'add: "i" is int8, which cannot represent nan',
        'use ol.op.cast(x, dtype="float32") to convert it',
    ),
    "a number for a bool": (
        lambda x, i, h: ol.op.where(1, x, x),
        ol.DTypeError,
        "where: a number here is bool, which does not combine with 1",
        "`&` and `|` bind tighter than comparisons: (x > 0) & (y > 0)",
    ),
    "a bool for a number": (
        lambda x, i, h: ol.op.add(x, True),
        ol.ArgumentError,
        "add: y must be a variable of the program, not bool True",
        "this is probably x == y of plain Python values: compare a variable, as in label == 0, or use Python's `if`",
    ),
    "numbers alone": (lambda x, i, h: ol.op.add(1, 2), ol.ArgumentError, "add: x must be a variable of the program, not int 1", None),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_ambiguous_or_would_be_lost_is_refused_and_nothing_is_written(case):
    write, error, message, hint = REFUSED[case]
    with ol.Program() as program:
        x, i, h = (ol.layer.data(name, shape=[3], dtype=dtype) for name, dtype in (("x", "float32"), ("i", "int8"), ("h", "float16")))
        before = len(program.main.ops)
        with pytest.raises(error) as raised:
            write(x, i, h)
    assert (raised.value.message, raised.value.hint) == (message, hint)
    assert [op.type for op in program.main.ops[before:]] in ([], ["full", "greater"])


def test_infinity_is_held_by_every_float():
    with ol.Program() as program:
        h = ol.layer.data("h", shape=[2], dtype="float16")
        (computed,) = ol.Executor().run(program, {"h": numpy.ones((1, 2), "float16")}, [ol.op.maximum(h, float("inf"))], scope=ol.Scope())
    assert numpy.isinf(computed).all()
