"""FTRL."""

from typing import Unpack

from oarlock.ir.var import Var
from oarlock.op.choice import where
from oarlock.op.composed.arithmetic import constant_like
from oarlock.op.dtype_conversion import cast
from oarlock.op.magnitude import abs_, sign
from oarlock.op.unary import sqrt, square
from oarlock.optimizer.optimizer import Optimizer, Options
from oarlock.optimizer.schedule.schedule import LearningRate
from oarlock.optimizer.step import Step
from oarlock.registry.range_check import require_number

__all__ = ["Ftrl"]


class Ftrl(Optimizer):
    """The FTRL-Proximal optimizer, for sparse models (McMahan et al., 2013, algorithm 1).

    ``z' = z + dw - (sqrt(n') - sqrt(n)) / learning_rate w``, with ``n' = n + dw**2``; ``w'`` is 0 if ``abs(z')`` is at most `sparsity`,
    else ``-(z' - sparsity sign(z')) / ((beta + sqrt(n')) / learning_rate + shrinkage)``. `sparsity` and `shrinkage` are lambda 1 and lambda
    2 of the paper. ``n`` starts as `initial_sum`. Raises ArgumentError for a negative argument.
    """

    def __init__(
        self,
        learning_rate: LearningRate = 0.1,
        *,
        sparsity: float = 0.0,
        shrinkage: float = 0.0,
        beta: float = 1.0,
        initial_sum: float = 0.0,
        **options: Unpack[Options],
    ):
        super().__init__(learning_rate, **options)
        self.sparsity = require_number("Ftrl: sparsity", sparsity, least=0.0)
        self.shrinkage = require_number("Ftrl: shrinkage", shrinkage, least=0.0)
        self.beta = require_number("Ftrl: beta", beta, least=0.0)
        self.initial_sum = require_number("Ftrl: initial_sum", initial_sum, least=0.0)

    def update(self, step: Step, parameter: Var, gradient: Var) -> None:
        squares, leader = step.state(parameter, "SQUARES", initial=self.initial_sum), step.state(parameter, "LEADER")
        rate = cast(step.learning_rate, dtype=gradient.dtype)
        following = squares + square(gradient)
        next_leader = leader + gradient - (sqrt(following) - sqrt(squares)) / rate * parameter
        zero, limit = (constant_like(value, leader) for value in (0.0, self.sparsity))
        is_far = abs_(next_leader) > limit
        curvature = (self.beta + sqrt(following)) / rate + self.shrinkage
        moved = (limit * sign(next_leader) - next_leader) / where(is_far, curvature, constant_like(1.0, curvature))
        step.commit(parameter, where(is_far, moved, zero))
        step.commit(squares, following)
        step.commit(leader, next_leader)
