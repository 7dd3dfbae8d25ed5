"""Muon."""

import math
from collections.abc import Sequence
from typing import Unpack

from oarlock.errors import ShapeError
from oarlock.ir.block import Block
from oarlock.ir.dtype import DType
from oarlock.ir.location import here
from oarlock.ir.var import Var
from oarlock.op.choice import maximum
from oarlock.op.composed.arithmetic import constant_like
from oarlock.op.dtype_conversion import cast
from oarlock.op.matrix import matmul, matrix_transpose
from oarlock.op.unary import sqrt
from oarlock.optimizer.clipping import squared_norm
from oarlock.optimizer.optimizer import Optimizer, Options
from oarlock.optimizer.schedule.schedule import LearningRate
from oarlock.optimizer.step import Step
from oarlock.registry.range_check import require_choice, require_count, require_number

__all__ = ["Muon"]


class Muon(Optimizer):
    """The Muon optimizer for weight matrices: an orthogonalized momentum (Jordan et al., 2024).

    ``b' = mu b + (1 - mu) dw``; ``w' = w - learning_rate scale orthogonal((1 - mu) dw + mu b')``, or of ``b'`` without `nesterov`.
    ``orthogonal(x)`` approximates the nearest orthogonal matrix: starting from ``x / norm(x)``, `iterations` Newton-Schulz iterations ``x'
    = a x + (b x xT + c (x xT)**2) x``, with `coefficients` (a, b, c) of the paper. They are computed in `dtype`, by default that of the
    parameter; "bfloat16", as in `torch.optim.Muon`, is fast on a GPU. ``scale`` is ``sqrt(max(1, m / n))`` for a matrix [m n], or with
    `scale` "match_rms_adamw" ``0.2 sqrt(max(m, n))``, which allows learning rates and decays of AdamW (Liu et al., 2025, equation 4).
    Weight decay is decoupled and 0.1 by default. Use `Groups` for parameters that are not matrices. Raises ArgumentError for an argument
    out of range, ShapeError for a parameter that is not a matrix.
    """

    decoupled_weight_decay = True
    is_elementwise = False

    def __init__(
        self,
        learning_rate: LearningRate = 1e-3,
        *,
        mu: float = 0.95,
        nesterov: bool = True,
        iterations: int = 5,
        coefficients: tuple[float, float, float] = (3.4445, -4.775, 2.0315),
        epsilon: float = 1e-7,
        scale: str = "original",
        dtype: DType | str | None = None,
        **options: Unpack[Options],
    ):
        super().__init__(learning_rate, **{"weight_decay": 0.1, **options})
        self.mu = require_number("Muon: mu", mu, least=0.0, most=1.0)
        self.nesterov = bool(nesterov)
        self.iterations = require_count("Muon: iterations", iterations)
        self.coefficients = tuple(require_number("Muon: a coefficient", number) for number in coefficients)
        self.epsilon = require_number("Muon: epsilon", epsilon, above=0.0)
        self.scale = require_choice("Muon: scale", scale, ("original", "match_rms_adamw"))
        self.dtype = None if dtype is None else DType.of(dtype)

    def update(self, step: Step, parameter: Var, gradient: Var) -> None:
        velocity = step.state(parameter, "VELOCITY")
        faster = self.mu * velocity + (1.0 - self.mu) * gradient
        direction = self._orthogonal(self.mu * faster + (1.0 - self.mu) * gradient if self.nesterov else faster)
        m, n = map(int, parameter.shape or ())
        scale = math.sqrt(max(1.0, m / max(n, 1))) if self.scale == "original" else 0.2 * math.sqrt(max(m, n))
        step.descend(parameter, direction, step.learning_rate * scale)
        step.commit(velocity, faster)

    def _orthogonal(self, x: Var) -> Var:
        """Return a matrix with the singular vectors of `x` and singular values near 1: T[m n] -> T[m n]."""
        m, n = map(int, x.shape or ())
        a, b, c = self.coefficients
        wide = x if self.dtype in (None, x.dtype) else cast(x, dtype=self.dtype)
        wide = matrix_transpose(wide) if m > n else wide
        norm = sqrt(squared_norm(wide))
        wide = wide / cast(maximum(norm, constant_like(self.epsilon, norm)), dtype=wide.dtype)
        for _ in range(self.iterations):
            gram = matmul(wide, matrix_transpose(wide))
            wide = a * wide + matmul(b * gram + c * matmul(gram, gram), wide)
        wide = matrix_transpose(wide) if m > n else wide
        return wide if wide.dtype is x.dtype else cast(wide, dtype=x.dtype)

    def _require_usable(self, main: Block, parameters: Sequence[Var]) -> None:
        super()._require_usable(main, parameters)
        for parameter in parameters:
            if parameter.ndim != 2:
                raise ShapeError(
                    f'Muon: "{parameter.name}" is {parameter.type_text}, not a matrix',
                    location=here(),
                    given=[parameter.describe()],
                    hint="use ol.optimizer.Groups with another optimizer for biases, tables and filters",
                )
