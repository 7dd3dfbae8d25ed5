"""The same elements in another shape."""

import torch

from oarlock.errors import ShapeError
from oarlock.ir import size
from oarlock.ir.attribute import Sizes
from oarlock.registry import Case, GradCheck, Rejects, operator
from oarlock.registry.declaration import UnknownSizes

__all__ = ["concat", "flatten", "reshape", "reshape_like", "split_like"]


@operator(
    "x: T[...r], like: shape[...s] -> y: T[...s]",
    cases=[Case(x=[1.0, 2.0], like=[[0.0], [0.0]], y=[[1.0], [2.0]]), GradCheck(x=(2, 3), like=(6,))],
)
def reshape_like(x, like):
    """The elements of ``x``, in order, in the shape of ``like``."""
    return x.reshape(like)


@reshape_like.gradient_program("x")
def reshape_like_dx(x_shape, dy):
    return reshape_like(dy, x_shape)


@operator(
    "x: T[...s] -> y: T[...t]",
    cases=[
        Case(x=[[[1.0], [2.0]], [[3.0], [4.0]]], y=[[1.0, 2.0], [3.0, 4.0]]),
        Case(x=[[1.0, 2.0]], start=0, y=[1.0, 2.0]),
        GradCheck(x=(2, 3, 2)),
        Rejects("x has 1 dimension", x=(3,)),
    ],
)
def flatten(x, *, start: int = 1):
    """Join the dimensions from ``start`` on into one: an image into a row."""
    return x.reshape(*x.shape[:start], torch.Size(x.shape[start:]).numel())


@flatten.infer_with
def flatten_shape(x, *, start):
    if not 0 <= start < len(x.shape):
        raise ShapeError(f"x has {len(x.shape)} dimension{'' if len(x.shape) == 1 else 's'}, so none can be joined from {start} on")
    joined = 1
    for item in x.shape[start:]:
        joined = size.multiply(joined, item)
    return (*x.shape[:start], joined)


@flatten.gradient_program("x")
def flatten_dx(x_shape, dy, *, start):
    return reshape_like(dy, x_shape)


@operator(
    "x: T[...s] -> y: T[...t]",
    variable_attributes=("shape",),
    cases=[
        Case(x=[[1.0, 2.0], [3.0, 4.0]], shape=(4,), y=[1.0, 2.0, 3.0, 4.0]),
        Case(x=[[1.0, 2.0], [3.0, 4.0]], shape=(-1, 1), y=[[1.0], [2.0], [3.0], [4.0]]),
        GradCheck(x=(2, 3), shape=(3, -1)),
        Rejects("6 elements do not fill [4]", x=(2, 3), shape=(4,)),
    ],
)
def reshape(x, *, shape: Sizes):
    """The elements of ``x``, in order, in ``shape``. One size may be -1, and a symbol stays what it is."""
    sizes = [item if isinstance(item, int) else -1 for item in shape]
    return x.reshape(sizes)


@reshape.infer_with
def reshape_shape(x, *, shape):
    if isinstance(shape, UnknownSizes):
        return tuple(shape)
    total: size.Size = 1
    known: int = 1
    for item in x.shape:
        total = size.multiply(total, item)
    unknown = [item for item in shape if item == -1 or isinstance(item, str)]
    if len(unknown) > 1:
        raise ShapeError(f"only one size of {size.format_shape(shape)} may be -1 or a symbol")
    for item in shape:
        known *= 1 if item in unknown else item
    if not unknown:
        if isinstance(total, int) and total != known:
            raise ShapeError(f"{total} elements do not fill {size.format_shape(shape)}")
        return tuple(shape)
    rest = size.floor_divide(total, known) if known else 0
    if size.multiply(rest, known) != total or (unknown[0] != -1 and rest != unknown[0]):
        raise ShapeError(f"{total} elements do not fill {size.format_shape(shape)}")
    return tuple(rest if item == unknown[0] else item for item in shape)


@reshape.gradient_program("x")
def reshape_dx(x_shape, dy, *, shape):
    return reshape_like(dy, x_shape)


@operator(
    "*xs: T -> y: T",
    cases=[
        Case(xs=([[1.0], [2.0]], [[3.0], [4.0]]), axis=1, y=[[1.0, 3.0], [2.0, 4.0]]),
        Case(xs=([1.0], [2.0, 3.0]), y=[1.0, 2.0, 3.0]),
        GradCheck(xs=[(2, 3), (2, 1)], axis=1),
        Rejects("sizes beside axis 0 differ", xs=[(2, 3), (2, 4)]),
    ],
)
def concat(xs, *, axis: int = 0):
    """Tensors one after another along ``axis``; their other sizes are equal."""
    return torch.cat(xs, dim=axis)


@concat.infer_with
def concat_shape(xs, *, axis):
    first = xs[0].shape if xs else ()
    if not 0 <= axis < len(first):
        raise ShapeError(f"axis {axis} is not an axis of the first tensor, which has {len(first)} dimensions")
    for x in xs:
        if len(x.shape) != len(first) or x.shape[:axis] + x.shape[axis + 1 :] != first[:axis] + first[axis + 1 :]:
            raise ShapeError(f"sizes beside axis {axis} differ: {size.format_shape(first)} and {size.format_shape(x.shape)}")
    return (*first[:axis], size.sum_of(x.shape[axis] for x in xs), *first[axis + 1 :])


@concat.gradient_program("xs")
def concat_dxs(xs_shape, dy, *, axis):
    return split_like(dy, xs_shape, axis=axis)


@operator(
    "x: T, *like: shape -> *ys: T",
    cases=[Case(x=[1.0, 2.0, 3.0], like=([0.0], [0.0, 0.0]), ys=([1.0], [2.0, 3.0])), GradCheck(x=(2, 3), like=[(2, 1), (2, 2)], axis=1)],
)
def split_like(x, like, *, axis: int = 0):
    """Cut ``x`` along ``axis`` into parts as long as the tensors ``like``: the opposite of ``concat``."""
    return list(torch.split(x, [shape[axis] for shape in like], dim=axis))


@split_like.infer_with
def split_like_shapes(x, like, *, axis):
    return [item.shape for item in like]


@split_like.gradient_program("x")
def split_like_dx(dys, *, axis):
    return concat(dys, axis=axis)
