"""Logic on the bits of integers, with broadcasting. Bools have `op/logical.py`."""

import torch

from oarlock.op.trusted_operator import operator
from oarlock.registry import Case

__all__ = ["bitwise_and", "bitwise_left_shift", "bitwise_not", "bitwise_or", "bitwise_right_shift", "bitwise_xor"]


@operator("x: integer[*#s], y: integer[*#s] -> z: integer[*#s]", cases=[Case(x=[12, -1], y=[10, 7], z=[8, 7])])
def bitwise_and(x, y):
    """The bits that both have."""
    return torch.bitwise_and(x, y)


@operator("x: integer[*#s], y: integer[*#s] -> z: integer[*#s]", cases=[Case(x=[12, 0], y=[10, 7], z=[14, 7])])
def bitwise_or(x, y):
    """The bits that one or both have."""
    return torch.bitwise_or(x, y)


@operator("x: integer[*#s], y: integer[*#s] -> z: integer[*#s]", cases=[Case(x=[12, -1], y=[10, 0], z=[6, -1])])
def bitwise_xor(x, y):
    """The bits that just one has."""
    return torch.bitwise_xor(x, y)


@operator("x: integer[*b] -> y: integer[*b]", cases=[Case(x=[0, 5, -1], y=[-1, -6, 0])])
def bitwise_not(x):
    """The bits that ``x`` has not: ``-x - 1`` where numbers have a sign."""
    return torch.bitwise_not(x)


@operator("x: integer[*#s], y: integer[*#s] -> z: integer[*#s]", cases=[Case(x=[1, -3, 5, 1, 1], y=[4, 1, 0, 64, -1], z=[16, -6, 5, 0, 0])])
def bitwise_left_shift(x, y):
    """``x`` moved up by ``y`` bits, zeros behind; 0 where ``y`` is negative, or at least as many as there are bits."""
    return torch.bitwise_left_shift(x, y)


@operator(
    "x: integer[*#s], y: integer[*#s] -> z: integer[*#s]", cases=[Case(x=[16, -3, 5, 1, -1], y=[4, 1, 0, 64, 70], z=[1, -2, 5, 0, -1])]
)
def bitwise_right_shift(x, y):
    """``x`` moved down by ``y`` bits, rounded down; all bits leave, but for the sign, where ``y`` is negative or more than there are."""
    return torch.bitwise_right_shift(x, y)
