"""Losses composed of operators, as defined by PyTorch: one number per example, or their sum or mean."""

import math

from oarlock.ir.var import Var
from oarlock.op.choice import where
from oarlock.op.comparison import equal, greater, less
from oarlock.op.composed.arithmetic import constant_like
from oarlock.op.composed.loss_reduction import reduced, require_above, require_one_shape, warn_of_broadcast, writing_loss
from oarlock.op.composed.shape import known_shape, unsqueeze
from oarlock.op.dtype_conversion import cast
from oarlock.op.elementwise import add, clip, divide, multiply, subtract
from oarlock.op.loss import log_loss
from oarlock.op.magnitude import abs_
from oarlock.op.reduction import mean, reduce_sum
from oarlock.op.smooth_activation import log_sigmoid
from oarlock.op.told_shape import size
from oarlock.op.unary import exp, log, square, stop_gradient

__all__ = [
    "binary_cross_entropy",
    "binary_cross_entropy_with_logits",
    "gaussian_nll_loss",
    "huber_loss",
    "kl_div",
    "l1_loss",
    "mse_loss",
    "poisson_nll_loss",
    "smooth_l1_loss",
]


def mse_loss(x: Var, y: Var, *, reduction: str = "mean") -> Var:
    """The squared error, ``(x - y)**2``, with broadcasting."""
    with writing_loss("mse_loss", x, reduction):
        warn_of_broadcast("mse_loss", x, y)
        return reduced(square(subtract(x, y)), reduction)


def l1_loss(x: Var, y: Var, *, reduction: str = "mean") -> Var:
    """The absolute error, ``|x - y|``, with broadcasting. The gradient of equal elements is 0."""
    with writing_loss("l1_loss", x, reduction):
        warn_of_broadcast("l1_loss", x, y)
        return reduced(abs_(subtract(x, y)), reduction)


def huber_loss(x: Var, y: Var, *, reduction: str = "mean", delta: float = 1.0) -> Var:
    """Huber loss: ``(x - y)**2 / 2`` up to a difference of ``delta``, then ``delta (|x - y| - delta / 2)`` (Huber, 1964)."""
    delta = require_above("huber_loss: delta", delta)
    with writing_loss("huber_loss", x, reduction):
        warn_of_broadcast("huber_loss", x, y)
        return reduced(_huber(abs_(subtract(x, y)), delta), reduction)


def _huber(size: Var, bound: float) -> Var:
    """Return ``size**2 / 2`` up to a bound, then ``bound (size - bound / 2)``, whose slope is the bound even at infinity."""
    held = clip(size, upper=constant_like(bound, size))
    return multiply(held, subtract(size, multiply(held, constant_like(0.5, size))))


def smooth_l1_loss(x: Var, y: Var, *, reduction: str = "mean", beta: float = 1.0) -> Var:
    """``(x - y)**2 / (2 beta)`` up to a difference of ``beta``, then ``|x - y| - beta / 2`` (Girshick, 2015);
    `l1_loss` if ``beta`` is 0.
    """
    beta = require_above("smooth_l1_loss: beta", beta, or_equal=True)
    if beta == 0.0:
        return l1_loss(x, y, reduction=reduction)
    with writing_loss("smooth_l1_loss", x, reduction):
        warn_of_broadcast("smooth_l1_loss", x, y)
        return reduced(multiply(_huber(abs_(subtract(x, y)), beta), constant_like(1.0 / beta, x)), reduction)


def kl_div(x: Var, target: Var, *, reduction: str = "mean", log_target: bool = False) -> Var:
    """Kullback-Leibler divergence, ``target (log(target) - x)``, with log probabilities ``x``.

    "batchmean" divides the sum by the rows of ``x``. With `log_target`, the target is log probabilities, too.
    """
    with writing_loss("kl_div", x, reduction, "batchmean"):
        if log_target:
            loss = multiply(exp(target), subtract(target, x))
        else:
            nothing = equal(target, constant_like(0.0, target))
            entropy = multiply(target, log(where(nothing, constant_like(1.0, target), target)))
            loss = subtract(entropy, multiply(target, x))
        if reduction != "batchmean":
            return reduced(loss, reduction)
        if x.shape is not None and loss.shape is not None and x.shape[:1] != loss.shape[:1]:  # PyTorch divides by the rows of x
            return divide(reduce_sum(loss), cast(size(x), dtype=loss.dtype))
        each = reduce_sum(loss, axis=tuple(range(1, len(loss.shape or ())))) if len(loss.shape or ()) > 1 else loss
        return mean(each)


def binary_cross_entropy(p: Var, target: Var, weight: Var | None = None, *, reduction: str = "mean") -> Var:
    """Binary cross entropy of probabilities and targets from 0 to 1, as in `log_loss`, times a weight, which is broadcast."""
    with writing_loss("binary_cross_entropy", p, reduction):
        loss = log_loss(p, target)
        return reduced(loss if weight is None else multiply(loss, weight), reduction)


def binary_cross_entropy_with_logits(
    x: Var, target: Var, weight: Var | None = None, positive_weight: Var | None = None, *, reduction: str = "mean"
) -> Var:
    """Binary cross entropy between ``sigmoid(x)`` and ``target``, computed stably.

    The loss of positive targets is multiplied by ``positive_weight``; it and ``weight`` are broadcast.
    """
    with writing_loss("binary_cross_entropy_with_logits", x, reduction):
        target = require_one_shape("binary_cross_entropy_with_logits", x, target)
        one = constant_like(1.0, x)
        likely = log_sigmoid(x)
        if positive_weight is not None:
            likely = multiply(likely, multiply(subtract(positive_weight, one), target) + one)
        loss = subtract(multiply(subtract(one, target), x), likely)
        return reduced(loss if weight is None else multiply(loss, weight), reduction)


def poisson_nll_loss(
    x: Var, target: Var, *, log_input: bool = True, full: bool = False, epsilon: float = 1e-8, reduction: str = "mean"
) -> Var:
    """Poisson negative log likelihood: ``exp(x) - target x`` for a log rate ``x``, ``x - target log(x + epsilon)`` for a rate.

    ``full`` adds Stirling's approximation of ``log(target!)``, ``target log(target) - target + log(2 pi target) / 2``, for targets above 1.
    """
    with writing_loss("poisson_nll_loss", x, reduction):
        loss = subtract(exp(x), multiply(target, x)) if log_input else subtract(x, multiply(target, log(add(x, epsilon))))
        if full:
            counted = greater(target, 1.0)
            count = where(counted, target, 1.0)
            factorial = add(subtract(multiply(count, log(count)), count), multiply(log(multiply(count, 2.0 * math.pi)), 0.5))
            loss = add(loss, where(counted, factorial, 0.0))
        return reduced(loss, reduction)


def gaussian_nll_loss(x: Var, target: Var, variance: Var, *, full: bool = False, epsilon: float = 1e-6, reduction: str = "mean") -> Var:
    """Gaussian negative log likelihood: ``(log(variance) + (x - target)**2 / variance) / 2`` (Nix and Weigend, 1994).

    ``full`` adds ``log(2 pi) / 2``. The variance has the shape of ``x``, or lacks its last axis, or has size 1 along it. It is raised to at
    least ``epsilon``, but still receives its gradient.
    """
    with writing_loss("gaussian_nll_loss", x, reduction):
        if len(known_shape(variance, "gaussian_nll_loss")) == len(known_shape(x, "gaussian_nll_loss")) - 1:
            variance = unsqueeze(variance, -1)
        lacking = where(less(variance, epsilon), subtract(epsilon, variance), 0.0)
        spread = add(variance, stop_gradient(lacking))
        loss = multiply(add(log(spread), divide(square(subtract(x, target)), spread)), 0.5)
        return reduced(add(loss, 0.5 * math.log(2.0 * math.pi)) if full else loss, reduction)
