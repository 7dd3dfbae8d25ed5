"""Reshaping, transposing, joining and splitting of tensors."""

import torch

from oarlock.errors import ShapeError
from oarlock.ir import size
from oarlock.ir.attribute import Sizes
from oarlock.ir.shape_rules import filled_shape, range_within, require_axis, require_filled, require_parts, slice_size
from oarlock.op.trusted_operator import operator
from oarlock.registry import Case, GradCheck, Rejects
from oarlock.registry.attributes import UnknownSizes

__all__ = [
    "concat",
    "flatten",
    "match_last_axis",
    "match_shape",
    "reshape",
    "reshape_like",
    "slice_",
    "split",
    "split_like",
    "stack",
    "transpose",
]

_MOST_SECTIONS = 2**16  # a limit for programs from files: an empty tensor has any number of empty parts


@operator(
    "x: T[...r], like: shape[...s] -> y: T[...s]",
    aliases=("x",),
    cases=[
        Case(x=[1.0, 2.0], like=[[0.0], [0.0]], y=[[1.0], [2.0]]),
        GradCheck(x=(2, 3), like=(6,)),
        Rejects("9 elements do not fill [1]", x=(3, 3), like=(1,)),
    ],
)
def reshape_like(x, like):
    """The elements of ``x``, in order, in the shape of ``like``."""
    return x.reshape(*like) if like else x.reshape(())  # PyTorch reads a `torch.Size` slower than its numbers


reshape_like.check_shapes(lambda x, like: require_filled(x.shape, like.shape))
reshape_like.gradient_programs(x=lambda x_shape, dy: reshape_like(dy, x_shape))


@operator(
    "x: T[*b], like: shape[*b] -> y: T[*b]",
    aliases=("x",),
    cases=[
        Case(x=[1.0, 2.0], like=[0.0, 0.0], y=[1.0, 2.0]),
        Case(x=[[True]], like=[[0]], y=[[True]]),
        GradCheck(x=(2, 3), like=(2, 3)),
        Rejects("*b is 2 in x but 3 in like", x=(2,), like=(3,)),
    ],
)
def match_shape(x, like):
    """``x``, which must have the shape of ``like``. Unknown sizes are compared when the program runs."""
    return x


match_shape.gradient_programs(x=lambda dy: dy)


@operator(
    "x: T[k], like: shape[...s k] -> y: T[k]",
    aliases=("x",),
    cases=[
        Case(x=[1.0, 2.0], like=[[0.0, 0.0]], y=[1.0, 2.0]),
        GradCheck(x=(3,), like=(2, 3)),
        Rejects("dimension k is 2 in x but 3 in like", x=(2,), like=(2, 3)),
    ],
)
def match_last_axis(x, like):
    """``x``, with one element for each index of the last axis of ``like``. Unknown sizes are compared when the program runs."""
    return x


match_last_axis.gradient_programs(x=lambda dy: dy)


@operator(
    "x: T[...s] -> y: T[...t]",
    aliases=("x",),
    axis_attribute="start",
    cases=[
        Case(x=[[[1.0], [2.0]], [[3.0], [4.0]]], y=[[1.0, 2.0], [3.0, 4.0]]),
        Case(x=[[1.0, 2.0]], start=0, y=[1.0, 2.0]),
        GradCheck(x=(2, 3, 2)),
        Rejects("x has 1 dimension", x=(3,)),
    ],
)
def flatten(x, *, start: int = 1):
    """Flatten the dimensions from ``start`` on into one, such as an image into a row."""
    return x.reshape(*x.shape[:start], torch.Size(x.shape[start:]).numel())


@flatten.infer_shape
def flatten_shape(x, *, start):
    if not 0 <= start < len(x.shape):
        raise ShapeError(f"x has {len(x.shape)} dimension{'' if len(x.shape) == 1 else 's'}, so none can be flattened from {start} on")
    return (*x.shape[:start], size.product(x.shape[start:]))


flatten.gradient_programs(x=lambda x_shape, dy, *, start: reshape_like(dy, x_shape))


@operator(
    "x: T[...s] -> y: T[...t]",
    variable_attributes=("shape",),
    told_attributes={"shape": 1},
    aliases=("x",),
    cases=[
        Case(x=[[1.0, 2.0], [3.0, 4.0]], shape=(4,), y=[1.0, 2.0, 3.0, 4.0]),
        Case(x=[[1.0, 2.0], [3.0, 4.0]], shape=(-1, 1), y=[[1.0], [2.0], [3.0], [4.0]]),
        GradCheck(x=(2, 3), shape=(3, -1)),
        Rejects("6 elements do not fill [4]", x=(2, 3), shape=(4,)),
        Rejects("a size of [-1, 0] is 0, so -1 cannot be inferred", x=(0, 2), shape=(-1, 0)),
    ],
)
def reshape(x, *, shape: Sizes):
    """The elements of ``x``, in order, in ``shape``. One size may be -1; symbols are kept.

    At most one of several symbols may be unknown in the shape of ``x``; `view` takes others.
    """
    sizes = [item if isinstance(item, int) else -1 for item in shape]
    return x.reshape(*sizes) if sizes else x.reshape(sizes)


@reshape.infer_shape
def reshape_shape(x, *, shape):
    if isinstance(shape, UnknownSizes):
        return tuple(shape)
    return filled_shape(x.shape, shape)


reshape.gradient_programs(x=lambda x_shape, dy, *, shape: reshape_like(dy, x_shape))


@operator(
    "*xs: T -> y: T",
    axis_attribute="axis",
    cases=[
        Case(xs=([[1.0], [2.0]], [[3.0], [4.0]]), axis=1, y=[[1.0, 3.0], [2.0, 4.0]]),
        Case(xs=([1.0], [2.0, 3.0]), y=[1.0, 2.0, 3.0]),
        GradCheck(xs=[(2, 3), (2, 1)], axis=1),
        GradCheck(xs=[(2, 3, 1), (2, 1, 1)], axis=-2),
        Rejects("sizes on axes other than 0 differ", xs=[(2, 3), (2, 4)]),
    ],
)
def concat(xs, *, axis: int = 0):
    """The concatenation of tensors along ``axis``. Their other sizes must be equal."""
    return torch.cat(xs, dim=axis)


@concat.infer_shape
def concat_shape(xs, *, axis):
    first = xs[0].shape if xs else ()
    axis = require_axis(first, axis, "the first tensor")
    for x in xs:
        if len(x.shape) != len(first) or x.shape[:axis] + x.shape[axis + 1 :] != first[:axis] + first[axis + 1 :]:
            raise ShapeError(f"sizes on axes other than {axis} differ: {size.format_shape(first)} and {size.format_shape(x.shape)}")
    return (*first[:axis], size.sum_of(x.shape[axis] for x in xs), *first[axis + 1 :])


concat.gradient_programs(xs=lambda xs_shape, dy, *, axis: split_like(dy, xs_shape, axis=axis))


@operator(
    "x: T, *like: shape -> *ys: T",
    aliases=("x",),
    disjoint=True,
    axis_attribute="axis",
    cases=[
        Case(x=[1.0, 2.0, 3.0], like=([0.0], [0.0, 0.0]), ys=([1.0], [2.0, 3.0])),
        GradCheck(x=(2, 3), like=[(2, 1), (2, 2)], axis=1),
        Rejects("axis 1 is not an axis of x", x=(3,), like=[(1,), (2,)], axis=1),
        Rejects("the parts [2], [2] do not add up to [3] along axis 0", x=(3,), like=[(2,), (2,)]),
        Rejects("the parts [2, 1], [3, 2] do not add up to [2, 3] along axis 1", x=(2, 3), like=[(2, 1), (3, 2)], axis=-1),
    ],
)
def split_like(x, like, *, axis: int = 0):
    """Split ``x`` along ``axis`` into parts of the sizes of the tensors ``like``: the inverse of ``concat``."""
    return list(torch.split(x, [shape[axis] for shape in like], dim=axis))


split_like.infer_shape(lambda x, like, *, axis: require_parts(x.shape, [item.shape for item in like], axis))
split_like.gradient_programs(x=lambda dys, *, axis: concat(dys, axis=axis))


@operator(
    "x: T[...s] -> *ys: T",
    aliases=("x",),
    disjoint=True,
    axis_attribute="axis",
    cases=[
        Case(x=[1.0, 2.0, 3.0, 4.0], sections=2, ys=([1.0, 2.0], [3.0, 4.0])),
        Case(x=[[1, 2], [3, 4]], sections=2, axis=1, ys=([[1], [3]], [[2], [4]])),
        Case(x=[1.0, 2.0], sections=1, ys=([1.0, 2.0],)),
        GradCheck(x=(2, 4), sections=2, axis=1),
        GradCheck(x=(3, 0), sections=3),
        GradCheck(x=(2, 4, 3), sections=2, axis=-2),
        Rejects("axis 0 has the size 3, which is not 2 equal parts", x=(3,), sections=2),
        Rejects("sections must be 1 to 65536, not 0", x=(3,), sections=0),
    ],
)
def split(x, *, sections: int, axis: int = 0):
    """Split ``x`` along ``axis`` into ``sections`` equal parts."""
    return list(x.split_with_sizes([x.shape[axis] // sections] * sections, axis))


@split.infer_shape
def split_shapes(x, *, sections, axis):
    if not 1 <= sections <= _MOST_SECTIONS:
        raise ShapeError(f"sections must be 1 to {_MOST_SECTIONS}, not {sections}")
    axis = require_axis(x.shape, axis)
    part = size.floor_divide(x.shape[axis], sections)
    if size.multiply(part, sections) != x.shape[axis]:
        raise ShapeError(f"axis {axis} has the size {x.shape[axis]}, which is not {sections} equal parts")
    return [(*x.shape[:axis], part, *x.shape[axis + 1 :])] * sections


split.gradient_programs(x=lambda dys, *, axis: concat(dys, axis=axis))


@operator(
    "x: T[...s] -> y: T[...t]",
    linear_in=("x",),
    added_later=("clip",),
    aliases=("x",),
    axis_attribute="axis",
    cases=[
        Case(x=[1.0, 2.0, 3.0, 4.0], start=1, stop=3, y=[2.0, 3.0]),
        Case(x=[[1, 2, 3], [4, 5, 6]], axis=1, start=-2, y=[[2, 3], [5, 6]]),
        Case(x=[True, False, True], stop=-1, y=[True, False]),
        Case(x=[1.0, 2.0], start=2, y=[]),
        Case(x=[[1, 2, 3, 4, 5]], axis=1, start=1, step=3, y=[[2, 5]]),
        GradCheck(x=(2, 4), axis=1, start=1, stop=-1),
        GradCheck(x=(3, 2), start=-2),
        GradCheck(x=(3, 4, 2), axis=-2, start=1, stop=3),
        GradCheck(x=(3, 2), start=-3, stop=2),
        GradCheck(x=(2, 3), start=1, stop=1),
        GradCheck(x=(2, 6, 2), axis=-2, start=1, stop=-1, step=2),
        Case(x=[1, 2, 3], start=-9, stop=9, clip=True, y=[1, 2, 3]),
        Case(x=[1, 2, 3], start=1, stop=9, step=2, clip=True, y=[2]),
        Case(x=[1.0, 2.0, 3.0], start=2, stop=-2, clip=True, y=[]),
        GradCheck(x=(2, 3), axis=1, start=-9, stop=2, clip=True),
        GradCheck(x=(3, 2), start=1, stop=9, step=2, clip=True),
        GradCheck(x=(0, 2), start=1, clip=True),
        Rejects("step is 0, but must be at least 1", x=(3,), step=0, clip=True),
        Rejects("step is 0, but must be at least 1", x=(3,), step=0),
        Rejects("axis 0 has size 3, so 1 to 4 is out of range", x=(3,), start=1, stop=4),
        Rejects("axis 0 has size 3, so -4 to its end is out of range", x=(3,), start=-4),
        Rejects("axis 0 has size 3, so 2 to -2 is not a valid range", x=(3,), start=2, stop=-2),
    ],
)
def slice_(x, *, axis: int = 0, start: int = 0, stop: int | None = None, step: int | None = None, clip: bool = False):
    """The elements of ``x`` along ``axis`` from ``start`` to before ``stop``; with ``step``, every ``step``-th of them.

    Negative numbers count from the end. Bounds beyond the axis are clipped if ``clip``, and otherwise raise ShapeError; the function
    `ol.op.slice` clips by default. The gradient of elements that were not taken is 0.
    """
    first, length = range_within(x.shape[axis], axis, start, stop, clip=clip)
    return x.narrow(axis, first, length) if step is None else torch.index_select(x, axis, every(step, first, length, x.device))


@slice_.infer_shape
def slice_shape(x, *, axis, start, stop=None, step=None, clip=False):
    axis = require_axis(x.shape, axis)
    return (*x.shape[:axis], slice_size(x.shape[axis], axis, start, stop, step, clip=clip), *x.shape[axis + 1 :])


@slice_.gradient("x", axis_attribute="axis")
def slice_dx(x_shape, dy, *, axis, start, stop=None, step=None, clip=False):
    """``dy`` at the position of the slice, zeros elsewhere."""
    return write_slice(dy, dy.new_empty(x_shape), axis, start, stop, step, clip)


def write_slice(dy: torch.Tensor, out: torch.Tensor, axis: int, start: int, stop: int | None, step: int | None, clip: bool) -> torch.Tensor:
    """Write ``dy`` to the slice of ``out``, and zeros elsewhere; return ``out``."""
    first, length = range_within(out.shape[axis], axis, start, stop, clip=clip)
    if step is not None:
        return out.zero_().index_copy_(axis, every(step, first, length, out.device), dy)
    out.zero_().narrow(axis, first, length).copy_(dy)
    return out


def every(step: int, first: int, length: int, device: torch.device) -> torch.Tensor:
    """Return every `step`-th of the `length` indices from `first` on."""
    return torch.arange(first, first + length, step, device=device)


@operator(
    "*xs: T[...s] -> y: T[...t]",
    axis_attribute="axis",
    cases=[
        Case(xs=([1.0, 2.0], [3.0, 4.0]), y=[[1.0, 2.0], [3.0, 4.0]]),
        Case(xs=([1, 2], [3, 4]), axis=1, y=[[1, 3], [2, 4]]),
        Case(xs=(1.0,), y=[1.0]),
        GradCheck(xs=[(2, 3), (2, 3)]),
        GradCheck(xs=[(2,), (2,), (2,)], axis=1),
        GradCheck(xs=[(), ()]),
        GradCheck(xs=[(0, 2), (0, 2)], axis=2),
    ],
)
def stack(xs, *, axis: int = 0):
    """Tensors of one shape stacked along a new dimension, ``axis`` of the result."""
    return torch.stack(xs, dim=axis)


@stack.infer_shape
def stack_shape(xs, *, axis):
    if not xs:
        raise ShapeError("there is nothing to stack")
    shape = xs[0].shape
    if not 0 <= axis <= len(shape):
        raise ShapeError(f"axis {axis} is not an axis of a stack of tensors of {len(shape)} dimensions")
    return (*shape[:axis], len(xs), *shape[axis:])


@stack.gradient_program("xs")
def stack_dxs(xs_shape, dy, *, axis):
    return [reshape_like(slice_(dy, axis=axis, start=number, stop=number + 1), like) for number, like in enumerate(xs_shape)]


@operator(
    "x: T[...s] -> y: T[...t]",
    aliases=("x",),
    axis_attribute="axes",
    cases=[
        Case(x=[[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]], axes=(1, 0), y=[[1.0, 3.0, 5.0], [2.0, 4.0, 6.0]]),
        Case(x=[[[1, 2]], [[3, 4]]], axes=(2, 0, 1), y=[[[1], [3]], [[2], [4]]]),
        Case(x=1.0, axes=(), y=1.0),
        GradCheck(x=(2, 3, 4), axes=(1, 2, 0)),
        GradCheck(x=(0, 3), axes=(1, 0)),
        Rejects("axes (0, 0) are not a permutation of the 2 axes of x", x=(2, 3), axes=(0, 0)),
        Rejects("axes (0,) are not a permutation of the 2 axes of x", x=(2, 3), axes=(0,)),
    ],
)
def transpose(x, *, axes: tuple[int, ...]):
    """A permutation of dimensions: dimension ``i`` of the result is dimension ``axes[i]`` of ``x``."""
    return x.permute(axes).contiguous()


@transpose.infer_shape
def transpose_shape(x, *, axes):
    if sorted(axes) != list(range(len(x.shape))):
        raise ShapeError(f"axes {axes} are not a permutation of the {len(x.shape)} axes of x")
    return tuple(x.shape[axis] for axis in axes)


transpose.gradient_programs(x=lambda dy, *, axes: transpose(dy, axes=tuple(axes.index(axis) for axis in range(len(axes)))))
