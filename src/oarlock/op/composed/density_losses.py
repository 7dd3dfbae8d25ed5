"""Negative log likelihoods of distributions with predicted parameters."""

import math

from oarlock.ir.var import Var
from oarlock.op.choice import where
from oarlock.op.comparison import greater, less
from oarlock.op.composed.loss_reduction import reduced, writing_loss
from oarlock.op.composed.shape import known_shape, unsqueeze
from oarlock.op.elementwise import add, divide, multiply, subtract
from oarlock.op.unary import exp, log, square, stop_gradient

__all__ = ["gaussian_nll_loss", "poisson_nll_loss"]


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
