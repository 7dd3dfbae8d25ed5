"""Losses that a model is trained on, and metrics by which it is judged."""

from oarlock.ir.var import Var
from oarlock.layer.parameter import require_number
from oarlock.op import loss
from oarlock.op.composed import class_losses
from oarlock.op.composed.loss_reduction import warn_of_broadcast
from oarlock.op.dtype_conversion import cast
from oarlock.op.elementwise import multiply, neg, subtract
from oarlock.op.reduction import mean, reduce_sum
from oarlock.op.selection import one_hot
from oarlock.op.unary import log, square
from oarlock.registry.creator import require_type

__all__ = ["accuracy", "cross_entropy", "cross_entropy_of_probabilities", "mse", "softmax_with_cross_entropy"]


def softmax_with_cross_entropy(logits: Var, label: Var, *, ignore_index: int = -100) -> Var:
    """Cross entropy of softmax(logits) against class ids, a number per row: float[*b k], int64[*b] -> float[*b].

    Rows labelled `ignore_index` give 0. A label that is no class makes the run raise KernelError.

        losses = ol.layer.softmax_with_cross_entropy(rows, label)
    """
    return loss.softmax_with_cross_entropy(logits, label, ignore_index=ignore_index)


def cross_entropy(
    logits: Var,
    label: Var,
    weight: Var | None = None,
    *,
    ignore_index: int = -100,
    label_smoothing: float = 0.0,
    reduction: str = "mean",
) -> Var:
    """The mean of `softmax_with_cross_entropy` over the rows that are not labelled `ignore_index`, one number: a cost.

    It is PyTorch's, with the classes in the last axis: NaN if every row is ignored. `weight` counts each class as much, float[k];
    `label_smoothing` spreads a share of each target over all classes; `reduction` is "mean", "sum" or "none". Floats as labels are a
    probability for each class. It is `ol.op.cross_entropy` with `axis=-1`, and raises as that does.

        cost = ol.layer.cross_entropy(rows, label)
    """
    return class_losses.cross_entropy(
        logits, label, weight, ignore_index=ignore_index, label_smoothing=label_smoothing, reduction=reduction, axis=-1
    )


def cross_entropy_of_probabilities(p: Var, label: Var) -> Var:
    """The mean of ``-log p[label]``, one number: a cost of what is a probability already, float[*b k], int64[*b] -> float[].

    The rows need not add up to 1: sigmoids will do. Of a probability that is 0 it is infinite, where `cross_entropy`, which takes
    logits, is not; that one is the one to train by. Raises ShapeError where the number of classes is no number.

        cost = ol.layer.cross_entropy_of_probabilities(ol.layer.softmax(rows), label)
    """
    p, label = require_type(p, "cross_entropy_of_probabilities: p"), require_type(label, "cross_entropy_of_probabilities: label")
    classes = require_number(p.shape, -1, "cross_entropy_of_probabilities", p)
    chosen = reduce_sum(multiply(p, cast(one_hot(label, depth=classes), dtype=p.dtype)), axis=-1)
    return neg(mean(log(chosen)))


def mse(x: Var, y: Var) -> Var:
    """The mean of ``(x - y)**2`` over all elements, one number: a cost.

    cost = ol.layer.mse(ol.layer.fc(rows, 8), rows)
    """
    warn_of_broadcast("mse", x, y)
    return mean(square(subtract(x, y)))


def accuracy(predict: Var, label: Var, *, ignore_index: int = -100) -> Var:
    """The share of rows whose largest entry is at `label`: float[*b k], int64[*b] -> float32[].

    Rows labelled `ignore_index` are not counted; NaN if every row is ignored.

        y = ol.layer.accuracy(rows, label)
    """
    return loss.accuracy(predict, label, ignore_index=ignore_index)
