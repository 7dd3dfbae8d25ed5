"""LARS."""

from typing import Unpack

from oarlock.ir.var import Var
from oarlock.op.dtype_conversion import cast
from oarlock.optimizer.lamb import trust_ratio
from oarlock.optimizer.optimizer import Optimizer, Options
from oarlock.optimizer.schedule.schedule import LearningRate
from oarlock.optimizer.step import Step
from oarlock.registry.range_check import require_number

__all__ = ["Lars"]


class Lars(Optimizer):
    """The LARS optimizer for large batches: momentum with a learning rate per parameter (You, Gitman and Ginsburg, 2017, algorithm 1).

    ``v' = mu v + learning_rate trust norm(w) / (norm(dw) + weight_decay norm(w)) (dw + weight_decay w)``; ``w' = w - v'``. ``trust`` is eta
    in the paper. If one of the norms is 0, the ratio, ``trust`` included, is 1. Raises ArgumentError for a negative argument.
    """

    decays_weights = True
    decoupled_weight_decay = True
    is_elementwise = False

    def __init__(self, learning_rate: LearningRate = 0.1, *, mu: float = 0.9, trust: float = 1e-3, **options: Unpack[Options]):
        super().__init__(learning_rate, **options)
        self.mu = require_number("Lars: mu", mu, least=0.0)
        self.trust = require_number("Lars: trust", trust, above=0.0)

    def update(self, step: Step, parameter: Var, gradient: Var) -> None:
        velocity = step.state(parameter, "VELOCITY")
        ratio = trust_ratio(parameter, gradient, factor=self.trust, decay=step.weight_decay)
        if step.weight_decay:
            gradient = gradient + step.weight_decay * parameter
        rate = cast(step.learning_rate * ratio, dtype=gradient.dtype)
        faster = self.mu * velocity + rate * gradient
        step.commit(parameter, parameter - faster)
        step.commit(velocity, faster)
