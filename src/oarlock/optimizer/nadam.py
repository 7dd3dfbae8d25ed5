"""NAdam."""

from typing import Unpack

from oarlock.ir.dtype import DType
from oarlock.ir.var import Var
from oarlock.op.dtype_conversion import cast
from oarlock.op.unary import sqrt, square
from oarlock.optimizer.optimizer import Optimizer, Options
from oarlock.optimizer.schedule.schedule import LearningRate
from oarlock.optimizer.step import Step
from oarlock.registry.range_check import require_number

__all__ = ["NAdam"]


class NAdam(Optimizer):
    """The NAdam optimizer: Adam with Nesterov momentum (Dozat, 2016, algorithm 2).

    ``w' = w - learning_rate (mu(t+1) m' / (1 - p mu(t+1)) + (1 - mu(t)) dw / (1 - p)) / (sqrt(v' / (1 - beta2**t)) + epsilon)``, with
    ``mu(t) = beta1 (1 - 0.96**(t momentum_decay) / 2)``, ``p = mu(1) ... mu(t)`` and the moments of `Adam`. Raises ArgumentError unless the
    betas are in [0, 1).
    """

    def __init__(
        self,
        learning_rate: LearningRate = 2e-3,
        *,
        beta1: float = 0.9,
        beta2: float = 0.999,
        momentum_decay: float = 4e-3,
        epsilon: float = 1e-8,
        **options: Unpack[Options],
    ):
        super().__init__(learning_rate, **options)
        self.beta1 = require_number("NAdam: beta1", beta1, least=0.0, below=1.0)
        self.beta2 = require_number("NAdam: beta2", beta2, least=0.0, below=1.0)
        self.momentum_decay = require_number("NAdam: momentum_decay", momentum_decay, least=0.0)
        self.epsilon = require_number("NAdam: epsilon", epsilon, least=0.0)

    def update(self, step: Step, parameter: Var, gradient: Var) -> None:
        moment1, moment2 = step.state(parameter, "MOMENT1"), step.state(parameter, "MOMENT2")
        first = self.beta1 * moment1 + (1.0 - self.beta1) * gradient
        second = self.beta2 * moment2 + (1.0 - self.beta2) * square(gradient)
        count = cast(step.count, dtype=DType.FLOAT64)
        now, next_mu = self._mu(count), self._mu(count + 1.0)
        product = step.shared_state("mu_product", 1.0, lambda product: product * now)
        of_moment, of_gradient = next_mu / (1.0 - product * next_mu), (1.0 - now) / (1.0 - product)
        below = sqrt(second / cast(step.correction(self.beta2), dtype=second.dtype)) + self.epsilon
        direction = first * cast(of_moment, dtype=first.dtype) + gradient * cast(of_gradient, dtype=gradient.dtype)
        step.descend(parameter, direction / below)
        step.commit(moment1, first)
        step.commit(moment2, second)

    def _mu(self, count: Var) -> Var:
        return self.beta1 * (1.0 - 0.5 * 0.96 ** (count * self.momentum_decay))
