import hypothesis
import hypothesis.strategies as st
import pytest

import oarlock as ol
from oarlock.ir.shape_rules import slice_size
from oarlock.ir.size import (
    add,
    divide,
    evaluate,
    floor_divide,
    format_shape,
    is_at_least,
    is_same,
    is_symbol,
    maximum,
    minimum,
    multiply,
    names_in,
    rename,
    solve_shape,
    whole,
)

NAMES = ("n", "t", "rows.true", "size_0")

numbers = st.integers(-4, 9)
values = st.fixed_dictionaries({name: st.integers(0, 12) for name in NAMES})


def combine(inner):
    """A pair: the size that our arithmetic gives, and the same sum in plain Python."""
    return (
        st.tuples(st.just(add), inner, inner)
        | st.tuples(st.just(multiply), inner, inner)
        | st.tuples(st.just(floor_divide), inner, st.integers(2, 5))
        | st.tuples(st.sampled_from((minimum, maximum)), inner, inner)
    )


expressions = st.recursive(st.sampled_from(NAMES) | numbers, combine, max_leaves=6)


def ours(expression):
    if not isinstance(expression, tuple):
        return expression
    operator, left, right = expression
    return operator(ours(left), right if operator is floor_divide else ours(right))


def plain(expression, values):
    if isinstance(expression, str):
        return values[expression]
    if isinstance(expression, int):
        return expression
    operator, left, right = expression
    a, b = plain(left, values), plain(right, values)
    return {add: a + b, multiply: a * b, minimum: min(a, b), maximum: max(a, b)}[operator] if operator is not floor_divide else a // b


@hypothesis.settings(max_examples=200, deadline=None, derandomize=True)
@hypothesis.given(expressions, values)
def test_arithmetic_on_sizes_is_arithmetic_on_integers(expression, values):
    try:
        size = ours(expression)
    except ol.ShapeError as error:
        assert str(error) == "a symbol may have at most 256 characters"  # noqa: PT017  most expressions are shorter
        return
    assert evaluate(size, values) == plain(expression, values)
    assert evaluate(whole(size), values) == plain(expression, values)


@hypothesis.settings(max_examples=200, deadline=None, derandomize=True)
@hypothesis.given(expressions, expressions, values)
def test_a_size_that_is_at_least_another_is_so_for_every_value_of_its_names(left, right, values):
    try:
        one, other = ours(left), ours(right)
        shown = is_at_least(one, other)
    except ol.ShapeError:
        return
    assert not shown or evaluate(one, values) >= evaluate(other, values)


@hypothesis.settings(max_examples=300, deadline=None, derandomize=True)
@hypothesis.given(expressions, values)
def test_what_arithmetic_gives_is_spelled_canonically(expression, values):
    try:
        size = ours(expression)
    except ol.ShapeError:
        return
    if isinstance(size, str):
        assert is_symbol(size)
        assert names_in(size) <= set(NAMES)
        assert add(size, 0) == size
    assert not isinstance(size, bool)


@hypothesis.settings(max_examples=200, deadline=None, derandomize=True)
@hypothesis.given(expressions, values)
def test_renaming_to_numbers_is_evaluating(expression, values):
    try:
        size = ours(expression)
    except ol.ShapeError:
        return
    assert rename(size, values) == plain(expression, values)


@hypothesis.settings(max_examples=300, deadline=None, derandomize=True)
@hypothesis.given(st.text(alphabet="nt_0123456789+-*/() .@,min", max_size=12) | st.text(max_size=8))
def test_any_text_is_a_size_or_is_not(text):
    """`is_symbol` answers; nothing that a file holds makes it raise."""
    if is_symbol(text):
        assert add(text, 0) == text
        assert evaluate(text, dict.fromkeys(names_in(text), 3)) is not None


def test_sizes_computed_in_different_ways_are_one_size():
    assert add("n", "m") == add("m", "n") == "m+n"
    assert multiply(add("n", 1), 2) == add(multiply(2, "n"), 2) == "2*n+2"
    assert multiply(add("n", 1), add("n", -1)) == add(multiply("n", "n"), -1) == "n*n-1"
    assert add(add("n", "m"), multiply("m", -1)) == "n"


def test_the_canonical_spelling():
    assert add("n", 1) == "n+1"
    assert add(1, "n") == "n+1"
    assert multiply("n", 3) == "3*n"
    assert multiply("t", "n") == "n*t"
    assert multiply("n", -1) == "-n"
    assert add(multiply("n", -2), 5) == "-2*n+5"
    assert multiply("n", 0) == 0
    assert add("n", multiply("n", -1)) == 0
    assert add(2, 3) == 5
    assert multiply(2, 3) == 6


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ("(n-2)//2+1", "(n)//2"),
        ("3*n*(n-6)//2+3*n", "3*n*(n)//2-6*n"),
        ("(2*n+5)//2", "n+2"),
        ("((n-2)//2-1)//2", "(n)//4-1"),
        ("((n+1)//2)//3", "(n+1)//6"),
        ("(3*n+m)//2", "(n+m)//2+n"),
        (4, 4),
    ],
)
def test_sizes_that_are_one_number_are_the_same(left, right):
    assert is_same(left, right)
    assert is_same(right, left)


@pytest.mark.parametrize(("left", "right"), [("(n-1)//2+1", "(n)//2"), ("(n)//2", "(m)//2"), ("((n)//2)//2", "(n)//2"), ("n", 2), (3, 4)])
def test_sizes_that_are_two_numbers_are_not_the_same(left, right):
    assert not is_same(left, right)


@hypothesis.settings(max_examples=300, deadline=None, derandomize=True)
@hypothesis.given(expressions, expressions, values, numbers, st.integers(2, 5))
def test_what_is_the_same_is_one_number_and_whole_multiples_leave_a_division(left, right, values, number, divisor):
    try:
        left, right = ours(left), ours(right)
        moved = floor_divide(add(left, multiply(number, divisor)), divisor)
        assert is_same(moved, add(floor_divide(left, divisor), number))
        same = is_same(left, right)
    except ol.ShapeError:
        return
    assert not same or evaluate(left, values) == evaluate(right, values)


def test_a_division_that_is_exact_disappears():
    assert floor_divide(7, 2) == 3
    assert floor_divide("n", 1) == "n"
    assert floor_divide(multiply("n", 4), 2) == "2*n"
    assert floor_divide(add(multiply("n", 4), 6), 2) == "2*n+3"


def test_a_size_is_divided_by_another_where_that_is_exact():
    assert divide(6, 3) == 2
    assert divide("64*b*t", "16*b*t") == 4
    assert divide(multiply("h", "w"), "w") == "h"
    assert divide(multiply(add("n", 1), add("n", -1)), add("n", 1)) == "n-1"
    assert divide(multiply(add(multiply("a", 2), "b"), add("b", 3)), add("b", multiply("a", 2))) == "b+3"
    assert divide(0, "n") == 0
    half = floor_divide("h", 2)
    assert divide(multiply(half, "n"), half) == "n"


@pytest.mark.parametrize(
    ("left", "right"), [(7, 2), ("n", 0), ("n", 2), ("n", "m"), ("n", multiply("n", "n")), (add("n", 1), "n"), (3, "n")]
)
def test_a_size_that_no_size_times_another_is(left, right):
    assert divide(left, right) is None


def test_a_division_that_is_not_exact_becomes_a_name_of_its_own():
    half = floor_divide(add("h", -3), 2)
    assert half == "(h-3)//2"
    assert add(half, 1) == "(h-3)//2+1"
    assert multiply(half, half) == "(h-3)//2*(h-3)//2"
    assert floor_divide(add(half, 1), 2) == "((h-3)//2+1)//2"
    assert evaluate(floor_divide(add(half, 1), 2), {"h": 10}) == 2


def test_evaluating_needs_every_name():
    assert evaluate("2*n+1", {"n": 3}) == 7
    assert evaluate("2*n+m", {"n": 3}) is None
    assert evaluate("(n+m)//2", {"n": 3}) is None
    assert evaluate(5, {}) == 5


def test_a_size_that_is_known_as_a_whole_needs_no_names():
    assert evaluate("2*n+1", {"2*n+1": 9}) == 9


def test_renaming():
    assert rename("2*n+m", {"n": 3}) == "m+6"
    assert rename("2*n+m", {"m": "n"}) == "3*n"
    assert rename("(n-1)//2+n", {"n": "k"}) == "(k-1)//2+k"
    assert rename("(n-1)//2", {"n": 7}) == 3
    assert rename("n", {"k": 2}) == "n"
    assert rename(4, {"n": 2}) == 4


def test_two_names_are_exchanged_at_once():
    assert rename("2*n+m", {"n": "m", "m": "n"}) == "2*m+n"


@pytest.mark.parametrize("text", ["n", "n+1", "2*n", "m*n-1", "(n-3)//2", "((n-3)//2+1)//2", "-n", "rows.true", "size_0", "_x@y"])
def test_these_are_symbols(text):
    assert is_symbol(text)


@pytest.mark.parametrize(
    "text",
    [
        "", "5", "1+n", "n+n", "2n", "n*2", "n m", "n+", "+n", "--n", "n//2", "(n)//1", "(n)//0", "(n)", "(4*n)//2", "n-", "*", "(", ")//2",
        "n+0", "0*n", "1*n", "n*", "é", "٣*n", "n\n", "n" * 257, "(" * 40 + "n" + ")//2" * 40,
    ],
)  # fmt: skip
def test_these_are_no_symbols(text):
    assert not is_symbol(text)


def test_a_symbol_of_256_characters_is_the_longest():
    assert is_symbol("n" * 256)
    with pytest.raises(ol.ShapeError, match="^a symbol may have at most 256 characters$"):
        add("n" * 257, 1)
    with pytest.raises(ol.ShapeError, match="^a symbol may have at most 256 characters$"):
        multiply("n" * 128, "m" * 128)


def test_the_names_in_a_size():
    assert names_in("2*n+(rows.true-3)//2+m*n") == {"n", "m", "rows.true"}
    assert names_in(7) == frozenset()


def test_a_shape_prints_as_it_is_written():
    assert format_shape(("n", 1, "2*t+1")) == "[n, 1, 2*t+1]"
    assert format_shape(()) == "[]"
    assert format_shape(None) == "[*]"


def test_a_shape_that_has_come_out_tells_its_symbols_and_the_names_in_them():
    assert solve_shape(("n+1", 3, "2*t", "n*t"), (5, 3, 6, 12)) == {"n+1": 5, "n": 4, "2*t": 6, "t": 3, "n*t": 12}
    assert solve_shape(("2*n",), (5,)) == {"2*n": 5}


@pytest.mark.parametrize(
    ("size", "spelled"),
    [
        (minimum("t", 512), "min(t,512)"),
        (minimum(minimum("t", 512), 128), "min(t,128)"),
        (minimum(600, minimum("t", 512)), "min(t,512)"),
        (minimum(minimum(8, "n"), minimum("t", 8)), "min(n,t,8)"),
        (minimum(multiply("t", 2), 8), "2*min(t,4)"),
        (minimum(add("t", 3), 8), "min(t,5)+3"),
        (minimum("t", add("t", "n")), "t"),
        (minimum("n", "t"), minimum("t", "n")),
        (maximum("t", 0), "t"),
        (maximum(add("t", -5), 0), "t-min(t,5)"),
        (maximum(add(add("t", -5), minimum("t", 5)), "t"), maximum("t", add(minimum("t", 5), add("t", -5)))),
        (minimum(floor_divide("t", 2), "t"), "(t)//2"),
        (rename(minimum("t", 4), {"t": add("n", 1)}), "min(n,3)+1"),
        (rename(minimum("t", 4), {"t": 3}), 3),
        (names_in(minimum("t", "min")), frozenset({"t", "min"})),
    ],
)
def test_the_least_of_sizes_has_one_spelling(size, spelled):
    assert size == spelled


BOUNDS = (-600, -4, -1, 0, 1, 2, 5, 512)


@pytest.mark.parametrize("start", BOUNDS)
@pytest.mark.parametrize("stop", [None, *BOUNDS])
@pytest.mark.parametrize("step", [1, 2, 3])
def test_the_size_of_a_slice_is_how_many_places_python_takes(start, stop, step):
    for whole_size in ("t", "t+3", "2*t"):
        size = slice_size(whole_size, 0, start or 0, stop, step, clip=True)
        assert isinstance(size, int) or is_symbol(size)
        for t in (0, 1, 2, 3, 4, 5, 6, 7, 511, 512, 513, 600, 601, 1200):
            (number,) = [evaluate(whole_size, {"t": t})]
            assert evaluate(size, {"t": t}) == len(range(number)[start:stop:step]), (whole_size, size, t)


@pytest.mark.parametrize(
    ("whole_size", "start", "stop", "step", "size"),
    [
        ("t+1", 1, None, 1, "t"),
        ("t+1", None, -1, 1, "t"),
        ("t+4", 2, -2, 1, "t"),
        ("t", 1, None, 1, "t-min(t,1)"),
        ("t", 1, -1, 1, "t-min(t,2)"),
        ("t", None, 512, 1, "min(t,512)"),
        ("t", -4, None, 1, "min(t,4)"),
        ("t", -512, 2, 1, "min(t,2)+min(t,512)-min(t,514)"),
        ("t", None, None, 2, "(t+1)//2"),
        ("t", 3, 3, 1, 0),
        ("t", 4, 2, 1, 0),
        ("t", -1, -3, 1, 0),
        (7, -512, 3, 2, 2),
    ],
)
def test_the_size_of_a_slice_is_as_simple_as_names_allow(whole_size, start, stop, step, size):
    assert slice_size(whole_size, 0, start or 0, stop, step, clip=True) == size
