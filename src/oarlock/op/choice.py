"""Elementwise choice of one of two values, with broadcasting: by a condition, the minimum or the maximum."""

import torch

from oarlock.op.comparison import equal, less
from oarlock.op.elementwise import multiply
from oarlock.op.reduction import fit_to
from oarlock.op.trusted_operator import operator
from oarlock.op.unary import number_like
from oarlock.registry import Case, GradCheck

__all__ = ["maximum", "minimum", "where"]


@operator(
    "condition: bool[*#s], x: T[*#s], y: T[*#s] -> z: T[*#s]",
    cases=[
        Case(condition=[True, False], x=[1.0, 2.0], y=[3.0, 4.0], z=[1.0, 4.0]),
        Case(condition=[[True], [False]], x=[1, 2], y=0, z=[[1, 2], [0, 0]]),
        Case(condition=[True, False], x=[True, True], y=False, z=[True, False]),
        GradCheck(condition=[[True, False], [False, True]], x=(2, 2), y=(2,)),
        GradCheck(condition=[True, False], x=(3, 1), y=()),
        GradCheck(condition=False, x=(2, 1), y=(1, 2)),
    ],
)
def where(condition, x, y):
    """``x`` where ``condition`` is true, else ``y``. The value not chosen gets no gradient, even if it is NaN."""
    return torch.where(condition, x, y)


where.gradient_programs(
    x=lambda condition, dz, x_shape: fit_to(where(condition, dz, number_like(0.0, dz)), x_shape),
    y=lambda condition, dz, y_shape: fit_to(where(condition, number_like(0.0, dz), dz), y_shape),
)


def _share(beaten, x, y, dz):
    """Return the gradient of ``x``: 0 if `beaten`, half of ``dz`` if ``x`` equals ``y``, else ``dz``."""
    nothing, half, all_ = (number_like(value, dz) for value in (0.0, 0.5, 1.0))
    return multiply(dz, where(beaten, nothing, where(equal(x, y), half, all_)))


@operator(
    "x: real[*#s], y: real[*#s] -> z: real[*#s]",
    cases=[Case(x=[1.0, 5.0], y=[3.0, 4.0], z=[1.0, 4.0]), Case(x=[1, 5], y=3, z=[1, 3])],
)
def minimum(x, y):
    """The smaller of two values; NaN if either is NaN. Equal values share the gradient evenly."""
    return torch.minimum(x, y)


minimum.gradient_programs(
    x=lambda x, y, dz, x_shape: fit_to(_share(less(y, x), x, y, dz), x_shape),
    y=lambda x, y, dz, y_shape: fit_to(_share(less(x, y), y, x, dz), y_shape),
)


@operator(
    "x: real[*#s], y: real[*#s] -> z: real[*#s]",
    cases=[Case(x=[1.0, 5.0], y=[3.0, 4.0], z=[3.0, 5.0]), Case(x=[1, 5], y=3, z=[3, 5])],
)
def maximum(x, y):
    """The larger of two values; NaN if either is NaN. Equal values share the gradient evenly."""
    return torch.maximum(x, y)


maximum.gradient_programs(
    x=lambda x, y, dz, x_shape: fit_to(_share(less(x, y), x, y, dz), x_shape),
    y=lambda x, y, dz, y_shape: fit_to(_share(less(y, x), y, x, dz), y_shape),
)
