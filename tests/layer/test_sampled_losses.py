"""Losses of very many classes: against their formulas at the same samples, and what is drawn against its distribution."""

import math

import numpy
import pytest
import torch
from tolerances import AUTOGRAD, LAYERS, MOMENTS
from torch.nn import functional as F

import oarlock as ol

ROWS, WIDTH, CLASSES = 4, 3, 7
LABEL, SAMPLES = [0, 6, 2, 2], [1, 2, 0, 1, 5]


def tensors(classes: int = CLASSES) -> list[torch.Tensor]:
    generator = torch.Generator().manual_seed(1)
    shapes = ((ROWS, WIDTH), (classes, WIDTH), (classes,))
    return [torch.randn(shape, generator=generator, dtype=torch.float64).requires_grad_() for shape in shapes]


def log_expected(ids: list[int], sampler: str) -> torch.Tensor:
    """How often each class is expected among the samples, by the distribution of the sampler, as a logarithm."""
    probability = {
        "uniform": lambda k: 1 / CLASSES,
        "log_uniform": lambda k: math.log((k + 2) / (k + 1)) / math.log(CLASSES + 1),
    }[sampler]
    return torch.tensor([math.log(len(SAMPLES) * probability(k)) for k in ids], dtype=torch.float64)


def nce(x, weight, bias, sampler):
    true = (x * weight[LABEL]).sum(-1) + bias[LABEL] - log_expected(LABEL, sampler)
    sampled = x @ weight[SAMPLES].T + bias[SAMPLES] - log_expected(SAMPLES, sampler)
    ones, zeros = torch.ones_like(true), torch.zeros_like(sampled)
    of_label = F.binary_cross_entropy_with_logits(true, ones, reduction="none")
    return of_label + F.binary_cross_entropy_with_logits(sampled, zeros, reduction="none").sum(-1)


def sampled_softmax(x, weight, bias, sampler):
    """For each row, the classes that are left once samples that are its label are taken out."""
    losses = []
    for row, label in zip(x, LABEL, strict=True):
        ids = [label, *(sample for sample in SAMPLES if sample != label)]
        logits = weight[ids] @ row + bias[ids] - log_expected(ids, sampler)
        losses.append(F.cross_entropy(logits, torch.tensor(0)))
    return torch.stack(losses)


@pytest.mark.parametrize("sampler", ["log_uniform", "uniform"])
@pytest.mark.parametrize(("ours", "formula"), [(ol.op.nce_loss, nce), (ol.op.sampled_softmax_loss, sampled_softmax)])
def test_a_loss_against_samples_is_its_formula_at_the_same_samples(ours, formula, sampler: str):
    given = tensors()
    expected = formula(*given, sampler)
    weight = torch.arange(1.0, ROWS + 1).double()
    with ol.Program() as program:
        inputs = [ol.layer.data(f"x{number}", list(each.shape), "float64", batch=None) for number, each in enumerate(given)]
        label, samples = (ol.layer.data(name, [size], "int64", batch=None) for name, size in (("label", ROWS), ("samples", len(SAMPLES))))
        loss = ours(*inputs, label, samples, sampler=sampler)
        cost = ol.op.reduce_sum(ol.op.multiply(loss, ol.layer.data("weight", [ROWS], "float64", batch=None)))
        gradients = ol.gradients(cost, inputs)
    feed = {f"x{number}": each.detach() for number, each in enumerate(given)} | {"label": LABEL, "samples": SAMPLES, "weight": weight}
    found = ol.Executor().run(program, feed, [loss, *gradients], scope=ol.Scope(), return_numpy=False)
    wanted = [expected.detach(), *torch.autograd.grad((expected * weight).sum(), given)]
    torch.testing.assert_close(found, wanted, rtol=AUTOGRAD[0], atol=AUTOGRAD[1])


@pytest.mark.parametrize("classes", [2, 5, 8])
def test_a_tree_shares_out_one_among_all_classes(classes: int):
    x, weight, bias = (each.detach() for each in tensors(classes - 1))
    with ol.Program() as program:
        inputs = [ol.layer.data(f"x{number}", list(each.shape), "float64", batch=None) for number, each in enumerate((x, weight, bias))]
        label = ol.layer.data("label", [ROWS], "int64", batch=None)
        loss = ol.op.hierarchical_softmax_loss(*inputs, label)
    feed = {"x0": x, "x1": weight, "x2": bias}
    executor = ol.Executor()
    each = [executor.run(program, {**feed, "label": [k] * ROWS}, [loss], scope=ol.Scope())[0] for k in range(classes)]
    numpy.testing.assert_allclose(numpy.exp(-numpy.stack(each)).sum(0), 1.0, *LAYERS)
    logits = x @ weight.T + bias
    last = classes - 1  # its path: the node, and whether it is the right child
    path, node = [], classes - 1 + last
    while node:
        path.append(((node - 1) // 2, node % 2 == 0))
        node = (node - 1) // 2
    expected = -sum(F.logsigmoid(logits[:, at] if right else -logits[:, at]) for at, right in path)
    numpy.testing.assert_allclose(each[last], expected, *LAYERS)


@pytest.mark.parametrize("sampler", ["log_uniform", "uniform"])
def test_samples_are_drawn_as_often_as_their_sampler_says(sampler: str):
    draw = {"log_uniform": ol.op.log_uniform_samples, "uniform": ol.op.uniform_samples}[sampler]
    count = 20000
    with ol.Program(seed=2) as program:
        drawn = draw(count, CLASSES)
    (found,) = ol.Executor().run(program, {}, [drawn], scope=ol.init(program, ol.Scope()))
    expected = numpy.exp(log_expected(list(range(CLASSES)), sampler).numpy()) / len(SAMPLES)
    spread = numpy.sqrt(expected * (1 - expected) / count)
    assert (abs(numpy.bincount(found, minlength=CLASSES) / count - expected) < MOMENTS * spread).all()


@pytest.mark.parametrize("layer", [ol.layer.nce, ol.layer.sampled_softmax, ol.layer.hierarchical_softmax])
def test_a_layer_learns_classes_and_draws_anew_in_each_run(layer):
    kind = layer.__name__
    options = {} if kind == "hierarchical_softmax" else {"samples": 6}
    with ol.Program(seed=3) as program:
        x, label = ol.layer.data("x", [8]), ol.layer.data("label", [], "int64")
        loss = layer(x, label, 8, **options, name="out")
        ol.optimizer.Adam(0.1).minimize(ol.op.mean(loss))
    scope, executor = ol.init(program, ol.Scope()), ol.Executor()
    rows = numpy.random.default_rng(0).permutation(8)
    feed = {"x": numpy.eye(8, dtype="float32"), "label": rows}
    losses = [executor.run(program, feed, [loss], scope=scope)[0] for _ in range(100)]
    assert losses[-1].mean() < losses[0].mean() / 3
    if options:
        drawn = [executor.run(program, feed, ["out.samples"], scope=scope)[0].tolist() for _ in range(3)]
        assert len({tuple(each) for each in drawn}) == 3
        logits = feed["x"] @ numpy.asarray(scope["out.w"]).T + numpy.asarray(scope["out.b"])
        assert (logits.argmax(-1) == rows).all()


MISFITS = {
    "sampler": (
        lambda x, y, number: ol.layer.nce(x, y, 7, sampler="log-uniform"),
        "no sampler is called 'log-uniform'",
        'did you mean "log_uniform"?',
    ),
    "samples": (lambda x, y, number: ol.layer.nce(x, y, 7, samples=0), "nce: samples must be an integer >= 1, not 0", None),
    "classes": (
        lambda x, y, number: ol.layer.hierarchical_softmax(x, y, 1),
        "hierarchical_softmax: classes - 1 must be an integer >= 1, not 0",
        None,
    ),
    "rows": (lambda x, y, number: ol.layer.sampled_softmax(number, y, 7), "sampled_softmax: number has too few dimensions", None),
}


@pytest.mark.parametrize("what", MISFITS)
def test_misfits_are_said_and_leave_nothing_behind(what: str):
    write, message, hint = MISFITS[what]
    with ol.Program() as program:
        given = ol.layer.data("x", [3]), ol.layer.data("y", [], "int64"), ol.layer.data("number", [], batch=None)
        before = len(program.main.vars)
        with pytest.raises((ol.ShapeError, ol.ArgumentError)) as caught:
            write(*given)
        assert (caught.value.message, caught.value.hint) == (message, hint)
        assert (program.main.ops, len(program.main.vars)) == ([], before)
