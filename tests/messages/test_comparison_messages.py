"""Whole messages: Python asks for a value that only a run has, or gives a bool of its own in place of a condition."""

import numpy
import pytest

import oarlock as ol

HINT = "this is probably x == y of plain Python values: compare a variable, as in label == 0, or use Python's `if`"


@pytest.fixture
def x():
    with ol.Program():
        yield ol.layer.data("x", [2])


def refused(write) -> ol.ArgumentError:
    with pytest.raises(ol.ArgumentError) as raised:
        write()
    return raised.value


def test_a_comparison_that_python_branches_on(x):
    error = refused(lambda: bool(x == 0.0))
    assert error.message == '"equal_0" has no value while the program is being built, so Python cannot branch on it'
    assert error.hint == (
        "use ol.cond to branch on one bool, ol.ifelse to branch per row, ol.while_loop to repeat; use `x is y` to test identity"
    )
    assert len(error.given) == 1
    assert error.given[0].startswith('"equal_0"   bool[n, 2]   from equal at ')


def test_a_variable_that_python_branches_on(x):
    error = refused(lambda: 1 if x else 2)
    assert error.message == '"x" has no value while the program is being built, so Python cannot branch on it'
    assert error.hint == "use ol.cond to branch on one bool, ol.ifelse to branch per row, ol.while_loop to repeat"


def test_a_list_that_is_searched_for_a_variable(x):
    y = ol.layer.data("y", [2])
    error = refused(lambda: x in [y])
    assert error.message == '"y" has no value while the program is being written, so Python cannot search for it with `in`'
    assert error.hint == "any(x is each for each in items) finds a variable itself; (x == 1) | (x == 2) compares values in a run"
    assert error.given[0].startswith('"y"   float32[n, 2]   fed; declared at ')


@pytest.mark.parametrize(
    ("write", "message"),
    [
        (lambda x, c: ol.op.where(c, x, x), "where: condition must be a variable of the program, not {}"),
        (lambda x, c: ol.cond(c, lambda: x, lambda: x), "cond: the condition must be a variable of a program, not {}"),
        (lambda x, c: ol.while_loop(c), "while_loop: the condition must be a variable of a program, not {}"),
        (lambda x, c: ol.layer.switch().case(c).__enter__(), "switch: the condition must be a variable of a program, not {}"),
        (lambda x, c: ol.op.masked_fill(x, c, 0.0), "masked_fill: mask must be a variable of a program, not {}"),
        (lambda x, c: ol.op.masked_select(x, c), "masked_select: mask must be a variable of a program, not {}"),
        (lambda x, c: ol.op.masked_scatter(x, c, x), "masked_scatter: mask must be a variable of a program, not {}"),
        (lambda x, c: ol.op.argwhere(c), "argwhere: condition must be a variable of the program, not {}"),
        (lambda x, c: ol.op.nonzero(c), "nonzero: condition must be a variable of the program, not {}"),
        (lambda x, c: ol.op.merge(c, x, x), "merge: condition must be a variable of the program, not {}"),
        (lambda x, c: ol.op.any(c), "any: x must be a variable of the program, not {}"),
        (
            lambda x, c: ol.op.scaled_dot_product_attention(*[ol.op.reshape(x, shape=("n", 1, 2))] * 3, mask=c),
            "scaled_dot_product_attention: mask must be a variable of the program, not {}",
        ),
        (
            lambda x, c: ol.layer.multi_head_attention(ol.op.reshape(x, shape=("n", 1, 2)), heads=1, mask=c),
            "multi_head_attention: mask must be a variable of a program, not {}",
        ),
        (
            lambda x, c: ol.layer.multi_head_attention(ol.op.reshape(x, shape=("n", 1, 2)), heads=1, key_mask=c),
            "multi_head_attention: key_mask must be a variable of a program, not {}",
        ),
        (
            lambda x, c: x[c],
            "x[...] takes numbers, slices, ..., None, lists of numbers, and variables of integers or bools, not {}",
        ),
    ],
)
@pytest.mark.parametrize(("given", "named"), [("a" == "b", "bool False"), (numpy.bool_(True), "bool True")], ids=["python", "numpy"])
def test_a_python_bool_in_place_of_a_condition(x, write, message, given, named):
    error = refused(lambda: write(x, given))
    assert error.message == message.format(named)
    assert error.hint == HINT


def test_the_whole_of_such_a_message(x):
    error = refused(lambda: ol.op.where(x == None, x, x))  # noqa: E711
    lines = str(error).splitlines()
    assert [lines[0], *lines[2:]] == [
        "where: condition must be a variable of the program, not bool False",
        "  where(condition: bool[*#s], x: T[*#s], y: T[*#s]) -> z: T[*#s]",
        f"  Try: {HINT}    (oarlock explain ArgumentError)",
    ]
    assert "test_comparison_messages.py" in lines[1]


def test_operands_of_logic_are_python_bools_too(x):
    assert ol.op.logical_and(x > 0, True).dtype is ol.DType.BOOL
    assert ((x > 0) & True).shape == ("n", 2)
