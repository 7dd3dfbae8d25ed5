"""Adamax."""

from typing import Unpack

from oarlock.ir.var import Var
from oarlock.op.choice import maximum
from oarlock.op.magnitude import abs_
from oarlock.optimizer.optimizer import Optimizer, Options
from oarlock.optimizer.schedule.schedule import LearningRate
from oarlock.optimizer.step import Step
from oarlock.registry.range_check import require_number

__all__ = ["Adamax"]


class Adamax(Optimizer):
    """The Adamax optimizer: Adam with the infinity norm (Kingma and Ba, 2015, algorithm 2).

    ``m' = beta1 m + (1 - beta1) dw``; ``u' = max(beta2 u, abs(dw) + epsilon)``; ``w' = w - learning_rate / (1 - beta1**t) m' / u'``, in
    step ``t`` from 1. Raises ArgumentError unless the betas are in [0, 1).
    """

    def __init__(
        self,
        learning_rate: LearningRate = 2e-3,
        *,
        beta1: float = 0.9,
        beta2: float = 0.999,
        epsilon: float = 1e-8,
        **options: Unpack[Options],
    ):
        super().__init__(learning_rate, **options)
        self.beta1 = require_number("Adamax: beta1", beta1, least=0.0, below=1.0)
        self.beta2 = require_number("Adamax: beta2", beta2, least=0.0, below=1.0)
        self.epsilon = require_number("Adamax: epsilon", epsilon, least=0.0)

    def update(self, step: Step, parameter: Var, gradient: Var) -> None:
        moment, largest = step.state(parameter, "MOMENT1"), step.state(parameter, "LARGEST")
        next_moment = self.beta1 * moment + (1.0 - self.beta1) * gradient
        next_largest = maximum(self.beta2 * largest, abs_(gradient) + self.epsilon)
        step.descend(parameter, next_moment / next_largest, step.learning_rate / step.correction(self.beta1))
        step.commit(moment, next_moment)
        step.commit(largest, next_largest)
