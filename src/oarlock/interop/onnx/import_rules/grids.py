"""Grid sampling, max unpooling and scattering into caches."""

import math

from oarlock import op
from oarlock.interop.onnx.import_rules.forms import constant, numbers_of, rank_of, reshaped, shape_of
from oarlock.interop.onnx.import_rules.images import numbers
from oarlock.interop.onnx.rule import Unsupported, rule
from oarlock.ir.attribute import Sizes
from oarlock.ir.dtype import DType

_MODES = {"bilinear": "bilinear", "linear": "bilinear", "nearest": "nearest", "bicubic": "bicubic", "cubic": "bicubic"}


@rule("GridSample", since=16)
def grid_sample(x, grid, *, align_corners=0, mode=None, padding_mode="zeros"):
    mode = mode or "linear"
    if mode not in _MODES or padding_mode not in ("zeros", "border", "reflection"):
        raise Unsupported(f"the mode {mode!r:.20} with the padding {padding_mode!r:.20} is not supported")
    if rank_of(x) == 5 and _MODES[mode] == "bicubic":
        raise Unsupported("cubic sampling of volumes is not supported")
    if grid.dtype is not x.dtype:
        grid = op.cast(grid, dtype=x.dtype)
    return op.grid_sample(x, grid, mode=_MODES[mode], padding_mode=padding_mode, align_corners=bool(align_corners))


@rule("MaxUnpool", since=9, known=("output_shape",))
def max_unpool(x, index, output_shape=None, *, kernel_shape, pads=None, strides=None):
    """Place each element among zeros. Its index counts through the whole result, whose shape is `output_shape` or inferred."""
    count = rank_of(x) - 2
    strides, pads = numbers(strides, count, 1, "strides", least=1), numbers(pads, 2 * count, 0, "pads")
    kernel_shape = numbers(kernel_shape, count, 1, "kernel_shape", least=1)
    whole = numbers_of(x)
    sizes = [
        (size - 1) * step - before - after + width
        for size, step, before, after, width in zip(whole[2:], strides, pads[:count], pads[count:], kernel_shape, strict=True)
    ]
    shape = [*whole[:2], *sizes]
    wanted = shape if output_shape is None else output_shape.items()
    if any(not isinstance(size, int) or size < old for size, old in zip(wanted, shape, strict=True)):
        raise Unsupported(f"output_shape {wanted} is smaller than {shape}")
    zeros = op.broadcast_to(constant(0.0, x), [], shape=Sizes((math.prod(shape),)))
    flat = reshaped(op.cast(index, dtype=DType.INT64) if index.dtype is not DType.INT64 else index, (-1,))
    result = reshaped(op.scatter_along_axis(zeros, flat, reshaped(x, (-1,)), axis=0), shape)
    if wanted == shape:
        return result
    return op.pad(result, before=(0,) * len(shape), after=tuple(new - old for new, old in zip(wanted, shape, strict=True)))


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
