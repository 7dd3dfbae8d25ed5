"""Group normalization: mean 0 and variance 1 in each group of channels of each image."""

import torch

from oarlock.errors import ShapeError
from oarlock.ir.size import floor_divide, multiply, product
from oarlock.op.batch_normalization import batch_norm_bias_grad, expand_by_channel
from oarlock.op.elementwise import multiply as times
from oarlock.op.elementwise import subtract
from oarlock.op.manipulation import reshape_like
from oarlock.op.normalization import layer_norm_dx
from oarlock.op.trusted_operator import operator
from oarlock.registry import Case, GradCheck, Rejects
from oarlock.tensor.memory_format import dense

__all__ = ["group_norm", "rows_by_group"]


@operator(
    "x: T[n c ...s] -> y: T[n {groups} k]",
    aliases=("x",),
    cases=[
        Case(x=[[[1.0, 2.0], [3.0, 4.0]]], groups=1, y=[[[1.0, 2.0, 3.0, 4.0]]]),
        GradCheck(x=(2, 4, 3), groups=2),
        Rejects("3 channels do not make up 2 groups", x=(1, 3), groups=2),
    ],
)
def rows_by_group(x, *, groups: int):
    """The elements of each of ``groups`` groups of channels as a row."""
    return x.reshape(x.shape[0], groups, torch.Size(x.shape[1:]).numel() // groups)


@rows_by_group.infer_shape
def rows_by_group_shape(x, *, groups):
    n, c, *sizes = x.shape
    if groups < 1 or (isinstance(c, int) and c % groups):
        raise ShapeError(f"{c} channels do not make up {groups} groups")
    return (n, groups, floor_divide(multiply(c, product(sizes)), groups))


rows_by_group.gradient_programs(x=lambda x_shape, dy: reshape_like(dy, x_shape))


@operator(
    "x: float[n c ...s], scale?: float[c], bias?: float[c] -> y: float[n c ...s], mean: float[n {groups} 1], rstd: float[n {groups} 1]",
    intermediate=("mean", "rstd"),
    cases=[
        Case(
            x=[[[1.0, 3.0], [0.0, 4.0]]], scale=[1.0, 10.0], bias=[0.0, 5.0], groups=2, epsilon=0.0,
            y=[[[-1.0, 1.0], [-5.0, 15.0]]], mean=[[[2.0], [2.0]]], rstd=[[[1.0], [0.5]]],
        ),
        GradCheck(x=(2, 4, 3, 2), scale=(4,), bias=(4,), groups=2),
        GradCheck(x=(2, 4, 3), groups=1),
        GradCheck(x=(2, 6), scale=(6,), groups=3),
        Rejects("3 channels do not make up 2 groups", x=(1, 3), groups=2),
    ],
)  # fmt: skip
def group_norm(x, scale=None, bias=None, *, groups: int, epsilon: float = 1e-5):
    """``y = (x - mean) * rstd * scale + bias`` with ``rstd = 1 / sqrt(variance + epsilon)``, per image and group of channels.

    ``scale`` and ``bias`` have a number for each channel. With one channel per group it is instance normalization (Wu and He, 2018).
    """
    n, c = x.shape[:2]
    if not x.numel():
        nothing = x.new_zeros(n, groups, 1)
        return torch.zeros_like(x), nothing, nothing.clone()
    scale, bias = (None if each is None else each.contiguous() for each in (scale, bias))  # PyTorch ignores their strides
    y, mean, rstd = torch.native_group_norm(dense(x), scale, bias, n, c, x.numel() // (n * c), groups, epsilon)
    return y, mean.reshape(n, groups, 1), rstd.reshape(n, groups, 1)


@group_norm.check_shapes
def require_groups(x, scale=None, bias=None, *, groups, epsilon):
    rows_by_group_shape(x, groups=groups)


@group_norm.gradient_program("x")
def group_norm_dx(x, mean, rstd, dy, scale=None, dmean=None, drstd=None, *, groups):
    """The gradient of `layer_norm` with the groups as rows."""
    g = dy if scale is None else times(dy, expand_by_channel(scale, x))
    rows, g = rows_by_group(x, groups=groups), rows_by_group(g, groups=groups)
    return reshape_like(layer_norm_dx(rows, mean, rstd, g, None, dmean, drstd), x)


@group_norm.gradient_program("scale")
def group_norm_dscale(x, mean, rstd, dy, dmean=None, drstd=None, *, groups):
    normalized = times(subtract(rows_by_group(x, groups=groups), mean), rstd)
    return batch_norm_bias_grad(times(dy, reshape_like(normalized, x)))


group_norm.gradient_programs(bias=lambda dy, dmean=None, drstd=None: batch_norm_bias_grad(dy))
