"""Cross entropy means what it means in PyTorch, with the classes on the last axis: every option, label and dtype, beside `functional`."""

from itertools import product

import numpy
import pytest
import torch
from tolerances import LAYERS, MEANS, MIXED_PRECISION
from torch.nn import functional

import oarlock as ol

LABELS = {
    "all count": [[0, 2, 1], [1, 1, 2]],
    "some are ignored": [[0, -100, 1], [-100, 1, 2]],
    "one counts": [[-100, -100, -100], [-100, -100, 2]],
    "none counts": [[-100] * 3] * 2,
}
WEIGHTS = {"": None, "weighted": [0.5, 2.0, 1.5], "of weights of which one is 0": [0.5, 2.0, 0.0]}
X = numpy.random.default_rng(0).normal(size=(2, 3, 3))


def ours(write, x, label, weight, *, interpret=False):
    """The value of a loss, and the gradient of its sum with respect to `x`."""
    feed = {"x": x.numpy(), "label": label.numpy()}
    with ol.Program() as program:
        rows, labels = (
            ol.layer.data(name, value.shape[1:], dtype=str(value.dtype).removeprefix("torch."))
            for name, value in (("x", x), ("label", label))
        )
        if weight is not None:
            feed["weight"], weight = weight.numpy(), ol.layer.data("weight", [3], dtype=rows.dtype, batch=None)
        loss = write(rows, labels, weight)
        total = ol.op.reduce_sum(loss) if loss.shape else loss
        (_, gradient), *_ = ol.append_backward(total, parameters=[rows])
    return ol.Executor(interpret=interpret).run(program, feed, [loss, gradient], scope=ol.Scope())


def theirs(compute, x, label, weight):
    x = x.clone().requires_grad_()
    loss = compute(x.movedim(-1, 1), label.movedim(-1, 1) if label.is_floating_point() else label, weight)
    (gradient,) = torch.autograd.grad(loss.sum(), x)
    return loss.detach(), gradient


def require_as_pytorch(write, compute, label, weight, dtype=torch.float64):
    x, label = torch.tensor(X, dtype=dtype), torch.tensor(label)
    weight = None if weight is None else torch.tensor(weight, dtype=dtype)
    expected = theirs(compute, x, label, weight)
    for interpret in (True, False):
        for found, wanted in zip(ours(write, x, label, weight, interpret=interpret), expected, strict=True):
            numpy.testing.assert_allclose(numpy.asarray(found), wanted.numpy(), rtol=LAYERS[0], atol=LAYERS[1])


@pytest.mark.parametrize("weight", list(WEIGHTS))
@pytest.mark.parametrize("label", list(LABELS))
@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
def test_cross_entropy_is_that_of_pytorch(reduction, label, weight):
    for smoothing, ignored in product((0.0, 0.2), (None, 1)):
        options = {"reduction": reduction, "label_smoothing": smoothing} | ({} if ignored is None else {"ignore_index": ignored})
        labels = numpy.array(LABELS[label])
        labels = labels if ignored is None else numpy.where(labels == -100, ignored, labels)
        require_as_pytorch(
            lambda x, y, w, options=options: ol.layer.cross_entropy(x, y, w, **options),
            lambda x, y, w, options=options: functional.cross_entropy(x, y, w, **options),
            labels,
            WEIGHTS[weight],
        )


@pytest.mark.parametrize("label", list(LABELS))
@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
def test_the_spellings_of_cross_entropy_agree(reduction, label):
    spellings = {
        "op": lambda x, y, w: ol.op.cross_entropy(x, y, reduction=reduction, axis=-1),
        "axis 1": lambda x, y, w: ol.op.cross_entropy(ol.op.transpose(x, axes=(0, 2, 1)), y, reduction=reduction),
        "nll_loss": lambda x, y, w: ol.op.nll_loss(ol.op.log_softmax(x), y, reduction=reduction, axis=-1),
        "layer.nll_loss": lambda x, y, w: ol.layer.nll_loss(ol.layer.log_softmax(x), y, reduction=reduction, axis=-1),
        "fused": lambda x, y, w: ol.op.cross_entropy_loss(x, y, mean=reduction == "mean", count_ignored=False),
        "softmax_with_cross_entropy": lambda x, y, w: ol.layer.softmax_with_cross_entropy(x, y),
    }
    del spellings["fused" if reduction == "none" else "softmax_with_cross_entropy"]
    for write in spellings.values():
        require_as_pytorch(write, lambda x, y, w: functional.cross_entropy(x, y, reduction=reduction), LABELS[label], None)


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
def test_probabilities_as_targets_are_those_of_pytorch(reduction):
    target = numpy.exp(X[::-1]) / numpy.exp(X[::-1]).sum(-1, keepdims=True)
    for smoothing, weight in product((0.0, 0.2), WEIGHTS.values()):
        options = {"reduction": reduction, "label_smoothing": smoothing}
        require_as_pytorch(
            lambda x, y, w, options=options: ol.layer.cross_entropy(x, y, w, **options),
            lambda x, y, w, options=options: functional.cross_entropy(x, y, w, **options),
            target,
            weight,
        )


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32], ids=str)
def test_losses_of_few_digits_are_averaged_in_more(dtype):
    x = ol.layer.data
    rows = 70_000
    with ol.Program() as program:
        logits = ol.op.cast(x("x", [2]), dtype=str(dtype).removeprefix("torch."))
        cost = ol.op.cast(ol.layer.cross_entropy(logits, x("label", [], dtype="int64")), dtype="float32")
    feed = {"x": numpy.tile(numpy.array([0.0, 4.0], "float32"), (rows, 1)), "label": numpy.zeros(rows, "int64")}
    feed["label"][::2] = -100
    for interpret in (True, False):
        (found,) = ol.Executor(interpret=interpret).run(program, feed, [cost], scope=ol.Scope())
        assert float(found) == pytest.approx(4.0181, rel=MIXED_PRECISION)


def test_an_accuracy_counts_the_rows_that_are_not_ignored():
    x = numpy.array([[2, 1], [0, 1], [3, 0], [0, 1], [1, 0]], "float32")
    for label, ignored, expected in (
        ([0, 0, -100, -100, -100], -100, 0.5),
        ([0, 1, 1, 1, 0], -100, 0.8),
        ([0, 1, 1, 1, 0], 0, 2 / 3),
        ([-100] * 5, -100, numpy.nan),
        ([7] * 5, 7, numpy.nan),
    ):
        with ol.Program() as program:
            rows, labels = ol.layer.data("x", [2]), ol.layer.data("label", [], dtype="int64")
            ys = [ol.layer.accuracy(rows, labels, ignore_index=ignored), ol.metric.accuracy(rows, labels, ignore_index=ignored)]
        for interpret in (True, False):
            scope = ol.init(program, ol.Scope())
            found = ol.Executor(interpret=interpret).run(program, {"x": x, "label": numpy.array(label)}, ys, scope=scope)
            numpy.testing.assert_allclose([float(each) for each in found], [expected] * 2, rtol=MEANS[0])


def test_the_default_cross_entropy_and_its_gradient_are_one_op_each():
    with ol.Program() as program:
        rows, label = ol.layer.data("x", [2]), ol.layer.data("label", [], dtype="int64")
        cost = ol.layer.cross_entropy(rows, label)
        (_, gradient), *_ = ol.append_backward(cost, parameters=[rows])
    ops = [line.partition(" = ")[2].partition("(")[0] for line in ol.Executor().plan(program, [cost, gradient]).text.splitlines()]
    kernels = [name for name in ops if name]
    assert len(kernels) == 2, kernels
    assert all(name.startswith("cross_entropy_loss") for name in kernels)
