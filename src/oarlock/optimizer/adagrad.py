"""Adagrad."""

from typing import Unpack

from oarlock.ir.dtype import DType
from oarlock.ir.var import Var
from oarlock.op.dtype_conversion import cast
from oarlock.op.unary import sqrt, square
from oarlock.optimizer.optimizer import Optimizer, Options
from oarlock.optimizer.schedule.schedule import LearningRate
from oarlock.optimizer.step import Step
from oarlock.registry.range_check import require_number

__all__ = ["Adagrad"]


class Adagrad(Optimizer):
    """The Adagrad optimizer (Duchi, Hazan and Singer, 2011, figure 1).

    ``s' = s + dw**2``; ``w' = w - learning_rate / (1 + (t - 1) rate_decay) dw / (sqrt(s') + epsilon)``, in step ``t`` from 1. ``s`` starts
    as `initial_sum`. Raises ArgumentError for a negative argument.
    """

    rests_without_gradient = True

    def __init__(
        self,
        learning_rate: LearningRate = 0.01,
        *,
        rate_decay: float = 0.0,
        initial_sum: float = 0.0,
        epsilon: float = 1e-10,
        **options: Unpack[Options],
    ):
        super().__init__(learning_rate, **options)
        self.rate_decay = require_number("Adagrad: rate_decay", rate_decay, least=0.0)
        self.initial_sum = require_number("Adagrad: initial_sum", initial_sum, least=0.0)
        self.epsilon = require_number("Adagrad: epsilon", epsilon, least=0.0)

    def update(self, step: Step, parameter: Var, gradient: Var) -> None:
        squares = step.state(parameter, "SQUARES", initial=self.initial_sum)
        following = squares + square(gradient)
        rate = step.learning_rate
        if self.rate_decay:
            rate = rate / (1.0 + self.rate_decay * (cast(step.count, dtype=DType.FLOAT64) - 1.0))
        step.descend(parameter, gradient / (sqrt(following) + self.epsilon), rate)
        step.commit(squares, following)
