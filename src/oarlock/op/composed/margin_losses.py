"""Losses with a margin, as in PyTorch and Keras: a score, a distance or an order that is right by the margin costs nothing."""

from collections.abc import Callable
from functools import partial

from oarlock.errors import ShapeError
from oarlock.ir.location import here
from oarlock.ir.size import Shape
from oarlock.ir.var import Var
from oarlock.op.activation import relu
from oarlock.op.along_axis import take_along_axis
from oarlock.op.choice import minimum, where
from oarlock.op.comparison import equal, less, not_equal
from oarlock.op.composed.distances import pairwise_distance
from oarlock.op.composed.loss_reduction import reduced, writing_loss
from oarlock.op.composed.shape import known_shape, unsqueeze
from oarlock.op.cumulative import cumsum
from oarlock.op.dtype_conversion import cast
from oarlock.op.elementwise import add, clip, divide, multiply, neg, subtract
from oarlock.op.indexing import gather
from oarlock.op.logical import any_, logical_and
from oarlock.op.loss import negative_log_likelihood
from oarlock.op.powers import power
from oarlock.op.reduction import mean, reduce_sum
from oarlock.op.smooth_activation import log_sigmoid
from oarlock.op.told_shape import arange
from oarlock.op.unary import sqrt, square
from oarlock.registry.creator import require_type

__all__ = [
    "cosine_embedding_loss",
    "hinge_embedding_loss",
    "hinge_loss",
    "margin_ranking_loss",
    "multi_margin_loss",
    "multilabel_margin_loss",
    "multilabel_soft_margin_loss",
    "soft_margin_loss",
    "squared_hinge_loss",
    "triplet_margin_loss",
    "triplet_margin_with_distance_loss",
]

_NO_CLASS = -(2**63)  # so that no label is ignored


def _signs(target: Var, x: Var) -> Var:
    """Return a target of 1 and -1 in the dtype of ``x``."""
    target = require_type(target, "the target")
    return target if target.dtype is x.dtype else cast(target, dtype=x.dtype)


def _above(x: Var, margin: float) -> Var:
    """Return ``max(0, margin + x)``, with a gradient of 1 at 0, as in PyTorch."""
    return clip(add(x, margin), 0.0)


# Two classes, 1 and -1


def hinge_loss(x: Var, target: Var, *, margin: float = 1.0, reduction: str = "mean") -> Var:
    """``max(0, margin - target x)`` for targets of 1 and -1 (Vapnik, 1995)."""
    with writing_loss("hinge_loss", x, reduction):
        return reduced(_above(neg(multiply(_signs(target, x), x)), margin), reduction)


def squared_hinge_loss(x: Var, target: Var, *, margin: float = 1.0, reduction: str = "mean") -> Var:
    """The square of each `hinge_loss`."""
    with writing_loss("squared_hinge_loss", x, reduction):
        return reduced(square(_above(neg(multiply(_signs(target, x), x)), margin)), reduction)


def soft_margin_loss(x: Var, target: Var, *, reduction: str = "mean") -> Var:
    """``log(1 + exp(-target x))`` for targets of 1 and -1, computed stably."""
    with writing_loss("soft_margin_loss", x, reduction):
        return reduced(neg(log_sigmoid(multiply(_signs(target, x), x))), reduction)


# Pairs: similar or not, or ordered


def hinge_embedding_loss(x: Var, target: Var, *, margin: float = 1.0, reduction: str = "mean") -> Var:
    """The distance ``x`` if the target is 1, ``max(0, margin - x)`` if it is -1 (Hadsell, Chopra and LeCun, 2006)."""
    with writing_loss("hinge_embedding_loss", x, reduction):
        far = where(not_equal(target, 1), _above(neg(x), margin), 0.0)
        return reduced(add(where(not_equal(target, -1), x, 0.0), far), reduction)


def margin_ranking_loss(x: Var, y: Var, target: Var, *, margin: float = 0.0, reduction: str = "mean") -> Var:
    """``max(0, margin - target (x - y))``: ``x`` should rank higher if the target is 1, ``y`` if it is -1."""
    with writing_loss("margin_ranking_loss", x, reduction):
        return reduced(_above(neg(multiply(_signs(target, x), subtract(x, y))), margin), reduction)


def cosine_embedding_loss(x: Var, y: Var, target: Var, *, margin: float = 0.0, reduction: str = "mean") -> Var:
    """``1 - cosine`` for similar rows, target 1; ``max(0, cosine - margin)`` for others, target -1.

    float[n d], float[n d] and a target [n], or two vectors and a scalar. 1e-12 is added to each squared length.
    """
    with writing_loss("cosine_embedding_loss", x, reduction):
        along = reduce_sum(multiply(x, y), axis=-1)
        lengths = (add(reduce_sum(square(each), axis=-1), 1e-12) for each in (x, y))
        cosine = divide(along, sqrt(multiply(*lengths)))
        similar = where(equal(target, 1), add(neg(cosine), 1.0), 0.0)
        other = where(equal(target, -1), _above(cosine, -margin), 0.0)
        return reduced(add(similar, other), reduction)


# Triplets


def triplet_margin_loss(
    anchor: Var,
    positive: Var,
    negative: Var,
    *,
    margin: float = 1.0,
    order: float = 2.0,
    epsilon: float = 1e-6,
    swap: bool = False,
    reduction: str = "mean",
) -> Var:
    """`triplet_margin_with_distance_loss` with the `pairwise_distance` of the given order and epsilon: float[*b d] three times."""
    distance = partial(pairwise_distance, order=order, epsilon=epsilon)
    return triplet_margin_with_distance_loss(anchor, positive, negative, distance=distance, margin=margin, swap=swap, reduction=reduction)


def triplet_margin_with_distance_loss(
    anchor: Var,
    positive: Var,
    negative: Var,
    *,
    distance: Callable[[Var, Var], Var] = pairwise_distance,
    margin: float = 1.0,
    swap: bool = False,
    reduction: str = "mean",
) -> Var:
    """``max(0, margin + distance(anchor, positive) - distance(anchor, negative))`` (Schroff, Kalenichenko and Philbin, 2015).

    With ``swap``, the distance of the negative is the smaller of those to the anchor and to the positive (Balntas et al., 2016).
    """
    with writing_loss("triplet_margin_loss", anchor, reduction):
        near, far = distance(anchor, positive), distance(anchor, negative)
        if swap:
            far = minimum(far, distance(positive, negative))
        return reduced(_above(subtract(near, far), margin), reduction)


# Several classes


def multi_margin_loss(
    x: Var, label: Var, weight: Var | None = None, *, order: int = 1, margin: float = 1.0, reduction: str = "mean"
) -> Var:
    """The sum over the other classes of ``max(0, margin - x[label] + x[i])**order``, divided by the number of classes.

    float[*b k], int64[*b]. Each row is weighted by the ``weight``, float[k], of its class (Crammer and Singer, 2001).
    """
    with writing_loss("multi_margin_loss", x, reduction):
        short = relu(add(add(x, unsqueeze(negative_log_likelihood(x, label, ignore_index=_NO_CLASS), -1)), margin))
        each = short if order == 1 else square(short) if order == 2 else power(short, float(order))
        if weight is not None:
            each = multiply(each, unsqueeze(gather(weight, label), -1))
        others = not_equal(unsqueeze(label, -1), arange([x], stop=(_classes(x, "multi_margin_loss")[-1],)))
        return reduced(mean(where(others, each, 0.0), axis=-1), reduction)


def multilabel_margin_loss(x: Var, label: Var, *, reduction: str = "mean") -> Var:
    """The sum of ``max(0, 1 - x[label] + x[i])`` over all labels and all other classes i, divided by the number of classes.

    float[*b k], int64[*b k]. A row of labels ends at its first negative number. A label that is not a class raises KernelError.
    """
    with writing_loss("multilabel_margin_loss", x, reduction):
        classes = arange([x], stop=(_classes(x, "multilabel_margin_loss")[-1],))
        ended = cumsum(cast(less(label, 0), dtype="int64"), axis=-1)
        counted = equal(ended, 0)
        own = where(counted, label, 0)
        labelled = any_(logical_and(unsqueeze(counted, -1), equal(unsqueeze(own, -1), classes)), axis=-2)
        short = relu(add(subtract(unsqueeze(x, -2), unsqueeze(take_along_axis(x, own, axis=-1), -1)), 1.0))
        pairs = logical_and(unsqueeze(counted, -1), unsqueeze(equal(cast(labelled, dtype="int64"), 0), -2))
        return reduced(mean(reduce_sum(where(pairs, short, 0.0), axis=-2), axis=-1), reduction)


def multilabel_soft_margin_loss(x: Var, target: Var, weight: Var | None = None, *, reduction: str = "mean") -> Var:
    """The mean over the classes of the binary cross entropy of ``sigmoid(x)``, times the ``weight`` of each class: float[*b k] twice."""
    with writing_loss("multilabel_soft_margin_loss", x, reduction):
        signed = _signs(target, x)
        loss = neg(add(multiply(signed, log_sigmoid(x)), multiply(add(neg(signed), 1.0), log_sigmoid(neg(x)))))
        return reduced(mean(loss if weight is None else multiply(loss, weight), axis=-1), reduction)


def _classes(x: Var, what: str) -> Shape:
    """Return the shape of ``x``, which must have an axis of classes. Raises ShapeError."""
    shape = known_shape(x, what)
    if not shape:
        raise ShapeError(f'{what}: "{x.name}" has no axis of classes', location=here(), given=[x.describe()])
    return shape
