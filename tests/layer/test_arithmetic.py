"""Python's operators on variables, from both sides."""

import operator

import numpy
import pytest

import oarlock as ol

X = numpy.array([[1.0, 20.0], [-3.0, 0.5]])
Y = numpy.array([[2.0, 20.0], [0.25, -0.5]])
SYMBOLS = {name: getattr(operator, name) for name in ("add", "sub", "mul", "truediv", "floordiv", "mod")}
ORDERS = {"gt": operator.gt, "ge": operator.ge, "lt": operator.lt, "le": operator.le}


def value_of(build, *, dtype: str = "float64") -> numpy.ndarray:
    """The value that `build(x, y)` computes from `X` and `Y`."""
    with ol.Program() as program:
        x, y = (ol.layer.data(name, shape=[2], dtype=dtype) for name in ("x", "y"))
        built = build(x, y)
    return ol.Executor().run(program, {"x": X.astype(dtype), "y": Y.astype(dtype)}, [built], scope=ol.Scope())[0]


@pytest.mark.parametrize("apply", [*SYMBOLS.values(), *ORDERS.values()], ids=[*SYMBOLS, *ORDERS])
def test_two_variables_a_variable_and_a_number_a_number_and_a_variable(apply):
    assert numpy.array_equal(value_of(lambda x, y: apply(x, y)), apply(X, Y))
    for number in (2, 0.5, -3.0, numpy.float32(0.5), numpy.int64(20), numpy.float64(2.0)):
        assert numpy.array_equal(value_of(lambda x, y, number=number: apply(x, number)), apply(X, float(number)))
        assert numpy.array_equal(value_of(lambda x, y, number=number: apply(number, x)), apply(float(number), X))


def test_signs_and_longer_expressions():
    assert numpy.array_equal(value_of(lambda x, y: -x), -X)
    assert numpy.array_equal(value_of(lambda x, y: 1 - (x + y) * 2 / (3 - -y)), 1 - (X + Y) * 2 / (3 - -Y))


def test_powers_absolute_values_and_exclusive_ors():
    whole = numpy.abs(X) + 0.5
    for number in (-2, -1, -0.5, 0, 0.5, 1, 2, 3, 4, 2.5, numpy.float32(3)):
        found = value_of(lambda x, y, number=number: (abs(x) + 0.5) ** number)
        assert numpy.allclose(found, whole ** float(number), rtol=1e-14, atol=0)
    assert numpy.array_equal(value_of(lambda x, y: x**3), X * (X * X))
    assert numpy.allclose(value_of(lambda x, y: 2**x), 2.0**X, rtol=1e-14, atol=0)
    assert numpy.allclose(value_of(lambda x, y: (abs(x) + 1) ** y), (numpy.abs(X) + 1) ** Y, rtol=1e-14, atol=0)
    assert numpy.array_equal(value_of(lambda x, y: (x > 1) ^ (y > 1) ^ True), (X > 1) ^ (Y > 1) ^ True)


def test_whole_numbers_have_whole_powers():
    whole = numpy.array([[3, -2], [0, 5]])
    with ol.Program() as program:
        x = ol.layer.data("x", shape=[2], dtype="int64")
        built = [x**2, x**0, 2 ** abs(x)]
        with pytest.raises(ol.DTypeError, match='^"x" is int64, which cannot represent 0.5'):
            x**0.5
    found = ol.Executor().run(program, {"x": whole}, built, scope=ol.Scope())
    assert [each.tolist() for each in found] == [(whole**2).tolist(), [[1, 1], [1, 1]], (2 ** abs(whole)).tolist()]


def test_comparisons_give_bools():
    result = value_of(lambda x, y: x > 15)
    assert result.dtype == bool
    assert result.tolist() == [[False, True], [False, False]]


def test_conditions_are_joined_and_turned_round():
    for build in (
        lambda x, y: (x > 1) & (y < 3),
        lambda x, y: (x > 1) | ~(y < 3),
        lambda x, y: ~(True & (x > 1)),
        lambda x, y: (x > y) | False,
    ):
        assert numpy.array_equal(value_of(build), build(X, Y))


def test_a_number_joined_to_a_condition_is_refused_with_the_brackets_to_write():
    with ol.Program() as program:
        x, y = (ol.layer.data(name, shape=[], dtype="int64") for name in "xy")
        z = ol.layer.data("z", shape=[])
        before = len(program.main.ops)
        with pytest.raises(ol.DTypeError) as raised:
            assert (x > 0) & 1 < y
        assert raised.value.message == '"greater_0" is bool, which does not combine with 1'
        assert raised.value.hint == "`&` and `|` bind tighter than comparisons: (x > 0) & (y > 0)"
        with pytest.raises(ol.DTypeError, match="logical_and: x must be bool, not float32"):
            z & z
    assert [op.type for op in program.main.ops[before:]] == ["full", "greater"]


def test_rows_times_a_matrix_and_matrix_by_matrix():
    assert numpy.array_equal(value_of(lambda x, y: x @ ol.op.full(shape=(2, 3), value=2.0, dtype="float64")), X @ numpy.full((2, 3), 2.0))
    with ol.Program() as program:
        a = ol.layer.data("a", shape=[2, 3], dtype="float64")
        b = ol.layer.data("b", shape=[3, 4], dtype="float64")
        product = a @ b
    generator = numpy.random.default_rng(0)
    feed = {"a": generator.integers(-3, 3, (5, 2, 3)) * 1.0, "b": generator.integers(-3, 3, (5, 3, 4)) * 1.0}
    assert product.shape == ("n", 2, 4)
    assert numpy.array_equal(ol.Executor().run(program, feed, [product], scope=ol.Scope())[0], feed["a"] @ feed["b"])


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int32", "int64", "uint8"])
def test_a_number_takes_the_dtype_of_the_variable(dtype):
    with ol.Program():
        x = ol.layer.data("x", shape=[2], dtype=dtype)
        assert str((x * 2).dtype) == str((2 + x).dtype) == dtype


@pytest.mark.parametrize("number", [0.5, 2**60 + 1, float("nan"), float("inf")])
def test_a_number_that_integers_would_round_is_refused(number):
    with ol.Program() as program:
        x = ol.layer.data("x", shape=[2], dtype="int64")
        for build in (lambda: x * number, lambda: number - x, lambda: x > number):
            with pytest.raises(ol.DTypeError) as raised:
                build()
            assert raised.value.message == f'"x" is int64, which cannot represent {number}'
        assert program.main.ops == []


def test_whole_floats_combine_with_integers():
    with ol.Program() as program:
        y = ol.layer.data("x", shape=[], dtype="int64") * 2.0
    assert ol.Executor().run(program, {"x": [1, 2]}, [y], scope=ol.Scope())[0].tolist() == [2, 4]


@pytest.mark.parametrize("other", ["2", None, [1.0], numpy.ones(2)], ids=["text", "none", "list", "array"])
def test_what_is_no_number_does_not_combine(other):
    with ol.Program() as program:
        x = ol.layer.data("x", shape=[2])
        for build in (lambda: x + other, lambda: other + x):
            with pytest.raises(ol.ArgumentError, match=r'^"x" and .* do not combine; numbers and variables do'):
                build()
        assert program.main.ops == []
