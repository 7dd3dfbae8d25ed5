"""Rounding of floats, and tests for NaN and infinity, elementwise. Gradients are zero wherever they are defined."""

import math

import torch

from oarlock.op.trusted_operator import operator
from oarlock.registry import Case

__all__ = ["around", "ceil", "floor", "isfinite", "isinf", "isnan", "round_", "trunc"]


@operator("x: float[*b] -> y: float[*b]", cases=[Case(x=[1.5, -1.5, 2.0], y=[1.0, -2.0, 2.0])])
def floor(x):
    """The largest whole number that is at most ``x``."""
    return torch.floor(x)


floor.no_gradient("x")


@operator("x: float[*b] -> y: float[*b]", cases=[Case(x=[1.5, -1.5, 2.0], y=[2.0, -1.0, 2.0])])
def ceil(x):
    """The smallest whole number that is at least ``x``."""
    return torch.ceil(x)


ceil.no_gradient("x")


@operator("x: float[*b] -> y: float[*b]", cases=[Case(x=[0.5, 1.5, -1.2, 2.7], y=[0.0, 2.0, -1.0, 3.0])])
def round_(x):
    """The nearest whole number; ties are rounded to the even one."""
    return torch.round(x)


round_.no_gradient("x")


@operator(
    "x: float[*b] -> y: float[*b]",
    cases=[Case(x=[1.26, -0.74], decimals=1, y=[1.3, -0.7]), Case(x=[126.0, -74.0], decimals=-1, y=[130.0, -70.0])],
)
def around(x, *, decimals: int = 0):
    """``x`` rounded to ``decimals`` decimal places; a negative number rounds to tens, hundreds and so on."""
    return torch.round(x, decimals=decimals)


around.no_gradient("x")


@operator("x: float[*b] -> y: float[*b]", cases=[Case(x=[1.5, -1.5, 2.0], y=[1.0, -1.0, 2.0])])
def trunc(x):
    """``x`` without its fraction, rounded towards 0."""
    return torch.trunc(x)


trunc.no_gradient("x")


@operator("x: inexact[*b] -> y: bool[*b]", cases=[Case(x=[1.0, math.inf], y=[False, False])])
def isnan(x):
    """Whether ``x`` is NaN, elementwise."""
    return torch.isnan(x)


@operator("x: inexact[*b] -> y: bool[*b]", cases=[Case(x=[1.0, math.inf, -math.inf], y=[False, True, True])])
def isinf(x):
    """Whether ``x`` is infinite, of either sign, elementwise."""
    return torch.isinf(x)


@operator("x: inexact[*b] -> y: bool[*b]", cases=[Case(x=[1.0, math.inf, -math.inf], y=[True, False, False])])
def isfinite(x):
    """Whether ``x`` is neither infinite nor NaN, elementwise."""
    return torch.isfinite(x)
