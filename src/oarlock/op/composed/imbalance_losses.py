"""Losses for imbalanced classes: focal losses, and losses of the overlap of two masks."""

from oarlock.errors import ShapeError
from oarlock.ir.location import here
from oarlock.ir.var import Var
from oarlock.op.activation import log_softmax, sigmoid
from oarlock.op.composed.class_losses import nll_loss, rows_of_classes
from oarlock.op.composed.loss_reduction import reduced, require_one_shape, writing_loss
from oarlock.op.composed.losses import binary_cross_entropy_with_logits
from oarlock.op.composed.shape import known_shape
from oarlock.op.elementwise import add, divide, multiply, neg, subtract
from oarlock.op.powers import power
from oarlock.op.reduction import reduce_sum
from oarlock.op.unary import exp

__all__ = ["dice_loss", "focal_loss", "iou_loss", "sigmoid_focal_loss"]

Axes = int | tuple[int, ...] | None


def sigmoid_focal_loss(x: Var, target: Var, *, alpha: float | None = 0.25, gamma: float = 2.0, reduction: str = "mean") -> Var:
    """Focal loss of logits: binary cross entropy times ``(1 - p)**gamma``, with ``p`` the probability of the true class.

    Positive targets are weighted by ``alpha``, negative ones by ``1 - alpha``; neither if ``alpha`` is None (Lin et al., 2017).
    """
    with writing_loss("sigmoid_focal_loss", x, reduction):
        target = require_one_shape("sigmoid_focal_loss", x, target)
        p = sigmoid(x)
        missed = add(multiply(p, subtract(1.0, target)), multiply(subtract(1.0, p), target))
        loss = multiply(binary_cross_entropy_with_logits(x, target, reduction="none"), power(missed, gamma))
        if alpha is not None:
            loss = multiply(loss, add(multiply(target, 2.0 * alpha - 1.0), 1.0 - alpha))
        return reduced(loss, reduction)


def focal_loss(
    logits: Var,
    label: Var,
    weight: Var | None = None,
    *,
    gamma: float = 2.0,
    ignore_index: int = -100,
    reduction: str = "mean",
    axis: int | None = None,
) -> Var:
    """Focal loss of class ids: `cross_entropy` times ``(1 - p)**gamma``, with ``p`` the probability of the label (Lin et al., 2017).

    Weights, ignored labels, axis and reductions are as in `nll_loss`: a mean is divided by the weights that count.
    """
    with writing_loss("focal_loss", logits, reduction):
        log_p = log_softmax(rows_of_classes(logits, axis))
        weighed = multiply(log_p, power(subtract(1.0, exp(log_p)), gamma))
        return nll_loss(weighed, label, weight, ignore_index=ignore_index, reduction=reduction, axis=-1)


def dice_loss(p: Var, target: Var, *, smooth: float = 1.0, axis: Axes = None, reduction: str = "mean") -> Var:
    """Dice loss of probabilities and a mask: ``1 - (2 sum(p target) + smooth) / (sum(p) + sum(target) + smooth)``.

    Sums are over ``axis``, by default all axes but the first: one number per example (Milletari, Navab and Ahmadi, 2016).
    """
    with writing_loss("dice_loss", p, reduction):
        both, all_ = _overlap(p, target, axis, "dice_loss")
        return reduced(add(neg(divide(add(multiply(both, 2.0), smooth), add(all_, smooth))), 1.0), reduction)


def iou_loss(p: Var, target: Var, *, smooth: float = 1.0, axis: Axes = None, reduction: str = "mean") -> Var:
    """Jaccard loss of probabilities and a mask: ``1 - (sum(p target) + smooth) / (sum(p) + sum(target) - sum(p target) + smooth)``.

    Sums are as in `dice_loss` (Rahman and Wang, 2016).
    """
    with writing_loss("iou_loss", p, reduction):
        both, all_ = _overlap(p, target, axis, "iou_loss")
        return reduced(add(neg(divide(add(both, smooth), add(subtract(all_, both), smooth))), 1.0), reduction)


def _overlap(p: Var, target: Var, axis: Axes, what: str) -> tuple[Var, Var]:
    """Return the sum of the product of two masks, and the sum of both. Raises ShapeError."""
    rank = len(known_shape(p, what))
    if axis is None and rank < 2:
        raise ShapeError(f"{what}: {p.name} has no axis after its examples", location=here(), given=[p.describe()], hint="axis=0")
    over = tuple(range(1, rank)) if axis is None else axis
    return reduce_sum(multiply(p, target), axis=over), add(reduce_sum(p, axis=over), reduce_sum(target, axis=over))
