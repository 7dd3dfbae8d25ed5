"""Stochastic gradient descent."""

from oarlock.ir.variable import Var
from oarlock.op.update import sgd
from oarlock.optimizer.optimizer import Optimizer, Step

__all__ = ["SGD"]


class SGD(Optimizer):
    """``w' = w - rate * dw``."""

    def __init__(self, rate: float | Var = 0.01):
        super().__init__(rate)

    def update(self, step: Step, parameter: Var, gradient: Var) -> None:
        step.commit(parameter, sgd(parameter, gradient, step.rate))
