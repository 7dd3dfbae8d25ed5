"""Momentum."""

from oarlock.ir.var import Var
from oarlock.old_names import OLD_ARGUMENTS, takes_old_keywords
from oarlock.op.update import momentum
from oarlock.optimizer.optimizer import Optimizer, Step

__all__ = ["Momentum"]


class Momentum(Optimizer):
    """``v' = mu v + dw``; ``w' = w - learning_rate v'``, or with `nesterov` ``w - learning_rate (dw + mu v')`` (Sutskever et al., 2013)."""

    @takes_old_keywords(OLD_ARGUMENTS)
    def __init__(self, learning_rate: float | Var = 0.01, mu: float = 0.9, *, nesterov: bool = False):
        super().__init__(learning_rate)
        self.mu = float(mu)
        self.nesterov = nesterov

    def update(self, step: Step, parameter: Var, gradient: Var) -> None:
        velocity = step.state(parameter, "VELOCITY")
        following, next_velocity = momentum(parameter, gradient, velocity, step.learning_rate, mu=self.mu, nesterov=self.nesterov)
        step.commit(parameter, following)
        step.commit(velocity, next_velocity)
