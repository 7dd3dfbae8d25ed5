"""Gradient clipping.

`clip` of an optimizer accepts any function from (parameter, gradient) pairs to such pairs; these are the three common ones.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from oarlock.ir.dtype import DType
from oarlock.ir.update_settings import UpdateSettings
from oarlock.ir.var import Var
from oarlock.op.choice import minimum
from oarlock.op.complex_parts import view_as_real
from oarlock.op.composed.arithmetic import constant_like
from oarlock.op.dtype_conversion import cast
from oarlock.op.elementwise import add, clip, divide, multiply, sum_
from oarlock.op.reduction import reduce_sum
from oarlock.op.unary import sqrt, square
from oarlock.optimizer.row_step import Gradient, Gradients, as_tables, coalesced
from oarlock.registry.range_check import require_number

__all__ = ["Clip", "ClipByGlobalNorm", "ClipByNorm", "ClipByValue", "Pairs", "clip_by_settings", "clipped"]

Pairs = Sequence[tuple[Var, Var]]
"""Parameters, each with its gradient."""

Clip = Callable[[Pairs], Gradients]
"""A function that replaces gradients. It receives dense ones; the clips of this file also accept gradients by rows."""


@dataclass(frozen=True)
class ClipByValue:
    """Clipping of each element of a gradient to ``-limit`` to `limit`. Raises ArgumentError unless the limit is positive."""

    limit: float

    def __post_init__(self) -> None:
        require_number("ClipByValue: limit", self.limit, above=0.0)

    def __call__(self, pairs: Gradients) -> Gradients:
        return [(parameter, _clipped_by_value(gradient, self.limit)) for parameter, gradient in pairs]


@dataclass(frozen=True)
class ClipByNorm:
    """Clipping of each gradient by its own norm: ``g min(1, limit / (norm(g) + epsilon))``.

    Raises ArgumentError unless the limit is positive and epsilon non-negative.
    """

    limit: float
    epsilon: float = 1e-6

    def __post_init__(self) -> None:
        _require_norm(self.limit, self.epsilon)

    def __call__(self, pairs: Gradients) -> Gradients:
        return [(parameter, _clipped_by_norm(gradient, self.limit, self.epsilon)) for parameter, gradient in pairs]


@dataclass(frozen=True)
class ClipByGlobalNorm:
    """Clipping of all gradients together, by the norm of all their elements (Pascanu et al., 2013, algorithm 1).

    ``g min(1, limit / (norm + epsilon))``, as in `torch.nn.utils.clip_grad_norm_`. The norm is computed in the widest dtype of the
    gradients, at least float32. Raises ArgumentError unless the limit is positive and epsilon non-negative.
    """

    limit: float
    epsilon: float = 1e-6

    def __post_init__(self) -> None:
        _require_norm(self.limit, self.epsilon)

    def __call__(self, pairs: Gradients) -> Gradients:
        pairs = [(parameter, _summed(gradient)) for parameter, gradient in pairs]
        squares = [squared_norm(_values(gradient)) for _, gradient in pairs]
        widest = max((square.dtype for square in squares), key=lambda dtype: dtype.itemsize)
        total = sum_([_as(square, widest) for square in squares])
        factor = _factor(total, self.limit, self.epsilon)
        return [(parameter, _scaled(gradient, factor)) for parameter, gradient in pairs]


def clipped(clip: Clip, pairs: Gradients) -> Gradients:
    """Return gradients clipped by `clip`: by rows if it is a clip of this file, else as whole tables."""
    if isinstance(clip, ClipByValue | ClipByNorm | ClipByGlobalNorm):
        return clip(pairs)
    return clip(as_tables(pairs))


def clip_by_settings(gradient: Gradient, settings: UpdateSettings) -> Gradient:
    """Return a gradient clipped by the settings of its parameter."""
    if settings.clip_value is not None:
        gradient = _clipped_by_value(gradient, settings.clip_value)
    if settings.clip_norm is not None:
        gradient = _clipped_by_norm(gradient, settings.clip_norm, 1e-6)
    return gradient


def _clipped_by_value(gradient: Gradient, limit: float) -> Gradient:
    gradient = _summed(gradient)
    return _with(gradient, clip(_values(gradient), lower=-float(limit), upper=float(limit)))


def _clipped_by_norm(gradient: Gradient, limit: float, epsilon: float) -> Gradient:
    gradient = _summed(gradient)
    return _scaled(gradient, _factor(squared_norm(_values(gradient)), limit, epsilon))


def _summed(gradient: Gradient) -> Gradient:
    """Return the gradient with one value per element, without duplicate rows."""
    return gradient if isinstance(gradient, Var) else coalesced(gradient)


def _values(gradient: Gradient) -> Var:
    return gradient if isinstance(gradient, Var) else gradient.values


def _with(gradient: Gradient, values: Var) -> Gradient:
    return values if isinstance(gradient, Var) else replace(gradient, values=values)


def squared_norm(gradient: Var) -> Var:
    """Return the sum of squares of all elements: float[], at least float32 because half precision overflows."""
    if gradient.dtype.is_complex:
        gradient = view_as_real(gradient)
    wide = _as(gradient, DType.FLOAT32) if gradient.dtype.itemsize < 4 else gradient
    return reduce_sum(square(wide))


def _as(value: Var, dtype: DType) -> Var:
    return value if value.dtype is dtype else cast(value, dtype=dtype)


def _factor(squares: Var, limit: float, epsilon: float) -> Var:
    norm = sqrt(squares)
    ratio = divide(constant_like(limit, norm), add(norm, constant_like(epsilon, norm)))
    return minimum(ratio, constant_like(1.0, ratio))


def _scaled(gradient: Gradient, factor: Var) -> Gradient:
    values = _values(gradient)
    return _with(gradient, multiply(values, _as(factor, values.dtype)))


def _require_norm(limit: object, epsilon: object) -> None:
    require_number("clipping by a norm: limit", limit, above=0.0)
    require_number("clipping by a norm: epsilon", epsilon, least=0.0)
