"""Trigonometric and hyperbolic functions and their inverses, elementwise. `tanh` is an activation."""

import math

import torch

from oarlock.op.choice import where
from oarlock.op.comparison import equal
from oarlock.op.complex_parts import conjugated
from oarlock.op.elementwise import add, divide, multiply, neg
from oarlock.op.reduction import fit_to
from oarlock.op.trusted_operator import operator
from oarlock.op.unary import number_like, rsqrt, square
from oarlock.registry import Case, GradCheck

__all__ = ["acos", "acosh", "asin", "asinh", "atan", "atan2", "atanh", "cos", "cosh", "sin", "sinh", "tan"]


@operator("x: inexact[*b] -> y: inexact[*b]", cases=[Case(x=[0.0, math.pi / 2], y=[0.0, 1.0])])
def sin(x):
    """The sine of ``x`` radians."""
    return torch.sin(x)


sin.gradient_programs(x=lambda x, dy: multiply(dy, conjugated(cos(x))))


@operator("x: inexact[*b] -> y: inexact[*b]", cases=[Case(x=[0.0, math.pi], y=[1.0, -1.0])])
def cos(x):
    """The cosine of ``x`` radians."""
    return torch.cos(x)


cos.gradient_programs(x=lambda x, dy: neg(multiply(dy, conjugated(sin(x)))))


@operator("x: inexact[*b] -> y: inexact[*b]", cases=[Case(x=[0.0, math.pi / 4], y=[0.0, 1.0])])
def tan(x):
    """The tangent of ``x`` radians."""
    return torch.tan(x)


tan.gradient_programs(x=lambda y, dy: multiply(dy, conjugated(square(y) + 1.0)))


@operator(
    "x: inexact[*b] -> y: inexact[*b]",
    cases=[Case(x=[0.0, 1.0, -1.0], y=[0.0, math.pi / 2, -math.pi / 2]), GradCheck(low=-0.5, high=0.5)],
)
def asin(x):
    """The inverse sine, an angle from ``-pi / 2`` to ``pi / 2``; NaN outside of -1 to 1."""
    return torch.asin(x)


asin.gradient_programs(x=lambda x, dy: multiply(dy, conjugated(rsqrt(1.0 - square(x)))))


@operator(
    "x: inexact[*b] -> y: inexact[*b]",
    cases=[Case(x=[1.0, 0.0, -1.0], y=[0.0, math.pi / 2, math.pi]), GradCheck(low=-0.5, high=0.5)],
)
def acos(x):
    """The inverse cosine, an angle from 0 to ``pi``; NaN outside of -1 to 1."""
    return torch.acos(x)


acos.gradient_programs(x=lambda x, dy: neg(multiply(dy, conjugated(rsqrt(1.0 - square(x))))))


@operator("x: inexact[*b] -> y: inexact[*b]", cases=[Case(x=[0.0, 1.0], y=[0.0, math.pi / 4])])
def atan(x):
    """The inverse tangent, an angle between ``-pi / 2`` and ``pi / 2``."""
    return torch.atan(x)


atan.gradient_programs(x=lambda x, dy: divide(dy, conjugated(square(x) + 1.0)))


@operator(
    "y: float[*#s], x: float[*#s] -> angle: float[*#s]",
    sensitive_to="layout",
    cases=[
        Case(y=[0.0, 1.0, -1.0], x=[1.0, 0.0, -1.0], angle=[0.0, math.pi / 2, -3 * math.pi / 4]),
        GradCheck(low=0.5, high=2.0),
        GradCheck(y=(13, 5), x=(13, 5)),
    ],
)
def atan2(y, x):
    """The angle of the point ``(x, y)``, from ``-pi`` to ``pi``."""
    return torch.atan2(y, x)


def _by_squared_length(part, y, x):
    """Return a coordinate divided by ``x**2 + y**2``, or 0 at the origin, which has the angle 0."""
    squares = add(square(y), square(x))
    nothing = equal(squares, number_like(0.0, squares))
    return divide(part, where(nothing, number_like(1.0, squares), squares))


atan2.gradient_programs(
    y=lambda y, x, dangle, y_shape: fit_to(multiply(dangle, _by_squared_length(x, y, x)), y_shape),
    x=lambda y, x, dangle, x_shape: fit_to(neg(multiply(dangle, _by_squared_length(y, y, x))), x_shape),
)


@operator("x: inexact[*b] -> y: inexact[*b]", sensitive_to="layout", cases=[Case(x=[0.0, math.log(2.0)], y=[0.0, 0.75])])
def sinh(x):
    """The hyperbolic sine, ``(exp(x) - exp(-x)) / 2``."""
    return torch.sinh(x)


sinh.gradient_programs(x=lambda x, dy: multiply(dy, conjugated(cosh(x))))


@operator("x: inexact[*b] -> y: inexact[*b]", sensitive_to="layout", cases=[Case(x=[0.0, math.log(2.0)], y=[1.0, 1.25])])
def cosh(x):
    """The hyperbolic cosine, ``(exp(x) + exp(-x)) / 2``."""
    return torch.cosh(x)


cosh.gradient_programs(x=lambda x, dy: multiply(dy, conjugated(sinh(x))))


@operator("x: inexact[*b] -> y: inexact[*b]", cases=[Case(x=[0.0, 0.75], y=[0.0, math.log(2.0)])])
def asinh(x):
    """The inverse hyperbolic sine."""
    return torch.asinh(x)


asinh.gradient_programs(x=lambda x, dy: multiply(dy, conjugated(rsqrt(square(x) + 1.0))))


@operator("x: inexact[*b] -> y: inexact[*b]", cases=[Case(x=[1.0, 1.25], y=[0.0, math.log(2.0)]), GradCheck(low=1.5, high=3.0)])
def acosh(x):
    """The inverse hyperbolic cosine, at least 0; NaN below 1."""
    return torch.acosh(x)


acosh.gradient_programs(x=lambda x, dy: multiply(dy, conjugated(rsqrt(square(x) - 1.0))))


@operator(
    "x: inexact[*b] -> y: inexact[*b]",
    sensitive_to="layout",
    cases=[Case(x=[0.0, 0.6], y=[0.0, math.log(2.0)]), GradCheck(low=-0.5, high=0.5)],
)
def atanh(x):
    """The inverse hyperbolic tangent; NaN outside of -1 to 1."""
    return torch.atanh(x)


atanh.gradient_programs(x=lambda x, dy: divide(dy, conjugated(1.0 - square(x))))
