"""Elementwise comparisons, with broadcasting. They have no gradient: their outputs are bool."""

import torch

from oarlock.op.trusted_operator import operator
from oarlock.registry import Case

__all__ = ["equal", "greater", "greater_equal", "less", "less_equal", "not_equal"]


@operator(
    "x: real[*#s], y: real[*#s] -> z: bool[*#s]",
    cases=[Case(x=[10.0, 20.0], y=15.0, z=[False, True])],
)
def greater(x, y):
    """``x > y``, elementwise."""
    return torch.gt(x, y)


@operator("x: real[*#s], y: real[*#s] -> z: bool[*#s]", cases=[Case(x=[10.0, 20.0], y=[10.0, 30.0], z=[True, False])])
def greater_equal(x, y):
    """``x >= y``, elementwise."""
    return torch.ge(x, y)


@operator("x: real[*#s], y: real[*#s] -> z: bool[*#s]", cases=[Case(x=[10.0, 20.0], y=15.0, z=[True, False])])
def less(x, y):
    """``x < y``, elementwise."""
    return torch.lt(x, y)


@operator("x: real[*#s], y: real[*#s] -> z: bool[*#s]", cases=[Case(x=[10.0, 20.0], y=[10.0, 10.0], z=[True, False])])
def less_equal(x, y):
    """``x <= y``, elementwise."""
    return torch.le(x, y)


@operator("x: T[*#s], y: T[*#s] -> z: bool[*#s]", cases=[Case(x=[1, 2], y=[1, 3], z=[True, False])])
def equal(x, y):
    """``x == y``, elementwise."""
    return torch.eq(x, y)


@operator("x: T[*#s], y: T[*#s] -> z: bool[*#s]", cases=[Case(x=[1, 2], y=[1, 3], z=[False, True]), Case(x=[True], y=[False], z=[True])])
def not_equal(x, y):
    """``x != y``, elementwise. NaN differs from itself."""
    return torch.ne(x, y)
