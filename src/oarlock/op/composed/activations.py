"""Activations composed of operators, with PyTorch's gradients at every kink."""

from oarlock.errors import ArgumentError, ShapeError
from oarlock.ir.location import here
from oarlock.ir.rollback import undone_on_error
from oarlock.ir.size import Size
from oarlock.ir.var import Var
from oarlock.op.activation import sigmoid, softmax, tanh
from oarlock.op.choice import where
from oarlock.op.comparison import greater, less_equal
from oarlock.op.composed.arithmetic import constant_like
from oarlock.op.composed.norms import as_dtype_of
from oarlock.op.elementwise import clip, divide, multiply, neg, subtract
from oarlock.op.magnitude import abs_
from oarlock.op.manipulation import reshape, split
from oarlock.op.piecewise_activation import hardtanh
from oarlock.op.smooth_activation import elu
from oarlock.registry.creator import require_type

__all__ = ["celu", "glu", "hardshrink", "prelu", "relu6", "selu", "softmin", "softshrink", "softsign", "tanhshrink", "threshold"]


def relu6(x: Var) -> Var:
    """``x`` clipped to 0 and 6, with no gradient at the bounds (Howard et al., 2017)."""
    return hardtanh(x, lower=0.0, upper=6.0)


def selu(x: Var) -> Var:
    """`elu` with the constants that preserve mean and variance (Klambauer et al., 2017)."""
    return elu(x, alpha=1.6732632423543772, scale=1.0507009873554805)


def celu(x: Var, *, alpha: float = 1.0) -> Var:
    """`elu` with slope 1 at 0 for every ``alpha`` (Barron, 2017): ``max(x, 0) + min(0, alpha (exp(x / alpha) - 1))``."""
    if alpha == 0.0:
        raise ArgumentError("celu: alpha must not be 0, since x is divided by it", location=here())
    return elu(x, alpha=alpha, input_scale=1.0 / alpha)


def prelu(x: Var, slope: Var) -> Var:
    """``x`` if it is above 0, else ``slope * x`` (He et al., 2015): float[n c ...], with a single slope or one per channel, float[c].

    Raises ShapeError unless there is one slope, or one for each index of axis 1.
    """
    with undone_on_error(require_type(x, "prelu: x").block.program):
        slopes = _by_channel(x, require_type(slope, "prelu: slope"))
        return where(greater(x, constant_like(0.0, x)), x, multiply(slopes, x))


def _by_channel(x: Var, slope: Var) -> Var:
    """Return the slopes in a shape that broadcasts to that of x."""
    if slope.shape in ((), (1,)):
        return reshape(slope, shape=()) if slope.shape else slope
    if x.shape is None or slope.shape is None or len(slope.shape) != 1 or len(x.shape) < 2:
        raise ShapeError(f'prelu: the slopes "{slope.name}" must be one number, or one for each channel of "{x.name}"', location=here(),
                         given=[x.describe(), slope.describe()])  # fmt: skip
    shape: list[Size] = [slope.shape[0], *(1 for _ in x.shape[2:])]
    return reshape(slope, shape=shape)


def glu(x: Var, *, axis: int = -1) -> Var:
    """Gated linear unit: the first half along ``axis`` times the sigmoid of the second (Dauphin et al., 2017). Raises ShapeError for an odd
    size.
    """
    with undone_on_error(require_type(x, "glu: x").block.program):
        value, gate = split(x, sections=2, axis=axis)
        return multiply(value, sigmoid(gate))


def softsign(x: Var) -> Var:
    """``x / (1 + |x|)``."""
    with undone_on_error(require_type(x, "softsign: x").block.program):
        return divide(x, as_dtype_of(x, abs_(x) + 1.0))


def tanhshrink(x: Var) -> Var:
    """``x - tanh(x)``."""
    with undone_on_error(require_type(x, "tanhshrink: x").block.program):
        return subtract(x, tanh(x))


def softmin(x: Var, *, axis: int = -1) -> Var:
    """The softmax of ``-x`` along an axis."""
    with undone_on_error(require_type(x, "softmin: x").block.program):
        return softmax(neg(x), axis=axis)


def hardshrink(x: Var, *, bound: float = 0.5) -> Var:
    """``x`` if ``|x|`` is above ``bound``, else 0."""
    with undone_on_error(require_type(x, "hardshrink: x").block.program):
        return where(less_equal(abs_(x), constant_like(bound, x)), constant_like(0.0, x), x)


def softshrink(x: Var, *, bound: float = 0.5) -> Var:
    """``x`` moved towards 0 by ``bound``, or 0 if ``|x|`` is at most ``bound``. Raises ArgumentError for a negative bound."""
    if not bound >= 0.0:
        raise ArgumentError(f"softshrink: bound must be at least 0, not {bound}", location=here())
    with undone_on_error(require_type(x, "softshrink: x").block.program):
        return subtract(x, clip(x, constant_like(-bound, x), constant_like(bound, x)))


def threshold(x: Var, *, threshold: float, value: float) -> Var:
    """``x`` if it is above ``threshold``, else ``value``."""
    with undone_on_error(require_type(x, "threshold: x").block.program):
        return where(less_equal(x, constant_like(threshold, x)), constant_like(value, x), x)
