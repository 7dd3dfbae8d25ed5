"""Bitwise logic and shifts of integers, with broadcasting. `op/logical.py` has logic on bools."""

import torch

from oarlock.op.trusted_operator import operator
from oarlock.registry import Case

__all__ = ["bitwise_and", "bitwise_left_shift", "bitwise_not", "bitwise_or", "bitwise_right_shift", "bitwise_xor"]


@operator("x: integer[*#s], y: integer[*#s] -> z: integer[*#s]", cases=[Case(x=[12, -1], y=[10, 7], z=[8, 7])])
def bitwise_and(x, y):
    """Bitwise AND: the bits set in both."""
    return torch.bitwise_and(x, y)


@operator("x: integer[*#s], y: integer[*#s] -> z: integer[*#s]", cases=[Case(x=[12, 0], y=[10, 7], z=[14, 7])])
def bitwise_or(x, y):
    """Bitwise OR: the bits set in at least one."""
    return torch.bitwise_or(x, y)


@operator("x: integer[*#s], y: integer[*#s] -> z: integer[*#s]", cases=[Case(x=[12, -1], y=[10, 0], z=[6, -1])])
def bitwise_xor(x, y):
    """Bitwise XOR: the bits set in exactly one."""
    return torch.bitwise_xor(x, y)


@operator("x: integer[*b] -> y: integer[*b]", cases=[Case(x=[0, 5, -1], y=[-1, -6, 0])])
def bitwise_not(x):
    """Bitwise NOT: all bits inverted, ``-x - 1`` for signed integers."""
    return torch.bitwise_not(x)


@operator("x: integer[*#s], y: integer[*#s] -> z: integer[*#s]", cases=[Case(x=[1, -3, 5, 1, 1], y=[4, 1, 0, 64, -1], z=[16, -6, 5, 0, 0])])
def bitwise_left_shift(x, y):
    """``x`` shifted left by ``y`` bits; 0 if ``y`` is negative or at least the number of bits."""
    return torch.bitwise_left_shift(x, y)


@operator(
    "x: integer[*#s], y: integer[*#s] -> z: integer[*#s]", cases=[Case(x=[16, -3, 5, 1, -1], y=[4, 1, 0, 64, 70], z=[1, -2, 5, 0, -1])]
)
def bitwise_right_shift(x, y):
    """``x`` shifted right by ``y`` bits, rounding down; only the sign remains if ``y`` is negative or exceeds the number of bits."""
    return torch.bitwise_right_shift(x, y)
