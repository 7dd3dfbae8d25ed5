"""Logic on bools: element by element, with broadcasting, and over an axis. It has no gradient."""

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
    """Where both are true."""
    return torch.logical_and(x, y)


@operator(
    "x: bool[*#s], y: bool[*#s] -> z: bool[*#s]",
    cases=[Case(x=[False, False, True, True], y=[False, True, False, True], z=[False, True, True, True])],
)
def logical_or(x, y):
    """Where one or both are true."""
    return torch.logical_or(x, y)


@operator(
    "x: bool[*#s], y: bool[*#s] -> z: bool[*#s]",
    cases=[Case(x=[False, False, True, True], y=[False, True, False, True], z=[False, True, True, False])],
)
def logical_xor(x, y):
    """Where just one is true."""
    return torch.logical_xor(x, y)


@operator("x: bool[*b] -> y: bool[*b]", cases=[Case(x=[False, True], y=[True, False])])
def logical_not(x):
    """Where ``x`` is false."""
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
    """Whether some element along one axis or several is true, at all for None; of nothing, false. ``keepdim`` leaves sizes of 1."""
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
    """Whether every element along one axis or several is true, every one for None; of nothing, true. ``keepdim`` leaves sizes of 1."""
    return _over(torch.all, x, axis, keepdim)


def _over(reduce, x, axis: int | tuple[int, ...] | None, keepdim: bool):
    if axis is not None:
        return reduce(x, dim=axis, keepdim=keepdim)
    return reduce(x).reshape((1,) * x.ndim) if keepdim else reduce(x)
