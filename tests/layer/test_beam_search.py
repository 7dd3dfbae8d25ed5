"""Beam search against one written in plain Python, on random step functions; what is finished, what does not exist, files."""

import math

import numpy
import pytest
import torch
from tolerances import VALUES

import oarlock as ol
from oarlock.registry.text import parse_program

BEGIN, END = 0, 1


def write_search(rows, beam_size, max_length, *, fixed=None):
    """A program that searches with a table of logarithms, float64[states v]: a state is a number, made of all tokens so far."""
    with ol.Program() as program:
        table = ol.layer.data("table", list(rows), dtype="float64", batch=None)
        start = ol.layer.data("start", [] if fixed is None else [fixed], dtype="int64", batch="n" if fixed is None else None)

        def step(token, state):
            return ol.op.gather(table, state), (state * rows[1] + token) % rows[0]

        tokens, scores = ol.layer.beam_search(step, start, beam_size=beam_size, begin=BEGIN, end=END, max_length=max_length)
    return program, tokens, scores


def search(table, start, beam_size, max_length):
    """The same for one row, in plain Python: (score, tokens) of each hypothesis that there is, best first."""
    beams = [(0.0, [], BEGIN, start)]
    for _ in range(max_length):
        grown = []
        for score, tokens, last, state in beams:
            if tokens and END in tokens:
                grown.append((score, [*tokens, END], END, state))
                continue
            following = (state * table.shape[1] + last) % table.shape[0]
            grown += [(score + value, [*tokens, token], token, following) for token, value in enumerate(table[state]) if value > -math.inf]
        beams = sorted(grown, key=lambda beam: -beam[0])[:beam_size]
        if all(END in tokens for _, tokens, _, _ in beams):
            break
    return [(score, tokens) for score, tokens, _, _ in beams]


def run(program, feed, fetch):
    return ol.Executor(check=True).run(program, feed, fetch, scope=ol.Scope())


def as_found(tokens, scores):
    """The hypotheses of each row as `search` gives them."""
    return [
        [(score, row.tolist()) for score, row in zip(values, rows, strict=True) if score > -math.inf]
        for values, rows in zip(scores, tokens, strict=True)
    ]


@pytest.mark.parametrize("seed", range(40))
def test_it_finds_what_plain_python_finds(seed):
    random = numpy.random.default_rng(seed)
    beam_size, max_length, vocabulary = (int(random.integers(low, high)) for low, high in ((1, 6), (1, 8), (2, 7)))
    table = numpy.log(random.random((10_007, vocabulary)))  # so many states that no two hypotheses have one score
    table[random.random(table.shape) < 0.2] = -math.inf  # tokens that a step rules out
    table[:, END] += random.choice([0.0, 1.0])
    start = random.integers(table.shape[0], size=int(random.integers(1, 4)))
    program, tokens, scores = write_search(table.shape, beam_size, max_length)
    found, values = run(program, {"table": table, "start": start}, [tokens, scores])
    expected = [search(table, int(state), beam_size, max_length) for state in start]
    length = max((len(row) for beams in expected for _, row in beams), default=1)
    padded = [[(score, row + [END] * (length - len(row))) for score, row in beams] for beams in expected]
    actual = as_found(found, values)
    assert [[(score, row[:length]) for score, row in beams] for beams in actual] == padded
    assert all(set(row[length:]) <= {END} for beams in actual for _, row in beams)


def test_a_beam_of_one_takes_the_largest_each_time():
    random = numpy.random.default_rng(5)
    table = numpy.log(random.random((30, 6)))
    program, tokens, scores = write_search(table.shape, 1, 9)
    found, values = run(program, {"table": table, "start": [3, 17]}, [tokens, scores])
    for row, value, state in zip(found, values, (3, 17), strict=True):
        last, total, greedy = BEGIN, 0.0, []
        while len(greedy) < 9 and END not in greedy:
            token = int(table[state].argmax())
            total += table[state][token]
            state, last = (state * 6 + last) % 30, token
            greedy.append(token)
        assert row[0].tolist() == greedy + [END] * (found.shape[2] - len(greedy))
        assert value[0] == total


def test_a_beam_wider_than_the_vocabulary_finds_all_there_is():
    table = numpy.log(numpy.array([[0.5, 0.3, 0.2]]))
    program, tokens, scores = write_search(table.shape, 20, 2)
    found, values = run(program, {"table": table, "start": [0]}, [tokens, scores])
    assert found.shape == (1, 20, 2)
    assert values[0, 7:].tolist() == [-math.inf] * 13, "1 of one token, and 2 times 3 of two"
    assert as_found(found, values) == [search(table, 0, 20, 2)]


def test_a_finished_hypothesis_keeps_its_score_and_its_place():
    table = numpy.log(numpy.array([[0.1, 0.6, 0.3]]))
    found = {}
    for max_length in (1, 2, 5):
        program, tokens, scores = write_search(table.shape, 2, max_length)
        rows, values = run(program, {"table": table, "start": [0]}, [tokens, scores])
        found[max_length] = rows[0, 0].tolist(), values[0, 0]
    assert found == {1: ([END], table[0, 1]), 2: ([END] * 2, table[0, 1]), 5: ([END] * 2, table[0, 1])}, "all are finished after two"


def test_nothing_that_may_follow_ends_the_search():
    table = numpy.full((1, 4), -math.inf)
    program, tokens, scores = write_search(table.shape, 3, 50)
    found, values = run(program, {"table": table, "start": [0, 0]}, [tokens, scores])
    assert found.shape == (2, 3, 1)
    assert (values == -math.inf).all()


def test_no_row_and_a_number_of_rows_known_beforehand():
    table = numpy.log(numpy.random.default_rng(0).random((9, 4)))
    program, tokens, scores = write_search(table.shape, 2, 6)
    found, values = run(program, {"table": table, "start": numpy.zeros(0, "int64")}, [tokens, scores])
    assert (found.shape, values.shape) == ((0, 2, 1), (0, 2))
    wanted = run(program, {"table": table, "start": [4, 5]}, [tokens, scores])
    program, tokens, scores = write_search(table.shape, 2, 6, fixed=2)
    assert (tokens.shape[:2], scores.shape) == ((2, 2), (2, 2))
    for fixed, free in zip(run(program, {"table": table, "start": [4, 5]}, [tokens, scores]), wanted, strict=True):
        assert (fixed == free).all()


def write_network(max_length=8):
    """A decoder with parameters: its state grows from a start, and a second state never changes."""
    with ol.Program(seed=3) as program:
        start = ol.layer.data("start", [4])
        seen = ol.layer.data("seen", [5, 4])

        def step(token, state, seen):
            word = ol.layer.embedding(token, (7, 4), name="words")
            fit = ol.layer.softmax(ol.op.reduce_sum(seen * ol.layer.reshape(state, shape=(-1, 1, 4)), axis=2))
            context = ol.op.reduce_sum(seen * ol.layer.reshape(fit, shape=(-1, 5, 1)), axis=1)
            after = ol.layer.fc(ol.layer.concat([word, state, context], axis=1), 4, act="tanh", name="state")
            return ol.layer.log_softmax(ol.layer.fc(after, 7, name="logits")), after, seen

        tokens, scores = ol.layer.beam_search(step, [start, seen], beam_size=3, begin=BEGIN, end=END, max_length=max_length)
    return program, tokens, scores


def test_a_state_that_is_returned_as_it_was_is_not_carried():
    program, _, _ = write_network()
    (loop,) = [op for op in program.main.ops if op.type == "while"]
    assert [var.shape for var in loop.inputs["initial"]] == [("n", 3), ("3*n",), ("3*n",), (), ("3*n", 4)]


def test_rows_are_searched_apart():
    program, tokens, scores = write_network()
    scope = ol.Scope()
    ol.init(program, scope)
    random = numpy.random.default_rng(1)
    feed = {"start": random.normal(size=(6, 4)).astype("float32"), "seen": random.normal(size=(6, 5, 4)).astype("float32")}
    together, values = ol.Executor().run(program, feed, [tokens, scores], scope=scope)
    for number in range(6):
        alone, value = ol.Executor().run(program, {k: v[number : number + 1] for k, v in feed.items()}, [tokens, scores], scope=scope)
        length = alone.shape[2]
        assert (together[number, :, :length] == alone[0]).all()
        assert (together[number, :, length:] == END).all()
        numpy.testing.assert_allclose(values[number], value[0], *VALUES[torch.float32])


def test_a_decoder_is_one_file(tmp_path):
    program, tokens, scores = write_network()
    scope = ol.Scope()
    ol.init(program, scope)
    path = tmp_path / "decoder.safetensors"
    ol.save_model({"tokens": tokens, "scores": scores}, scope, path)
    random = numpy.random.default_rng(1)
    feed = {"start": random.normal(size=(2, 4)).astype("float32"), "seen": random.normal(size=(2, 5, 4)).astype("float32")}
    found = ol.infer(ol.load_model(path), feed)
    wanted = ol.Executor().run(program, feed, [tokens, scores], scope=scope)
    assert (found["tokens"] == wanted[0]).all()
    assert (found["scores"] == wanted[1]).all()
    assert parse_program(program.to_text(source=False)).to_text(source=False) == program.to_text(source=False)


def test_what_is_refused_leaves_the_program_as_it_was():
    with ol.Program() as program:
        start = ol.layer.data("start", [4])
        before = program.to_bytes()

        def step(token, state):
            return ol.layer.log_softmax(ol.layer.fc(ol.layer.embedding(token, (7, 4)), 7)), ol.layer.fc(state, 5)

        with pytest.raises(ol.ShapeError, match=r"a state is float32\[3\*n, 4\] before the step but float32\[3\*n, 5\] after it"):
            ol.layer.beam_search(step, start, beam_size=3, begin=0, end=1, max_length=5)
        assert program.to_bytes() == before

        def fails(token, state):
            ol.layer.fc(state, 5)
            raise KeyError("of the user")

        with pytest.raises(KeyError):
            ol.layer.beam_search(fails, start, beam_size=3, begin=0, end=1, max_length=5)
        assert len(program.blocks) == 1
        assert not program.main.ops
