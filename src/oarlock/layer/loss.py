"""Common losses, and accuracy."""

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
    """Return the cross entropy of softmax(logits) against class ids, one number per row: float[*b k], int64[*b] -> float[*b].

    Rows labelled `ignore_index` yield 0. A label that is not a class makes the run raise KernelError.

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
    """Return the mean cross entropy of softmax(logits) against class ids, as one number; rows labelled `ignore_index` are excluded.

    It matches PyTorch's with the classes in the last dimension: NaN if every row is ignored. `weight`, float[k], scales the loss of each
    class; `label_smoothing` spreads that fraction of each target over all classes; `reduction` is "mean", "sum" or "none". Floating-point
    labels are probabilities of the classes. It is `ol.op.cross_entropy` with `axis=-1`, and raises as that does.

        cost = ol.layer.cross_entropy(rows, label)
    """
    return class_losses.cross_entropy(
        logits, label, weight, ignore_index=ignore_index, label_smoothing=label_smoothing, reduction=reduction, axis=-1
    )


def cross_entropy_of_probabilities(p: Var, label: Var) -> Var:
    """Return the mean of ``-log p[label]`` for class probabilities, as one number: float[*b k], int64[*b] -> float[].

    The rows need not sum to 1, so sigmoids are allowed. A probability of 0 makes it infinite; prefer `cross_entropy`, which takes logits
    and stays finite, for training. Raises ShapeError if the number of classes is not a number.

        cost = ol.layer.cross_entropy_of_probabilities(ol.layer.softmax(rows), label)
    """
    p, label = require_type(p, "cross_entropy_of_probabilities: p"), require_type(label, "cross_entropy_of_probabilities: label")
    classes = require_number(p.shape, -1, "cross_entropy_of_probabilities", p)
    chosen = reduce_sum(multiply(p, cast(one_hot(label, depth=classes), dtype=p.dtype)), axis=-1)
    return neg(mean(log(chosen)))


def mse(x: Var, y: Var) -> Var:
    """Return the mean of ``(x - y)**2`` over all elements, as one number.

    cost = ol.layer.mse(ol.layer.fc(rows, 8), rows)
    """
    warn_of_broadcast("mse", x, y)
    return mean(square(subtract(x, y)))


def accuracy(predict: Var, label: Var, *, ignore_index: int = -100) -> Var:
    """Return the fraction of rows whose largest entry is at `label`: float[*b k], int64[*b] -> float32[].

    Rows labelled `ignore_index` are not counted; NaN if every row is ignored.

        y = ol.layer.accuracy(rows, label)
    """
    return loss.accuracy(predict, label, ignore_index=ignore_index)
