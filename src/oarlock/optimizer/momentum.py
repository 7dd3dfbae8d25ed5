"""Momentum."""

from oarlock.ir.variable import Var
from oarlock.op.update import momentum
from oarlock.optimizer.optimizer import Optimizer, Step

__all__ = ["Momentum"]


class Momentum(Optimizer):
    """``v' = mu v + dw``; ``w' = w - rate v'``, or with `nesterov` ``w - rate (dw + mu v')`` (Sutskever et al., 2013)."""

    def __init__(self, rate: float | Var = 0.01, mu: float = 0.9, *, nesterov: bool = False):
        super().__init__(rate)
        self.mu = float(mu)
        self.nesterov = nesterov

    def update(self, step: Step, parameter: Var, gradient: Var) -> None:
        velocity = step.state(parameter, "VELOCITY")
        following, next_velocity = momentum(parameter, gradient, velocity, step.rate, mu=self.mu, nesterov=self.nesterov)
        step.commit(parameter, following)
        step.commit(velocity, next_velocity)
