"""What a model is trained on, and how it is judged."""

from oarlock.ir.variable import Var
from oarlock.op import loss
from oarlock.op.elementwise import subtract
from oarlock.op.reduction import mean
from oarlock.op.unary import square

__all__ = ["accuracy", "cross_entropy", "mse", "softmax_with_cross_entropy"]


def softmax_with_cross_entropy(logits: Var, label: Var, *, ignore_index: int = -100) -> Var:
    """Cross entropy of softmax(logits) against class ids, a number per row: float[*b k], int64[*b] -> float[*b].

    Rows labelled `ignore_index` give 0. A label that is no class makes the run raise KernelError.
    """
    return loss.softmax_with_cross_entropy(logits, label, ignore_index=ignore_index)


def cross_entropy(logits: Var, label: Var) -> Var:
    """The mean of `softmax_with_cross_entropy`, one number: a cost."""
    return mean(softmax_with_cross_entropy(logits, label))


def mse(x: Var, y: Var) -> Var:
    """The mean of ``(x - y)**2`` over all elements, one number: a cost."""
    return mean(square(subtract(x, y)))


def accuracy(predict: Var, label: Var) -> Var:
    """The share of rows whose largest entry is at `label`: float[*b k], int64[*b] -> float32[]."""
    return loss.accuracy(predict, label)
