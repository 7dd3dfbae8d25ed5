"""Views, permutations, slices, joins and repetitions of elements."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from oarlock import op
from oarlock.interop.torch.rules.arguments import (
    as_dtype,
    as_variable,
    axis_of,
    broadcasted,
    numbers,
    permuted,
    rank_of,
    refuse,
    reshaped,
    shape_of,
    squeezed,
    unsqueezed,
    variables_with_sizes,
)
from oarlock.interop.torch.rules.registry import rule
from oarlock.ir import size
from oarlock.ir.size import Size, is_same, product
from oarlock.ir.var import Var
from oarlock.op.composed.slices import part_along
from oarlock.registry.signature import TensorType


@rule("aten.view.default", "aten._unsafe_view.default", "aten.view_copy.default", "aten.reshape.default")
def view(self: Var, result: TensorType, size: Sequence[Size | Var] = (), shape: Sequence[Size | Var] = ()):
    """Reshape. Computed sizes and -1 are taken from the result, except if the export has fixed the size of a slice."""
    given = size or shape
    known = result.shape is not None and "?" not in result.shape
    fixed = known and -1 in given and not is_same(product(result.shape), product(shape_of(self)))  # type: ignore[arg-type]
    return reshaped(self, result.shape if known and not fixed else given)  # type: ignore[arg-type]


@rule("aten.view_as.default", "aten.reshape_as.default")
def view_as(self: Var, other: Var):
    return reshaped(self, shape_of(other))


@rule("aten.flatten.using_ints")
def flatten(self: Var, start_dim: int = 0, end_dim: int = -1):
    shape = shape_of(self)
    if not shape:
        return reshaped(self, [1])
    first, last = axis_of(self, start_dim), axis_of(self, end_dim)
    return reshaped(self, [*shape[:first], size.product(shape[first : last + 1]), *shape[last + 1 :]])


@rule("aten.unflatten.int")
def unflatten(self: Var, dim: int, sizes: Sequence[Size | Var]):
    shape, axis = shape_of(self), axis_of(self, dim)
    whole = list(sizes)
    if -1 in whole:
        known = size.product(item for item in whole if item != -1)  # type: ignore[arg-type]
        refuse(not isinstance(known, int), f"the sizes other than -1 are not constant: {known}")
        whole[whole.index(-1)] = size.floor_divide(shape[axis], known)  # type: ignore[arg-type]
    return reshaped(self, [*shape[:axis], *whole, *shape[axis + 1 :]])


@rule("aten.squeeze.default")
def squeeze(self: Var):
    return squeezed(self, [axis for axis, item in enumerate(shape_of(self)) if item == 1])


@rule("aten.squeeze.dim", "aten.squeeze.dims", "aten.squeeze_copy.dim")
def squeeze_dims(self: Var, dim: int | Sequence[int]):
    shape = shape_of(self)
    if not shape:
        return self
    axes = {axis_of(self, item) for item in ([dim] if isinstance(dim, int) else dim)}
    return squeezed(self, [axis for axis in axes if shape[axis] == 1])


@rule("aten.unsqueeze.default", "aten.unsqueeze_copy.default")
def unsqueeze(self: Var, dim: int):
    return unsqueezed(self, axis_of(self, dim, more=1))


@rule("aten.expand.default", "aten.expand_copy.default")
def expand(self: Var, size: Sequence[Size | Var], implicit: bool = False):
    shape = (*([1] * (len(size) - rank_of(self))), *shape_of(self))
    wanted = [of_x if item == -1 else item for item, of_x in zip(size, shape, strict=True)]
    return broadcasted(self, wanted)


@rule("aten.type_as.default")
def type_as(self: Var, other: Var):
    return as_dtype(self, other.dtype)


@rule("aten.expand_as.default")
def expand_as(self: Var, other: Var):
    return broadcasted(self, shape_of(other))


@rule("aten.broadcast_to.default")
def broadcast_to(self: Var, size: Sequence[Size | Var]):
    return expand(self, size)


@rule("aten.broadcast_tensors.default")
def broadcast_tensors(tensors: Sequence[Var]):
    rank = max(rank_of(x) for x in tensors)
    whole: list[Size] = [1] * rank
    for x in tensors:
        for axis, item in enumerate(shape_of(x), rank - rank_of(x)):
            whole[axis] = item if whole[axis] == 1 else whole[axis]
    return tuple(expand(x, whole) for x in tensors)


@rule("aten.meshgrid.default", "aten.meshgrid.indexing")
def meshgrid(tensors: Sequence[Var], indexing: str = "ij"):
    whole = [size.product(shape_of(x)) for x in tensors]
    axes = list(range(len(whole)))
    if indexing == "xy" and len(whole) > 1:
        whole[0], whole[1], axes[0], axes[1] = whole[1], whole[0], 1, 0
    laid = (reshaped(x, [item if place == axis else 1 for place, item in enumerate(whole)]) for x, axis in zip(tensors, axes, strict=True))
    return tuple(expand(x, whole) for x in laid)


@rule("aten.permute.default", "aten.permute_copy.default")
def permute(self: Var, dims: Sequence[int]):
    return permuted(self, [axis_of(self, dim) for dim in dims])


@rule("aten.transpose.int", "aten.swapaxes.default", "aten.swapdims.default")
def transpose(self: Var, dim0: int | None = None, dim1: int | None = None, axis0: int | None = None, axis1: int | None = None):
    first, second = (dim0, dim1) if dim0 is not None else (axis0, axis1)
    assert first is not None
    assert second is not None
    axes = list(range(rank_of(self)))
    if axes:
        left, right = axis_of(self, first), axis_of(self, second)
        axes[left], axes[right] = right, left
    return permuted(self, axes)


@rule("aten.t.default", "aten.numpy_T.default")
def reversed_axes(self: Var):
    return permuted(self, range(rank_of(self))[::-1])


@rule("aten.mT.default", "aten.adjoint.default", "aten.mH.default")
def matrix_transpose(self: Var):
    return op.matrix_transpose(self)


@rule("aten.movedim.int", "aten.movedim.intlist", "aten.moveaxis.int", "aten.moveaxis.intlist")
def movedim(self: Var, source: int | Sequence[int], destination: int | Sequence[int]):
    before = [axis_of(self, item) for item in ([source] if isinstance(source, int) else source)]
    after = [axis_of(self, item) for item in ([destination] if isinstance(destination, int) else destination)]
    rest = iter(axis for axis in range(rank_of(self)) if axis not in before)
    return permuted(self, [before[after.index(axis)] if axis in after else next(rest) for axis in range(rank_of(self))])


@rule("aten.cat.default", "aten.concat.default", "aten.concatenate.default", promote=("tensors",))
def cat(tensors: Sequence[Var], dim: int = 0):
    rank = max(rank_of(x) for x in tensors)
    kept = [x for x in tensors if rank_of(x) == rank]  # PyTorch ignores empty vectors, even if the others have another rank
    return kept[0] if len(kept) == 1 else op.concat(kept, axis=axis_of(kept[0], dim))


@rule("aten.stack.default", promote=("tensors",))
def stack(tensors: Sequence[Var], dim: int = 0):
    return op.stack(list(tensors), axis=axis_of(tensors[0], dim, more=1))


@rule("aten.hstack.default", promote=("tensors",))
def hstack(tensors: Sequence[Var]):
    rows = [x if rank_of(x) else reshaped(x, [1]) for x in tensors]
    return op.concat(rows, axis=0 if rank_of(rows[0]) == 1 else 1)


@rule("aten.vstack.default", promote=("tensors",))
def vstack(tensors: Sequence[Var]):
    rows = [x if rank_of(x) > 1 else reshaped(x, [1, *(shape_of(x) or (1,))]) for x in tensors]
    return op.concat(rows, axis=0)


@rule("aten.select.int", "aten.select_copy.int")
def select(self: Var, dim: int, index: Size | Var):
    axis = axis_of(self, dim)
    if isinstance(index, int):
        return _select_row(self, axis, index)
    row = op.index(self, [reshaped(as_variable(index), [1])], axes=(axis,))
    return reshaped(row, [size for place, size in enumerate(shape_of(row)) if place != axis])


def _select_row(x: Var, axis: int, index: int) -> Var:
    return squeezed(op.slice(x, axis=axis, start=index, stop=index + 1 if index != -1 else None, clip=False), [axis])


@rule("aten.unbind.int", "aten.unbind_copy.int")
def unbind(self: Var, dim: int = 0):
    axis = axis_of(self, dim)
    (count,) = numbers([shape_of(self)[axis]], "the number of parts")
    return tuple(_select_row(self, axis, index) for index in range(count))


@rule("aten.slice.Tensor", "aten.slice_copy.Tensor")
def slice(self: Var, dim: int = 0, start: Size | Var | None = None, end: Size | Var | None = None, step: int = 1):
    """Slice an axis. Constant bounds are clipped to it; with symbolic bounds, the run raises if they are out of range."""
    axis = axis_of(self, dim)
    whole = shape_of(self)[axis]
    first, last = 0 if start is None else start, whole if end is None or (isinstance(end, int) and end == _FAR) else end
    if isinstance(first, Var) or isinstance(last, Var):
        return _slice_by_values(self, axis, first, last, step)
    if isinstance(first, int) and (isinstance(last, int) or last == whole):
        return part_along(self, axis, first, last if isinstance(last, int) else None, step)
    return _slice_by_symbols(self, axis, first, last, step)


_FAR = 2**63 - 1
"""The end of a slice without an end."""


def _slice_by_symbols(x: Var, axis: int, start: Size, end: Size, step: int) -> Var:
    """Slice an axis with symbolic bounds. The run raises if they are out of range."""
    whole = shape_of(x)[axis]
    every: dict[str, Any] = {} if step == 1 else {"step": step}
    first, last = _absolute_bound(whole, start), _absolute_bound(whole, end)
    length = size.maximum(size.add(last, size.multiply(first, -1)), 0)
    length = length if isinstance(length, int) else size.add(last, size.multiply(first, -1))
    if length == whole:
        return op.slice(x, axis=axis, **every) if every else x
    if isinstance(first, int) and isinstance(length, int):
        return op.slice(x, axis=axis, start=first, stop=first + length, clip=False, **every)
    from_end = size.add(last, size.multiply(whole, -1))
    if isinstance(first, int) and isinstance(from_end, int):
        return op.slice(x, axis=axis, start=first, stop=from_end or None, clip=False, **every)
    part = op.narrow(x, like=variables_with_sizes([first, length], x), axis=axis, start=(first,), length=(length,))
    return op.slice(part, axis=axis, **every) if every else part


def _absolute_bound(whole: Size, bound: Size) -> Size:
    """Return a bound of a slice counted from the front, and at most the size of the axis."""
    if isinstance(bound, int) and bound < 0:
        return size.maximum(size.add(whole, bound), 0)
    if (isinstance(bound, int) and bound >= 2**62) or size.is_at_least(bound, whole):
        return whole
    return bound


def _slice_by_values(x: Var, axis: int, start: Size | Var, end: Size | Var, step: int) -> Var:
    """Slice an axis with bounds known only at run time: gather rows. Negative bounds count from the end; bounds are clipped."""
    whole = reshaped(as_variable(shape_of(x)[axis]), [1])
    bounds = [reshaped(as_variable(bound), [1]) for bound in (start, end)]
    from_front = (op.where(op.less(bound, 0), op.add(bound, whole), bound) for bound in bounds)
    first, last = (op.minimum(op.maximum(bound, 0), whole) for bound in from_front)
    return op.index(x, [op.arange(like=[], start=first, stop=last, step=step)], axes=(axis,))


@rule("aten.narrow.default", "aten.narrow_copy.default")
def narrow(self: Var, dim: int, start: Size, length: Size):
    (first,) = numbers([start], "the start of a slice")
    axis = axis_of(self, dim)
    if isinstance(length, int):
        stop = None if first < 0 and first + length == 0 else first + length
        return op.slice(self, axis=axis, start=first, stop=stop, clip=False)
    return _slice_by_symbols(self, axis, first, size.add(first, length), 1)


@rule("aten.split.Tensor", "aten.split_copy.Tensor")
def split(self: Var, result: tuple[TensorType, ...], split_size: Size, dim: int = 0):
    """Split into parts of equal size. With symbolic sizes, the export determines their number; the last one may be smaller or empty."""
    axis = axis_of(self, dim)
    whole, part = shape_of(self)[axis], split_size
    if not isinstance(whole, int) or not isinstance(part, int):
        count = next((count for count in range(1, 65) if size.multiply(part, count) == whole), None)
        if count is not None:
            return tuple(op.split(self, sections=count, axis=axis))
        starts = [size.minimum(size.multiply(part, number), whole) for number in range(len(result) + 1)]
        refuse(not is_same(starts[-1], whole), f"cannot split the size {whole} into {len(result)} parts of {part}")
        lengths = [size.add(end, size.multiply(start, -1)) for start, end in pairwise(starts)]
        like = variables_with_sizes([*starts, *lengths], self)
        return tuple(
            op.narrow(self, like=like, axis=axis, start=(start,), length=(length,)) for start, length in zip(starts, lengths, strict=False)
        )
    return parts_of(self, axis, [min(part, whole - start) for start in range(0, whole, part)] or [0])


@rule("aten.split_with_sizes.default", "aten.split.sizes", "aten.split_with_sizes_copy.default")
def split_with_sizes(self: Var, split_sizes: Sequence[Size] = (), dim: int = 0, split_size: Sequence[Size] = ()):
    return parts_of(self, axis_of(self, dim), split_sizes or split_size)


@rule("aten.chunk.default")
def chunk(self: Var, chunks: int, dim: int = 0):
    axis = axis_of(self, dim)
    whole = shape_of(self)[axis]
    if not isinstance(whole, int):
        part = size.floor_divide(whole, chunks)
        refuse(size.multiply(part, chunks) != whole, f"cannot split the size {whole} into {chunks} equal parts")
        return tuple(op.split(self, sections=chunks, axis=axis))
    part = max(-(-whole // chunks), 1)
    return parts_of(self, axis, [min(part, whole - start) for start in range(0, whole, part)] or [0])


@rule("aten.tensor_split.sections")
def tensor_split(self: Var, sections: int, dim: int = 0):
    axis = axis_of(self, dim)
    (whole,) = numbers([shape_of(self)[axis]], "the size to split")
    return parts_of(self, axis, [whole // sections + (number < whole % sections) for number in range(sections)])


def parts_of(x: Var, axis: int, lengths: Sequence[Size]) -> tuple[Var, ...]:
    """Split `x` along an axis into parts of the given lengths."""
    if len(lengths) == 1:
        return (x,)
    if all(length == lengths[0] for length in lengths):
        return tuple(op.split(x, sections=len(lengths), axis=axis))
    parts, start = [], 0
    for length in numbers(lengths, "the length of a part"):
        parts.append(op.slice(x, axis=axis, start=start, stop=start + length, clip=False))
        start += length
    return tuple(parts)


@rule("aten.flip.default")
def flip(self: Var, dims: Sequence[int]):
    return op.flip(self, axes=tuple(axis_of(self, dim) for dim in dims)) if dims else self


@rule("aten.fliplr.default")
def fliplr(self: Var):
    return op.flip(self, axes=(1,))


@rule("aten.flipud.default")
def flipud(self: Var):
    return op.flip(self, axes=(0,))


@rule("aten.roll.default")
def roll(self: Var, shifts: Sequence[int] | int, dims: Sequence[int] | int = ()):
    places = numbers([shifts] if isinstance(shifts, int | str) else shifts, "a shift")
    axes = tuple(axis_of(self, dim) for dim in ([dims] if isinstance(dims, int) else dims))
    if not axes:
        return reshaped(op.roll(reshaped(self, [size.product(shape_of(self))]), shifts=places, axes=(0,)), shape_of(self))
    return op.roll(self, shifts=places, axes=axes)


@rule("aten.repeat.default", "aten.tile.default")
def repeat(self: Var, repeats: Sequence[Size] = (), dims: Sequence[Size] = ()):
    given = list(repeats or dims)
    given = [1] * (rank_of(self) - len(given)) + given
    x = reshaped(self, [*([1] * (len(given) - rank_of(self))), *shape_of(self)])
    shape = shape_of(x)
    if all(times == 1 for times in given):
        return x
    if all(times == 1 or item == 1 for times, item in zip(given, shape, strict=True)):
        whole = [times if item == 1 else item for times, item in zip(given, shape, strict=True)]
        return broadcasted(x, whole)
    if all(isinstance(times, int) for times in given):
        return op.tile(x, repeats=tuple(given))  # type: ignore[arg-type]
    between, wide, whole = [], [], []
    for times, item in zip(given, shape, strict=True):
        between += [1, item]
        wide += [times, item]
        whole.append(size.multiply(times, item))
    return reshaped(broadcasted(reshaped(x, between), wide), whole)


@rule("aten.repeat_interleave.self_int")
def repeat_interleave(self: Var, repeats: Size, dim: int | None = None, output_size: Size | None = None):
    x = self if dim is not None else reshaped(self, [size.product(shape_of(self))])
    (times,) = numbers([repeats], "the number of repetitions")
    return op.repeat_interleave(x, repeats=times, axis=axis_of(x, dim or 0))


@rule("aten.diagonal.default", "aten.diagonal_copy.default")
def diagonal(self: Var, offset: int = 0, dim1: int | None = None, dim2: int | None = None):
    first, second = (0, 1) if dim1 is None or dim2 is None else (axis_of(self, dim1), axis_of(self, dim2))
    return op.diagonal(self, offset=offset, axes=(first, second))


@rule("aten.unfold.default", "aten.unfold_copy.default")
def unfold(self: Var, dimension: int, size: int, step: int):
    return op.windows(self, axis=axis_of(self, dimension), size=size, step=step)
