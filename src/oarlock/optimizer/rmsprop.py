"""RMSProp."""

from typing import Unpack

from oarlock.ir.var import Var
from oarlock.op.unary import sqrt, square
from oarlock.optimizer.optimizer import Optimizer, Options
from oarlock.optimizer.schedule.schedule import LearningRate
from oarlock.optimizer.step import Step
from oarlock.registry.range_check import require_number

__all__ = ["RMSProp"]


class RMSProp(Optimizer):
    """The RMSProp optimizer (Tieleman and Hinton, 2012, lecture 6.5).

    ``s' = rho s + (1 - rho) dw**2``; ``w' = w - learning_rate dw / (sqrt(s') + epsilon)``. `centered` subtracts ``m'**2`` from ``s'``, with
    ``m' = rho m + (1 - rho) dw``, which gives the variance of the gradient (Graves, 2013, equations 38 to 45). With `momentum`, ``b' =
    momentum b + dw / (sqrt(s') + epsilon)`` is multiplied by the rate instead. Raises ArgumentError for a negative argument.
    """

    def __init__(
        self,
        learning_rate: LearningRate = 0.01,
        *,
        rho: float = 0.99,
        momentum: float = 0.0,
        centered: bool = False,
        epsilon: float = 1e-8,
        **options: Unpack[Options],
    ):
        super().__init__(learning_rate, **options)
        self.rho = require_number("RMSProp: rho", rho, least=0.0)
        self.momentum = require_number("RMSProp: momentum", momentum, least=0.0)
        self.epsilon = require_number("RMSProp: epsilon", epsilon, least=0.0)
        self.centered = bool(centered)

    def update(self, step: Step, parameter: Var, gradient: Var) -> None:
        squares = step.state(parameter, "SQUARES")
        following = spread = self.rho * squares + (1.0 - self.rho) * square(gradient)
        if self.centered:
            mean = step.state(parameter, "MEAN")
            next_mean = self.rho * mean + (1.0 - self.rho) * gradient
            step.commit(mean, next_mean)
            spread = following - square(next_mean)
        direction = gradient / (sqrt(spread) + self.epsilon)
        if self.momentum:
            velocity = step.state(parameter, "VELOCITY")
            direction = self.momentum * velocity + direction
            step.commit(velocity, direction)
        step.descend(parameter, direction)
        step.commit(squares, following)
