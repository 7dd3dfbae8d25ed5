"""Special functions of one number, element by element: gamma functions, those of the normal distribution, Bessel functions.

Definitions and derivatives are those of the NIST Digital Library of Mathematical Functions, https://dlmf.nist.gov.
"""

import math

import torch

from oarlock.errors import ArgumentError
from oarlock.op.choice import where
from oarlock.op.comparison import equal
from oarlock.op.elementwise import add, divide, multiply, neg, subtract
from oarlock.op.magnitude import sign
from oarlock.op.trusted_operator import operator
from oarlock.op.unary import exp, number_like, square
from oarlock.registry import Case, GradCheck, Rejects

__all__ = ["digamma", "erfc", "erfcx", "erfinv", "i0", "i0e", "i1", "i1e", "lgamma", "log_ndtr", "ndtri", "polygamma"]

_ROOT_OF_PI = math.sqrt(math.pi)
_HALVES = (torch.float16, torch.bfloat16)


def widely(function, x):
    """``function`` of ``x``, in float32 where PyTorch does not have it in half precision."""
    return function(x.float()).to(x.dtype) if x.dtype in _HALVES else function(x)


@operator(
    "x: float[*b] -> y: float[*b]",
    cases=[Case(x=[1.0, 4.0, 0.5], y=[0.0, math.log(6.0), math.log(math.pi) / 2]), GradCheck(low=0.5, high=3.0)],
)
def lgamma(x):
    """The logarithm of ``|gamma(x)|``, where ``gamma(n) = (n - 1)!`` (DLMF 5.2)."""
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
        Rejects("order is -1, where it is at least 0", x=(2,), order=-1),
    ],
)
def polygamma(x, *, order: int):
    """The derivative of `digamma` of this order, `digamma` itself for 0 (DLMF 5.15)."""
    return torch.polygamma(order, x)


@polygamma.check_shapes
def require_order(x, *, order):
    if order < 0:
        raise ArgumentError(f"order is {order}, where it is at least 0")


polygamma.gradient_programs(x=lambda x, dy, *, order: multiply(dy, polygamma(x, order=order + 1)))


@operator("x: float[*b] -> y: float[*b]", cases=[Case(x=[0.0, 1.0, 30.0], y=[1.0, math.erfc(1.0), 0.0])])
def erfc(x):
    """``1 - erf(x)``, exact where that is near 0 too (DLMF 7.2.2)."""
    return torch.erfc(x)


erfc.gradient_programs(x=lambda x, dy: multiply(multiply(dy, exp(neg(square(x)))), number_like(-2.0 / _ROOT_OF_PI, x)))


@operator("x: float[*b] -> y: float[*b]", cases=[Case(x=[0.0, 1.0], y=[1.0, math.e * math.erfc(1.0)])])
def erfcx(x):
    """``exp(x**2) erfc(x)``, which overflows for no positive ``x`` (DLMF 7.2.3)."""
    return widely(torch.special.erfcx, x)


erfcx.gradient_programs(x=lambda x, y, dy: multiply(dy, multiply(multiply(x, y), number_like(2.0, x)) - 2.0 / _ROOT_OF_PI))


@operator("x: float[*b] -> y: float[*b]", cases=[Case(x=[0.0, math.erf(0.5), 1.0], y=[0.0, 0.5, math.inf]), GradCheck(low=-0.8, high=0.8)])
def erfinv(x):
    """The number of which ``x`` is `erf`; infinite at -1 and 1, NaN beyond."""
    return torch.erfinv(x)


erfinv.gradient_programs(x=lambda y, dy: multiply(multiply(dy, exp(square(y))), number_like(_ROOT_OF_PI / 2, y)))


@operator("x: float[*b] -> y: float[*b]", cases=[Case(x=[0.5, 0.0], y=[0.0, -math.inf]), GradCheck(low=0.2, high=0.8)])
def ndtri(x):
    """The number below which a standard normal one lies with the probability ``x``; NaN beyond 0 and 1."""
    return widely(torch.special.ndtri, x)


ndtri.gradient_programs(
    x=lambda y, dy: multiply(multiply(dy, exp(multiply(square(y), number_like(0.5, y)))), number_like(math.sqrt(2 * math.pi), y))
)


@operator("x: float[*b] -> y: float[*b]", cases=[Case(x=[0.0], y=[-math.log(2.0)]), GradCheck(low=-3.0, high=3.0)])
def log_ndtr(x):
    """The logarithm of the probability that a standard normal number is below ``x``, exact far below 0 too."""
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
    """That of order 1 (DLMF 10.25)."""
    return torch.special.i1(x)


def divided_by_itself(y, x):
    """``y / x``; its limit at 0, which is 1/2."""
    nothing = equal(x, number_like(0.0, x))
    return where(nothing, number_like(0.5, x), divide(y, where(nothing, number_like(1.0, x), x)))


i1.gradient_programs(x=lambda x, y, dy: multiply(dy, subtract(i0(x), divided_by_itself(y, x))))


@operator("x: float[*b] -> y: float[*b]", cases=[Case(x=[0.0, 1.0], y=[1.0, 1.2660658777520084 / math.e]), GradCheck(low=0.5, high=3.0)])
def i0e(x):
    """``exp(-|x|) i0(x)``, which overflows nowhere."""
    return torch.special.i0e(x)


i0e.gradient_programs(x=lambda x, y, dy: multiply(dy, subtract(i1e(x), multiply(sign(x), y))))


@operator("x: float[*b] -> y: float[*b]", cases=[Case(x=[0.0, 1.0], y=[0.0, 0.565159103992485 / math.e]), GradCheck(low=0.5, high=3.0)])
def i1e(x):
    """``exp(-|x|) i1(x)``, which overflows nowhere."""
    return torch.special.i1e(x)


i1e.gradient_programs(x=lambda x, y, dy: multiply(dy, subtract(i0e(x), add(multiply(sign(x), y), divided_by_itself(y, x)))))
