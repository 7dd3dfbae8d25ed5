"""Logic on bools: elementwise, with broadcasting, and reduced over axes. It has no gradient."""

import torch

from oarlock.op.trusted_operator import operator
from oarlock.registry import Case

__all__ = ["all_", "any_", "logical_and", "logical_not", "logical_or", "logical_xor"]


@operator(
    "x: bool[*#s], y: bool[*#s] -> z: bool[*#s]",
    cases=[
        Case(x=[False, False, True, True], y=[False, True, False, True], z=[False, False, False, True]),
        Case(x=[[True], [False]], y=True, z=[[True], [False]]),
    ],
)
def logical_and(x, y):
    """Elementwise AND: true if both are true."""
    return torch.logical_and(x, y)


@operator(
    "x: bool[*#s], y: bool[*#s] -> z: bool[*#s]",
    cases=[Case(x=[False, False, True, True], y=[False, True, False, True], z=[False, True, True, True])],
)
def logical_or(x, y):
    """Elementwise OR: true if at least one is true."""
    return torch.logical_or(x, y)


@operator(
    "x: bool[*#s], y: bool[*#s] -> z: bool[*#s]",
    cases=[Case(x=[False, False, True, True], y=[False, True, False, True], z=[False, True, True, False])],
)
def logical_xor(x, y):
    """Elementwise XOR: true if exactly one is true."""
    return torch.logical_xor(x, y)


@operator("x: bool[*b] -> y: bool[*b]", cases=[Case(x=[False, True], y=[True, False])])
def logical_not(x):
    """Elementwise NOT."""
    return torch.logical_not(x)


@operator(
    "x: bool[...s] -> y: bool[...s-{axis}]",
    axis_attribute="axis",
    cases=[
        Case(x=[[False, True], [False, False]], y=True),
        Case(x=[[False, True], [False, False]], axis=0, y=[False, True]),
        Case(x=[[False, True], [False, False]], axis=-1, keepdim=True, y=[[True], [False]]),
        Case(x=[False, True], keepdim=True, y=[True]),
        Case(x=[[[False], [True]], [[False], [False]]], axis=(1, -1), y=[True, False]),
        Case(x=[], y=False),
    ],
)
def any_(x, *, axis: int | tuple[int, ...] | None = None, keepdim: bool = False):
    """Whether any element over one axis, several, or all (None) is true; false if there are none. ``keepdim`` keeps axes with size 1."""
    return _over(torch.any, x, axis, keepdim)


@operator(
    "x: bool[...s] -> y: bool[...s-{axis}]",
    axis_attribute="axis",
    cases=[
        Case(x=[[True, True], [False, True]], y=False),
        Case(x=[[True, True], [False, True]], axis=0, y=[False, True]),
        Case(x=[[True, True], [False, True]], axis=-1, keepdim=True, y=[[True], [False]]),
        Case(x=[[[True], [True]], [[True], [False]]], axis=(2, 1), y=[True, False]),
        Case(x=[], y=True),
    ],
)
def all_(x, *, axis: int | tuple[int, ...] | None = None, keepdim: bool = False):
    """Whether all elements over one axis, several, or all (None) are true; true if there are none. ``keepdim`` keeps axes with size 1."""
    return _over(torch.all, x, axis, keepdim)


def _over(reduce, x, axis: int | tuple[int, ...] | None, keepdim: bool):
    if axis is not None:
        return reduce(x, dim=axis, keepdim=keepdim)
    return reduce(x).reshape((1,) * x.ndim) if keepdim else reduce(x)
