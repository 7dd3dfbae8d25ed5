"""Operators with symbolic sizes from other tensors: views, broadcasts, slices, ranges, and sizes as numbers.

The tensors `like` provide the values of symbols; only their shapes are read.
"""

from collections.abc import Sequence

import torch

from oarlock.errors import ShapeError
from oarlock.ir.attribute import Sizes
from oarlock.ir.dtype import DType
from oarlock.ir.shape_rules import filled_shape, require_at_most, require_axis, require_broadcast
from oarlock.ir.size import Shape, Size, add, floor_divide, format_shape, multiply
from oarlock.op.manipulation import reshape_like
from oarlock.op.reduction import sum_to_shape
from oarlock.op.trusted_operator import operator
from oarlock.registry import Case, GradCheck, Rejects
from oarlock.registry.attributes import UnknownSizes
from oarlock.registry.value_sizes import predict_size
from oarlock.tensor.dtype import to_torch

__all__ = ["arange", "broadcast_to", "narrow", "size", "view"]

_FEW = 8  # pieces

_ZERO = Sizes((0,))


@operator(
    "x: T[...s], *like: shape -> y: T[...t]",
    told_attributes={"shape": 1},
    aliases=("x",),
    cases=[
        Case(x=[[1.0, 2.0], [3.0, 4.0]], like=(), shape=(4,), y=[1.0, 2.0, 3.0, 4.0]),
        Case(x=[1, 2, 3, 4], like=([0.5, 0.5],), shape=(2, -1), y=[[1, 2], [3, 4]]),
        GradCheck(x=(6,), like=[(2,), (3,)], shape=(2, 3)),
        Rejects("6 elements do not fill [4]", x=(2, 3), like=[], shape=(4,)),
        Rejects("no input determines b and t of [b, t]; pass variables of that size as like=[...]", x=(6,), like=[], shape=("b", "t")),
    ],
)
def view(x, like, *, shape: Sizes):
    """The elements of ``x``, in order, in ``shape``; one size may be -1. Unlike in `reshape`, symbols may also come from ``like``."""
    return x.reshape([item if isinstance(item, int) else -1 for item in shape])


view.infer_shape(lambda x, like, *, shape: filled_shape(x.shape, shape))
view.gradient_programs(x=lambda x_shape, dy: reshape_like(dy, x_shape))


@operator(
    "x: T[...s], *like: shape -> y: T[...t]",
    variable_attributes=("shape",),
    told_attributes={"shape": 0},
    aliases=("x",),
    cases=[
        Case(x=[[1.0], [2.0]], like=(), shape=(2, 3), y=[[1.0, 1.0, 1.0], [2.0, 2.0, 2.0]]),
        Case(x=[True, False], like=(), shape=(2, -1), y=[[True, False], [True, False]]),
        Case(x=[1.0, 2.0], like=(), shape=(2,), y=[1.0, 2.0]),
        GradCheck(x=(2, 1), like=[(3,)], shape=(2, -1, 3)),
        GradCheck(x=(), like=[], shape=(0, 2)),
        Rejects("[2] does not broadcast to [2, 3]", x=(2,), like=[], shape=(2, 3)),
        Rejects("-1 keeps a size of x, but x has no axis at the front of [-1, 2]", x=(2,), like=[], shape=(-1, 2)),
        Rejects("a size must be at least 0, not -2", x=(2,), like=[], shape=(-2, 2)),
        Rejects("no input determines n of [n, 2]", x=(2,), like=[], shape=("n", 2)),
    ],
)
def broadcast_to(x, like, *, shape: Sizes):
    """``x`` broadcast to ``shape``, by NumPy's rules. -1 keeps a size of ``x``; ``like`` provides symbols that ``x`` lacks."""
    return _repeated(x, shape)  # type: ignore[arg-type]  # when it runs, each size is a number


def _repeated(x: torch.Tensor, shape: Sequence[int]) -> torch.Tensor:
    if x.dim() == len(shape):
        axes = [axis for axis, size in enumerate(shape) if size not in (-1, x.shape[axis])]
        if len(axes) == 1 and x.shape[axes[0]] == 1 and 1 < shape[axes[0]] <= _FEW:
            return torch.cat([x] * shape[axes[0]], axes[0]).contiguous()  # a third of the time, for small tensors
    return x.expand(shape).contiguous()


@broadcast_to.infer_shape
def broadcast_shape(x, like, *, shape):
    if isinstance(shape, UnknownSizes):
        return tuple(shape)
    there = (-2,) * (len(shape) - len(x.shape)) + x.shape
    for item, own in zip(shape, there, strict=False):
        if item == -1 and own == -2:
            raise ShapeError(f"-1 keeps a size of x, but x has no axis at the front of {format_shape(shape)}")
        if isinstance(item, int) and item < -1:
            raise ShapeError(f"a size must be at least 0, not {item}")
    wanted = tuple(own if item == -1 else item for item, own in zip(shape, there, strict=False))
    require_broadcast(x.shape, wanted)
    return wanted


broadcast_to.gradient_programs(x=lambda x_shape, dy: sum_to_shape(dy, x_shape))


@operator(
    "x: T[...s], *like: shape -> y: T[...t]",
    linear_in=("x",),
    told_attributes={"start": 0, "length": 0},
    aliases=("x",),
    axis_attribute="axis",
    cases=[
        Case(x=[1.0, 2.0, 3.0, 4.0], like=(), start=(1,), length=(2,), y=[2.0, 3.0]),
        Case(x=[[1, 2, 3], [4, 5, 6]], like=([0, 0],), axis=1, length=(2,), y=[[1, 2], [4, 5]]),
        GradCheck(x=(2, 4, 2), like=[], axis=1, start=(1,), length=(2,)),
        GradCheck(x=(3, 2), like=[], axis=-2, start=(3,), length=(0,)),
        Rejects("axis 0 has size 3, so 2 elements from 2 are out of range", x=(3,), like=[], start=(2,), length=(2,)),
        Rejects("start must be one number, not [1, 1]", x=(3,), like=[], start=(1, 1), length=(1,)),
        Rejects("start and length must be at least 0, not 0 and -1", x=(3,), like=[], length=(-1,)),
        Rejects("start and length must be at least 0, not -1 and 1", x=(3,), like=[], start=(-1,), length=(1,)),
        Rejects("no input determines t of [t]", x=(3,), like=[], length=("t",)),
    ],
)
def narrow(x, like, *, axis: int = 0, start: Sizes = _ZERO, length: Sizes):
    """``length`` elements along ``axis`` from ``start`` on: a `slice` whose bounds may be symbols of ``x`` or ``like``."""
    narrowed_shape(x.shape, axis, start, length)
    return x.narrow(axis, start[0], length[0])


def narrowed_shape(shape: Shape, axis: int, start: Sizes, length: Sizes) -> Shape:
    """Return the shape of `narrow`. Raises ShapeError. The kernels call it, too, when all sizes are numbers."""
    axis = require_axis(shape, axis)
    for name, value in (("start", start), ("length", length)):
        if len(value) != 1:
            raise ShapeError(f"{name} must be one number, not {format_shape(value)}")
    (first,), (count,) = start, length
    if any(isinstance(item, int) and item < 0 for item in (first, count)):
        raise ShapeError(f"start and length must be at least 0, not {first} and {count}")
    message = "axis {} has size {}, so {} elements from {} are out of range"
    for least in (add(first, count), *(item for item in (first, count) if isinstance(item, int))):
        require_at_most(least, shape[axis], message, axis, shape[axis], count, first)
    return (*shape[:axis], count, *shape[axis + 1 :])


narrow.infer_shape(lambda x, like, *, length, axis, start: narrowed_shape(x.shape, axis, start, length))


@narrow.gradient("x", axis_attribute="axis")
def narrow_dx(x_shape, like, dy, *, length, axis, start):
    """``dy`` at the position of the slice, zeros elsewhere."""
    narrowed_shape(x_shape, axis, start, length)
    dx = dy.new_zeros(x_shape)
    dx.narrow(axis, start[0], length[0]).copy_(dy)
    return dx


@operator(
    "like: shape[...s] -> y: int64[]",
    cases=[
        Case(like=[[0.0, 0.0, 0.0]], axis=1, y=3),
        Case(like=[[0.0, 0.0, 0.0]], axis=-2, y=1),
        Rejects("axis 1 is not an axis of like, which has 1 dimensions", like=(2,), axis=1),
    ],
)
def size(like, *, axis: int = 0):
    """The size of ``like`` along ``axis``, as a number that is known when the program runs. ``like`` is not kept alive."""
    return torch.full((), like[axis], dtype=torch.int64)


@size.check_shapes
def require_axis_of_like(like, *, axis):
    require_axis(like.shape, axis, "like")


@operator(
    "*like: shape -> y: {dtype}",
    told_attributes={"start": 0, "stop": 0},
    variable_attributes=("start", "stop"),
    cases=[
        Case(like=(), stop=(3,), y=[0, 1, 2]),
        Case(like=([0.5, 0.5],), start=(5,), stop=(0,), step=-2, dtype="int32", y=[5, 3, 1]),
        Case(like=(), start=(2,), stop=(4,), dtype="float64", y=[2.0, 3.0]),
        Case(like=(), start=(2,), stop=(1,), y=[]),
        Rejects("step must not be 0", like=[], stop=(3,), step=0),
        Rejects("stop must be one number, not [1, 2]", like=[], stop=(1, 2)),
        Rejects("no input determines n of [n]", like=[], stop=("n",)),
    ],
)
def arange(like, *, stop: Sizes, start: Sizes = _ZERO, step: int = 1, dtype: DType = DType.INT64):
    """The numbers from ``start`` to before ``stop``, in steps of ``step``; there may be none.

    Either bound may be a symbol, whose value ``like`` provides, or a variable, int64[1]. A range between symbols is assumed not to be
    empty.
    """
    require_bounds(start, stop, step)
    return (
        torch.arange(count_of(like, stop=stop, start=start, step=step), dtype=torch.int64)
        .mul_(step)
        .add_(int(start[0]))
        .to(to_torch(dtype))
    )


@predict_size(arange)
def count_of(like, *, stop, start, step, dtype=None):
    return max(0, -((start[0] - stop[0]) // step))


def require_bounds(start: Sizes, stop: Sizes, step: int) -> None:
    """Raise ShapeError for an invalid bound or step."""
    for name, value in (("start", start), ("stop", stop)):
        if len(value) != 1:
            raise ShapeError(f"{name} must be one number, not {format_shape(value)}")
    if step == 0:
        raise ShapeError("step must not be 0")


@arange.infer_shape
def arange_shape(like, *, stop, start, step, dtype):
    require_bounds(start, stop, step)
    if isinstance(start, UnknownSizes) or isinstance(stop, UnknownSizes):
        return ("?",)
    count: Size = add(stop[0], multiply(start[0], -1))
    if step < 0:
        count = multiply(count, -1)
    if isinstance(count, int):
        return (max(0, -(-count // abs(step))),)
    return (count if abs(step) == 1 else floor_divide(add(count, abs(step) - 1), abs(step)),)
