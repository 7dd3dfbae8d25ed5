"""IfElse over rows that are sequences: a block sees the sequences of its own rows, against PyTorch, row by row."""

import numpy
import pytest
import torch
from tolerances import AUTOGRAD

import oarlock as ol

RANDOM = numpy.random.default_rng(3)


@pytest.fixture(scope="module")
def program():
    """Rows whose z sums to more than 0 run a recurrence over their sequence; the others add up something of theirs."""
    with ol.Program(seed=1) as program:
        x = ol.layer.data("x", shape=[2], dtype="float64", ragged=1)
        z = ol.layer.data("z", shape=[2], dtype="float64")
        w = ol.layer.data("w", shape=[2], dtype="float64", batch=None)
        ie = ol.ifelse()
        with ie.true_block():
            rnn = ol.rnn()
            with rnn.step():
                state = rnn.memory(init=z)
                after = ol.op.tanh(rnn.step_input(x) * w + rnn.previous_memory(state))
                rnn.update_memory(state, after)
                rnn.output(after)
            rnn()
            ie.output(rnn.final_memory(state))
        with ie.false_block():
            ie.output(ol.layer.sequence_pool(ol.op.sqrt(x * x + 1.0), "sum") + z)
        cost = ol.op.reduce_sum(ol.op.square(ie(ol.op.reduce_sum(z, axis=1) > 0)))
        program.targets["cost"] = cost
        for var, gradient in zip((x, z, w), ol.gradients([cost], [x, z, w]), strict=True):
            program.targets[f"d{var.name}"] = gradient
    return program


def reference(sequences, z, w):
    total = torch.zeros((), dtype=torch.float64)
    for sequence, row in zip(sequences, z, strict=True):
        out = row
        if row.sum() > 0:
            for element in sequence:
                out = torch.tanh(element * w + out)
        else:
            out = out + sum((element * element + 1).sqrt() for element in sequence)
        total = total + (out**2).sum()
    return total


@pytest.mark.parametrize(
    ("lengths", "z"),
    [
        ([2, 0, 3], [[1.0, 2.0], [-1.0, -2.0], [0.5, 0.1]]),
        ([1, 4, 2], [[1.0, 1.0], [-1.0, 0.5], [-3.0, 1.0]]),
        ([1, 2], [[1.0, 1.0], [1.0, 1.0]]),
        ([0, 2], [[-1.0, -1.0], [-1.0, -1.0]]),
        ([0, 0], [[1.0, 1.0], [-1.0, -1.0]]),
    ],
)
@pytest.mark.parametrize(
    "executor", [ol.Executor(check=True), ol.Executor(passes=()), ol.Executor()], ids=["interpreter", "plan", "passes"]
)
def test_each_block_sees_the_sequences_of_its_rows(program, executor, lengths, z):
    sequences = [torch.tensor(RANDOM.normal(size=(length, 2)), requires_grad=True) for length in lengths]
    rows, weights = (
        torch.tensor(z, dtype=torch.float64, requires_grad=True),
        torch.tensor([0.3, -0.7], dtype=torch.float64, requires_grad=True),
    )
    expected = reference(sequences, rows, weights)
    found = torch.autograd.grad(expected, [*sequences, rows, weights], allow_unused=True)
    zeros = [
        torch.zeros_like(like) if gradient is None else gradient for gradient, like in zip(found, [*sequences, rows, weights], strict=True)
    ]
    feed = {
        "x": ol.Ragged.from_lengths(torch.cat(sequences).numpy(force=True), numpy.array(lengths)),
        "z": rows.numpy(force=True),
        "w": weights.numpy(force=True),
    }
    cost, dx, dz, dw = executor.run(program, feed, ["cost", "dx", "dz", "dw"], scope=ol.Scope())
    for actual, value in ((cost, expected), (dx, torch.cat(zeros[:-2])), (dz, zeros[-2]), (dw, zeros[-1])):
        numpy.testing.assert_allclose(actual, value.numpy(force=True), rtol=AUTOGRAD[0], atol=AUTOGRAD[1])


def test_without_rows_there_are_no_sequences(program):
    feed = {"x": ol.Ragged.from_lengths(numpy.zeros((0, 2)), numpy.zeros(0, "int64")), "z": numpy.zeros((0, 2)), "w": [1.0, 1.0]}
    cost, dx = ol.Executor().run(program, feed, ["cost", "dx"], scope=ol.Scope())
    assert (cost.item(), dx.shape) == (0.0, (0, 2))


def test_it_is_the_same_program_as_a_file_and_as_text(program):
    assert ol.Program.from_bytes(program.to_bytes()).to_bytes() == program.to_bytes()
    text = program.to_text(source=False)
    assert ol.parse_program(text).to_text(source=False) == text
    assert "row_splits_of x.t.true" in text


# Rows whose elements are sequences


@pytest.fixture(scope="module")
def documents():
    """Documents of a positive z: the words that their sentences are softmaxes of; the others: a recurrence over what sentences sum to."""
    with ol.Program(seed=1) as program:
        words = ol.layer.data("words", shape=[2], dtype="float64", ragged=2)
        z = ol.layer.data("z", shape=[], dtype="float64")
        ie = ol.ifelse()
        with ie.true_block():
            shares = ol.layer.sequence_softmax(words)
            ie.output(ol.layer.sequence_pool(ol.layer.sequence_pool(shares * words, "sum"), "sum"))
        with ie.false_block():
            sentences = ol.layer.sequence_pool(words, "sum")
            start = ol.layer.sequence_pool(sentences, "sum") * 0.0
            rnn = ol.rnn()
            with rnn.step():
                state = rnn.memory(init=start)
                after = ol.op.tanh(rnn.step_input(sentences) + rnn.previous_memory(state))
                rnn.update_memory(state, after)
                rnn.output(after)
            rnn()
            ie.output(rnn.final_memory(state) + ol.layer.sequence_pool(ol.layer.sequence_pool(words * words, "mean"), "mean"))
        cost = ol.op.reduce_sum(ol.op.square(ie(z > 0)))
        program.targets["cost"] = cost
        (program.targets["dwords"],) = ol.gradients([cost], [words])
    return program


def documents_in_pytorch(documents, z):
    """The cost of documents: lists of tensors, a tensor of words for each sentence."""
    total = torch.zeros((), dtype=torch.float64)
    for document, row in zip(documents, z, strict=True):
        if row > 0:
            out = sum((torch.softmax(words, 0) * words).sum(0) for words in document)
        else:
            state = torch.zeros(2, dtype=torch.float64)
            for words in document:
                state = torch.tanh(words.sum(0) + state)
            means = [(words**2).mean(0) if len(words) else torch.zeros(2, dtype=torch.float64) for words in document]
            out = state + (sum(means) / len(means) if means else 0)
        total = total + (torch.as_tensor(out, dtype=torch.float64) ** 2).sum()
    return total


@pytest.mark.parametrize(
    ("lengths", "z"),
    [
        ([[2, 1], [3], [1, 0, 4]], [1.0, -1.0, 2.0]),
        ([[2, 1], [3], [1, 0, 4]], [-1.0, 1.0, -2.0]),
        ([[], [3, 2], [0], [1]], [1.0, 1.0, -1.0, -1.0]),
        ([[1, 2], []], [1.0, -1.0]),
        ([[1, 2], [2]], [-1.0, -1.0]),
        ([], []),
    ],
    ids=str,
)
@pytest.mark.parametrize(
    "executor", [ol.Executor(check=True), ol.Executor(passes=()), ol.Executor()], ids=["interpreter", "plan", "passes"]
)
def test_each_block_sees_the_documents_of_its_rows(documents, executor, lengths, z):
    sentences = [[torch.tensor(RANDOM.normal(size=(length, 2)), requires_grad=True) for length in document] for document in lengths]
    expected = documents_in_pytorch(sentences, z)
    leaves = [words for document in sentences for words in document]
    slopes = torch.autograd.grad(expected, leaves, allow_unused=True) if expected.requires_grad else [None] * len(leaves)
    zeros = [torch.zeros_like(words) if slope is None else slope for slope, words in zip(slopes, leaves, strict=True)]
    empty = torch.zeros(0, 2, dtype=torch.float64)
    feed = {
        "words": torch.cat([empty, *leaves]).numpy(force=True),
        "words.splits.0": numpy.cumsum([0, *map(len, lengths)]),
        "words.splits.1": numpy.cumsum([0, *(length for document in lengths for length in document)]),
        "z": numpy.array(z, "float64"),
    }
    cost, dwords = executor.run(documents, feed, ["cost", "dwords"], scope=ol.Scope())
    numpy.testing.assert_allclose(cost, expected.item(), rtol=AUTOGRAD[0], atol=AUTOGRAD[1])
    numpy.testing.assert_allclose(dwords, torch.cat([empty, *zeros]).numpy(force=True), rtol=AUTOGRAD[0], atol=AUTOGRAD[1])
