"""Layers over ragged values: their row splits are found, and passed on."""

import re

import numpy
import pytest
from tolerances import LAYERS

import oarlock as ol

ROWS = [[1.0, 4.0], [], [3.0, -1.0, 2.0]]
DOCUMENTS = [[[1.0, 4.0], [3.0]], [], [[], [5.0]]]


def run(program: ol.Program, feed: dict, fetch: list) -> list[numpy.ndarray]:
    return ol.Executor().run(program, feed, fetch, scope=ol.init(program, ol.Scope()))


def rows_of(program: ol.Program, feed: dict, var: ol.Var) -> list:
    """The value of a ragged variable, as the nested lists that it stands for."""
    cuts, size = [], var.shape[0]
    while (splits := program.main.splits_of(size)) is not None:
        cuts.insert(0, splits)
        size = ol.ir.size.add(splits.shape[0], -1)
    values, *found = run(program, feed, [var, *cuts])
    return ol.Ragged(values, tuple(found)).to_lists()


@pytest.mark.parametrize(
    ("pool", "expected"),
    [
        ("sum", [5.0, 0.0, 4.0]),
        ("mean", [2.5, 0.0, 4.0 / 3.0]),
        ("max", [4.0, 0.0, 3.0]),
        ("first", [1.0, 0.0, 3.0]),
        ("last", [4.0, 0.0, 2.0]),
    ],
)
def test_one_element_of_each_sequence(pool, expected):
    with ol.Program() as program:
        y = ol.layer.sequence_pool(ol.layer.data("x", [], dtype="float64", ragged=1), pool, name="pooled")
    assert (y.type_text, y.name.partition(".")[0]) == ("float64[n]", "pooled")
    numpy.testing.assert_allclose(run(program, {"x": ROWS}, [y])[0], expected, *LAYERS)
    assert run(program, {"x": []}, [y])[0].shape == (0,)


def test_what_is_computed_of_each_element_is_ragged_by_the_same_cut():
    with ol.Program() as program:
        words = ol.layer.data("words", [], dtype="int64", ragged=1)
        hidden = ol.layer.fc(ol.layer.embedding(words, (9, 4)), 3, act="tanh")
        weights = ol.layer.sequence_softmax(ol.layer.fc(hidden, 1))
        y = ol.layer.sequence_pool(hidden * weights, "sum")
    assert (hidden.type_text, y.type_text) == ("float32[words.t, 3]", "float32[n, 3]")
    value, weights = run(program, {"words": [[1, 2, 8], [], [3]]}, [y, weights])
    assert value.shape == (3, 3)
    assert not value[1].any()
    numpy.testing.assert_allclose([weights[:3].sum(), weights[3].item()], 1.0, rtol=1e-6)


def test_rows_of_rows_are_pooled_level_by_level():
    with ol.Program() as program:
        words = ol.layer.data("words", [], ragged=2)
        sentences = ol.layer.sequence_pool(words, "sum")
        documents = ol.layer.sequence_pool(sentences, "max")
        lengths = ol.layer.sequence_lengths(words), ol.layer.sequence_lengths(sentences)
    assert (sentences.type_text, documents.type_text) == ("float32[words.s1]", "float32[n]")
    values = run(program, {"words": DOCUMENTS}, [sentences, documents, *lengths])
    assert [value.tolist() for value in values] == [[5.0, 3.0, 0.0, 5.0], [5.0, 0.0, 5.0], [2, 1, 0, 1], [2, 0, 2]]


def test_a_row_is_spread_over_its_sequence():
    with ol.Program() as program:
        x = ol.layer.data("x", [], ragged=1)
        mean = ol.layer.sequence_expand(ol.layer.sequence_pool(x, "mean"), x)
        y = x - mean
    assert y.shape == x.shape
    assert rows_of(program, {"x": [[1.0, 3.0], [], [5.0]]}, y) == [[-1.0, 1.0], [], [0.0]]


def test_sequences_are_joined_row_by_row_and_what_comes_of_it_is_ragged():
    with ol.Program() as program:
        a, b = ol.layer.data("a", [], ragged=1), ol.layer.data("b", [], ragged=1)
        joined = ol.layer.sequence_concat(a, b, a)
        pooled = ol.layer.sequence_pool(joined * joined, "sum")
        again = ol.layer.sequence_concat(joined, b)
        cost = ol.op.reduce_sum(ol.op.square(again)) + ol.op.reduce_sum(pooled)
        gradient = ol.gradients([cost], [b])[0]
    feed = {"a": [[1.0], [2.0, 3.0], []], "b": [[4.0], [], [5.0]]}
    assert rows_of(program, feed, joined) == [[1.0, 4.0, 1.0], [2.0, 3.0, 2.0, 3.0], [5.0]]
    assert rows_of(program, feed, again) == [[1.0, 4.0, 1.0, 4.0], [2.0, 3.0, 2.0, 3.0], [5.0, 5.0]]
    assert run(program, feed, [pooled])[0].tolist() == [18.0, 26.0, 25.0]
    assert run(program, feed, [gradient])[0].tolist() == [24.0, 30.0]
    read = ol.Program.from_bytes(program.to_bytes())
    assert ol.parse_program(program.to_text()).to_bytes() == read.to_bytes(source=False) == program.to_bytes(source=False)
    assert rows_of(read, feed, read.main.var(joined.name)) == [[1.0, 4.0, 1.0], [2.0, 3.0, 2.0, 3.0], [5.0]]


def test_rows_of_rows_are_joined_sentence_by_sentence():
    with ol.Program() as program:
        words = ol.layer.data("words", [], ragged=2)
        joined = ol.layer.sequence_concat(words, words)
    assert rows_of(program, {"words": DOCUMENTS}, joined) == [[[1.0, 4.0, 1.0, 4.0], [3.0, 3.0]], [], [[], [5.0, 5.0]]]


def test_sequences_are_padded_and_cut_again():
    with ol.Program() as program:
        x = ol.layer.data("x", [2], ragged=1)
        padded = ol.layer.sequence_pad(x, fill=-1.0)
        y = ol.layer.sequence_unpad(ol.op.square(padded), x)
    assert (padded.shape[0], padded.shape[2], y.shape) == ("n", 2, x.shape)
    rows = [[[1.0, 2.0]], [], [[3.0, 4.0], [5.0, 6.0]]]
    value, _ = run(program, {"x": rows}, [padded, y])
    assert value.tolist() == [[[1.0, 2.0], [-1.0, -1.0]], [[-1.0, -1.0]] * 2, [[3.0, 4.0], [5.0, 6.0]]]
    assert rows_of(program, {"x": rows}, y) == [[[1.0, 4.0]], [], [[9.0, 16.0], [25.0, 36.0]]]


def test_row_splits_are_seen_from_inside_a_loop():
    with ol.Program() as program:
        x = ol.layer.data("x", [], ragged=1)
        factors = ol.layer.data("factors", [], batch="k")
        loop = ol.rnn()
        with loop.step():
            loop.output(ol.layer.sequence_pool(x * loop.step_input(factors), "sum"))
        y = loop()
    assert run(program, {"x": [[1.0, 2.0], [3.0]], "factors": [1.0, 10.0]}, [y])[0].tolist() == [[3.0, 3.0], [30.0, 30.0]]


# Messages


def refusal(function) -> str:
    """The message without the line of this file."""
    with ol.Program() as program:
        x, words = ol.layer.data("x", []), ol.layer.data("words", [2], ragged=1)
        before = program.to_bytes()
        with pytest.raises(ol.OarlockError) as raised:
            function(x, words)
    assert program.to_bytes() == before
    return re.sub(r"\n  \S+\.py:\d+[^\n]*", "", str(raised.value)).replace("test_sequences.py", "model.py")


@pytest.mark.parametrize(
    ("function", "what"),
    [
        (lambda x, _: ol.layer.sequence_pool(x, "sum"), "sequence_pool: x"),
        (lambda x, _: ol.layer.sequence_softmax(x), "sequence_softmax: x"),
        (lambda x, _: ol.layer.sequence_lengths(x), "sequence_lengths: x"),
        (lambda x, _: ol.layer.sequence_pad(x), "sequence_pad: x"),
        (lambda x, words: ol.layer.sequence_expand(words, x), "sequence_expand: like"),
        (lambda x, words: ol.layer.sequence_unpad(words, x), "sequence_unpad: like"),
        (lambda x, words: ol.layer.sequence_concat(words, x), "sequence_concat: argument 1"),
    ],
)
def test_a_value_without_row_splits_is_refused_with_how_to_declare_one(function, what):
    assert re.sub(r"\S+\.py:\d+", "model.py:1", refusal(function)) == (
        f'{what} is not ragged: the sequences of "x" have no row splits\n'
        "  row splits partition the first dimension of a ragged value\n"
        '      "x"   float32[n]   fed; declared at model.py:1\n'
        '  Try: declare a ragged input: ol.layer.data("words", [], dtype="int64", ragged=1) is int64[words.t] with row splits'
        "    (oarlock explain ArgumentError)"
    )


def test_other_arguments_that_do_not_fit():
    def first(function) -> str:
        return refusal(function).splitlines()[0]

    assert (
        first(lambda _, words: ol.layer.sequence_pool(words, "median"))
        == "sequence_pool: pool must be one of sum, mean, max, first, last, not 'median'"
    )
    assert first(lambda _, words: ol.layer.sequence_pool(3, "sum")) == "sequence_pool: x must be a variable of a program, not int 3"
    assert (
        first(lambda _, words: ol.layer.sequence_expand(words, words)) == "sequence_expand: x has words.t rows, but splits has n sequences"
    )
    assert (
        first(lambda *_: ol.layer.sequence_concat())
        == "sequence_concat: 0 values and 0 splits are given; each value has its own row splits"
    )
