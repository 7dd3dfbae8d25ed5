"""Losses of sequences: CTC against PyTorch's, conditional random fields against the sum over all sequences of labels there are."""

import itertools

import pytest
import torch
from tolerances import AUTOGRAD, LAYERS
from torch.nn import functional as F

import oarlock as ol

LENGTHS, LABEL_LENGTHS = [9, 5, 3, 0, 1], [3, 2, 2, 0, 1]
LABELS = [[1, 1, 2], [3, 2], [2, 2], [], [4]]
"""The third has no alignment: two equal labels need a blank between them, and two more steps."""


def run(program: ol.Program, feed: dict, fetch: list) -> list[torch.Tensor]:
    return ol.Executor().run(program, feed, fetch, scope=ol.init(program, ol.Scope()), return_numpy=False)


def close(found, expected, tolerance=AUTOGRAD) -> None:
    torch.testing.assert_close(found, expected, rtol=tolerance[0], atol=tolerance[1])


def padded_labels(fill: int = 0) -> torch.Tensor:
    return torch.tensor([[*row, *[fill] * (3 - len(row))] for row in LABELS])


def logits() -> torch.Tensor:
    return torch.randn(5, 9, 6, generator=torch.Generator().manual_seed(3), dtype=torch.float64)


@pytest.mark.parametrize("reduction", ["none", "sum", "mean"])
@pytest.mark.parametrize("ragged", [True, False])
def test_ctc_is_that_of_pytorch(ragged: bool, reduction: str):
    x = logits().requires_grad_()
    counts = [torch.tensor(each) for each in (LENGTHS, LABEL_LENGTHS)]
    theirs = F.ctc_loss(F.log_softmax(x, -1).transpose(0, 1), padded_labels(), *counts, reduction=reduction, zero_infinity=True)
    (expected,) = torch.autograd.grad(theirs.sum(), x)
    with ol.Program() as program:
        if ragged:
            given, labels = ol.layer.data("x", [6], "float64", ragged=1), ol.layer.data("labels", [], "int64", ragged=1)
            loss = ol.layer.ctc_loss(ol.op.log_softmax(given), labels, zero_infinity=True, reduction=reduction)
            rows = [row[:count] for row, count in zip(x.detach(), LENGTHS, strict=True)]
            feed = {"x": (torch.cat(rows), LENGTHS), "labels": LABELS}
        else:
            given, labels = ol.layer.data("x", ["w", 6], "float64"), ol.layer.data("labels", ["s"], "int64")
            lengths, label_lengths = (ol.layer.data(name, [], "int64") for name in ("lengths", "label_lengths"))
            loss = ol.layer.ctc_loss(ol.op.log_softmax(given), labels, lengths=lengths, label_lengths=label_lengths, zero_infinity=True,
                                     reduction=reduction)  # fmt: skip
            feed = {"x": x.detach(), "labels": padded_labels(), "lengths": LENGTHS, "label_lengths": LABEL_LENGTHS}
        found = ol.gradients(ol.op.reduce_sum(loss) if reduction == "none" else loss, [given])
    value, gradient = run(program, feed, [loss, *found])
    close(value, theirs.detach())
    close(gradient, torch.cat([row[:count] for row, count in zip(expected, LENGTHS, strict=True)]) if ragged else expected)


def test_ctc_of_whole_rows_needs_no_lengths_and_takes_another_blank():
    x, labels = logits(), torch.tensor([[1, 1], [0, 2], [2, 1], [3, 4], [4, 0]])
    with ol.Program() as program:
        given, label = ol.layer.data("x", [9, 6], "float64"), ol.layer.data("label", [2], "int64")
        loss = ol.layer.ctc_loss(ol.op.log_softmax(given), label, blank=5, reduction="none")
    steps = torch.full((5,), 9), torch.full((5,), 2)
    close(run(program, {"x": x, "label": labels}, [loss])[0], F.ctc_loss(F.log_softmax(x, -1).transpose(0, 1), labels, *steps, 5, "none"))


def test_labels_without_an_alignment_cost_infinitely_and_move_nothing():
    with ol.Program() as program:
        given, label = ol.layer.data("x", [2, 3], "float64"), ol.layer.data("label", [2], "int64")
        loss = ol.layer.ctc_loss(ol.op.log_softmax(given), label, reduction="none")
        gradient = ol.gradients(loss, [given])
    value, found = run(program, {"x": torch.zeros(1, 2, 3).double(), "label": [[1, 1]]}, [loss, *gradient])
    assert value.tolist() == [torch.inf]
    assert not found.any()


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_ctc_of_half_precision_sums_in_float32(dtype: str):
    x = logits().to(getattr(torch, dtype)) * 4
    with ol.Program() as program:
        given, label = ol.layer.data("x", [9, 6], dtype), ol.layer.data("label", [2], "int64")
        loss = ol.layer.ctc_loss(ol.op.log_softmax(given), label, reduction="none")
    labels = torch.tensor([[1, 2]] * 5)
    expected = F.ctc_loss(F.log_softmax(x, -1).double().transpose(0, 1), labels, torch.full((5,), 9), torch.full((5,), 2), reduction="none")
    close(run(program, {"x": x, "label": labels}, [loss])[0].double(), expected, (1e-2, 1e-2))


# Conditional random fields

COUNTS, K = [3, 0, 1, 4], 3
TAGS = [[0, 2, 1], [], [2], [1, 1, 0, 2]]


def score_of(emissions, tags, transitions, start, end):
    """The score of a sequence of tags, by the definition."""
    if not tags:
        return emissions.sum() * 0.0
    emitted = sum(emissions[at, tag] for at, tag in enumerate(tags))
    return emitted + sum(transitions[a, b] for a, b in itertools.pairwise(tags)) + start[tags[0]] + end[tags[-1]]


def weights() -> dict[str, torch.Tensor]:
    generator = torch.Generator().manual_seed(5)
    shapes = {"emissions": (sum(COUNTS), K), "transitions": (K, K), "start": (K,), "end": (K,)}
    return {name: torch.randn(shape, generator=generator, dtype=torch.float64) for name, shape in shapes.items()}


def enumerated(given: dict[str, torch.Tensor]) -> tuple[torch.Tensor, list[list[int]], torch.Tensor]:
    """The loss of each sequence, its best tags and their score, by all sequences of tags that there are."""
    losses, best, scores = [], [], []
    rest = [given[name] for name in ("transitions", "start", "end")]
    for rows, tags in zip(given["emissions"].split(COUNTS), TAGS, strict=True):
        paths = list(itertools.product(range(K), repeat=len(tags)))
        each = torch.stack([score_of(rows, path, *rest) for path in paths])
        losses.append(torch.logsumexp(each, 0) - score_of(rows, tags, *rest))
        best.append(list(paths[int(each.argmax())]))
        scores.append(each.max())
    return torch.stack(losses), best, torch.stack(scores)


def test_a_conditional_random_field_sums_over_all_sequences_of_labels():
    """Values, gradients with respect to all that it reads, and gradients of these."""
    given = {name: tensor.requires_grad_() for name, tensor in weights().items()}
    leaves = list(given.values())
    losses, best, scores = enumerated(given)
    weight = torch.tensor([1.0, 2.0, 0.5, -1.0], dtype=torch.float64)
    firsts = torch.autograd.grad((losses * weight).sum(), leaves, create_graph=True)
    seconds = torch.autograd.grad(sum((first**2).sum() for first in firsts), leaves)
    with ol.Program() as program:
        data = {name: ol.layer.data(name, list(tensor.shape), "float64", batch=None) for name, tensor in given.items()}
        splits, tags = ol.layer.data("splits", [5], "int64", batch=None), ol.layer.data("tags", [sum(COUNTS)], "int64", batch=None)
        inputs = list(data.values())
        loss = ol.op.crf_loss(data["emissions"], splits, tags, *inputs[1:])
        cost = ol.op.reduce_sum(ol.op.multiply(loss, ol.layer.data("weight", [4], "float64", batch=None)))
        ours = ol.gradients(cost, inputs)
        twice = ol.gradients(ol.op.sum([ol.op.reduce_sum(ol.op.square(each)) for each in ours]), inputs)
        decoded = ol.op.viterbi_decode(data["emissions"], splits, *inputs[1:])
    feed = {name: tensor.detach() for name, tensor in given.items()}
    feed |= {"splits": [0, *itertools.accumulate(COUNTS)], "tags": [tag for row in TAGS for tag in row], "weight": weight}
    value, path, score, *found = run(program, feed, [loss, *decoded, *ours, *twice])
    close(value, losses.detach())
    close(found, [*(each.detach() for each in firsts), *seconds])
    assert path.tolist() == [tag for row in best for tag in row]
    close(score, scores.detach())


@pytest.mark.parametrize("ragged", [True, False])
def test_the_layer_takes_ragged_and_padded_rows_and_shares_its_parameters_with_decoding(ragged: bool):
    given = weights()
    losses, best, scores = enumerated(given)
    widest = max(COUNTS)
    with ol.Program() as program:
        if ragged:
            x = ol.layer.data("x", [K], "float64", ragged=1)
            loss = ol.layer.crf(x, ol.layer.data("tags", [], "int64", batch="x.t"), name="crf")
            path, score = ol.layer.crf_decode(x, name="crf")
            feed = {"x": (given["emissions"], COUNTS), "tags": TAGS}
        else:
            x, lengths = ol.layer.data("x", ["w", K], "float64"), ol.layer.data("lengths", [], "int64")
            loss = ol.layer.crf(x, ol.layer.data("tags", ["w"], "int64"), lengths=lengths, name="crf")
            path, score = ol.layer.crf_decode(x, lengths=lengths, name="crf")
            rows = torch.nn.utils.rnn.pad_sequence(list(given["emissions"].split(COUNTS)), batch_first=True, padding_value=7.0)
            feed = {"x": rows, "lengths": COUNTS, "tags": [[*row, *[0] * (widest - len(row))] for row in TAGS]}
    scope = ol.init(program, ol.Scope())
    for name in ("transitions", "start", "end"):
        scope.var(f"crf.{name}").value = given[name]
    value, tags, best_score = ol.Executor().run(program, feed, [loss, path, score], scope=scope, return_numpy=False)
    close(value, losses, LAYERS)
    close(best_score, scores, LAYERS)
    expected = [tag for row in best for tag in row] if ragged else [[*row, *[0] * (widest - len(row))] for row in best]
    assert tags.tolist() == expected
    assert loss.name == "crf.out"


def test_a_field_learns_which_label_follows_which():
    """Emissions say nothing, and labels alternate: only the transitions can tell."""
    with ol.Program(seed=1) as program:
        x, tags = ol.layer.data("x", [6, 2]), ol.layer.data("tags", [6], "int64")
        cost = ol.op.mean(ol.layer.crf(x, tags, name="crf"))
        path, _ = ol.layer.crf_decode(x, name="crf")
        ol.optimizer.Adam(0.2).minimize(cost)
    scope, feed = ol.init(program, ol.Scope()), {"x": torch.zeros(1, 6, 2), "tags": [[0, 1, 0, 1, 0, 1]]}
    executor = ol.Executor()
    for _ in range(40):
        executor.run(program, feed, [cost], scope=scope)
    loss, found = executor.run(program, feed, [cost, path], scope=scope)
    assert loss < 0.1
    assert found.tolist() == feed["tags"]


MISFITS = {
    "no sequences": (
        lambda x, y: ol.layer.ctc_loss(ol.op.reshape(x, shape=(-1,)), y),
        'ctc_loss: log_p: "reshape_0" is not a batch of sequences',
    ),
    "ragged with lengths": (lambda x, y: ol.layer.crf(x, y, lengths=y), "crf: emissions is ragged and already has lengths"),
    "blank": (lambda x, y: ol.layer.ctc_loss(x, y, blank=4), "ctc_loss: blank 4 is not one of the classes 0 to 3"),
    "reduction": (lambda x, y: ol.layer.ctc_loss(x, y, reduction="means"), "no reduction is called 'means'"),
}


@pytest.mark.parametrize("what", MISFITS)
def test_misfits_are_said_and_leave_nothing_behind(what: str):
    write, message = MISFITS[what]
    with ol.Program() as program:
        x, y = ol.layer.data("x", [4], ragged=1), ol.layer.data("y", [], "int64", ragged=1)
        with pytest.raises((ol.ShapeError, ol.ArgumentError)) as caught:
            write(x, y)
        assert caught.value.message == message
        assert [op.type for op in program.main.ops if op.type != "reshape"] == []
