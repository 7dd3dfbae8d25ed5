"""Elementwise functions of one number: powers, exponentials, logarithms."""

import math

import torch

from oarlock.op.complex_parts import conjugated
from oarlock.op.creation import full
from oarlock.op.elementwise import divide, multiply, neg
from oarlock.op.trusted_operator import operator
from oarlock.registry import Case, GradCheck

__all__ = [
    "erf",
    "exp",
    "exp2",
    "expm1",
    "log",
    "log1p",
    "log2",
    "log10",
    "reciprocal",
    "rsqrt",
    "sqrt",
    "square",
    "stop_gradient",
]  # fmt: skip


def number_like(value: float, like):
    """Return the number ``value`` as a variable of the dtype of ``like``."""
    return full(shape=(), value=value, dtype=like.dtype)


@operator("x: inexact[*b] -> y: inexact[*b]", cases=[Case(x=[3.0, -2.0], y=[9.0, 4.0])])
def square(x):
    """The square, ``y = x * x``."""
    return torch.mul(x, x)


square.gradient_programs(x=lambda x, dy: multiply(multiply(dy, conjugated(x)), number_like(2.0, x)))


@operator("x: inexact[*b] -> y: inexact[*b]", cases=[Case(x=[4.0, 0.25], y=[2.0, 0.5]), GradCheck(low=0.5, high=2.0)])
def sqrt(x):
    """The square root; NaN below 0."""
    return torch.sqrt(x)


sqrt.gradient_programs(x=lambda y, dy: divide(dy, conjugated(multiply(y, number_like(2.0, y)))))


@operator("x: inexact[*b] -> y: inexact[*b]", cases=[Case(x=[4.0, 0.25], y=[0.5, 2.0]), GradCheck(low=0.5, high=2.0)])
def rsqrt(x):
    """The reciprocal square root, ``1 / sqrt(x)``; NaN below 0."""
    return torch.rsqrt(x)


rsqrt.gradient_programs(x=lambda y, dy: multiply(multiply(dy, number_like(-0.5, y)), conjugated(multiply(y, square(y)))))


@operator("x: inexact[*b] -> y: inexact[*b]", cases=[Case(x=[4.0, -0.5], y=[0.25, -2.0]), GradCheck(low=0.5, high=2.0)])
def reciprocal(x):
    """The reciprocal, ``1 / x``."""
    return torch.reciprocal(x)


reciprocal.gradient_programs(x=lambda y, dy: neg(multiply(dy, conjugated(square(y)))))


@operator("x: inexact[*b] -> y: inexact[*b]", cases=[Case(x=[0.0, 1.0], y=[1.0, 2.718281828459045])])
def exp(x):
    """The exponential, ``e`` to the power ``x``."""
    return torch.exp(x)


exp.gradient_programs(x=lambda y, dy: multiply(dy, conjugated(y)))


@operator("x: inexact[*b] -> y: inexact[*b]", sensitive_to="layout", cases=[Case(x=[0.0, 3.0, -1.0], y=[1.0, 8.0, 0.5])])
def exp2(x):
    """2 to the power ``x``."""
    return torch.exp2(x)


exp2.gradient_programs(x=lambda y, dy: multiply(dy, conjugated(multiply(y, number_like(math.log(2.0), y)))))


@operator("x: inexact[*b] -> y: inexact[*b]", cases=[Case(x=[0.0, 1.0, 1e-12], y=[0.0, math.e - 1.0, 1e-12])])
def expm1(x):
    """``exp(x) - 1``, accurate near 0, too."""
    return torch.expm1(x)


expm1.gradient_programs(x=lambda x, dy: multiply(dy, conjugated(exp(x))))


@operator("x: inexact[*b] -> y: inexact[*b]", cases=[Case(x=[1.0, 2.718281828459045], y=[0.0, 1.0]), GradCheck(low=0.5, high=2.0)])
def log(x):
    """The natural logarithm; NaN below 0."""
    return torch.log(x)


log.gradient_programs(x=lambda x, dy: divide(dy, conjugated(x)))


@operator(
    "x: inexact[*b] -> y: inexact[*b]",
    cases=[Case(x=[0.0, math.e - 1.0, 1e-12], y=[0.0, 1.0, 1e-12]), GradCheck(low=-0.5, high=2.0)],
)
def log1p(x):
    """``log(1 + x)``, accurate near 0, too; NaN below -1."""
    return torch.log1p(x)


log1p.gradient_programs(x=lambda x, dy: divide(dy, conjugated(x + 1.0)))


@operator("x: inexact[*b] -> y: inexact[*b]", cases=[Case(x=[1.0, 8.0, 0.5], y=[0.0, 3.0, -1.0]), GradCheck(low=0.5, high=2.0)])
def log2(x):
    """The logarithm to base 2; NaN below 0."""
    return torch.log2(x)


log2.gradient_programs(x=lambda x, dy: divide(dy, conjugated(multiply(x, number_like(math.log(2.0), x)))))


@operator("x: inexact[*b] -> y: inexact[*b]", cases=[Case(x=[1.0, 1000.0, 0.1], y=[0.0, 3.0, -1.0]), GradCheck(low=0.5, high=2.0)])
def log10(x):
    """The logarithm to base 10; NaN below 0."""
    return torch.log10(x)


log10.gradient_programs(x=lambda x, dy: divide(dy, conjugated(multiply(x, number_like(math.log(10.0), x)))))


@operator("x: float[*b] -> y: float[*b]", cases=[Case(x=[0.0, 1.0, -0.5], y=[0.0, math.erf(1.0), math.erf(-0.5)])])
def erf(x):
    """The error function, ``2 / sqrt(pi)`` times the integral of ``exp(-t**2)`` from 0 to ``x``."""
    return torch.erf(x)


erf.gradient_programs(x=lambda x, dy: multiply(dy, multiply(exp(neg(square(x))), number_like(2.0 / math.sqrt(math.pi), x))))


@operator("x: T[*b] -> y: T[*b]", aliases=("x",), cases=[Case(x=[1.0, 2.0], y=[1.0, 2.0])])
def stop_gradient(x):
    """Identity that blocks the gradient."""
    return x


stop_gradient.no_gradient("x")
