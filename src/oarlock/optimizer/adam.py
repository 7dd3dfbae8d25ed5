"""Adam and AdamW."""

from typing import Unpack

from oarlock.ir.var import Var
from oarlock.old_names import OLD_ARGUMENTS, takes_old_keywords
from oarlock.op.choice import maximum
from oarlock.op.dtype_conversion import cast
from oarlock.op.unary import sqrt, square
from oarlock.op.update import adam
from oarlock.optimizer.optimizer import Optimizer, Options
from oarlock.optimizer.schedule.schedule import LearningRate
from oarlock.optimizer.step import Step
from oarlock.registry.range_check import require_number

__all__ = ["Adam", "AdamW"]


class Adam(Optimizer):
    """The Adam optimizer: steps scaled by running moments of the gradient (Kingma and Ba, 2015, algorithm 1).

    ``m' = beta1 m + (1 - beta1) dw``; ``v' = beta2 v + (1 - beta2) dw**2``; ``w' = w - learning_rate (m' / (1 - beta1**t)) / (sqrt(v' / (1
    - beta2**t)) + epsilon)``, in step ``t`` from 1. With `amsgrad`, the largest ``v'`` so far replaces ``v'`` (Reddi, Kale and Kumar, 2018,
    algorithm 2). Raises ArgumentError unless the betas are in [0, 1).
    """

    @takes_old_keywords(OLD_ARGUMENTS)
    def __init__(
        self,
        learning_rate: LearningRate = 1e-3,
        *,
        beta1: float = 0.9,
        beta2: float = 0.999,
        epsilon: float = 1e-8,
        amsgrad: bool = False,
        **options: Unpack[Options],
    ):
        super().__init__(learning_rate, **options)
        self.beta1 = require_number("Adam: beta1", beta1, least=0.0, below=1.0)
        self.beta2 = require_number("Adam: beta2", beta2, least=0.0, below=1.0)
        self.epsilon = require_number("Adam: epsilon", epsilon, least=0.0)
        self.amsgrad = bool(amsgrad)
        self.decays_weights = not self.amsgrad
        self.widens_halves = self.amsgrad

    def update(self, step: Step, parameter: Var, gradient: Var) -> None:
        if self.amsgrad:
            self._update_by_largest(step, parameter, gradient)
            return
        moment1, moment2 = step.state(parameter, "MOMENT1"), step.state(parameter, "MOMENT2")
        following = adam(
            parameter,
            gradient,
            moment1,
            moment2,
            step.count,
            step.learning_rate,
            beta1=self.beta1,
            beta2=self.beta2,
            epsilon=self.epsilon,
            weight_decay=step.weight_decay,
        )
        for var, value in zip((parameter, moment1, moment2), following, strict=True):
            step.commit(var, value)

    def _update_by_largest(self, step: Step, parameter: Var, gradient: Var) -> None:
        moment1, moment2 = step.state(parameter, "MOMENT1"), step.state(parameter, "MOMENT2")
        largest = step.state(parameter, "LARGEST")
        first = self.beta1 * moment1 + (1.0 - self.beta1) * gradient
        second = self.beta2 * moment2 + (1.0 - self.beta2) * square(gradient)
        next_largest = maximum(largest, second)
        below = sqrt(next_largest) / cast(sqrt(step.correction(self.beta2)), dtype=second.dtype) + self.epsilon
        step.descend(parameter, first / below, step.learning_rate / step.correction(self.beta1))
        for var, value in ((moment1, first), (moment2, second), (largest, next_largest)):
            step.commit(var, value)


class AdamW(Adam):
    """Adam with decoupled weight decay: ``learning_rate weight_decay w`` is subtracted from the parameter, outside the moments.

    `weight_decay` is 0.01 by default; the other arguments are as in `Adam` (Loshchilov and Hutter, 2019, algorithm 2).
    """

    decoupled_weight_decay = True

    def __init__(
        self,
        learning_rate: LearningRate = 1e-3,
        *,
        beta1: float = 0.9,
        beta2: float = 0.999,
        epsilon: float = 1e-8,
        amsgrad: bool = False,
        **options: Unpack[Options],
    ):
        super().__init__(learning_rate, beta1=beta1, beta2=beta2, epsilon=epsilon, amsgrad=amsgrad, **{"weight_decay": 0.01, **options})
