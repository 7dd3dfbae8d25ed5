"""Indexing: embeddings, gathers, scatters, tensor indices, and positions of true elements."""

from collections.abc import Sequence

import torch

from oarlock import op
from oarlock.interop.torch.rules.arguments import (
    Number,
    as_dtype,
    as_integer,
    axis_of,
    broadcasted,
    constant_value,
    filled,
    like,
    rank_of,
    refuse,
    reshaped,
    shape_of,
    squeezed,
    unsqueezed,
)
from oarlock.interop.torch.rules.registry import Unsupported, rule
from oarlock.ir import size
from oarlock.ir.attribute import Sizes
from oarlock.ir.dtype import DType
from oarlock.ir.size import Size
from oarlock.ir.var import Var


@rule("aten.embedding.default")
def embedding(weight: Var, indices: Var, padding_idx: int = -1, scale_grad_by_freq: bool = False, sparse: bool = False):
    """Look up rows of a table. The row `padding_idx` gets no gradient."""
    refuse(scale_grad_by_freq, "scale_grad_by_freq=True is not supported")
    ids = as_integer(indices)
    rows = op.gather(weight, ids, sparse=sparse)
    if padding_idx < 0:
        return rows
    held = unsqueezed(op.equal(ids, like(padding_idx, ids)), rank_of(ids))
    return op.where(held, op.stop_gradient(rows), rows)


@rule("aten.index_select.default")
def index_select(self: Var, dim: int, index: Var):
    ids = as_integer(index)
    ids = ids if rank_of(ids) else reshaped(ids, [1])
    axis = axis_of(self, dim)
    return op.index(self, [ids], axes=(axis,)) if axis else op.gather(self, ids)


@rule("aten.gather.default")
def gather(self: Var, dim: int, index: Var, sparse_grad: bool = False):
    return op.take_along_axis(self, index, axis=axis_of(self, dim))


@rule("aten.take_along_dim.default")
def take_along_dim(self: Var, indices: Var, dim: int | None = None):
    if dim is None:
        flat = reshaped(self, [size.product(shape_of(self))])
        return op.take_along_axis(flat, reshaped(indices, [size.product(shape_of(indices))]), axis=0)
    axis = axis_of(self, dim)
    whole = [b if a == 1 else a for a, b in zip(shape_of(self), shape_of(indices), strict=True)]
    x = broadcasted(self, [item if place != axis else shape_of(self)[axis] for place, item in enumerate(whole)])
    ids = broadcasted(indices, [item if place != axis else shape_of(indices)[axis] for place, item in enumerate(whole)])
    return op.take_along_axis(x, ids, axis=axis)


@rule("aten.take.default")
def take(self: Var, index: Var):
    flat = reshaped(self, [size.product(shape_of(self))])
    return op.index(flat, [index], axes=(0,))


@rule("aten.index.Tensor", "aten._unsafe_index.Tensor")
def index(self: Var, indices: Sequence[Var | None]):
    x, found, axes = _index_tensors(self, indices)
    whole = _shape_if_whole(x, found, axes)
    return op.index(x, found, axes=axes) if whole is None else reshaped(x, whole)


def _index_tensors(x: Var, indices: Sequence[Var | None]) -> tuple[Var, list[Var], tuple[int, ...]]:
    """Return `x`, integer index tensors and the axes they index. A bool tensor becomes the positions of its true elements, one per axis."""
    found: list[Var] = []
    axes: list[int] = []
    axis = 0
    for item in indices:
        if item is None:
            axis += 1
            continue
        if item.dtype is DType.BOOL:
            count = rank_of(item)
            found += [op.nonzero(item)] if count == 1 else [_column(op.argwhere(item), number) for number in range(count)]
            axes += range(axis, axis + count)
            axis += count
        else:
            found.append(as_integer(item))
            axes.append(axis)
            axis += 1
    return x, found, tuple(axes)


def _shape_if_whole(x: Var, indices: Sequence[Var], axes: Sequence[int]) -> list[Size] | None:
    """Return the shape of the result if it contains all of `x` in order, else None. Modules look up key masks so.

    In this case, each index is a constant from 0 to the size of its axis, along an axis of its own.
    """
    if not indices or list(axes) != list(range(axes[0], axes[0] + len(axes))):
        return None
    rank, shape = max(rank_of(index) for index in indices), shape_of(x)
    taken: list[Size] = [1] * rank
    last = -1
    for index, axis in zip(indices, axes, strict=True):
        numbers, count = constant_value(index), shape[axis]
        if numbers is None or not isinstance(count, int) or not torch.equal(numbers.flatten(), torch.arange(count)):
            return None
        along = [rank - numbers.dim() + place for place, length in enumerate(numbers.shape) if length != 1]
        if len(along) != 1 or along[0] <= last:
            return None
        last = along[0]
        taken[last] = count
    return [*shape[: axes[0]], *taken, *shape[axes[-1] + 1 :]]


def _column(places: Var, number: int) -> Var:
    return squeezed(op.slice(places, axis=1, start=number, stop=number + 1, clip=False), [1])


@rule("aten.index_put.default", "aten._unsafe_index_put.default")
def index_put(self: Var, indices: Sequence[Var | None], values: Var, accumulate: bool = False, unsafe: bool = False):
    given = [item for item in indices if item is not None]
    if len(given) == 1 and given[0].dtype is DType.BOOL and rank_of(values) == 0 and not accumulate:
        first = next(place for place, item in enumerate(indices) if item is not None)
        mask = reshaped(given[0], [*shape_of(given[0]), *([1] * (rank_of(self) - first - rank_of(given[0])))])
        return op.where(mask, as_dtype(values, self.dtype), self)
    x, found, axes = _index_tensors(self, indices)
    return op.index_put(x, as_dtype(values, self.dtype), found, axes=axes, accumulate=accumulate)


@rule("aten.masked_select.default")
def masked_select(self: Var, mask: Var):
    whole = _broadcast_shape(shape_of(self), shape_of(mask))
    x, chosen = broadcasted(self, whole), broadcasted(mask, whole)
    together = [size.product(whole)]
    return op.gather(reshaped(x, together), op.nonzero(reshaped(chosen, together)))


@rule("aten.masked_scatter.default")
def masked_scatter(self: Var, mask: Var, source: Var):
    """Replace the elements where the mask is true by consecutive elements of `source`."""
    chosen = broadcasted(mask, shape_of(self))
    together = [size.product(shape_of(self))]
    flat = reshaped(chosen, together)
    count = op.cumsum(op.cast(flat, dtype=DType.INT64), axis=0)
    number = op.maximum(op.subtract(count, 1), like(0, count))
    most = op.subtract(op.cast(op.numel(source, dtype=DType.INT64), dtype=DType.INT64), 1)
    taken = op.gather(reshaped(source, [size.product(shape_of(source))]), op.minimum(number, most))
    return reshaped(op.where(flat, taken, reshaped(self, together)), shape_of(self))


def _broadcast_shape(left: Sequence[Size], right: Sequence[Size]) -> list[Size]:
    rank = max(len(left), len(right))
    pairs = zip([1] * (rank - len(left)) + list(left), [1] * (rank - len(right)) + list(right), strict=True)
    return [b if a == 1 else a for a, b in pairs]


@rule("aten.nonzero.default")
def nonzero(self: Var):
    truth = self if self.dtype is DType.BOOL else op.not_equal(self, like(0, self))
    return op.argwhere(truth)


@rule("aten.nonzero_numpy.default")
def nonzero_numpy(self: Var):
    places = nonzero(self)
    return tuple(_column(places, number) for number in range(rank_of(self)))


@rule("aten.scatter.src", "aten.scatter.value", "aten.scatter.reduce", "aten.scatter.value_reduce")
def scatter(self: Var, dim: int, index: Var, src: Var | None = None, value: Number | None = None, reduce: str | None = None):
    reduction = {None: "none", "add": "add", "multiply": "multiply"}[reduce]
    return _scatter(self, dim, index, src, value, reduction)


@rule("aten.scatter_add.default")
def scatter_add(self: Var, dim: int, index: Var, src: Var):
    return _scatter(self, dim, index, src, None, "add")


@rule("aten.scatter_reduce.two")
def scatter_reduce(self: Var, dim: int, index: Var, src: Var, reduce: str, include_self: bool = True):
    known = {"sum": "add", "prod": "multiply", "amax": "maximum", "amin": "minimum"}
    refuse(reduce not in known or not include_self, f"reduce={reduce!r} with include_self={include_self} is not supported")
    return _scatter(self, dim, index, src, None, known[reduce])


def _scatter(x: Var, dim: int, index: Var, source: Var | None, value: Number | None, reduction: str) -> Var:
    """Scatter `source` or `value`. A source larger than the index is cropped, as in PyTorch."""
    axis = axis_of(x, dim)
    if source is None or rank_of(source) == 0:
        number = source if source is not None else like(value or 0, x)
        values = broadcasted(number, shape_of(index))
    else:
        values = source
        for place, (have, need) in enumerate(zip(shape_of(source), shape_of(index), strict=True)):
            if have != need:
                refuse(
                    not (isinstance(have, int) and isinstance(need, int)),
                    f"the source has the size {have} and the index {need}; both must be constant",
                )
                values = op.slice(values, axis=place, stop=need, clip=False)  # type: ignore[arg-type]
    return op.scatter_along_axis(x, index, values, axis=axis, reduction=reduction)


@rule("aten.index_add.default")
def index_add(self: Var, dim: int, index: Var, source: Var, alpha: Number = 1):
    source = source if alpha == 1 else op.multiply(source, like(alpha, source))
    return op.index_put(self, source, [as_integer(index)], axes=(axis_of(self, dim),), accumulate=True)


@rule("aten.index_copy.default")
def index_copy(self: Var, dim: int, index: Var, source: Var):
    return op.index_put(self, source, [as_integer(index)], axes=(axis_of(self, dim),), accumulate=False)


@rule("aten.index_fill.int_Scalar")
def index_fill(self: Var, dim: int, index: Var, value: Number):
    axis = axis_of(self, dim)
    return op.index_put(self, like(value, self), [as_integer(index)], axes=(axis,), accumulate=False)


@rule("aten.select_scatter.default")
def select_scatter(self: Var, src: Var, dim: int, index: int):
    axis = axis_of(self, dim)
    return slice_scatter(self, unsqueezed(src, axis), axis, index, None if index == -1 else index + 1)


@rule("aten.slice_scatter.default")
def slice_scatter(self: Var, src: Var, dim: int = 0, start: Size | None = None, end: Size | None = None, step: int = 1):
    """Replace a slice: join the parts around it, or scatter rows if there is a step."""
    axis = axis_of(self, dim)
    whole = shape_of(self)[axis]
    first, last = 0 if start is None else start, whole if end is None or (isinstance(end, int) and end == 2**63 - 1) else end
    if not all(isinstance(item, int) for item in (whole, first, last)):
        refuse(not (first == 0 and last == whole), f"writing the slice {first}:{last} of the size {whole} is not supported")
        return src
    assert isinstance(whole, int)
    assert isinstance(first, int)
    assert isinstance(last, int)
    first, last = (max(0, min(item + whole if item < 0 else item, whole)) for item in (first, last))
    if step == 1:
        parts = [op.slice(self, axis=axis, stop=first)] if first else []
        parts.append(src)
        parts += [op.slice(self, axis=axis, start=last)] if last < whole else []
        return parts[0] if len(parts) == 1 else op.concat(parts, axis=axis)
    rows = op.arange(like=[], start=(first,), stop=(last,), step=step)
    return op.index_put(self, src, [rows], axes=(axis,), accumulate=False)


@rule("aten.bincount.default")
def bincount(self: Var, weights: Var | None = None, minlength: int = 0):
    if weights is not None:
        raise Unsupported("weights are not supported", hint="use torch.zeros(count).scatter_add(0, x, weights) with a constant count")
    return op.bincount(as_integer(self), least=minlength)


@rule("aten.histc.default")
def histc(self: Var, bins: int = 100, min: Number = 0, max: Number = 0):
    """Count elements between two given bounds, both inclusive."""
    refuse(min == max, "bounds that depend on the values are not supported")
    low, high = float(min), float(max)
    place = op.multiply(op.subtract(self, like(low, self)), like(bins / (high - low), self))
    number = op.minimum(op.cast(op.floor(place), dtype=DType.INT64), op.full(shape=(), value=bins - 1.0, dtype=DType.INT64))
    inside = op.logical_and(op.greater_equal(self, like(low, self)), op.less_equal(self, like(high, self)))
    flat = [size.product(shape_of(self))]
    rows = reshaped(op.where(inside, number, like(0, number)), flat)
    ones = reshaped(op.cast(inside, dtype=self.dtype), flat)
    return op.scatter_add(ones, rows, filled([bins], 0.0, self.dtype))


@rule("aten.searchsorted.Tensor", "aten.bucketize.Tensor")
def searchsorted(
    self: Var,
    sorted_sequence: Var | None = None,
    boundaries: Var | None = None,
    out_int32: bool = False,
    right: bool = False,
    side: str | None = None,
    sorter: Var | None = None,
):
    refuse(sorter is not None, "a sorter is not supported")
    edges = sorted_sequence if sorted_sequence is not None else boundaries
    assert edges is not None
    y = op.searchsorted(edges, self, right=right or side == "right")
    return as_dtype(y, DType.INT32 if out_int32 else None)


@rule("aten._unique2.default")
def unique(self: Var, sorted: bool = True, return_inverse: bool = False, return_counts: bool = False):
    """Return unique values. They are always sorted, as in PyTorch."""
    values, inverse, counts = op.unique(self)
    return values, inverse if return_inverse else None, counts if return_counts else None


@rule("aten.one_hot.default")
def one_hot(self: Var, num_classes: int = -1):
    refuse(num_classes < 0, "one_hot needs a number of classes")
    rows = op.arange(like=[], stop=(num_classes,))
    return op.cast(op.equal(unsqueezed(as_integer(self), rank_of(self)), rows), dtype=DType.INT64)


@rule("aten.repeat_interleave.self_Tensor")
def repeat_interleave(self: Var, repeats: Var, dim: int | None = None, output_size: Size | None = None):
    """Repeat each row as often as its count in `repeats`."""
    x, axis = (self, axis_of(self, dim)) if dim is not None else (reshaped(self, [size.product(shape_of(self))]), 0)
    counts = as_integer(repeats)
    counts = broadcasted(counts if rank_of(counts) else reshaped(counts, [1]), [shape_of(x)[axis]])
    total = reshaped(op.reduce_sum(counts), [1]) if output_size is None else Sizes((output_size,))  # type: ignore[arg-type]
    rows = op.searchsorted(op.cumsum(counts, axis=0), op.arange(like=[], stop=total), right=True)
    return op.index(x, [rows], axes=(axis,))
