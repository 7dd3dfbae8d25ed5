"""Lion."""

from typing import Unpack

from oarlock.ir.var import Var
from oarlock.op.magnitude import sign
from oarlock.optimizer.optimizer import Optimizer, Options
from oarlock.optimizer.schedule.schedule import LearningRate
from oarlock.optimizer.step import Step
from oarlock.registry.range_check import require_number

__all__ = ["Lion"]


class Lion(Optimizer):
    """The Lion optimizer: steps by the sign of a momentum (Chen et al., 2023, algorithm 2).

    ``w' = w - learning_rate sign(beta1 m + (1 - beta1) dw)``; ``m' = beta2 m + (1 - beta2) dw``. Weight decay is decoupled by default.
    Raises ArgumentError unless the betas are in [0, 1).
    """

    decoupled_weight_decay = True

    def __init__(self, learning_rate: LearningRate = 1e-4, *, beta1: float = 0.9, beta2: float = 0.99, **options: Unpack[Options]):
        super().__init__(learning_rate, **options)
        self.beta1 = require_number("Lion: beta1", beta1, least=0.0, below=1.0)
        self.beta2 = require_number("Lion: beta2", beta2, least=0.0, below=1.0)

    def update(self, step: Step, parameter: Var, gradient: Var) -> None:
        moment = step.state(parameter, "MOMENT1")
        step.descend(parameter, sign(self.beta1 * moment + (1.0 - self.beta1) * gradient))
        step.commit(moment, self.beta2 * moment + (1.0 - self.beta2) * gradient)
