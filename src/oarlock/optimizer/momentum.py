"""Momentum."""

from typing import Unpack

from oarlock.ir.var import Var
from oarlock.old_names import OLD_ARGUMENTS, takes_old_keywords
from oarlock.op.choice import where
from oarlock.op.comparison import equal
from oarlock.op.composed.arithmetic import constant_like
from oarlock.op.dtype_conversion import cast
from oarlock.op.elementwise import add, multiply
from oarlock.op.update import momentum
from oarlock.optimizer.optimizer import Optimizer, Options
from oarlock.optimizer.schedule.schedule import LearningRate
from oarlock.optimizer.step import Step
from oarlock.registry.range_check import require_number

__all__ = ["Momentum"]


class Momentum(Optimizer):
    """SGD with momentum (Polyak, 1964; Sutskever et al., 2013, equations 1 to 4).

    ``v' = mu v + (1 - dampening) dw``; ``w' = w - learning_rate v'``, or with `nesterov` ``w - learning_rate (dw + mu v')``. The first
    velocity is the gradient, without dampening, as in `torch.optim.SGD`. Raises ArgumentError for a negative `mu`.
    """

    widens_halves = False

    @takes_old_keywords(OLD_ARGUMENTS)
    def __init__(
        self,
        learning_rate: LearningRate = 0.01,
        mu: float = 0.9,
        *,
        nesterov: bool = False,
        dampening: float = 0.0,
        **options: Unpack[Options],
    ):
        super().__init__(learning_rate, **options)
        self.mu = require_number("Momentum: mu", mu, least=0.0)
        self.dampening = require_number("Momentum: dampening", dampening)
        self.nesterov = bool(nesterov)

    def update(self, step: Step, parameter: Var, gradient: Var) -> None:
        velocity = step.state(parameter, "VELOCITY")
        if not self.dampening:
            following, next_velocity = momentum(parameter, gradient, velocity, step.learning_rate, mu=self.mu, nesterov=self.nesterov)
            step.commit(parameter, following)
            step.commit(velocity, next_velocity)
            return
        is_first = equal(step.count, constant_like(1, step.count))
        share = where(is_first, *(constant_like(value, step.learning_rate) for value in (1.0, 1.0 - self.dampening)))
        faster = add(multiply(velocity, constant_like(self.mu, velocity)), multiply(gradient, cast(share, dtype=gradient.dtype)))
        step.descend(parameter, add(gradient, multiply(faster, constant_like(self.mu, faster))) if self.nesterov else faster)
        step.commit(velocity, faster)
