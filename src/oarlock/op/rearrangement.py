"""Rearrangement and repetition: flip, roll, tile, sliding windows, diagonals and triangles."""

import torch

from oarlock.errors import ShapeError
from oarlock.ir.shape_rules import count_windows, require_axis
from oarlock.ir.size import Shape, Size, add, multiply
from oarlock.op.trusted_operator import operator
from oarlock.registry import Case, GradCheck, Rejects

__all__ = ["diagonal", "flip", "repeat_interleave", "roll", "tile", "tril", "triu", "windows"]

_MOST = 2**31  # limit of repetitions and of shifts


def same_shape(x, axes: tuple[int, ...]) -> Shape:
    """Return the shape of ``x``. Raises ShapeError if an axis is missing or repeated."""
    found = [require_axis(x.shape, axis) for axis in axes]
    if len(set(found)) < len(found):
        raise ShapeError(f"axes {axes} contain the same axis twice")
    return x.shape


@operator(
    "x: T[...s] -> y: T[...t]",
    cases=[
        Case(x=[[1.0, 2.0], [3.0, 4.0]], axes=(0,), y=[[3.0, 4.0], [1.0, 2.0]]),
        Case(x=[[1, 2], [3, 4]], axes=(0, -1), y=[[4, 3], [2, 1]]),
        GradCheck(x=(2, 3), axes=(1,)),
        Rejects("axes (0, -1) contain the same axis twice", x=(3,), axes=(0, -1)),
        Rejects("axis 1 is not an axis of x, which has 1 dimensions", x=(3,), axes=(1,)),
    ],
)
def flip(x, *, axes: tuple[int, ...]):
    """``x`` reversed along each of ``axes``."""
    return torch.flip(x, axes)


flip.infer_shape(lambda x, *, axes: same_shape(x, axes))
flip.gradient_programs(x=lambda dy, *, axes: flip(dy, axes=axes))


@operator(
    "x: T[...s] -> y: T[...t]",
    cases=[
        Case(x=[1.0, 2.0, 3.0], shifts=(1,), axes=(0,), y=[3.0, 1.0, 2.0]),
        Case(x=[[1, 2], [3, 4]], shifts=(1, -1), axes=(0, 1), y=[[4, 3], [2, 1]]),
        GradCheck(x=(2, 3), shifts=(2,), axes=(-1,)),
        GradCheck(x=(0, 3), shifts=(1,), axes=(0,)),
        Rejects("2 shifts are given for 1 axes", x=(3,), shifts=(1, 2), axes=(0,)),
    ],
)
def roll(x, *, shifts: tuple[int, ...], axes: tuple[int, ...]):
    """``x`` shifted by ``shifts`` along ``axes``, cyclically: elements shifted out at the end return at the front."""
    return torch.roll(x, shifts, axes)


@roll.infer_shape
def rolled_shape(x, *, shifts, axes):
    if len(shifts) != len(axes):
        raise ShapeError(f"{len(shifts)} shifts are given for {len(axes)} axes")
    if any(abs(shift) > _MOST for shift in shifts):
        raise ShapeError(f"a shift of {max(shifts, key=abs)} is more than {_MOST}")
    return same_shape(x, axes)


roll.gradient_programs(x=lambda dy, *, shifts, axes: roll(dy, shifts=tuple(-shift for shift in shifts), axes=axes))


@operator(
    "x: T[...s] -> y: T[...t]",
    linear_in=("x",),
    cases=[
        Case(x=[1.0, 2.0], repeats=(2,), y=[1.0, 2.0, 1.0, 2.0]),
        Case(x=[[1, 2]], repeats=(2, 1, 2), y=[[[1, 2, 1, 2]], [[1, 2, 1, 2]]]),
        GradCheck(x=(2, 3), repeats=(2, 1, 3)),
        GradCheck(x=(2,), repeats=(0,)),
        Rejects("repeats (2,) are fewer than the 2 axes of x", x=(2, 3), repeats=(2,)),
        Rejects("repeats (-1,) are not 0 to 2147483648 each", x=(2,), repeats=(-1,)),
    ],
)
def tile(x, *, repeats: tuple[int, ...]):
    """``x`` repeated ``repeats`` times along each axis. If there are more repeats than axes, axes of size 1 are added in front."""
    return x.repeat(repeats)


@tile.infer_shape
def tiled_shape(x, *, repeats):
    if len(repeats) < len(x.shape):
        raise ShapeError(f"repeats {repeats} are fewer than the {len(x.shape)} axes of x")
    if not all(0 <= count <= _MOST for count in repeats):
        raise ShapeError(f"repeats {repeats} are not 0 to {_MOST} each")
    shape = (1,) * (len(repeats) - len(x.shape)) + x.shape
    return tuple(multiply(size, count) for size, count in zip(shape, repeats, strict=True))


@tile.gradient("x")
def tile_dx(x_shape, dy, *, repeats):
    """The sum of ``dy`` over all copies."""
    shape = (1,) * (len(repeats) - len(x_shape)) + tuple(x_shape)
    copies = dy.reshape([size for pair in zip(repeats, shape, strict=True) for size in pair])
    return copies.sum(tuple(range(0, 2 * len(repeats), 2))).reshape(x_shape) if repeats else dy.clone()


@operator(
    "x: T[...s] -> y: T[...t]",
    linear_in=("x",),
    axis_attribute="axis",
    cases=[
        Case(x=[1.0, 2.0], repeats=2, axis=0, y=[1.0, 1.0, 2.0, 2.0]),
        Case(x=[[1, 2]], repeats=2, axis=-1, y=[[1, 1, 2, 2]]),
        GradCheck(x=(2, 3, 2), repeats=3, axis=1),
        GradCheck(x=(2, 3), repeats=0, axis=0),
        Rejects("repeats must be 0 to 2147483648, not -1", x=(2,), repeats=-1, axis=0),
    ],
)
def repeat_interleave(x, *, repeats: int, axis: int):
    """Each element repeated ``repeats`` times in a row along ``axis``."""
    return x.repeat_interleave(repeats, dim=axis)


@repeat_interleave.infer_shape
def interleaved_shape(x, *, repeats, axis):
    axis = require_axis(x.shape, axis)
    if not 0 <= repeats <= _MOST:
        raise ShapeError(f"repeats must be 0 to {_MOST}, not {repeats}")
    return (*x.shape[:axis], multiply(x.shape[axis], repeats), *x.shape[axis + 1 :])


@repeat_interleave.gradient("x", axis_attribute="axis")
def repeat_interleave_dx(x_shape, dy, *, repeats, axis):
    axis %= len(x_shape)
    return dy.reshape(*x_shape[: axis + 1], repeats, *x_shape[axis + 1 :]).sum(axis + 1)


@operator(
    "x: T[...s] -> y: T[...t]",
    linear_in=("x",),
    aliases=("x",),
    cases=[
        Case(x=[1.0, 2.0, 3.0, 4.0], axis=0, size=2, y=[[1.0, 2.0], [2.0, 3.0], [3.0, 4.0]]),
        Case(x=[[1, 2], [3, 4], [5, 6]], axis=0, size=2, step=1, y=[[[1, 3], [2, 4]], [[3, 5], [4, 6]]]),
        Case(x=[[1, 2]], axis=1, size=2, step=5, y=[[[1, 2]]]),
        GradCheck(x=(2, 5, 2), axis=1, size=3, step=2),
        GradCheck(x=(5,), axis=-1, size=2, step=1),
        Rejects("a window of 4 does not fit into 3 with padding 0", x=(3,), axis=0, size=4),
        Rejects("stride 0 must be at least 1", x=(3,), axis=0, size=1, step=0),
        Rejects("a window of -1 does not fit", x=(3,), axis=0, size=-1),
    ],
)
def windows(x, *, axis: int, size: int, step: int = 1):
    """Sliding windows of ``size`` elements along ``axis``, every ``step``. The elements of a window are along a new last axis.

    Elements at the end that do not fill a window are left out. ``Tensor.unfold`` of PyTorch, ``sliding_window_view`` of NumPy.
    """
    return x.unfold(axis, size, step).contiguous()


@windows.infer_shape
def windows_shape(x, *, axis, size, step):
    axis = require_axis(x.shape, axis)
    if size < 0:
        raise ShapeError(f"a window of {size} does not fit into {x.shape[axis]}")
    return (*x.shape[:axis], count_windows(x.shape[axis], size, step, 0), *x.shape[axis + 1 :], size)


@windows.gradient("x")
def windows_dx(x_shape, dy, *, axis, size, step):
    """The sum of ``dy`` over the windows that contain an element."""
    return torch.ops.aten.unfold_backward.default(dy, list(x_shape), axis, size, step)


def diagonal_of(x, offset: int, axes: tuple[int, ...]):
    """Return a view of a diagonal, along a new last axis."""
    return x.diagonal(max(-_MOST, min(offset, _MOST)), *axes)


@operator(
    "x: T[...s] -> y: T[...t]",
    linear_in=("x",),
    aliases=("x",),
    cases=[
        Case(x=[[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], y=[1.0, 5.0]),
        Case(x=[[1, 2], [3, 4]], offset=1, y=[2]),
        Case(x=[[7]], offset=3, y=[]),
        Case(x=[[7]], y=[7]),
        Case(x=[[[1, 2], [3, 4]]], axes=(2, 1), offset=1, y=[[3]]),
        GradCheck(x=(3, 2, 3), axes=(0, 2), offset=-1),
        GradCheck(x=(3, 3)),
        Rejects("axes (1, -1) are not two of the 2 axes of x", x=(2, 2), axes=(1, -1)),
    ],
)
def diagonal(x, *, offset: int = 0, axes: tuple[int, ...] = (-2, -1)):
    """The elements ``x[i, i + offset]`` of two axes, along a new last axis. The two sizes must be known, or equal."""
    return diagonal_of(x, offset, axes).contiguous()


@diagonal.infer_shape
def diagonal_shape(x, *, offset, axes):
    rank = len(x.shape)
    if len(axes) != 2 or any(not -rank <= axis < rank for axis in axes) or axes[0] % rank == axes[1] % rank:
        raise ShapeError(f"axes {axes} are not two of the {rank} axes of x")
    rows, columns = (x.shape[axis] for axis in axes)
    length: Size
    if rows == columns and isinstance(rows, str):
        length = add(rows, -abs(offset))
    elif isinstance(rows, int) and isinstance(columns, int):
        length = max(0, min(rows + min(offset, 0), columns - max(offset, 0)))
    else:
        raise ShapeError(f"the length of diagonal {offset} of {rows} by {columns} is not known")
    left_out = {axis % rank for axis in axes}
    return (*(size for axis, size in enumerate(x.shape) if axis not in left_out), length)


@diagonal.gradient("x")
def diagonal_dx(x_shape, dy, *, offset, axes):
    """``dy`` on the diagonal, zeros elsewhere."""
    dx = dy.new_zeros(x_shape)
    diagonal_of(dx, offset, axes).copy_(dy)
    return dx


def _bounded(diagonal: int) -> int:
    return max(-_MOST, min(diagonal, _MOST))


@operator(
    "x: T[*b m n] -> y: T[*b m n]",
    cases=[
        Case(x=[[1.0, 2.0], [3.0, 4.0]], y=[[1.0, 0.0], [3.0, 4.0]]),
        Case(x=[[[1, 2, 3], [4, 5, 6]]], diagonal=-1, y=[[[0, 0, 0], [4, 0, 0]]]),
        Case(x=[[True, True]], diagonal=2**40, y=[[True, True]]),
        GradCheck(),
        GradCheck(diagonal=1),
    ],
)
def tril(x, *, diagonal: int = 0):
    """The lower triangle of each matrix, up to ``diagonal``: 0 is the main one, 1 the one above it. Zeros elsewhere."""
    return torch.tril(x, _bounded(diagonal))


tril.gradient_programs(x=lambda dy, *, diagonal: tril(dy, diagonal=diagonal))


@operator(
    "x: T[*b m n] -> y: T[*b m n]",
    cases=[
        Case(x=[[1.0, 2.0], [3.0, 4.0]], y=[[1.0, 2.0], [0.0, 4.0]]),
        Case(x=[[[1, 2, 3], [4, 5, 6]]], diagonal=1, y=[[[0, 2, 3], [0, 0, 6]]]),
        GradCheck(),
        GradCheck(diagonal=-1),
    ],
)
def triu(x, *, diagonal: int = 0):
    """The upper triangle of each matrix, from ``diagonal`` on: 0 is the main one, 1 the one above it. Zeros elsewhere."""
    return torch.triu(x, _bounded(diagonal))


triu.gradient_programs(x=lambda dy, *, diagonal: triu(dy, diagonal=diagonal))
