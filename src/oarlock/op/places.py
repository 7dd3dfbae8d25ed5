"""Elements of an image by flat position, as max pooling returns it: read, and gradients added back."""

import torch

from oarlock.ir.shape_rules import require_numbered
from oarlock.ir.size import format_shape, product
from oarlock.op.trusted_operator import operator
from oarlock.registry import Case, GradCheck, Rejects
from oarlock.tensor.images import require_places

__all__ = ["take_places"]


@operator(
    "x: float[n c ...s], index: int64[n c ...t] -> y: float[n c ...t]",
    linear_in=("x",),
    checks_values=True,
    cases=[
        Case(x=[[[[1.0, 2.0], [3.0, 4.0]]]], index=[[[3, 0, 3]]], y=[[[4.0, 1.0, 4.0]]]),
        GradCheck(x=(1, 2, 2, 3), index=[[[[0, 5, 5]], [[2, 1, 0]]]]),
        Rejects("index 4 is out of range for an image of 2 x 2 positions, numbered from 0", x=(1, 1, 2, 2), index=[[[4]]]),
        Rejects("index -1 is out of range for a signal of 2 positions, numbered from 0", x=(1, 1, 2), index=[[[0, -1]]]),
    ],
)
def take_places(x, index):
    """The values of each channel at the flat positions ``index``, counted from 0 over its axes ``s``."""
    index = require_places(index, x.shape[2:])
    return _by_channel(x).gather(2, _by_channel(index)).reshape(index.shape)


@take_places.check_shapes
def require_some_place(x, index):
    require_numbered(index.shape, product(x.shape[2:]), f"{format_shape(x.shape)} has no place")


@take_places.gradient("x", checks_values=True)
def take_places_dx(index, dy, x_shape):
    """The sum of ``dy`` over all reads of each position."""
    index = require_places(index, x_shape[2:])
    return _by_channel(dy.new_zeros(x_shape)).scatter_add_(2, _by_channel(index), _by_channel(dy)).reshape(x_shape)


def _by_channel(x):
    """Return ``x`` with the elements of each channel in a row. There may be none."""
    return x.reshape(*x.shape[:2], torch.Size(x.shape[2:]).numel())
