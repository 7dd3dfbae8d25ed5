"""Shapes, slices, repetitions, joins and pads."""

from typing import TYPE_CHECKING

import numpy

from oarlock import op
from oarlock.interop.onnx.import_rules.forms import (
    axes_of,
    axis_of,
    constant,
    filled,
    moved,
    numbers_of,
    rank_of,
    reshaped,
    shape_of,
    squeezed,
    unsqueezed,
)
from oarlock.interop.onnx.known_value import Known, known_sizes
from oarlock.interop.onnx.rule import Unsupported, rule
from oarlock.ir import size as sizes
from oarlock.ir.attribute import Sizes
from oarlock.ir.dtype import DType
from oarlock.ir.size import Size
from oarlock.ir.var import Var
from oarlock.op.composed.slices import part_along

if TYPE_CHECKING:
    from oarlock.interop.onnx.importer import Importer

_MOST_AXES = 64


@rule("Shape", either=("x",))
def shape(x, *, start=0, end=None, importer: "Importer"):
    if isinstance(x, Var):
        importer.writer.note_sizes(x)
    return known_sizes(list((x.shape if isinstance(x, Known) else shape_of(x))[slice(start, end)]))


@rule("Size", either=("x",))
def size(x, *, importer: "Importer"):
    if isinstance(x, Var):
        importer.writer.note_sizes(x)
    count = sizes.product(x.shape if isinstance(x, Known) else shape_of(x))
    return known_sizes(numpy.array(count, dtype=object).reshape(()))


@rule("Reshape", either=("shape",))
def reshape(x, shape, *, allowzero=0, importer: "Importer"):
    if isinstance(shape, Var):
        return op.reshape(x, shape=shape if allowzero else _fill_zero_sizes(x, shape))
    wanted = shape.items()
    if not allowzero:
        wanted = [shape_of(x)[axis] if item == 0 and axis < rank_of(x) else item for axis, item in enumerate(wanted)]
    known: list[Size] = [item for item in wanted if item != -1]
    if len(known) == len(wanted) - 1 and all(isinstance(item, int) for item in (*known, *shape_of(x))) and sizes.product(known):
        rest = sizes.floor_divide(sizes.product(shape_of(x)), sizes.product(known))  # type: ignore[arg-type]
        wanted = [rest if item == -1 else item for item in wanted]
    return op.assign(x) if tuple(wanted) == x.shape else reshaped(x, wanted, importer)


def _runtime_length(shape: Var) -> int:
    """Return the length of a shape computed at run time. Raises Unsupported if it is not a vector of known length."""
    numbers = numbers_of(shape)
    if len(numbers) != 1 or numbers[0] > _MOST_AXES:
        raise Unsupported(f"its shape input has the shape {list(numbers)}; a vector of at most {_MOST_AXES} sizes is supported")
    return numbers[0]


def _fill_zero_sizes(x: Var, shape: Var) -> Var:
    """Return a shape computed at run time, with the sizes of `x` in place of 0."""
    count = _runtime_length(shape)
    own = [op.reshape(op.size(x, axis=axis) if axis < rank_of(x) else constant(0, shape), shape=(1,)) for axis in range(count)]
    if not own:
        return shape
    return op.where(op.equal(shape, constant(0, shape)), own[0] if count == 1 else op.concat(own), shape)


@rule("Flatten")
def flatten(x, *, axis=1):
    whole = shape_of(x)
    axis = axis + len(whole) if axis < 0 else axis
    if not 0 <= axis <= len(whole):
        raise Unsupported(f"{axis} is not an axis of {len(whole)} dimensions")
    return reshaped(op.assign(x), [sizes.product(whole[:axis]), sizes.product(whole[axis:])])


@rule("Squeeze", since=13, known=("axes",))
def squeeze(x, axes=None):
    whole = shape_of(x)
    if axes is None and not all(isinstance(item, int) for item in whole):
        raise Unsupported(
            f"it removes all axes of size 1, but {list(whole)} is not constant", hint="pass sizes={...} to fix symbolic sizes"
        )
    found = [axis for axis, item in enumerate(whole) if item == 1] if axes is None else axes_of(axes, len(whole))
    return squeezed(op.assign(x), found)


@rule("Squeeze", until=13)
def squeeze_by_attribute(x, *, axes=None):
    return squeeze(x, None if axes is None else known_sizes(list(axes)))


@rule("Unsqueeze", since=13, known=("axes",))
def unsqueeze(x, axes):
    return unsqueezed(op.assign(x), axes_of(axes, rank_of(x) + axes.count))


@rule("Unsqueeze", until=13)
def unsqueeze_by_attribute(x, *, axes):
    return unsqueeze(x, known_sizes(list(axes)))


@rule("Transpose")
def transpose(x, *, perm=None):
    return op.transpose(x, axes=tuple(reversed(range(rank_of(x)))) if perm is None else axes_of(perm, rank_of(x)))


@rule("Expand", either=("shape",))
def expand(x, shape, *, importer: "Importer"):
    """Broadcast `x` and `shape` with each other."""
    if isinstance(shape, Var):
        return op.broadcast_to(op.assign(x), [], shape=_broadcast_shape(x, shape))
    return broadcast(x, shape.items(), importer)


def _broadcast_shape(x: Var, shape: Var) -> Var:
    """Return a shape computed at run time, broadcast with the shape of `x`."""
    count, rank = _runtime_length(shape), rank_of(x)
    ones = [op.full(shape=(1,), value=1.0, dtype=DType.INT64)]
    own = ones * max(count - rank, 0) + [op.reshape(op.size(x, axis=axis), shape=(1,)) for axis in range(rank)]
    if not own:
        return shape
    shape = op.concat([*ones * (rank - count), shape]) if rank > count else shape
    sizes_of_x = own[0] if len(own) == 1 else op.concat(own)
    return op.where(op.equal(sizes_of_x, constant(1, shape)), shape, sizes_of_x)


def broadcast(x: Var, wanted: list[Size], importer: "Importer") -> Var:
    """Broadcast `x` with a shape, which may have smaller sizes than `x`."""
    own = list(shape_of(x))
    rank = max(len(own), len(wanted))
    own, wanted = [1] * (rank - len(own)) + own, [1] * (rank - len(wanted)) + list(wanted)
    result = [a if b == 1 else b for a, b in zip(own, wanted, strict=True)]
    if tuple(result) == x.shape:
        return op.assign(x)
    return op.broadcast_to(x, importer.writer.variables_with_sizes(result), shape=Sizes(result))


@rule("Tile", known=("repeats",))
def tile(x, repeats):
    counts = repeats.items()
    if len(counts) != rank_of(x) or not all(isinstance(item, int) and item >= 0 for item in counts):
        raise Unsupported(f"its repeats {counts} must be {rank_of(x)} nonnegative numbers")
    return op.tile(x, repeats=tuple(counts))


@rule("ConstantOfShape", either=("shape",))
def constant_of_shape(shape, *, value=None, importer: "Importer"):
    dtype = DType.FLOAT32 if value is None else value.dtype
    number = 0.0 if value is None else float(value.tensor.reshape(-1)[0].item())
    if isinstance(shape, Var):
        return op.full(shape=shape, value=number, dtype=dtype)
    wanted = shape.items()
    if all(isinstance(item, int) for item in wanted):
        return op.full(shape=tuple(wanted), value=number, dtype=dtype)
    return op.broadcast_to(constant(number, dtype), importer.writer.variables_with_sizes(wanted), shape=Sizes(wanted))


@rule("Range", either=("start", "limit", "delta"))
def numbers(start, limit, delta, *, importer: "Importer"):
    dtype = start.dtype
    if all(isinstance(item, Known) for item in (start, limit, delta)):
        if dtype.is_floating:
            first, end, step = (float(item.tensor) for item in (start, limit, delta))
            count = max(int(numpy.ceil((end - first) / step)), 0)
            whole = op.cast(arange(0, count, 1, importer), dtype=dtype)
            return op.add(op.multiply(whole, constant(step, dtype)), constant(first, dtype))
        first, end, step = start.item(), limit.item(), delta.item()
        if isinstance(step, int):
            found = arange(first, end, step, importer)
            return found if dtype is DType.INT64 else op.cast(found, dtype=dtype)
    first, end, step = (importer.writer.variable(item) for item in (start, limit, delta))
    if dtype.is_floating:
        count = op.cast(op.ceil(op.divide(op.subtract(end, first), step)), dtype=DType.INT64)
    else:
        length = op.cast(op.subtract(end, first), dtype=DType.INT64)
        count = op.neg(op.floor_divide(op.neg(length), op.cast(step, dtype=DType.INT64)))
    count = op.maximum(count, constant(0, count))
    whole = op.cast(op.arange([], stop=op.reshape(count, shape=(1,))), dtype=dtype)
    return op.add(op.multiply(whole, step), first)


def arange(start: Size, stop: Size, step: int, importer: "Importer") -> Var:
    """Return the int64 numbers from `start` up to `stop`, exclusive."""
    likes = importer.writer.variables_with_sizes([start, stop])
    return op.arange(likes, start=Sizes((start,)), stop=Sizes((stop,)), step=step)


@rule("Concat")
def concat(*items, axis):
    if len(items) == 1:
        return op.assign(items[0])
    return op.concat(list(items), axis=axis)


@rule("Split", since=13, known=("lengths",))
def split_of(x, lengths=None, *, axis=0, num_outputs=None, outputs, importer: "Importer"):
    axis = axis_of(axis, rank_of(x))
    whole = shape_of(x)[axis]
    if lengths is None:
        count = outputs if num_outputs is None else num_outputs
        if not 1 <= count <= 2**16:
            raise Unsupported(f"it has {count} parts; 1 to 65536 are supported")
        if not isinstance(whole, int):
            return list(op.split(x, sections=count, axis=axis)) if count > 1 else [op.assign(x)]
        part = -(-whole // count)
        parts: list[Size] = [min(part, max(whole - number * part, 0)) for number in range(count)]
    else:
        parts = lengths.items()
    found, start = [], 0
    for part in parts:
        found.append(narrowed(x, axis, start, part, importer))
        start = sizes.add(start, part)
    if sizes.add(start, 0) != whole and isinstance(start, int) and isinstance(whole, int):
        raise Unsupported(f"its parts have {start} elements, but its axis has {whole}")
    return found


@rule("Split", until=13)
def split_by_attribute(x, *, axis=0, split=None, outputs, importer: "Importer"):
    return split_of(x, None if split is None else known_sizes(list(split)), axis=axis, outputs=outputs, importer=importer)


def narrowed(x: Var, axis: int, start: Size, length: Size, importer: "Importer") -> Var:
    """Return `length` elements of an axis from `start` on."""
    if start == 0 and length == shape_of(x)[axis]:
        return op.assign(x)
    if isinstance(start, int) and isinstance(length, int):
        return op.slice(x, axis=axis, start=start, stop=start + length, clip=False)
    return op.narrow(x, importer.writer.variables_with_sizes([start, length]), axis=axis, start=Sizes((start,)), length=Sizes((length,)))


@rule("Slice", since=10, either=("starts", "ends"), known=("axes", "steps"))
def slice_of(x, starts, ends, axes=None, steps=None, *, importer: "Importer"):
    if isinstance(starts, Var) or isinstance(ends, Var):
        return _slice_by_values(x, starts, ends, axes, steps, importer)
    first, last = starts.items(), ends.items()
    chosen = tuple(range(len(first))) if axes is None else axes_of(axes, rank_of(x))
    strides = [1] * len(first) if steps is None else steps.items()
    if not len(first) == len(last) == len(chosen) == len(strides):
        raise Unsupported(f"its numbers of starts, ends, axes and steps differ: {len(first)}, {len(last)}, {len(chosen)}, {len(strides)}")
    result = x
    for start, end, axis, step in zip(first, last, chosen, strides, strict=True):
        result = _slice(result, axis_of(axis, rank_of(x)), start, end, step, importer)
    return op.assign(x) if result is x else result


def _slice(x: Var, axis: int, start: Size, end: Size, step: Size, importer: "Importer") -> Var:
    """Slice an axis with bounds known at import. Constant bounds are clipped; symbolic ones raise in the run if out of range."""
    whole = shape_of(x)[axis]
    if not isinstance(step, int) or step == 0:
        raise Unsupported(f"the step {step} is not supported")
    if step < 0 and isinstance(start, int) and isinstance(whole, int) and start < -whole:
        start = -whole  # NumPy would return nothing; ONNX clips to the first element
    if isinstance(start, int) and isinstance(end, int) and (step > 0 or isinstance(whole, int) or start >= -1):
        first = None if _is_end(start, step, is_start=True) else start
        return part_along(x, axis, first, None if _is_end(end, step, is_start=False) else end, step)
    if step < 0:
        return _slice_by_values(x, known_sizes([start]), known_sizes([end]), known_sizes([axis]), known_sizes([step]), importer)
    start, end = (_from_front(bound, whole) for bound in (start, end))
    part = narrowed(x, axis, start, sizes.add(end, sizes.multiply(start, -1)), importer)
    return op.slice(part, axis=axis, step=step) if step != 1 else part


def _is_end(bound: int, step: int, *, is_start: bool) -> bool:
    """Return whether a bound is one of the extreme values that select an end of an axis of any size."""
    return bound >= 2**31 - 1 if is_start is (step < 0) else bound < -(2**31) + 2


def _from_front(bound: Size, whole: Size) -> Size:
    """Return a bound counted from the front, clipped if the names show which of the two is smaller."""
    if not sizes.is_at_least(bound, 0) and sizes.is_at_least(-1, bound):
        return sizes.maximum(sizes.add(whole, bound), 0)
    if (isinstance(bound, int) and bound >= 2**31 - 1) or sizes.is_at_least(bound, whole):
        return whole
    return bound


def _slice_by_values(x: Var, starts, ends, axes: Known | None, steps: Known | None, importer: "Importer") -> Var:
    """Slice with bounds known only at run time, by gathering rows."""
    bounds = [importer.writer.variable(item) for item in (starts, ends)]
    count = _runtime_length(bounds[0])
    chosen = tuple(range(count)) if axes is None else axes_of(axes, rank_of(x))
    strides = [1] * count if steps is None else steps.items()
    result = x
    for number, (axis, step) in enumerate(zip(chosen, strides, strict=True)):
        if not isinstance(step, int) or step == 0:
            raise Unsupported(f"the step {step} is not supported")
        start, end = (op.cast(op.slice(item, start=number, stop=number + 1, clip=False), dtype=DType.INT64) for item in bounds)
        whole = op.reshape(op.size(x, axis=axis), shape=(1,))
        low, high = (constant(0, whole), whole) if step > 0 else (constant(-1, whole), op.subtract(whole, constant(1, whole)))
        first = constant(0, whole)  # the smallest start, for a step of either sign
        start, end = (
            op.minimum(op.maximum(op.where(op.less(item, constant(0, item)), op.add(item, whole), item), least), high)
            for item, least in ((start, first), (end, low))
        )
        rows = op.arange([], start=start, stop=end, step=step)
        result = op.gather(moved(result, axis, 0), rows)
        result = moved(result, 0, axis)
    return result


@rule("Pad", since=11, known=("pads", "axes"), either=("value",))
def pad(x, pads, value=None, axes=None, *, mode="constant", importer: "Importer"):
    rank = rank_of(x)
    counts = pads.items()
    chosen = tuple(range(rank)) if axes is None else axes_of(axes, rank)
    if len(counts) != 2 * len(chosen) or not all(isinstance(item, int) for item in counts):
        raise Unsupported(f"its pads {counts} must be {2 * len(chosen)} numbers")
    names = {"constant": "constant", "reflect": "reflect", "edge": "replicate", "wrap": "circular"}
    if mode not in names:
        raise Unsupported(f"the mode {mode!r:.40} is not supported")
    before, after = [0] * rank, [0] * rank
    for number, axis in enumerate(chosen):
        before[axis], after[axis] = counts[number], counts[number + len(chosen)]
    if not any(before) and not any(after):
        return op.assign(x)
    if isinstance(value, Var):
        return _pad_with_variable(x, before, after, value)
    number = 0.0 if value is None else float(value.item())
    return op.pad(x, before=tuple(before), after=tuple(after), mode=names[mode], value=number)


def _pad_with_variable(x: Var, before: list[int], after: list[int], value: Var) -> Var:
    """Pad `x` with a number known only at run time."""
    inside = op.pad(filled(x, 1.0, DType.INT64), before=tuple(before), after=tuple(after), mode="constant", value=0.0)
    padded = op.pad(x, before=tuple(before), after=tuple(after), mode="constant", value=0.0)
    return op.where(op.cast(inside, dtype=DType.BOOL), padded, reshaped(value, ()))


@rule("CenterCropPad", known=("shape",))
def center_crop_pad(x, shape, *, axes=None):
    rank = rank_of(x)
    chosen = tuple(range(rank)) if axes is None else axes_of(axes, rank)
    before, after = [0] * rank, [0] * rank
    for axis, wanted in zip(chosen, shape.items(), strict=True):
        whole = shape_of(x)[axis]
        if not isinstance(whole, int) or not isinstance(wanted, int):
            raise Unsupported("it needs constant sizes", hint="pass sizes={...} to fix symbolic sizes")
        missing = wanted - whole
        before[axis] = missing // 2 if missing >= 0 else -(-missing // 2)
        after[axis] = missing - before[axis]
    return op.pad(x, before=tuple(before), after=tuple(after), mode="constant", value=0.0) if any((*before, *after)) else op.assign(x)


@rule("DepthToSpace")
def depth_to_space(x, *, blocksize, mode="DCR"):
    n, c, h, w = shape_of(x)
    b = blocksize
    if not isinstance(c, int) or b < 1 or c % (b * b) or mode not in ("DCR", "CRD"):
        raise Unsupported(f"{c} channels cannot be split into blocks of {b} x {b}, or the mode {mode!r:.20} is not supported")
    k = c // (b * b)
    if mode == "DCR":
        parts = op.transpose(reshaped(x, (n, b, b, k, h, w)), axes=(0, 3, 4, 1, 5, 2))
    else:
        parts = op.transpose(reshaped(x, (n, k, b, b, h, w)), axes=(0, 1, 4, 2, 5, 3))
    return reshaped(parts, (n, k, sizes.multiply(h, b), sizes.multiply(w, b)))


@rule("SpaceToDepth")
def space_to_depth(x, *, blocksize, mode="DCR"):
    n, c, h, w = shape_of(x)
    b = blocksize
    if not isinstance(c, int) or not isinstance(h, int) or not isinstance(w, int) or b < 1 or h % b or w % b or mode not in ("DCR", "CRD"):
        raise Unsupported(f"{h} x {w} cannot be split into blocks of {b} x {b}")
    parts = reshaped(x, (n, c, h // b, b, w // b, b))
    order = (0, 3, 5, 1, 2, 4) if mode == "DCR" else (0, 1, 3, 5, 2, 4)
    return reshaped(op.transpose(parts, axes=order), (n, c * b * b, h // b, w // b))
