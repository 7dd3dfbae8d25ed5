"""Checks of gradients that a signature tells: their shapes, and for which operators there are any."""

import pytest

from oarlock.registry import Case, Catalogue, GradCheck, operator
from oarlock.testing import check_operator


def checks(signature, kernel, *cases, gradients=("x",)):
    """The low end and the values of each check of an operator."""
    made = operator(signature, cases=cases, catalogue=Catalogue())(kernel)
    made.gradient_programs(**dict.fromkeys(gradients, lambda: None))
    return [(case.low, case.values) for case in made.cases if isinstance(case, GradCheck)]


def unary(x):
    return x


def rows(x, w, bias=None):
    return x @ w


def scaled(x, *, scale: float = 1.0):
    return x * scale


def power(x, *, exponent: int):
    return x**exponent


def looked_up(x, ids):
    return x[ids]


def joined(xs):
    return xs[0]


def cut(x, splits):
    return x[splits[:-1]]


def pair(x, y):
    return x + y


def test_leading_axes_are_two_one_and_none_and_may_be_of_no_elements():
    expected = [(-1.0, {"x": (5, 2)}), (-1.0, {"x": (2,)}), (-1.0, {"x": ()})]
    assert checks("x: number[...s] -> y: number[...s]", unary) == expected
    assert checks("x: float[*b] -> y: float[*b]", unary) == [*expected, (-1.0, {"x": (0,)})]  # rows that are computed alone


def test_each_size_is_another_and_inputs_that_may_be_left_out_are_there_and_are_not():
    assert [values for _, values in checks("x: float[*b k], w: float[k 8], bias?: float[8] -> y: float[*b 8]", rows)] == [
        {"x": (5, 2, 3), "w": (3, 8), "bias": (8,)},
        {"x": (2, 3), "w": (3, 8), "bias": (8,)},
        {"x": (3,), "w": (3, 8), "bias": (8,)},
        {"x": (0, 3), "w": (3, 8), "bias": (8,)},
        {"x": (2, 3), "w": (3, 8)},
    ]
    assert next(values for _, values in checks("x: float[*b m k n] -> y: float[*b]", unary)) == {"x": (5, 2, 3, 4, 6)}


def test_of_several_inputs_that_may_be_left_out_each_is_and_all_are():
    assert [values for _, values in checks("x: float[k], w?: float[k], bias?: float[k] -> y: float[k]", rows)] == [
        {"x": (3,), "w": (3,), "bias": (3,)},
        {"x": (3,), "bias": (3,)},
        {"x": (3,), "w": (3,)},
        {"x": (3,)},
    ]


def test_shapes_that_broadcast_differ_both_ways():
    """A leading axis is missing, all are, sizes are one, and zero."""
    expected = [{"x": (5, 2), "y": (2,)}, {"x": (5, 1), "y": (1, 2)}, {"x": (), "y": (2, 2)}, {"x": (0, 1), "y": (2,)}]
    assert [values for _, values in checks("x: float[*#s], y: float[*#s] -> z: float[*#s]", pair)] == expected
    between = checks("x: float[*#s], w: float[k], bias: float[*#s] -> z: float[*#s]", rows)
    assert [values for _, values in between] == [{"x": shapes["x"], "w": (3,), "bias": shapes["y"]} for shapes in expected]


def test_three_inputs_that_broadcast_have_three_shapes_and_so_have_three_tensors_of_one():
    expected = [[(5, 2), (2,), (5, 1)], [(5, 1), (1, 2), ()], [(), (2, 2), (1,)], [(0, 1), (2,), (0, 2)]]
    three = checks("x: float[*#s], w: float[*#s], bias: float[*#s] -> z: float[*#s]", rows)
    assert [list(values.values()) for _, values in three] == expected
    assert [values["xs"] for _, values in checks("*xs: float[*#s] -> z: float[*#s]", joined, gradients=["xs"])] == expected


def test_an_input_of_many_tensors_gets_three():
    assert checks("*xs: float[n] -> y: float[n]", joined, gradients=["xs"]) == [(-1.0, {"xs": [(3,), (3,), (3,)]})]


def test_row_splits_cut_elements_into_sequences_and_nothing_into_one():
    assert [values for _, values in checks("x: float[t ...d], splits: int64[n+1] -> y: float[n ...d]", cut)] == [
        {"x": (4, 5, 2), "splits": [0, 1, 1, 4]},
        {"x": (4, 2), "splits": [0, 1, 1, 4]},
        {"x": (4,), "splits": [0, 1, 1, 4]},
        {"x": (0, 2), "splits": [0, 0]},
    ]


def test_what_has_a_size_for_each_sequence_has_as_many_as_there_are():
    def weighed(x, weight, first, splits):
        return x

    signature = "x: float[t d], weight: float[n k], first: float[n+1], splits: int64[n+1] -> y: float[t d]"
    assert [values for _, values in checks(signature, weighed)] == [
        {"x": (4, 6), "weight": (3, 7), "first": (4,), "splits": [0, 1, 1, 4]},
        {"x": (0, 6), "weight": (1, 7), "first": (2,), "splits": [0, 0]},
    ]


def test_a_check_without_inputs_says_at_which_values_or_with_which_attributes():
    signature = "x: float[k] -> y: float[k]"
    assert checks(signature, scaled, GradCheck(low=0.5), GradCheck(scale=2.0)) == [(0.5, {"x": (3,)}), (-1.0, {"x": (3,), "scale": 2.0})]
    assert checks(signature, power, GradCheck(exponent=2)) == [(-1.0, {"x": (3,), "exponent": 2})]


def test_a_check_that_gives_an_input_is_taken_as_it_is():
    assert checks("x: float[*b] -> y: float[*b]", unary, GradCheck(x=(7,))) == [(-1.0, {"x": (7,)})]


@pytest.mark.parametrize(
    ("signature", "kernel"),
    [
        ("x: float[n ...d], ids: int64[k] -> y: float", looked_up),  # of integers nobody knows which make sense
        ("x: float[...r], y: shape[...s] -> z: float[...s]", pair),  # two ranks may depend on each other
        ("x: float -> y: float", unary),
        ("x: float[*b k], splits: int64[n+1] -> y: float[n k]", cut),  # what the splits cut
        ("x: float[n d], splits: int64[n+1] -> y: float[n d]", cut),
        ("x: float[a b c d e f g] -> y: float", unary),  # more sizes than anyone gives
        ("x: float[*b] -> y: float[*b]", power),  # the attribute has no default
    ],
)
def test_nothing_is_derived_where_the_signature_does_not_tell_what_to_give(signature, kernel):
    assert checks(signature, kernel) == []


def test_an_operator_without_gradients_has_no_checks():
    assert checks("x: float[*b] -> y: float[*b]", unary, gradients=()) == []


def test_a_wrong_gradient_fails_at_a_check_that_nobody_wrote():
    def tripled(x):
        return 3 * x

    def tripled_dx(dy):
        return 2 * dy

    made = operator("x: float[*b] -> y: float[*b]", cases=[Case(x=[1.0], y=[3.0])])(tripled)
    made.gradient("x")(tripled_dx)
    with pytest.raises(AssertionError, match=r"tripled: GradCheck\(x=\(5, 2\)\): the gradient of x is"):
        check_operator(made)
