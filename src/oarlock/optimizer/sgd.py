"""Stochastic gradient descent."""

from oarlock.ir.var import Var
from oarlock.old_names import OLD_ARGUMENTS, takes_old_keywords
from oarlock.op.update import sgd
from oarlock.optimizer.optimizer import Optimizer, Step

__all__ = ["SGD"]


class SGD(Optimizer):
    """``w' = w - learning_rate * dw``."""

    @takes_old_keywords(OLD_ARGUMENTS)
    def __init__(self, learning_rate: float | Var = 0.01):
        super().__init__(learning_rate)

    def update(self, step: Step, parameter: Var, gradient: Var) -> None:
        step.commit(parameter, sgd(parameter, gradient, step.learning_rate))
