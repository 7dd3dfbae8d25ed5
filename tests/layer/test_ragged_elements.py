"""Layers over ragged values whose elements have dimensions of their own, beside PyTorch on one sequence after another."""

import numpy
import pytest
import torch
from tolerances import LAYERS
from torch import nn

import oarlock as ol

LENGTHS = [2, 0, 3, 1]
ELEMENTS = sum(LENGTHS)
TABLE = numpy.random.default_rng(0).normal(size=(5, 3))
SHAPES = [(), (2,), (2, 3)]


def ids_of(shape):
    return numpy.random.default_rng(len(shape)).integers(5, size=(ELEMENTS, *shape))


def values_of(*shape, seed=1):
    return numpy.random.default_rng(seed).normal(size=(ELEMENTS, *shape))


def run(build, *arrays, table=False):
    """Return the value of `build` on ragged values and, with a `table`, the gradient of the sum of its squares with respect to that."""
    with ol.Program() as program:
        names = [f"x{number}" for number in range(len(arrays))]
        given = [
            ol.layer.data(name, list(array.shape[1:]), str(array.dtype), **({"ragged": 1} if name == "x0" else {"batch": "x0.t"}))
            for name, array in zip(names, arrays, strict=True)
        ]
        y = build(*given)
        fetch = [y]
        if table:
            fetch += ol.gradients([ol.op.reduce_sum(y * y)], [program.main.var("table")])
    scope = ol.init(program, ol.Scope())
    if table:
        scope.set("table", TABLE)
    feed = dict(zip(names, [ol.Ragged.from_lengths(arrays[0], LENGTHS), *arrays[1:]], strict=True))
    for executor in (ol.Executor(interpret=True), ol.Executor(passes=()), ol.Executor()):
        found = executor.run(program, feed, fetch, scope=scope)
    return [numpy.asarray(value) for value in found] if table else numpy.asarray(found[0])


def bag(ids, weights=None, **options):
    return ol.layer.embedding_bag(ids, TABLE.shape, weights, dtype="float64", weight=ol.layer.ParameterOptions(name="table"), **options)


def require_bags(found, ids, weights=None, **options):
    """`found`, and the gradient of the table, are those of `nn.EmbeddingBag`, a bag in each row of `ids` or in each sequence of them."""
    table = torch.tensor(TABLE, requires_grad=True)
    if ids.ndim == 1:
        splits = torch.tensor([0, *numpy.cumsum(LENGTHS)[:-1]])
        expected = nn.functional.embedding_bag(torch.tensor(ids), table, splits, per_sample_weights=weights, **options)
    else:
        bags = torch.tensor(ids).reshape(-1, ids.shape[-1])
        weights = None if weights is None else weights.reshape(bags.shape)
        expected = nn.functional.embedding_bag(bags, table, per_sample_weights=weights, **options).reshape(*ids.shape[:-1], 3)
    expected.square().sum().backward()
    value, gradient = found
    numpy.testing.assert_allclose(value, expected.detach().numpy(), *LAYERS)
    numpy.testing.assert_allclose(gradient, table.grad.numpy(), *LAYERS)


@pytest.mark.parametrize("mode", ["mean", "sum", "max"])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_a_bag_is_the_last_axis_of_ragged_ids_and_a_sequence_where_they_have_no_other(shape, mode):
    ids = ids_of(shape)
    require_bags(run(lambda x: bag(x, mode=mode), ids, table=True), ids, mode=mode)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_weights_of_ragged_bags_are_those_of_pytorch(shape):
    ids, weights = ids_of(shape), values_of(*shape)
    found = run(lambda x, w: bag(x, w, mode="sum"), ids, weights, table=True)
    require_bags(found, ids, torch.tensor(weights), mode="sum")


@pytest.mark.parametrize("mode", ["mean", "sum", "max"])
@pytest.mark.parametrize("shape", SHAPES[1:], ids=str)
def test_a_padding_id_does_not_count_in_ragged_bags_of_their_own_axis(shape, mode):
    ids = ids_of(shape)
    ids[1] = 0  # a bag of nothing else
    require_bags(run(lambda x: bag(x, mode=mode, padding_index=0), ids, table=True), ids, mode=mode, padding_idx=0)


def test_bags_of_ragged_ids_are_ragged_like_them():
    with ol.Program() as program:
        pairs = ol.layer.data("pairs", [2], dtype="int64", ragged=1)
        letters = ol.layer.data("letters", [], dtype="int64", ragged=2)
        words = ol.layer.embedding_bag(pairs, (5, 3))
        sentences = ol.layer.sequence_pool(words, "mean")
        spelled = ol.layer.embedding_bag(letters, (5, 3))
    assert [var.type_text for var in (words, sentences, spelled)] == ["float32[pairs.t, 3]", "float32[n, 3]", "float32[letters.s1, 3]"]
    assert program.main.splits_of(words.shape[0]) is program.main.var("pairs.splits")


def sequences(x):
    return numpy.split(x, numpy.cumsum(LENGTHS)[:-1])


def pooled(x, pool):
    return numpy.stack([pool(part) if len(part) else numpy.zeros(x.shape[1:]) for part in sequences(x)])


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_layers_of_sequences_take_elements_of_any_dimensions(shape):
    x, longest = values_of(*shape), max(LENGTHS)
    pools = {
        "sum": lambda p: p.sum(0),
        "mean": lambda p: p.mean(0),
        "max": lambda p: p.max(0),
        "first": lambda p: p[0],
        "last": lambda p: p[-1],
    }
    for pool, function in pools.items():
        numpy.testing.assert_allclose(run(lambda v, pool=pool: ol.layer.sequence_pool(v, pool), x), pooled(x, function), *LAYERS)
    softmax = numpy.concatenate([torch.softmax(torch.tensor(part), 0).numpy() for part in sequences(x)])
    numpy.testing.assert_allclose(run(ol.layer.sequence_softmax, x), softmax, *LAYERS)
    padded = numpy.stack([numpy.concatenate([part, numpy.zeros((longest - len(part), *shape))]) for part in sequences(x)])
    numpy.testing.assert_array_equal(run(ol.layer.sequence_pad, x), padded)
    numpy.testing.assert_array_equal(run(lambda v: ol.layer.sequence_unpad(ol.layer.sequence_pad(v), v), x), x)
    twice = numpy.concatenate([numpy.concatenate([part, part]) for part in sequences(x)])
    numpy.testing.assert_array_equal(run(lambda v: ol.layer.sequence_concat(v, v), x), twice)
    spread = numpy.repeat(pooled(x, pools["sum"]), LENGTHS, axis=0)
    numpy.testing.assert_allclose(run(lambda v: ol.layer.sequence_expand(ol.layer.sequence_pool(v, "sum"), v), x), spread, *LAYERS)
    assert run(ol.layer.sequence_lengths, x).tolist() == LENGTHS


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_layers_of_rows_take_ragged_ids_and_labels_of_any_dimensions(shape):
    ids, logits = ids_of(shape), values_of(*shape, 5)
    found, gradient = run(
        lambda x: ol.layer.embedding(x, TABLE.shape, dtype="float64", weight=ol.layer.ParameterOptions(name="table")), ids, table=True
    )
    table = torch.tensor(TABLE, requires_grad=True)
    expected = nn.functional.embedding(torch.tensor(ids), table)
    expected.square().sum().backward()
    numpy.testing.assert_array_equal(found, expected.detach().numpy())
    numpy.testing.assert_allclose(gradient, table.grad.numpy(), *LAYERS)
    numpy.testing.assert_array_equal(run(lambda x: ol.layer.one_hot(x, 5), ids), nn.functional.one_hot(torch.tensor(ids), 5))
    labels = run(lambda x, v: ol.layer.accuracy(v, x), ids, logits)
    numpy.testing.assert_allclose(labels, (logits.argmax(-1) == ids).mean(), rtol=1e-6)
    loss = run(lambda x, v: ol.layer.mean(ol.op.softmax_with_cross_entropy(v, x)), ids, logits)
    expected = nn.functional.cross_entropy(torch.tensor(logits).reshape(-1, 5), torch.tensor(ids).reshape(-1))
    numpy.testing.assert_allclose(loss, expected.numpy(), *LAYERS)


@pytest.mark.parametrize("layer", ["lstm", "gru", "simple_rnn"])
def test_recurrent_layers_refuse_ragged_elements_of_two_dimensions(layer):
    with ol.Program():
        x = ol.layer.data("x", [2, 3], ragged=1)
        with pytest.raises(ol.ShapeError, match=rf'^{layer}: "x" is not a sequence of rows'):
            getattr(ol.layer, layer)(x, 4)
