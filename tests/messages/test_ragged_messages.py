"""The messages for fed rows of different lengths that do not fit: the whole text, of which line 1 is the first of `model.py`."""

import textwrap
from pathlib import Path

import pytest
from user_scripts import last_words

MODEL = """
import numpy
import oarlock as ol
with ol.Program() as program:
    words = ol.layer.data("words", [], dtype="int64", ragged=1)
    tags = ol.layer.data("tags", [], dtype="int64", batch="words.t")
    label = ol.layer.data("label", [], dtype="int64")
    y = ol.op.cast(words, dtype="float32")
fetch = [y, "words.splits", tags, label]
def run(feed):
    tags, label = numpy.zeros(3, "int64"), numpy.zeros(2, "int64")
    return ol.Executor().run(program, {"tags": tags, "label": label, **feed}, fetch, scope=ol.Scope())
"""

TAKES = "the program takes words: int64[words.t], words.splits: int64[n+1], tags: int64[words.t], label: int64[n]"
WORDS = 'model.py:4      words = ol.layer.data("words", [], dtype="int64", ragged=1)'
TAGS = 'model.py:5      tags = ol.layer.data("tags", [], dtype="int64", batch="words.t")'
LABEL = 'model.py:6      label = ol.layer.data("label", [], dtype="int64")'
EXPLAIN = "(oarlock explain FeedError)"


@pytest.fixture
def require(tmp_path: Path):
    """Run the model, then one line more; compare the whole of the error's text."""

    def compare(line: str, expected: str) -> None:
        assert last_words(MODEL + line + "\n", tmp_path) == textwrap.dedent(expected).lstrip("\n")

    return compare


def test_elements_without_their_rows(require):
    require(
        'run({"words": numpy.array([1, 2, 3])})',
        f"""
        oarlock.FeedError: "words.splits" is not fed
          {WORDS}
          {TAKES}
              "tags", "label", "words" fed
          Try: it contains the row splits of "words": feed={{"words": ol.Ragged.from_lists(rows)}}    {EXPLAIN}
        """,
    )


@pytest.mark.parametrize(
    ("splits", "wrong"),
    [
        ("[1, 2, 3]", '"words.splits" must start with 0, not 1'),
        ("[0, 4, 3]", '"words.splits" must not decrease, but 4 is followed by 3'),
        ("[0, 1, 4]", '"words.splits" has words.t = 4, but "words" has words.t = 3'),
        ("[]", '"words.splits" must have shape [n+1], not [0]'),
    ],
)
def test_row_splits_that_are_none(splits, wrong, require):
    require(
        f'run({{"words": numpy.array([1, 2, 3]), "words.splits": {splits}}})',
        f"""
        oarlock.FeedError: {wrong}
          {WORDS}
          {TAKES}
              "words.splits" fed as int64[{len(splits.strip("[]").split(",")) if splits != "[]" else 0}]
        """,
    )


def test_another_number_of_rows(require):
    require(
        'run({"words": [[1], [2], [3]]})',
        f"""
        oarlock.FeedError: "label" has n = 2, but "words.splits" has n = 3
          {LABEL}
          {TAKES}
              "label" fed as int64[2]
        """,
    )


def test_lists_that_are_no_rows(require):
    require(
        'run({"words": [1, 2, 3]})',
        f"""
        oarlock.FeedError: "words": row 0 is int 1, not a list of elements
          {WORDS}
          Try: use feed={{"words": ol.Ragged.from_lists(rows)}}    {EXPLAIN}
        """,
    )


def test_lengths_that_do_not_add_up(require):
    require(
        'run({"words": (numpy.array([1, 2, 3]), numpy.array([1, 1]))})',
        f"""
        oarlock.FeedError: "words": the lengths add up to 2, but there are 3 elements
          {WORDS}
          Try: use feed={{"words": ol.Ragged.from_lists(rows)}}    {EXPLAIN}
        """,
    )


@pytest.mark.parametrize("pair", ["([1, 2, 3], [2, 1])", "(numpy.zeros((1, 2, 3)), numpy.array([1]))", "(numpy.array([1]),) * 3"])
def test_a_pair_that_is_neither_elements_nor_padded_rows(pair, require):
    require(
        f'run({{"words": {pair}}})',
        f"""
        oarlock.FeedError: "words": a tuple must be (elements, lengths) or (padded rows, lengths)
          {WORDS}
          Try: use feed={{"words": ol.Ragged.from_lists(rows)}}    {EXPLAIN}
        """,
    )


def test_rows_of_rows_for_rows(require):
    require(
        'run({"words": ol.Ragged.from_lists([[[1, 2], [3]]], levels=2)})',
        f"""
        oarlock.FeedError: "words" has 1 level of rows, but the fed value has 2
          {WORDS}
              "words" fed as <Ragged int64[1, ?, ?] [[[1, 2], [3]]]>
          Try: use feed={{"words": ol.Ragged.from_lists(rows)}}    {EXPLAIN}
        """,
    )


def test_rows_for_what_has_none(require):
    require(
        'run({"words": [[1, 2], [3]], "label": ol.Ragged.from_lists([[1]])})',
        f"""
        oarlock.FeedError: "label" is not a ragged input, but a Ragged is fed
          {LABEL}
              "label" fed as <Ragged int64[1, ?] [[1]]>
          Try: declare a ragged input by ol.layer.data("label", ..., ragged=1)    {EXPLAIN}
        """,
    )


def test_two_inputs_that_are_cut_alike_and_fed_otherwise(require):
    require(
        'run({"words": [[1, 2], [3]], "tags": [[1], [2, 3]]})',
        f"""
        oarlock.FeedError: "tags" and "words" have different row lengths
          {TAGS}
              rows of lengths [1, 2] and [2, 1]
        """,
    )
    require(
        'run({"words": ol.Ragged.from_lists([[1, 2], [3]]), "words.splits": [0, 1, 3]})',
        f"""
        oarlock.FeedError: "words" and "words.splits", also fed, have different row lengths
          {WORDS}
              rows of lengths [2, 1] and [1, 2]
        """,
    )
