"""Training on rows of different lengths: any form of a data set, taken up where it stopped, saved, and used."""

import numpy
import pytest

import oarlock as ol
from oarlock.training.batches import Batches

GENERATOR = numpy.random.default_rng(0)
LENGTHS = GENERATOR.integers(0, 6, 60)
WORDS = [GENERATOR.integers(0, 12, length).tolist() for length in LENGTHS]
LABEL = numpy.array([int(7 in row) for row in WORDS])


def classifier() -> tuple[ol.Var, ol.Var]:
    """The cost of telling whether word 7 is in a sentence, and the logits."""
    with ol.Program(seed=4):
        words = ol.layer.data("words", [], dtype="int64", ragged=1)
        label = ol.layer.data("label", [], dtype="int64")
        hidden = ol.layer.sequence_pool(ol.layer.fc(ol.layer.embedding(words, (12, 8)), 8, act="tanh"), "max")
        logits = ol.layer.fc(hidden, 2)
        return ol.layer.mean(ol.layer.softmax_with_cross_entropy(logits, label)), logits


def ragged(rows: list[list[int]]) -> ol.Ragged:
    return ol.Ragged.from_lists(rows, dtype="int64")


FORMS = {
    "lists": {"words": WORDS},
    "arrays": {"words": [numpy.array(row, "int64") for row in WORDS]},
    "Ragged": {"words": ragged(WORDS)},
    "padded": {"words": (ragged(WORDS).to_padded(), LENGTHS)},
    "apart": {"words": ragged(WORDS).values, "words.splits": ragged(WORDS).splits[0]},
}


@pytest.mark.parametrize("form", FORMS)
def test_a_batch_has_the_chosen_rows_whatever_the_form_of_the_data(form):
    cost, _ = classifier()
    batches = Batches.of({**FORMS[form], "label": LABEL}, cost.block.program, 7)
    assert (batches.rows, batches.per_epoch) == (60, 9)
    order = batches.order(0)
    for number in (0, 8):
        batch = batches.batch(order, number)
        chosen = order[number * 7 : number * 7 + 7]
        assert batch["words"].to_lists() == [WORDS[row] for row in chosen]
        assert batch["label"].tolist() == LABEL[chosen].tolist()


def test_a_model_of_sentences_learns_and_is_the_same_saved_and_loaded(tmp_path):
    cost, logits = classifier()
    data = {"words": WORDS, "label": LABEL}
    result = ol.train(cost, data, optimizer=ol.optimizer.Adam(0.02), epochs=40, batch_size=16, validate=data, progress=False)
    assert result.history[-1].training["loss"] < 0.05 < 0.3 < result.history[0].training["loss"]
    assert result.history[-1].validation["loss"] < 0.05
    ol.save_model(logits, result.parameters, tmp_path / "model.safetensors")
    model = ol.load_model(tmp_path / "model.safetensors")
    predicted = ol.infer(model, {"words": WORDS})
    assert (predicted.argmax(1) == LABEL).all()
    assert numpy.array_equal(predicted, ol.infer(model, {"words": ragged(WORDS)}))
    for row, one in zip(WORDS[:8], predicted, strict=False):
        numpy.testing.assert_allclose(ol.infer(model, {"words": [row]})[0], one, rtol=1e-5, atol=1e-6)


def test_a_run_goes_on_bit_for_bit_where_it_stopped(tmp_path):
    cost, _ = classifier()
    data = {"words": ragged(WORDS), "label": LABEL}
    whole = ol.train(cost, data, epochs=2, batch_size=16, progress=False)
    half = ol.train(cost, data, epochs=2, batch_size=16, steps=3, progress=False)
    ol.save_model(half, tmp_path / "half.safetensors")
    rest = ol.train(ol.load_model(tmp_path / "half.safetensors"), {"words": WORDS, "label": LABEL}, progress=False)
    assert rest.steps == whole.steps == 8
    assert all(whole.parameters[name].equal(rest.parameters[name]) for name in whole.parameters)


def test_a_label_for_each_word_is_cut_as_the_words_are():
    with ol.Program(seed=1):
        words = ol.layer.data("words", [], dtype="int64", ragged=1)
        tags = ol.layer.data("tags", [], dtype="int64", batch="words.t")
        cost = ol.layer.mean(ol.layer.softmax_with_cross_entropy(ol.layer.fc(ol.layer.embedding(words, (12, 4)), 2), tags))
    rows = [row for row in WORDS if row]
    parity = [[word % 2 for word in row] for row in rows]
    result = ol.train(cost, {"words": rows, "tags": parity}, optimizer=ol.optimizer.Adam(0.1), epochs=20, batch_size=8, progress=False)
    assert result.history[-1].training["loss"] < 0.1


def test_the_batch_size_counts_sentences_and_the_loss_is_weighed_by_them():
    with ol.Program(seed=1):
        x = ol.layer.data("x", [], ragged=1)
        cost = ol.layer.mean(ol.layer.sequence_pool(x, "sum") * ol.var(1.0, param=True))
    result = ol.train(cost, {"x": [[1.0, 2.0], [], [6.0]]}, optimizer=ol.optimizer.SGD(1e-30), batch_size=2, progress=False)
    assert result.steps == 2
    assert result.history[0].training["loss"] == pytest.approx(3.0, rel=1e-6)


def test_an_input_that_carries_sentences_needs_no_data():
    with ol.Program(seed=1):
        x = ol.layer.data("x", value=ol.Ragged.from_lists([[1.0], [2.0, 3.0]]))
        cost = ol.layer.mean(ol.op.square(ol.layer.sequence_pool(x, "sum") - ol.var(0.0, param=True)))
    result = ol.train(cost, optimizer=ol.optimizer.SGD(0.25), epochs=3, progress=False)
    assert result.history[-1].training["loss"] < result.history[0].training["loss"]


def test_sentences_that_an_input_carries_are_not_shuffled_with_those_of_the_data():
    with ol.Program(seed=1):
        carried = ol.layer.data("carried", value=ol.Ragged.from_lists([[1.0], [2.0, 3.0]]))
        y = ol.layer.data("y", [])
        cost = ol.layer.mean(ol.op.square(ol.layer.sequence_pool(carried, "sum") - y * ol.var(0.0, param=True)))
    with pytest.raises(ol.FeedError) as raised:
        ol.train(cost, {"y": [1.0, 2.0]}, progress=False)
    assert str(raised.value).startswith('the data set has no "carried"')
    assert raised.value.hint == "its stored value cannot be shuffled with the rows: add it to the data set"


def test_a_column_that_an_input_carries_is_not_shuffled_with_the_sentences_of_the_data():
    with ol.Program(seed=1):
        x = ol.layer.data("x", [], ragged=1)
        y = ol.layer.data("y", value=[1.0, 2.0])
        cost = ol.layer.mean(ol.op.square(ol.layer.sequence_pool(x, "sum") - y * ol.var(0.0, param=True)))
    with pytest.raises(ol.FeedError, match='the data set has no "y"'):
        ol.train(cost, {"x": [[1.0], [2.0, 3.0]]}, progress=False)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({"words": WORDS, "label": LABEL[:5]}, "the arrays of the data set have different numbers of rows"),
        ({"label": LABEL}, 'the data set has no "words"'),
        ({"words": [], "label": LABEL[:0]}, "the data set has no rows"),
        ({"words": ragged(WORDS).values, "label": LABEL}, '"words": row 0 is int64'),
        ({"words": WORDS, "label": ragged(WORDS)}, '"label" is not ragged, but a Ragged is fed'),
        ({"words": (ragged(WORDS).to_padded(), LENGTHS[:4]), "label": LABEL}, '"words": 4 lengths do not fit padded rows of shape [60, 5]'),
    ],
    ids=["rows", "missing", "none", "elements", "not ragged", "lengths"],
)
def test_data_that_does_not_fit_is_refused(data, message):
    with pytest.raises(ol.FeedError) as raised:
        ol.train(classifier()[0], data, progress=False)
    assert str(raised.value).startswith(message)
