"""Gather and scatter elements by index."""

from typing import TYPE_CHECKING

from oarlock import op
from oarlock.interop.onnx.import_rules.forms import axis_of, constant, moved, numbers_of, rank_of, reshaped, shape_of, unsqueezed
from oarlock.interop.onnx.known_value import Known
from oarlock.interop.onnx.rule import Unsupported, rule
from oarlock.ir import size as sizes
from oarlock.ir.attribute import Sizes
from oarlock.ir.dtype import DType
from oarlock.ir.var import Var

if TYPE_CHECKING:
    from oarlock.interop.onnx.importer import Importer


def _from_front(index: Var, x: Var, axis: int) -> Var:
    """Convert indices along an axis to nonnegative ones: negative indices count from its end."""
    index = index if index.dtype is DType.INT64 else op.cast(index, dtype=DType.INT64)
    size = shape_of(x)[axis]
    length = constant(size, index) if isinstance(size, int) else op.size(x, axis=axis)
    return op.where(op.less(index, constant(0, index)), op.add(index, length), index)


def _known_from_front(index: "Known | Var", x: Var, axis: int, importer: "Importer") -> Var:
    if isinstance(index, Known) and index.sizes is None:
        numbers = index.tensor
        if not bool((numbers < 0).any()):
            found = importer.writer.variable(index)
            return found if found.dtype is DType.INT64 else op.cast(found, dtype=DType.INT64)
    return _from_front(importer.writer.variable(index), x, axis)


@rule("Gather", either=("index",))
def gather(x, index, *, axis=0, importer: "Importer"):
    axis = axis_of(axis, rank_of(x))
    single = index.shape == () and isinstance(index, Known) and index.sizes is None
    if single:
        return _take_one(x, index.item(), axis)
    rank = rank_of(index) if isinstance(index, Var) else len(index.shape)
    found = op.gather(moved(x, axis, 0), _known_from_front(index, x, axis, importer))
    order = (*range(rank, rank + axis), *range(rank), *range(rank + axis, rank + rank_of(x) - 1))
    return found if axis == 0 else op.transpose(found, axes=order)


def _take_one(x: Var, number: int, axis: int) -> Var:
    """Return the element at a constant index along an axis."""
    size = shape_of(x)[axis]
    if isinstance(size, int) and not -size <= number < size:
        raise Unsupported(f"the index {number} is out of range for an axis of size {size}")
    part = op.slice(x, axis=axis, start=number, stop=number + 1 if number != -1 else None, clip=False)
    return reshaped(part, [item for other, item in enumerate(shape_of(x)) if other != axis])


@rule("GatherElements")
def gather_elements(x, index, *, axis=0):
    axis = axis_of(axis, rank_of(x))
    return op.take_along_axis(x, _from_front(index, x, axis), axis=axis)


@rule("GatherND")
def gather_nd(x, index, *, batch_dims=0, importer: "Importer"):
    if batch_dims:
        return _gather_in_batches(x, index, batch_dims, importer)
    return op.index(x, _columns(x, index, 0), axes=tuple(range(len(_columns_count(index)))))


def _columns_count(index: Var) -> range:
    count = shape_of(index)[-1] if shape_of(index) else None
    if not isinstance(count, int):
        raise Unsupported(f"the number of columns of its index is {count}, which is not constant")
    return range(count)


def _columns(x: Var, index: Var, first: int) -> list[Var]:
    """Return the columns of an index, one index per axis of `x` from `first` on."""
    rank = rank_of(index)
    found = []
    for number in _columns_count(index):
        if first + number >= rank_of(x):
            raise Unsupported(f"its index has {len(_columns_count(index))} columns, more than its input has axes")
        column = op.slice(index, axis=rank - 1, start=number, stop=number + 1, clip=False)
        found.append(_from_front(reshaped(column, shape_of(index)[:-1]), x, first + number))
    return found


def _gather_in_batches(x: Var, index: Var, batch: int, importer: "Importer") -> Var:
    """Gather with leading batch axes, which are indexed together."""
    if not 0 < batch < min(rank_of(x), rank_of(index)):
        raise Unsupported(f"batch_dims={batch} is not supported")
    columns = _columns(x, index, batch)
    rank = rank_of(index) - 1
    leading = []
    for axis in range(batch):
        numbers = op.arange_like(moved(index, axis, 0))
        leading.append(reshaped(numbers, [shape_of(index)[axis] if other == axis else 1 for other in range(rank)]))
    return op.index(x, [*leading, *columns], axes=tuple(range(batch + len(columns))))


_REDUCTIONS = {"none": "none", "add": "add", "mul": "multiply", "max": "maximum", "min": "minimum"}


def _reduction(name: str) -> str:
    if name not in _REDUCTIONS:
        raise Unsupported(f"the reduction {name!r:.40} is not supported")
    return _REDUCTIONS[name]


@rule("ScatterElements", "Scatter")
def scatter_elements(x, index, values, *, axis=0, reduction="none"):
    axis = axis_of(axis, rank_of(x))
    return op.scatter_along_axis(x, _from_front(index, x, axis), values, axis=axis, reduction=_reduction(reduction))


@rule("ScatterND")
def scatter_nd(x, index, values, *, reduction="none", importer: "Importer"):
    """Scatter rows of `x` flattened to a table, at the row numbers computed from the columns of the index."""
    columns = _columns(x, index, 0)
    whole = shape_of(x)
    count = len(columns)
    inner = numbers_of(x)[count:]
    width = int(sizes.product(inner))
    rows = constant(0, DType.INT64)
    for axis, column in enumerate(columns):
        size = whole[axis]
        if not isinstance(size, int):
            raise Unsupported(f"it needs constant sizes, not {list(whole)}", hint="pass sizes={...} to fix symbolic sizes")
        rows = op.add(op.multiply(rows, constant(size, rows)), column)
    places = reshaped(rows, (-1, 1)) if rank_of(rows) else reshaped(rows, (1, 1))
    places = op.add(op.multiply(places, constant(width, places)), op.arange([], stop=(width,)))
    flat = op.scatter_along_axis(
        reshaped(x, (-1,)), reshaped(places, (-1,)), reshaped(values, (-1,)), axis=0, reduction=_reduction(reduction)
    )
    return reshaped(flat, whole)


@rule("OneHot", known=("depth",))
def one_hot(index, depth, values, *, axis=-1):
    count = int(depth.tensor.reshape(-1)[0].item())
    index = index if index.dtype is DType.INT64 else op.cast(index, dtype=DType.INT64)
    rank = rank_of(index) + 1
    axis = axis_of(axis, rank)
    index = op.where(op.less(index, constant(0, index)), op.add(index, constant(count, index)), index)
    places = reshaped(op.arange([], stop=(count,)), [count if other == axis else 1 for other in range(rank)])
    marked = op.equal(unsqueezed(index, [axis]), places)
    off, on = (reshaped(op.slice(values, start=number, stop=number + 1, clip=False), ()) for number in (0, 1))
    return op.where(marked, on, off)


@rule("NonZero")
def nonzero(x):
    mask = x if x.dtype is DType.BOOL else op.not_equal(x, constant(0.0, x))
    return op.matrix_transpose(op.argwhere(mask)) if rank_of(x) != 1 else unsqueezed(op.nonzero(mask), [0])


@rule("Compress")
def compress(x, condition, *, axis=None, importer: "Importer"):
    if axis is None:
        x, axis = reshaped(x, (-1,)), 0
    rows = op.nonzero(condition)
    axis = axis_of(axis, rank_of(x))
    return moved(op.gather(moved(x, axis, 0), rows), 0, axis)


@rule("ReverseSequence")
def reverse_sequence(x, lengths, *, batch_axis=1, time_axis=0):
    if sorted((batch_axis, time_axis)) != [0, 1]:
        raise Unsupported(f"its axes {batch_axis} and {time_axis} must be 0 and 1")
    steps = reshaped(op.arange_like(moved(x, time_axis, 0)), (1, shape_of(x)[time_axis]))
    lengths = reshaped(lengths, (shape_of(lengths)[0], 1))
    back = op.subtract(op.subtract(lengths, constant(1, lengths)), steps)
    places = op.where(op.greater_equal(back, constant(0, back)), back, op.add(steps, op.multiply(lengths, constant(0, lengths))))
    rows = reshaped(op.arange_like(moved(x, batch_axis, 0)), (shape_of(x)[batch_axis], 1))
    by_row = x if batch_axis == 0 else op.transpose(x, axes=(1, 0, *range(2, rank_of(x))))
    found = op.index(by_row, [rows, places], axes=(0, 1))
    return found if batch_axis == 0 else op.transpose(found, axes=(1, 0, *range(2, rank_of(x))))


@rule("Unique")
def unique(x, *, axis=None, sorted=1, outputs):
    """Find unique elements. The first position of each is the minimum over the positions that have its number."""
    if axis is not None and rank_of(x) != 1:
        raise Unsupported(f"unique slices along axis {axis} are not supported, only unique elements")
    flat = reshaped(x, (-1,))
    values, inverse, counts = op.unique(flat)
    places = op.arange_like(flat)
    far = op.broadcast_to(op.size(flat), [counts], shape=Sizes(shape_of(counts)))
    first = op.scatter_along_axis(far, inverse, places, axis=0, reduction="minimum")
    if not sorted:
        _, order = op.sort(first)
        values, first, counts = (op.gather(item, order) for item in (values, first, counts))
        _, ranks = op.sort(order)
        inverse = op.gather(ranks, inverse)
    return [values, first, inverse, counts][:outputs]


@rule("EyeLike")
def eye_like(x, *, dtype=None, k=0):
    from oarlock.interop.onnx.tensors import DTYPES

    kind = x.dtype if dtype is None else DTYPES.get(dtype)
    if kind is None:
        raise Unsupported("its dtype is not supported")
    rows, columns = (op.arange_like(moved(x, axis, 0)) for axis in (0, 1))
    marked = op.equal(op.subtract(columns, reshaped(rows, (shape_of(x)[0], 1))), constant(k, rows))
    return op.cast(marked, dtype=kind)


@rule("TensorScatter", since=24)
def tensor_scatter(past, update, write=None, *, axis=-2, mode="linear"):
    """Write an update into a cache along an axis, from a separate position in each row of the batch, with wrap-around if circular."""
    rank = rank_of(past)
    axis = axis % rank
    if mode not in ("linear", "circular") or axis == 0:
        raise Unsupported(f"the mode {mode!r:.20} along axis {axis} is not supported")
    count = shape_of(update)[axis]
    lengths = constant(0, DType.INT64) if write is None else op.cast(write, dtype=DType.INT64)
    lengths = reshaped(lengths, [shape_of(lengths)[0] if lengths.shape else 1, *(1,) * (rank - 1)])
    numbers = reshaped(op.arange([update], stop=Sizes((count,))), [count if other == axis else 1 for other in range(rank)])
    places = op.add(lengths, numbers)
    if mode == "circular":
        places = op.remainder(places, op.size(past, axis=axis))
    places = op.broadcast_to(places, [update], shape=Sizes(shape_of(update)))
    return op.scatter_along_axis(past, places, update, axis=axis)
