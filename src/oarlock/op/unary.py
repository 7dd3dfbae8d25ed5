"""Functions of one number, element by element: powers, exponentials, the absolute value."""

import torch

from oarlock.op.creation import full
from oarlock.op.elementwise import divide, multiply
from oarlock.op.trusted_operator import operator
from oarlock.registry import Case, GradCheck

__all__ = ["abs_", "exp", "log", "sqrt", "square"]


@operator("x: float[*b] -> y: float[*b]", cases=[Case(x=[3.0, -2.0], y=[9.0, 4.0])])
def square(x):
    """``y = x * x``."""
    return torch.mul(x, x)


square.gradient_programs(x=lambda x, dy: multiply(multiply(dy, x), full(shape=(), value=2.0, dtype=x.dtype)))


@operator("x: float[*b] -> y: float[*b]", cases=[Case(x=[4.0, 0.25], y=[2.0, 0.5]), GradCheck(low=0.5, high=2.0)])
def sqrt(x):
    """The square root; NaN below zero."""
    return torch.sqrt(x)


sqrt.gradient_programs(x=lambda y, dy: divide(dy, multiply(y, full(shape=(), value=2.0, dtype=y.dtype))))


@operator("x: float[*b] -> y: float[*b]", cases=[Case(x=[0.0, 1.0], y=[1.0, 2.718281828459045])])
def exp(x):
    """``e`` to the power ``x``."""
    return torch.exp(x)


exp.gradient_programs(x=lambda y, dy: multiply(dy, y))


@operator("x: float[*b] -> y: float[*b]", cases=[Case(x=[1.0, 2.718281828459045], y=[0.0, 1.0]), GradCheck(low=0.5, high=2.0)])
def log(x):
    """The natural logarithm; NaN below zero."""
    return torch.log(x)


log.gradient_programs(x=lambda x, dy: divide(dy, x))


@operator("x: number[*b] -> y: number[*b]", cases=[Case(x=[-1.5, 2.0], y=[1.5, 2.0]), GradCheck(low=0.5, high=2.0)])
def abs_(x):
    """``|x|``; its gradient at 0 is 0."""
    return torch.abs(x)


@abs_.gradient("x")
def abs_dx(x, dy):
    return torch.mul(dy, torch.sign(x))


abs_dx.no_gradient("x")  # a step function of x
