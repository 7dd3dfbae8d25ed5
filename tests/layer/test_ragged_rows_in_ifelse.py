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
    assert "partitions x.t.true" in text
