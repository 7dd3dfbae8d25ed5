"""Ragged: rows of different lengths, as a value."""

import re

import hypothesis
import hypothesis.strategies as st
import numpy
import pytest
import torch

import oarlock as ol

ROWS = [[1, 2], [], [3]]
DOCUMENTS = [[[1, 2], [3]], [], [[]]]

numbers = st.lists(st.lists(st.integers(-9, 9), max_size=4), max_size=5)


def refusal(make) -> str:
    """The message without the line of this file."""
    with pytest.raises(ol.ArgumentError) as raised:
        make()
    return re.sub(r"\n  \S+\.py:\d+[^\n]*", "", str(raised.value))


def test_nested_lists_become_elements_and_row_splits():
    ragged = ol.Ragged.from_lists(ROWS)
    assert (ragged.values.tolist(), ragged.values.dtype) == ([1, 2, 3], numpy.int64)
    assert [splits.tolist() for splits in ragged.splits] == [[0, 2, 2, 3]]
    assert (len(ragged), ragged.lengths.tolist(), ragged.levels) == (3, [2, 0, 1], 1)
    assert repr(ragged) == "<Ragged int64[3, ?] [[1, 2], [], [3]]>"


def test_rows_of_rows_have_splits_from_the_outermost_to_the_innermost():
    ragged = ol.Ragged.from_lists(DOCUMENTS, levels=2)
    assert [splits.tolist() for splits in ragged.splits] == [[0, 2, 2, 3], [0, 2, 3, 3]]
    assert (len(ragged), ragged.lengths.tolist(), ragged.levels) == (3, [2, 0, 1], 2)
    assert repr(ragged) == "<Ragged int64[3, ?, ?] [[[1, 2], [3]], [], [[]]]>"


@pytest.mark.parametrize(
    ("rows", "dtype", "values"),
    [
        ([[1.5], [2]], None, numpy.array([1.5, 2.0], "float32")),
        ([[1], [2]], "float64", numpy.array([1.0, 2.0])),
        ([[True], [False]], None, numpy.array([True, False])),
        ([[[1.0, 2.0]], []], None, numpy.array([[1.0, 2.0]], "float32")),
        ([numpy.array([1, 2], "int8"), numpy.array([3], "int8")], None, numpy.array([1, 2, 3], "int8")),
        ([torch.ones(2, 3), torch.zeros(0, 3)], None, numpy.ones((2, 3), "float32")),
        ([numpy.zeros((0, 3))], None, numpy.zeros((0, 3))),
        ([[numpy.ones(2)], [numpy.zeros(2)]], None, numpy.array([[1.0, 1.0], [0.0, 0.0]])),
        ([], "int32", numpy.zeros(0, "int32")),
    ],
    ids=repr,
)
def test_the_dtype_is_that_of_the_elements(rows, dtype, values):
    ragged = ol.Ragged.from_lists(rows, dtype=dtype)
    assert ragged.values.dtype == values.dtype
    assert numpy.array_equal(ragged.values, values)


@hypothesis.given(numbers)
def test_every_way_in_leads_to_the_same_rows(rows):
    flat, lengths = [item for row in rows for item in row], [len(row) for row in rows]
    padded = numpy.full((len(rows), max(lengths, default=0)), 77)
    for number, row in enumerate(rows):
        padded[number, : len(row)] = row
    ways = [
        ol.Ragged.from_lists(rows, dtype="int64"),
        ol.Ragged.from_lists([numpy.array(row, "int64") for row in rows], dtype="int64"),
        ol.Ragged.from_lengths(numpy.array(flat, "int64"), lengths),
        ol.Ragged.from_padded(padded, numpy.array(lengths, "int32")),
        ol.Ragged(numpy.array(flat, "int64"), numpy.cumsum([0, *lengths])),
    ]
    for ragged in ways:
        assert ragged.to_lists() == rows
        assert ragged.lengths.tolist() == lengths
        assert numpy.array_equal(ragged.to_padded(fill=77), padded)
        assert [row.tolist() for row in ragged] == rows


@hypothesis.given(st.lists(numbers, max_size=4), st.data())
def test_chosen_rows_are_the_rows_of_the_lists(documents, data):
    ragged = ol.Ragged.from_lists(documents, dtype="int64", levels=2)
    assert ragged.to_lists() == documents
    chosen = data.draw(st.lists(st.integers(0, len(documents) - 1), max_size=6)) if documents else []
    assert ragged[numpy.array(chosen, int)].to_lists() == [documents[number] for number in chosen]
    assert ragged[1:].to_lists() == documents[1:]
    for number, document in enumerate(documents):
        assert ragged[number].to_lists() == document


def test_rows_are_padded_level_by_level():
    ragged = ol.Ragged.from_lists(DOCUMENTS, levels=2)
    assert ragged.to_padded(-1).tolist() == [[[1, 2], [3, -1]], [[-1, -1], [-1, -1]], [[-1, -1], [-1, -1]]]
    assert ol.Ragged.from_lists([]).to_padded().shape == (0, 0)


def test_a_ragged_value_is_a_copy_that_nobody_changes():
    values = numpy.array([1, 2, 3])
    ragged = ol.Ragged.from_lengths(values, [1, 2])
    values[:] = 7
    assert ragged.to_lists() == [[1], [2, 3]]
    with pytest.raises(ValueError, match="read-only"):
        ragged.values[0] = 7
    with pytest.raises(ValueError, match="read-only"):
        ragged.splits[0][0] = 7
    with pytest.raises(AttributeError):
        ragged.values = values


def test_a_long_value_is_shown_by_its_beginning():
    text = repr(ol.Ragged.from_lists([[1.5, 2.0]] * 100))
    assert text == "<Ragged float32[100, ?] [[1.5, 2.0], [1.5, 2.0], [1.5, 2.0], [1.5, 2.0], [1.5, 2.0],...>"
    assert repr(ol.Ragged.from_lengths(numpy.zeros((20_000, 3), "float32"), [20_000])) == "<Ragged float32[1, ?, 3] 1 rows>"


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: ol.Ragged.from_lengths([1, 2, 3], [1, 1]), "the lengths add up to 2, but there are 3 elements"),
        (lambda: ol.Ragged.from_lengths([1], [2, -1]), "a row cannot have length -1"),
        (lambda: ol.Ragged.from_lengths([1], [0.5]), "lengths must be integers of one dimension, not float32[1]"),
        (lambda: ol.Ragged.from_lengths(5, [1]), "ragged values need a first dimension to be divided into rows"),
        (lambda: ol.Ragged.from_padded([[1, 2]], [3]), "a row of length 3 does not fit padded rows of shape [1, 2]"),
        (lambda: ol.Ragged.from_padded([[1, 2]], [1, 1]), "2 lengths do not fit padded rows of shape [1, 2]"),
        (lambda: ol.Ragged.from_padded([1, 2], [1, 1]), "2 lengths do not fit padded rows of shape [2]"),
        (lambda: ol.Ragged([1, 2], [0, 1]), "the row splits end at 1, but there are 2 values"),
        (lambda: ol.Ragged([1, 2], [1, 2]), "row splits must start with 0 and not decrease, unlike [1, 2]"),
        (lambda: ol.Ragged([1, 2], [0, 3, 2]), "row splits must start with 0 and not decrease, unlike [0, 3, 2]"),
        (lambda: ol.Ragged([1, 2], []), "row splits must start with 0 and not decrease, unlike []"),
        (lambda: ol.Ragged([1, 2], [[0, 1], [0, 1, 2]]), "the row splits end at 1, but there are 2 rows"),
        (lambda: ol.Ragged.from_lists([[1.5]], dtype="int64"), "these elements are float32, which int64 cannot represent"),
        (lambda: ol.Ragged.from_lists([[300]], dtype="int8"), "these elements are int64, which int8 cannot represent"),
        (lambda: ol.Ragged.from_lists(["ab"]), "row 0 is str 'ab', not a list of elements"),
        (lambda: ol.Ragged.from_lists([[1], 2]), "row 1 is int 2, not a list of elements"),
        (lambda: ol.Ragged.from_lists([numpy.ones((1, 2)), numpy.ones((1, 3))]), "the elements of rows have different shapes: [2], [3]"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_does_not_add_up_is_refused(make, message):
    assert refusal(make).splitlines()[0] == message


def test_rows_of_rows_are_asked_for():
    assert refusal(lambda: ol.Ragged.from_lists(DOCUMENTS)) == (
        "elements: list [[1, 2], [3], []] cannot be converted to a tensor\n"
        "  Try: use Ragged.from_lists(rows, levels=2) for nested rows    (oarlock explain ArgumentError)"
    )
    assert refusal(lambda: ol.Ragged.from_lists([1, 2])) == (
        "row 0 is int 1, not a list of elements\n  Try: pass a list of rows, such as [[1, 2], [], [3]]    (oarlock explain ArgumentError)"
    )
