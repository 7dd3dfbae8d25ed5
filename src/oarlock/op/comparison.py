"""Comparisons, element by element, with broadcasting. They have no gradient: their outputs are bool."""

import operator as numbers

import torch

from oarlock.registry import Case, Rejects, operator

__all__ = ["equal", "greater", "greater_equal", "less", "less_equal", "not_equal"]


@operator(
    "x: number[*#s], y: number[*#s] -> z: bool[*#s]",
    cases=[Case(x=[10.0, 20.0], y=15.0, z=[False, True]), Rejects("different sizes", x=(2,), y=(3,))],
)
def greater(x, y):
    """Where ``x > y``."""
    return torch.gt(x, y)


greater.on_host(numbers.gt)
greater.comes_to("torch.gt(x, y)")
greater.into(torch.gt)


@operator("x: number[*#s], y: number[*#s] -> z: bool[*#s]", cases=[Case(x=[10.0, 20.0], y=[10.0, 30.0], z=[True, False])])
def greater_equal(x, y):
    """Where ``x >= y``."""
    return torch.ge(x, y)


greater_equal.on_host(numbers.ge)
greater_equal.comes_to("torch.ge(x, y)")
greater_equal.into(torch.ge)


@operator("x: number[*#s], y: number[*#s] -> z: bool[*#s]", cases=[Case(x=[10.0, 20.0], y=15.0, z=[True, False])])
def less(x, y):
    """Where ``x < y``."""
    return torch.lt(x, y)


less.on_host(numbers.lt)
less.comes_to("torch.lt(x, y)")
less.into(torch.lt)


@operator("x: number[*#s], y: number[*#s] -> z: bool[*#s]", cases=[Case(x=[10.0, 20.0], y=[10.0, 10.0], z=[True, False])])
def less_equal(x, y):
    """Where ``x <= y``."""
    return torch.le(x, y)


less_equal.on_host(numbers.le)
less_equal.comes_to("torch.le(x, y)")
less_equal.into(torch.le)


@operator("x: T[*#s], y: T[*#s] -> z: bool[*#s]", cases=[Case(x=[1, 2], y=[1, 3], z=[True, False])])
def equal(x, y):
    """Where ``x`` and ``y`` are the same value."""
    return torch.eq(x, y)


equal.on_host(numbers.eq)
equal.comes_to("torch.eq(x, y)")
equal.into(torch.eq)


@operator("x: T[*#s], y: T[*#s] -> z: bool[*#s]", cases=[Case(x=[1, 2], y=[1, 3], z=[False, True]), Case(x=[True], y=[False], z=[True])])
def not_equal(x, y):
    """Where ``x`` and ``y`` are different values; NaN differs from itself."""
    return torch.ne(x, y)


not_equal.on_host(numbers.ne)
not_equal.comes_to("torch.ne(x, y)")
not_equal.into(torch.ne)
