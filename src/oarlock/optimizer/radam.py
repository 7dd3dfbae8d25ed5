"""RAdam."""

from typing import Unpack

from oarlock.ir.dtype import DType
from oarlock.ir.var import Var
from oarlock.op.choice import maximum, where
from oarlock.op.composed.arithmetic import constant_like
from oarlock.op.dtype_conversion import cast
from oarlock.op.unary import sqrt, square
from oarlock.optimizer.optimizer import Optimizer, Options
from oarlock.optimizer.schedule.schedule import LearningRate
from oarlock.optimizer.step import Step
from oarlock.registry.range_check import require_number

__all__ = ["RAdam"]


class RAdam(Optimizer):
    """The RAdam optimizer: Adam that starts with momentum steps until the variance is known (Liu et al., 2020, algorithm 2).

    The first steps are ``w' = w - learning_rate m' / (1 - beta1**t)``. As soon as ``rho(t) = rho - 2 t beta2**t / (1 - beta2**t)`` exceeds
    5, with ``rho = 2 / (1 - beta2) - 1``, the step is multiplied by ``sqrt((rho(t) - 4) (rho(t) - 2) rho / ((rho - 4) (rho - 2) rho(t)))
    sqrt(1 - beta2**t) / (sqrt(v') + epsilon)``. Raises ArgumentError unless the betas are in [0, 1).
    """

    def __init__(
        self,
        learning_rate: LearningRate = 1e-3,
        *,
        beta1: float = 0.9,
        beta2: float = 0.999,
        epsilon: float = 1e-8,
        **options: Unpack[Options],
    ):
        super().__init__(learning_rate, **options)
        self.beta1 = require_number("RAdam: beta1", beta1, least=0.0, below=1.0)
        self.beta2 = require_number("RAdam: beta2", beta2, least=0.0, below=1.0)
        self.epsilon = require_number("RAdam: epsilon", epsilon, least=0.0)

    def update(self, step: Step, parameter: Var, gradient: Var) -> None:
        moment1, moment2 = step.state(parameter, "MOMENT1"), step.state(parameter, "MOMENT2")
        first = self.beta1 * moment1 + (1.0 - self.beta1) * gradient
        second = self.beta2 * moment2 + (1.0 - self.beta2) * square(gradient)
        known, limit = step.correction(self.beta2), 2.0 / (1.0 - self.beta2) - 1.0
        rho = limit - 2.0 * cast(step.count, dtype=DType.FLOAT64) * step.power(self.beta2) / known
        is_known = rho > 5.0
        kept = maximum(rho, constant_like(5.0, rho))  # keeps the unused root real while rho is at most 5
        factor = sqrt((kept - 4.0) * (kept - 2.0) * limit / ((limit - 4.0) * (limit - 2.0) * kept) * known)
        adapted = cast(factor, dtype=first.dtype) / (sqrt(second) + self.epsilon)
        rectified = first * where(is_known, adapted, constant_like(1.0, adapted))
        step.descend(parameter, rectified, step.learning_rate / step.correction(self.beta1))
        step.commit(moment1, first)
        step.commit(moment2, second)
