"""Adam."""

from oarlock.ir.var import Var
from oarlock.old_names import OLD_ARGUMENTS, takes_old_keywords
from oarlock.op.update import adam
from oarlock.optimizer.optimizer import Optimizer, Step

__all__ = ["Adam"]


class Adam(Optimizer):
    """Steps scaled by running moments of the gradient (Kingma and Ba, 2015, algorithm 1)."""

    @takes_old_keywords(OLD_ARGUMENTS)
    def __init__(self, learning_rate: float | Var = 1e-3, *, beta1: float = 0.9, beta2: float = 0.999, epsilon: float = 1e-8):
        super().__init__(learning_rate)
        self.beta1 = float(beta1)
        self.beta2 = float(beta2)
        self.epsilon = float(epsilon)

    def update(self, step: Step, parameter: Var, gradient: Var) -> None:
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
        )
        for var, value in zip((parameter, moment1, moment2), following, strict=True):
            step.commit(var, value)
