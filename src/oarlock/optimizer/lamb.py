"""LAMB, and the trust ratio of LAMB and LARS."""

from typing import Unpack

from oarlock.ir.dtype import DType
from oarlock.ir.var import Var
from oarlock.op.choice import where
from oarlock.op.composed.arithmetic import constant_like
from oarlock.op.dtype_conversion import cast
from oarlock.op.logical import logical_and
from oarlock.op.unary import sqrt, square
from oarlock.optimizer.clipping import squared_norm
from oarlock.optimizer.optimizer import Optimizer, Options
from oarlock.optimizer.schedule.schedule import LearningRate
from oarlock.optimizer.step import Step
from oarlock.registry.range_check import require_number

__all__ = ["Lamb", "trust_ratio"]


def trust_ratio(parameter: Var, direction: Var, *, factor: float = 1.0, decay: float = 0.0) -> Var:
    """Return ``factor norm(w) / (norm(direction) + decay norm(w))``, or 1 if one of the norms is 0: float64[]."""
    of_parameter, of_direction = (cast(sqrt(squared_norm(var)), dtype=DType.FLOAT64) for var in (parameter, direction))
    one, zero = (constant_like(value, of_parameter) for value in (1.0, 0.0))
    is_long = logical_and(of_parameter > zero, of_direction > zero)
    below = of_direction + decay * of_parameter if decay else of_direction
    return where(is_long, factor * of_parameter / where(is_long, below, one), one)


class Lamb(Optimizer):
    """The LAMB optimizer for large batches: Adam with steps scaled to the norm of the parameter (You et al., 2020, algorithm 2).

    ``w' = w - learning_rate norm(w) / norm(u) u``, where ``u = r + weight_decay w`` and ``r = (m' / (1 - beta1**t)) / (sqrt(v' / (1 -
    beta2**t)) + epsilon)``. If one of the norms is 0, their ratio is 1. Raises ArgumentError unless the betas are in [0, 1).
    """

    decays_weights = True
    decoupled_weight_decay = True
    is_elementwise = False

    def __init__(
        self,
        learning_rate: LearningRate = 1e-3,
        *,
        beta1: float = 0.9,
        beta2: float = 0.999,
        epsilon: float = 1e-6,
        **options: Unpack[Options],
    ):
        super().__init__(learning_rate, **options)
        self.beta1 = require_number("Lamb: beta1", beta1, least=0.0, below=1.0)
        self.beta2 = require_number("Lamb: beta2", beta2, least=0.0, below=1.0)
        self.epsilon = require_number("Lamb: epsilon", epsilon, least=0.0)

    def update(self, step: Step, parameter: Var, gradient: Var) -> None:
        moment1, moment2 = step.state(parameter, "MOMENT1"), step.state(parameter, "MOMENT2")
        first = self.beta1 * moment1 + (1.0 - self.beta1) * gradient
        second = self.beta2 * moment2 + (1.0 - self.beta2) * square(gradient)
        mean, spread = (
            moment / cast(step.correction(beta), dtype=moment.dtype) for moment, beta in ((first, self.beta1), (second, self.beta2))
        )
        direction = mean / (sqrt(spread) + self.epsilon)
        if step.weight_decay:
            direction = direction + step.weight_decay * parameter
        step.descend(parameter, direction, step.learning_rate * trust_ratio(parameter, direction))
        step.commit(moment1, first)
        step.commit(moment2, second)
