"""IfElse over the elements of sequences: a block sees, of each sequence, the elements that take it, and row splits that cut these."""

import numpy
import pytest
import torch
from tolerances import AUTOGRAD

import oarlock as ol

RANDOM = numpy.random.default_rng(5)
EXECUTORS = [ol.Executor(check=True), ol.Executor(passes=()), ol.Executor()]


def targets(program, cost, *vars):
    program.targets["cost"] = cost
    for var, gradient in zip(vars, ol.gradients([cost], vars), strict=True):
        program.targets[f"d{var.name}"] = gradient
    return program


@pytest.fixture(scope="module")
def pooled():
    """Positive elements become their share of the positive ones of their sequence, the others take something of their sequence's row."""
    with ol.Program(seed=1) as program:
        x = ol.layer.data("x", shape=[2], dtype="float64", ragged=1)
        z = ol.layer.data("z", shape=[2], dtype="float64")
        ie = ol.ifelse()
        with ie.true_block():
            ie.output(x / (ol.layer.sequence_expand(ol.layer.sequence_pool(ol.op.square(x), "sum"), x) + 1.0))
        with ie.false_block():
            ie.output(x * ol.layer.sequence_expand(z, x))
        y = ie(ol.op.reduce_sum(x, axis=1) > 0)
        return targets(program, ol.op.reduce_sum(ol.op.square(y)), x, z)


def pooled_reference(sequences, z):
    total = torch.zeros((), dtype=torch.float64)
    for sequence, row in zip(sequences, z, strict=True):
        positive = [element for element in sequence if element.sum() > 0]
        pool = sum(element**2 for element in positive) + 1.0
        for element in sequence:
            total = total + ((element / pool if element.sum() > 0 else element * row) ** 2).sum()
    return total


@pytest.fixture(scope="module")
def nested():
    """Inside the branch of the positive elements, sequences take two branches: what is left of each is stepped through or scaled."""
    with ol.Program(seed=1) as program:
        x = ol.layer.data("x", shape=[2], dtype="float64", ragged=1)
        z = ol.layer.data("z", shape=[2], dtype="float64")
        outer = ol.ifelse()
        with outer.true_block():
            inner = ol.ifelse()
            with inner.true_block():
                rnn = ol.rnn()
                with rnn.step():
                    state = rnn.memory(init=z)
                    rnn.update_memory(state, ol.op.tanh(rnn.step_input(x) + rnn.previous_memory(state)))
                    rnn.output(rnn.previous_memory(state))
                rnn()
                inner.output(rnn.final_memory(state))
            with inner.false_block():
                inner.output(ol.layer.sequence_pool(x, "sum") * z)
            outer.output(x * ol.layer.sequence_expand(inner(ol.op.reduce_sum(z, axis=1) > 0), x))
        with outer.false_block():
            outer.output(-x)
        y = outer(ol.op.reduce_sum(x, axis=1) > 0)
        return targets(program, ol.op.reduce_sum(ol.op.square(y)), x, z)


def nested_reference(sequences, z):
    total = torch.zeros((), dtype=torch.float64)
    for sequence, row in zip(sequences, z, strict=True):
        positive = [element for element in sequence if element.sum() > 0]
        if row.sum() > 0:
            scale = row
            for element in positive:
                scale = torch.tanh(element + scale)
        else:
            scale = sum(positive) * row if positive else row * 0
        for element in sequence:
            total = total + ((element * scale if element.sum() > 0 else -element) ** 2).sum()
    return total


@pytest.mark.parametrize("lengths", [[4, 0, 3, 5], [1, 6, 2, 2], [0, 0, 0, 0]])
@pytest.mark.parametrize("executor", EXECUTORS, ids=["interpreter", "plan", "passes"])
@pytest.mark.parametrize(("name", "reference"), [("pooled", pooled_reference), ("nested", nested_reference)])
def test_a_block_sees_the_sequences_of_its_elements(request, name, reference, executor, lengths):
    program = request.getfixturevalue(name)
    sequences = [torch.tensor(RANDOM.normal(size=(length, 2)), requires_grad=True) for length in lengths]
    z = torch.tensor(RANDOM.normal(size=(len(lengths), 2)) + numpy.array([[2.0], [-2.0], [2.0], [-2.0]]), requires_grad=True)
    expected = reference(sequences, z)
    found = torch.autograd.grad(expected, [*sequences, z], allow_unused=True) if expected.requires_grad else [None] * (len(lengths) + 1)
    gradients = [torch.zeros_like(v) if gradient is None else gradient for gradient, v in zip(found, [*sequences, z], strict=True)]
    feed = {
        "x": ol.Ragged.from_lengths(torch.cat(sequences).numpy(force=True), numpy.array(lengths)),
        "z": z.numpy(force=True),
    }
    cost, dx, dz = executor.run(program, feed, ["cost", "dx", "dz"], scope=ol.Scope())
    for actual, value in ((cost, expected), (dx, torch.cat(gradients[:-1])), (dz, gradients[-1])):
        numpy.testing.assert_allclose(actual, value.numpy(force=True), rtol=AUTOGRAD[0], atol=AUTOGRAD[1])


def test_row_splits_that_are_whole_are_those_of_all_elements():
    with ol.Program() as program:
        x = ol.layer.data("x", shape=[], dtype="float64", ragged=1)
        splits = program.main.splits_of(x.shape[0])
        ie = ol.ifelse()
        with ie.true_block():
            counts = ol.op.sequence_lengths(ie.whole(splits))
            ie.output(x * ol.op.reduce_sum(ol.op.cast(counts, dtype="float64")))
        with ie.false_block():
            ie.output(x)
        y = ie(x > 0.0)
    assert ol.Executor().run(program, {"x": [[1.0, -1.0], [2.0]]}, [y], scope=ol.Scope())[0].tolist() == [3.0, -1.0, 6.0]


def test_it_is_the_same_program_as_a_file_and_as_text(nested):
    assert ol.Program.from_bytes(nested.to_bytes()).to_bytes() == nested.to_bytes()
    text = nested.to_text(source=False)
    assert ol.parse_program(text).to_text(source=False) == text


def test_rows_of_sequences_are_refused_where_a_step_sees_other_rows():
    """In a step of a ragged loop, a row is one that still has a step; its number among these is not that of its sequence."""
    with ol.Program() as program:
        x = ol.layer.data("x", shape=[], dtype="float64", ragged=1)
        z = ol.layer.data("z", shape=[], dtype="float64")
        rnn = ol.rnn()
        with rnn.step():
            state = rnn.memory(init=z)
            step = rnn.step_input(x)
            ie = ol.ifelse()
            with ie.true_block():
                ie.output(ol.layer.sequence_pool(rnn.whole(x), "sum"))
            with ie.false_block():
                ie.output(z)
            rnn.update_memory(state, ie(step > rnn.previous_memory(state)))
            rnn.output(state.previous)
        with pytest.raises(ol.errors.ShapeError, match="like has rnn_0.rows rows, but splits has n sequences"):
            rnn()
    assert not program.main.ops
