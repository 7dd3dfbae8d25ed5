"""Edits between ragged sequences and chunks in them are those of plain Python, one sequence after another."""

import itertools
import math

import numpy
import pytest

import oarlock as ol


def distance(left, right):
    """The edits between two lists, by the recursion that defines them."""
    row = list(range(len(right) + 1))
    for number, one in enumerate(left, 1):
        following = [number]
        for place, other in enumerate(right, 1):
            following.append(min(row[place] + 1, following[-1] + 1, row[place - 1] + (one != other)))
        row = following
    return row[-1]


def chunks(tags, types, scheme):
    """The chunks of one sequence as (first, last, type), read from left to right as a person does."""
    letters = {"IOB": "BI", "IOE": "IE", "IOBES": "BIES", "plain": "I"}[scheme]
    found, first = [], None
    read = [(None, "O") if tag == types * len(letters) else (tag // len(letters), letters[tag % len(letters)]) for tag in tags]
    for place, (kind, letter) in enumerate(read):
        before, following = read[place - 1] if place else (None, "O"), read[place + 1] if place + 1 < len(read) else (None, "O")
        if letter != "O" and (first is None or letter in "BS" or before[0] != kind or before[1] in "ES"):
            first = place
        if letter != "O" and (following[0] != kind or letter in "ES" or following[1] in "BS"):
            found.append((first, place, kind))
            first = None
    return found


def ragged_batches(random, numbers, pairs, longest, batches=(4, 1, 7)):
    """Batches of pairs of rows; of equal lengths where `pairs`."""
    made = []
    for count in batches:
        lengths = random.integers(0, longest, count)
        others = lengths if pairs else random.integers(0, longest, count)
        made.append([[random.integers(0, numbers, length).tolist() for length in each] for each in (lengths, others)])
    return made


def run(build, batches, *, alike=False, interpret=False):
    with ol.Program() as program:
        left = ol.layer.data("left", [], dtype="int64", ragged=1)
        right = ol.layer.data("right", [], dtype="int64", batch="left.t") if alike else ol.layer.data("right", [], dtype="int64", ragged=1)
        values = build(left, right)
    scope, executor = ol.init(program, ol.Scope()), ol.Executor(interpret=interpret)
    for one, other in batches:
        given = numpy.array(list(itertools.chain(*other)), "int64") if alike else other
        found = executor.run(program, {"left": one, "right": given}, values, scope=scope)
    return [float(value) for value in found]


@pytest.mark.parametrize("interpret", [False, True])
def test_edits_are_summed_over_all_sequences_of_all_batches(interpret):
    batches = ragged_batches(numpy.random.default_rng(0), 3, False, 40)
    rate, mean = run(
        lambda x, y: [ol.metric.edit_distance(x, y), ol.metric.edit_distance(x, y, normalized=False)], batches, interpret=interpret
    )
    pairs = [pair for batch in batches for pair in zip(*batch, strict=True)]
    total = sum(distance(*pair) for pair in pairs)
    assert total > 50
    assert rate == total / sum(len(reference) for _, reference in pairs)
    assert mean == total / len(pairs)


def test_references_without_elements_make_a_rate_infinite_and_nothing_at_all_makes_it_nan():
    assert run(lambda x, y: [ol.metric.edit_distance(x, y)], [([[1], []], [[], []])]) == [math.inf]
    assert math.isnan(*run(lambda x, y: [ol.metric.edit_distance(x, y)], [([[], []], [[], []])]))


@pytest.mark.parametrize("interpret", [False, True])
@pytest.mark.parametrize("scheme", ["IOB", "IOE", "IOBES", "plain"])
def test_chunks_are_found_where_type_first_and_last_tag_agree(scheme, interpret):
    types = 2
    count = types * {"IOBES": 4, "plain": 1}.get(scheme, 2) + 1
    random = numpy.random.default_rng(1)
    batches = ragged_batches(random, count, True, 12)
    for left, right in batches:  # half of the tags agree
        right[:] = [[a if random.random() < 0.6 else b for a, b in zip(*rows, strict=True)] for rows in zip(left, right, strict=True)]
    found = run(lambda x, y: [*ol.metric.chunk_scores(y, x, types, scheme=scheme)], batches, alike=True, interpret=interpret)
    told = true = both = 0
    for left, right in batches:
        for label, predict in zip(left, right, strict=True):
            wanted, given = set(chunks(label, types, scheme)), set(chunks(predict, types, scheme))
            true, told, both = true + len(wanted), told + len(given), both + len(wanted & given)
    assert both > 3
    numpy.testing.assert_allclose(found, [both / told, both / true, 2 * both / (told + true)], rtol=1e-12)


def test_the_f1_of_chunks_alone_is_that_of_the_three_scores():
    batches = ragged_batches(numpy.random.default_rng(2), 5, True, 12)
    f1, *scores = run(lambda x, y: [ol.metric.chunk_f1(y, x, 2), *ol.metric.chunk_scores(y, x, 2)], batches, alike=True)
    assert f1 == scores[2] > 0


def test_without_chunks_the_scores_are_0():
    assert run(lambda x, y: [*ol.metric.chunk_scores(y, x, 2)], [([[4, 4], []], [[4, 4], []])], alike=True) == [0.0] * 3
