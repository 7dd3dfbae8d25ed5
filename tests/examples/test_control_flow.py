"""The examples with branches, ragged sequences and decoding: each trains until its stop rule holds."""

import runpy
from pathlib import Path

import pytest

import oarlock as ol

EXAMPLES = Path(__file__).parent.parent.parent / "examples"


def load(name):
    """The names that an example defines, without running it."""
    return runpy.run_path(str(EXAMPLES / f"{name}.py"), run_name=name)


def test_rows_that_take_two_networks_learn_the_digits(capsys):
    measured = load("digits_ifelse")["main"](seed=0)
    assert measured["loss"] < 0.2
    assert measured["accuracy"] > 0.95
    assert len(capsys.readouterr().out.splitlines()) < 30, "the stop rule ended it, not the number of epochs"


def test_a_recurrent_network_tells_glad_sentences_from_sad_ones(capsys):
    measured = load("sentiment")["main"](seed=0)
    assert measured["loss"] < 0.2
    assert measured["accuracy"] > 0.9
    assert len(capsys.readouterr().out.splitlines()) < 20, "the stop rule ended it, not the number of epochs"


def test_sentences_have_three_to_thirty_words_and_both_answers():
    data = load("sentiment")["make_sentences"](2000, 0)
    lengths = [len(row) for row in data["words"]]
    assert min(lengths) == 3
    assert max(lengths) == 30
    assert 0.4 < data["glad"].mean() < 0.6


def test_counting_words_does_not_tell_glad_sentences(capsys):
    """The order decides: the words alone, each with a weight of its own, do much worse than the recurrent network."""
    example = load("sentiment")
    train, test = example["make_sentences"](3000, 0), example["make_sentences"](500, 1)
    with ol.Program(seed=0):
        words = ol.layer.data("words", [], dtype="int64", ragged=1)
        glad = ol.layer.data("glad", [], dtype="int64")
        logits = ol.layer.sequence_pool(ol.layer.embedding(words, (len(example["WORDS"]), 2)), "sum")
        cost = ol.layer.cross_entropy(logits, glad)
        accuracy = ol.layer.accuracy(logits, glad)
    result = ol.train(
        cost, train, optimizer=ol.optimizer.Adam(1e-2), epochs=5, batch_size=100, validate=test, show={"accuracy": accuracy}, progress=False
    )
    assert result.history[-1].validation["accuracy"] < 0.8


def test_a_decoder_translates_by_beam_search_and_is_saved_search_and_all(tmp_path, capsys):
    example = load("translation")
    path = tmp_path / "translation.safetensors"
    assert example["main"](seed=0, path=str(path)) > 0.95
    lines = capsys.readouterr().out.splitlines()
    assert lines[-1] == f"saved {path}"
    assert len(lines) < 40, "the stop rule ended it, not the number of epochs"
    model = ol.load_model(path)
    assert [var.name for var in model.program.main.inputs] == ["source", "source.splits"]
    assert [op.type for op in model.program.main.ops if op.blocks] == ["recurrent", "while", "recurrent"]
    pairs = example["make_pairs"](500, 99)
    assert example["share_right"](ol.infer(model, {"source": pairs["source"]}), pairs) > 0.85


@pytest.mark.parametrize("name", ["digits_ifelse", "sentiment", "translation"])
def test_the_example_is_short(name):
    assert len((EXAMPLES / f"{name}.py").read_text().splitlines()) < 160
