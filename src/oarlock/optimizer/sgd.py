"""Stochastic gradient descent."""

from typing import Unpack

from oarlock.ir.row_gradient import RowGradient
from oarlock.ir.var import Var
from oarlock.old_names import OLD_ARGUMENTS, takes_old_keywords
from oarlock.op.sparse_update import sparse_sgd
from oarlock.optimizer.optimizer import Optimizer, Options
from oarlock.optimizer.schedule.schedule import LearningRate
from oarlock.optimizer.step import Step

__all__ = ["SGD"]


class SGD(Optimizer):
    """Stochastic gradient descent: ``w' = w - learning_rate * dw`` (Robbins and Monro, 1951)."""

    rests_without_gradient = True
    widens_halves = False

    @takes_old_keywords(OLD_ARGUMENTS)
    def __init__(self, learning_rate: LearningRate = 0.01, **options: Unpack[Options]):
        super().__init__(learning_rate, **options)

    def update(self, step: Step, parameter: Var, gradient: Var) -> None:
        step.descend(parameter, gradient)

    def update_rows(self, step: Step, parameter: Var, gradient: RowGradient) -> None:
        step.commit(parameter, sparse_sgd(parameter, gradient.rows, gradient.values, step.learning_rate))
