"""Special functions of one number, elementwise: gamma functions, functions of the normal distribution, Bessel functions.

Definitions and derivatives follow the NIST Digital Library of Mathematical Functions, https://dlmf.nist.gov.
"""

import math

import torch

from oarlock.errors import ArgumentError
from oarlock.op.choice import where
from oarlock.op.comparison import equal, greater, less
from oarlock.op.elementwise import add, divide, multiply, neg, subtract
from oarlock.op.logical import logical_or
from oarlock.op.magnitude import sign
from oarlock.op.trigonometry import cos
from oarlock.op.trusted_operator import operator
from oarlock.op.unary import exp, log, number_like, square
from oarlock.registry import Case, GradCheck, Rejects

__all__ = [
    "digamma", "entr", "erfc", "erfcx", "erfinv", "i0", "i0e", "i1", "i1e", "lgamma", "log_ndtr", "logit", "ndtri", "polygamma", "sinc",
]  # fmt: skip

_ROOT_OF_PI = math.sqrt(math.pi)
_HALVES = (torch.float16, torch.bfloat16)


def widely(function, x):
    """Return ``function(x)``, computed in float32 for half precision, for which PyTorch lacks the function."""
    return function(x.float()).to(x.dtype) if x.dtype in _HALVES else function(x)


@operator(
    "x: float[*b] -> y: float[*b]",
    cases=[Case(x=[1.0, 4.0, 0.5], y=[0.0, math.log(6.0), math.log(math.pi) / 2]), GradCheck(low=0.5, high=3.0)],
)
def lgamma(x):
    """The logarithm of ``|gamma(x)|``, with ``gamma(n) = (n - 1)!`` (DLMF 5.2)."""
    return torch.lgamma(x)


lgamma.gradient_programs(x=lambda x, dy: multiply(dy, digamma(x)))


@operator(
    "x: float[*b] -> y: float[*b]", cases=[Case(x=[1.0, 2.0], y=[-0.5772156649015329, 0.42278433509846714]), GradCheck(low=0.5, high=3.0)]
)
def digamma(x):
    """The derivative of `lgamma` (DLMF 5.2.2)."""
    return torch.digamma(x)


digamma.gradient_programs(x=lambda x, dy: multiply(dy, polygamma(x, order=1)))


@operator(
    "x: float[*b] -> y: float[*b]",
    cases=[
        Case(x=[1.0, 2.0], order=2, y=[-2.404113806319188, -0.4041138063191886]),
        GradCheck(order=0, low=0.5, high=3.0),
        GradCheck(order=2, low=0.5, high=3.0),
        Rejects("order must be at least 0, not -1", x=(2,), order=-1),
    ],
)
def polygamma(x, *, order: int):
    """The derivative of `digamma` of the given order; `digamma` itself for order 0 (DLMF 5.15)."""
    return torch.polygamma(order, x)


@polygamma.check_shapes
def require_order(x, *, order):
    if order < 0:
        raise ArgumentError(f"order must be at least 0, not {order}")


polygamma.gradient_programs(x=lambda x, dy, *, order: multiply(dy, polygamma(x, order=order + 1)))


@operator("x: float[*b] -> y: float[*b]", cases=[Case(x=[0.0, 1.0, 30.0], y=[1.0, math.erfc(1.0), 0.0])])
def erfc(x):
    """``1 - erf(x)``, accurate even if the result is near 0 (DLMF 7.2.2)."""
    return torch.erfc(x)


erfc.gradient_programs(x=lambda x, dy: multiply(multiply(dy, exp(neg(square(x)))), number_like(-2.0 / _ROOT_OF_PI, x)))


@operator("x: float[*b] -> y: float[*b]", cases=[Case(x=[0.0, 1.0], y=[1.0, math.e * math.erfc(1.0)])])
def erfcx(x):
    """``exp(x**2) erfc(x)``, which does not overflow for positive ``x`` (DLMF 7.2.3)."""
    return widely(torch.special.erfcx, x)


erfcx.gradient_programs(x=lambda x, y, dy: multiply(dy, multiply(multiply(x, y), number_like(2.0, x)) - 2.0 / _ROOT_OF_PI))


@operator("x: float[*b] -> y: float[*b]", cases=[Case(x=[0.0, math.erf(0.5), 1.0], y=[0.0, 0.5, math.inf]), GradCheck(low=-0.8, high=0.8)])
def erfinv(x):
    """The inverse of `erf`; infinite at -1 and 1, NaN outside."""
    return torch.erfinv(x)


erfinv.gradient_programs(x=lambda y, dy: multiply(multiply(dy, exp(square(y))), number_like(_ROOT_OF_PI / 2, y)))


@operator("x: float[*b] -> y: float[*b]", cases=[Case(x=[0.5, 0.0], y=[0.0, -math.inf]), GradCheck(low=0.2, high=0.8)])
def ndtri(x):
    """The quantile of the standard normal distribution at probability ``x``; NaN outside of 0 to 1."""
    return widely(torch.special.ndtri, x)


ndtri.gradient_programs(
    x=lambda y, dy: multiply(multiply(dy, exp(multiply(square(y), number_like(0.5, y)))), number_like(math.sqrt(2 * math.pi), y))
)


@operator(
    "x: float[*b] -> y: float[*b]",
    sensitive_to="layout",
    cases=[
        Case(x=[0.5, 0.0, 1.0, 0.75], y=[0.0, -math.inf, math.inf, math.log(3.0)]),
        Case(x=[0.1, 0.5, 1.0], epsilon=0.25, y=[-math.log(3.0), 0.0, math.log(3.0)]),
        GradCheck(low=0.2, high=0.8),
        GradCheck(low=0.2, high=0.8, epsilon=0.1),
    ],
)
def logit(x, *, epsilon: float | None = None):
    """``log(x / (1 - x))``, the inverse of `sigmoid`; NaN outside of 0 to 1. ``epsilon`` clips ``x`` to ``epsilon`` and ``1 - epsilon``."""
    return _logit(x, epsilon)


def _logit(x, epsilon: float | None):
    return torch.logit(x, epsilon)


@logit.gradient_program("x")
def logit_dx(x, dy, *, epsilon=None):
    """``dy / (x (1 - x))``; NaN outside of 0 to 1, and 0 where ``epsilon`` clips ``x``."""
    least = 0.0 if epsilon is None else epsilon
    beyond = logical_or(less(x, number_like(least, x)), greater(x, number_like(1.0 - least, x)))
    slope = multiply(x, subtract(number_like(1.0, x), x))
    return where(beyond, number_like(math.nan if epsilon is None else 0.0, dy), divide(dy, slope))


logit.declare_edges(
    zero="at -0 the gradient is the limit from below; PyTorch's has either sign, by the position of the element",
    nan="NaN; with epsilon PyTorch's is 0 or NaN, by the position of the element",
)


@operator("x: float[*b] -> y: float[*b]", cases=[Case(x=[0.0, 1.0, 0.5, -0.5], y=[1.0, 0.0, 2.0 / math.pi, 2.0 / math.pi])])
def sinc(x):
    """``sin(pi x) / (pi x)``; 1 at 0."""
    return torch.sinc(x)


@sinc.gradient_program("x")
def sinc_dx(x, y, dy):
    """``dy (cos(pi x) - y) / x``; 0 at 0."""
    nothing = equal(x, number_like(0.0, x))
    angle = multiply(x, number_like(math.pi, x))
    slope = divide(subtract(cos(angle), y), where(nothing, number_like(1.0, x), x))
    return where(nothing, number_like(0.0, dy), multiply(dy, slope))


@operator(
    "x: float[*b] -> y: float[*b]",
    cases=[Case(x=[0.0, 1.0, 0.5, -1.0], y=[0.0, 0.0, math.log(2.0) / 2, -math.inf]), GradCheck(low=0.2, high=2.0)],
)
def entr(x):
    """``-x log(x)``, a term of the entropy; 0 at 0, minus infinity below 0."""
    return widely(torch.special.entr, x)


entr.gradient_programs(x=lambda x, dy: multiply(dy, neg(log(x) + 1.0)))


@operator("x: float[*b] -> y: float[*b]", cases=[Case(x=[0.0], y=[-math.log(2.0)]), GradCheck(low=-3.0, high=3.0)])
def log_ndtr(x):
    """The logarithm of the standard normal distribution function, accurate far below 0, too."""
    return widely(torch.special.log_ndtr, x)


log_ndtr.gradient_programs(
    x=lambda x, y, dy: multiply(
        multiply(dy, exp(subtract(multiply(square(x), number_like(-0.5, x)), y))), number_like((2 * math.pi) ** -0.5, x)
    )
)


@operator("x: float[*b] -> y: float[*b]", cases=[Case(x=[0.0, 1.0], y=[1.0, 1.2660658777520084]), GradCheck(low=-3.0, high=3.0)])
def i0(x):
    """The modified Bessel function of the first kind of order 0 (DLMF 10.25)."""
    return torch.special.i0(x)


i0.gradient_programs(x=lambda x, dy: multiply(dy, i1(x)))


@operator("x: float[*b] -> y: float[*b]", cases=[Case(x=[0.0, -1.0], y=[0.0, -0.565159103992485]), GradCheck(low=0.5, high=3.0)])
def i1(x):
    """The modified Bessel function of the first kind of order 1 (DLMF 10.25)."""
    return torch.special.i1(x)


def divided_by_itself(y, x):
    """Return ``y / x``, or its limit 1/2 where ``x`` is 0."""
    nothing = equal(x, number_like(0.0, x))
    return where(nothing, number_like(0.5, x), divide(y, where(nothing, number_like(1.0, x), x)))


i1.gradient_programs(x=lambda x, y, dy: multiply(dy, subtract(i0(x), divided_by_itself(y, x))))


i1.declare_edges(nan="NaN; PyTorch's is dy / 2, as at 0")


@operator("x: float[*b] -> y: float[*b]", cases=[Case(x=[0.0, 1.0], y=[1.0, 1.2660658777520084 / math.e]), GradCheck(low=0.5, high=3.0)])
def i0e(x):
    """Exponentially scaled `i0`: ``exp(-|x|) i0(x)``, which does not overflow."""
    return torch.special.i0e(x)


i0e.gradient_programs(x=lambda x, y, dy: multiply(dy, subtract(i1e(x), multiply(sign(x), y))))


@operator("x: float[*b] -> y: float[*b]", cases=[Case(x=[0.0, 1.0], y=[0.0, 0.565159103992485 / math.e]), GradCheck(low=0.5, high=3.0)])
def i1e(x):
    """Exponentially scaled `i1`: ``exp(-|x|) i1(x)``, which does not overflow."""
    return torch.special.i1e(x)


i1e.gradient_programs(x=lambda x, y, dy: multiply(dy, subtract(i0e(x), add(multiply(sign(x), y), divided_by_itself(y, x)))))
i1e.declare_edges(nan="NaN; PyTorch's is dy / 2, as at 0")
