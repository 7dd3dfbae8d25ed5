"""Adadelta."""

from typing import Unpack

from oarlock.ir.var import Var
from oarlock.op.unary import sqrt, square
from oarlock.optimizer.optimizer import Optimizer, Options
from oarlock.optimizer.schedule.schedule import LearningRate
from oarlock.optimizer.step import Step
from oarlock.registry.range_check import require_number

__all__ = ["Adadelta"]


class Adadelta(Optimizer):
    """The Adadelta optimizer (Zeiler, 2012, algorithm 1).

    ``s' = rho s + (1 - rho) dw**2``; ``d = sqrt(u + epsilon) / sqrt(s' + epsilon) dw``; ``u' = rho u + (1 - rho) d**2``; ``w' = w -
    learning_rate d``. The paper has no learning rate: it is 1 by default. Raises ArgumentError unless `rho` is in [0, 1].
    """

    def __init__(self, learning_rate: LearningRate = 1.0, *, rho: float = 0.9, epsilon: float = 1e-6, **options: Unpack[Options]):
        super().__init__(learning_rate, **options)
        self.rho = require_number("Adadelta: rho", rho, least=0.0, most=1.0)
        self.epsilon = require_number("Adadelta: epsilon", epsilon, least=0.0)

    def update(self, step: Step, parameter: Var, gradient: Var) -> None:
        squares, steps = step.state(parameter, "SQUARES"), step.state(parameter, "SQUARED_STEPS")
        following = self.rho * squares + (1.0 - self.rho) * square(gradient)
        direction = gradient * (sqrt(steps + self.epsilon) / sqrt(following + self.epsilon))
        step.descend(parameter, direction)
        step.commit(squares, following)
        step.commit(steps, self.rho * steps + (1.0 - self.rho) * square(direction))
