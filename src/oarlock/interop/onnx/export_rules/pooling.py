"""Pooling in one, two and three dimensions, with windows or to a given size."""

import math
from collections.abc import Sequence

from oarlock.interop.onnx.export_graph import Graph, Value
from oarlock.interop.onnx.export_rule import export
from oarlock.interop.onnx.export_rules.convolution import transposed_to_sizes
from oarlock.ir.dtype import DType
from oarlock.ir.size import Size

Numbers = Sequence[int]


def _windowed(size: Numbers, stride: Numbers, padding: Numbers | None = None) -> dict:
    pads = [0] * len(size) if padding is None else list(padding)
    return {"kernel_shape": list(size), "strides": list(stride), "pads": [*pads, *pads]}


def _padded(
    g: Graph, x: Value, y: Sequence[Size], size: Numbers, stride: Numbers, padding: Numbers, dilation: Numbers, fill: float
) -> tuple[str, list[str]]:
    """Pad the images, at the end by as much as the last window needs; return them and their new sizes, int64[1] by axis.

    ONNX's `ceil_mode` counts windows differently if the last one starts in the padding, and does not allow padding as large as a window.
    """
    behind, sizes = [], []
    for axis, (after, window, step, pad, apart) in enumerate(zip(y[2:], size, stride, padding, dilation, strict=True), start=2):
        reach = g("Add", g("Mul", g("Sub", g.size(after), g.ints([1])), g.ints([step])), g.ints([apart * (window - 1) + 1]))
        begun = g("Add", g.dim(x, axis), g.ints([pad]))
        behind.append(g("Max", g("Sub", reach, begun), g.ints([0])))
        sizes.append(g("Add", begun, behind[-1]))
    pads = g("Concat", g.ints([0, 0, *padding, 0, 0]), *behind, axis=0)
    return g("Pad", x, pads, g.scalar(fill, x.dtype)), sizes


def max_pool(
    g: Graph, x: Value, *, size: Numbers, stride: Numbers, padding: Numbers, dilation: Numbers | None = None, ceil_mode: bool = False
) -> tuple[str, str]:
    """Pool. ONNX's indices count through all images, Oarlock's within each."""
    dilation = list(dilation or [1] * len(size))
    if not ceil_mode:
        y, index = g("MaxPool", x, outputs=2, dilations=dilation, **_windowed(size, stride, padding))
        return y, g("Mod", index, _count_positions(g, x))
    wide, sizes = _padded(g, x, g.result().shape or (), size, stride, padding, dilation, -math.inf)
    y, index = g("MaxPool", wide, outputs=2, dilations=dilation, **_windowed(size, stride))
    place, factor = g.ints([0]), g.ints([1])
    for axis in reversed(range(len(size))):  # from positions in padded images to positions in images
        here = g("Sub", g("Mod", index, sizes[axis]), g.ints([padding[axis]]))
        place = g("Add", place, g("Mul", here, factor))
        index, factor = g("Div", index, sizes[axis]), g("Mul", factor, g.dim(x, axis + 2))
    return y, place


def _count_positions(g: Graph, x: Value) -> str:
    """Return the number of positions of an image: int64[]."""
    return g.count(x.sizes[2:])


def _shape_by_channel(g: Graph, x: Value) -> str:
    """Return the shape with the positions of each channel joined to one axis."""
    return g("Concat", g.dim(x, 0), g.dim(x, 1), g.unsqueeze(_count_positions(g, x), 0), axis=0)


@export("max_pool2d_dx", "take_places_dx")
def max_pool_dx(g: Graph, index: Value, dy: Value, x: Value, **_: object) -> str:
    """Add the gradient of each window at the position of its maximum."""
    rows, zeros = _shape_by_channel(g, dy), g.filled(0, dy.dtype, _shape_by_channel(g, x))
    put = g("ScatterElements", zeros, g.reshape(index, rows), g.reshape(dy, rows), axis=2, reduction="add")
    return g.reshape(put, g.shape(x))


@export("take_places")
def take_places(g: Graph, x: Value, index: Value) -> str:
    """Return the values of each channel at the given positions."""
    taken = g("GatherElements", g.reshape(x, _shape_by_channel(g, x)), g.reshape(index, _shape_by_channel(g, index)), axis=2)
    return g.reshape(taken, g.shape(index))


def average_pool(
    g: Graph, x: Value, *, size: Numbers, stride: Numbers, padding: Numbers, ceil_mode: bool = False, count_include_pad: bool = True
) -> str:
    if not ceil_mode:
        return g("AveragePool", x, count_include_pad=int(count_include_pad), **_windowed(size, stride, padding))
    y = g.result().shape or ()
    wide, _ = _padded(g, x, y, size, stride, padding, [1] * len(size), 0.0)
    means = g("AveragePool", wide, count_include_pad=1, **_windowed(size, stride))
    return _correct_means(g, means, x, y, size, stride, padding, count_include_pad)


def _correct_means(
    g: Graph,
    means: Value | str,
    x: Value,
    y: Sequence[Size],
    size: Numbers,
    stride: Numbers,
    padding: Numbers,
    count_include_pad: bool,
) -> str:
    """Convert means over whole windows to means over the elements that count."""
    found = means.name if isinstance(means, Value) else means
    for axis, (after, window, step, pad) in enumerate(zip(y[2:], size, stride, padding, strict=True), start=2):
        first = g("Sub", g("Mul", g.arange(g.size(after)), g.ints([step])), g.ints([pad]))
        low, high = g.ints([-pad if count_include_pad else 0]), g.dim(x, axis)
        high = g("Add", high, g.ints([pad])) if count_include_pad else high
        counted = g("Sub", g("Min", g("Add", first, g.ints([window])), high), g("Max", first, low))
        factor = g("Div", g.scalar(float(window), x.dtype), g.cast(Value(counted, DType.INT64, None), x.dtype))
        found = g("Mul", found, g.unsqueeze(factor, *range(1, x.rank - axis)))
    return found


def average_pool_dx(
    g: Graph,
    dy: Value,
    x: Value,
    *,
    size: Numbers,
    stride: Numbers,
    padding: Numbers,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
) -> str:
    """Distribute the gradient of each window over its elements: a transposed convolution with ones, each channel separately."""
    if any(number == 0 for number in dy.sizes):
        return g.filled(0, dy.dtype, g.shape(x))
    like = Value(x.name, dy.dtype, x.shape)
    arriving: Value | str = dy
    if ceil_mode or not count_include_pad:
        arriving = _correct_means(g, dy, like, dy.sizes, size, stride, padding, count_include_pad)
    axes = range(2, dy.rank)
    alone = g("Reshape", arriving, g("Concat", g.ints([-1]), g.ints([1]), *(g.dim(dy, axis) for axis in axes), axis=0))
    share = g.filled(1 / math.prod(size), dy.dtype, g.ints([1, 1, *size]))
    settings = {"strides": list(stride), "pads": [*padding, *padding], "dilations": [1] * len(size), "group": 1}
    if not ceil_mode:
        return g.reshape(transposed_to_sizes(g, alone, share, size, x.sizes[2:], dy.sizes[2:], 2, settings, x), g.shape(x))
    wide = g("ConvTranspose", alone, share, **{**settings, "pads": [0] * (2 * len(size))})
    behind = []
    for axis, window, step, pad in zip(axes, size, stride, padding, strict=True):  # negative padding crops
        reach = g("Add", g("Mul", g("Sub", g.dim(dy, axis), g.ints([1])), g.ints([step])), g.ints([window]))
        behind.append(g("Sub", g("Add", g.dim(x, axis), g.ints([pad])), reach))
    wide = g("Pad", wide, g("Concat", g.ints([0, 0, *(-pad for pad in padding), 0, 0]), *behind, axis=0))
    return g.reshape(wide, g.shape(x))


for rank in (1, 2, 3):
    export(f"max_pool{rank}d")(max_pool)
    export(f"average_pool{rank}d")(average_pool)
    export(f"average_pool{rank}d_dx")(average_pool_dx)


@export("global_average_pool2d")
def global_average_pool2d(g: Graph, x: Value) -> str:
    return g.reduce("ReduceMean", x, [-2, -1])


@export("global_average_pool2d_dx")
def global_average_pool2d_dx(g: Graph, dy: Value, x: Value) -> str:
    places = g.cast(g.count(x.sizes[-2:]), dy.dtype)
    return g("Expand", g.unsqueeze(g("Div", dy, places), -2, -1), g.shape(x))


# Adaptive pooling


def _window_members(g: Graph, length: str, count: int) -> str:
    """Return which of `length` elements, int64[1], belong to which of `count` windows: bool[count, length]."""
    numbers = g.unsqueeze(g.ints(list(range(count + 1))), 1)
    begins = g("Div", g("Mul", numbers, length), g.ints([count]))
    last = g("Sub", g.ints([count]), g.ints([1]))
    ends = g("Div", g("Add", g("Mul", numbers, length), last), g.ints([count]))
    place = g.unsqueeze(g.arange(length), 0)
    after, before = g("GreaterOrEqual", place, g.slice(begins, 0, 0, count)), g("Less", place, g.slice(ends, 0, 1))
    return g("And", after, before)


def _window_weights(g: Graph, length: str, count: int, dtype: DType) -> str:
    """Return the weight of each element in the mean of each window: [count, length]."""
    members = g.cast(_window_members(g, length, count), dtype)
    return g("Div", members, g.reduce("ReduceSum", members, [1], keepdim=True))


def multiplied_along(g: Graph, x: str, matrix: str, axis: int, rank: int) -> str:
    """Multiply one axis of `x` by a matrix, [from to]."""
    perm = list(range(rank))
    perm[axis], perm[-1] = perm[-1], perm[axis]
    swapped = g("Transpose", x, perm=perm) if axis != rank - 1 else x
    product = g("MatMul", swapped, matrix)
    return g("Transpose", product, perm=perm) if axis != rank - 1 else product


def average(g: Graph, x: Value, *, size: Sequence[int]) -> str:
    y = x.name
    for axis, count in enumerate(size, start=2):
        shares = _window_weights(g, g.dim(x, axis), count, x.dtype)
        y = multiplied_along(g, y, g("Transpose", shares, perm=[1, 0]), axis, x.rank)
    return y


def average_dx(g: Graph, dy: Value, x: Value, *, size: Sequence[int]) -> str:
    dx = dy.name
    for axis, count in enumerate(size, start=2):
        dx = multiplied_along(g, dx, _window_weights(g, g.dim(x, axis), count, dy.dtype), axis, dy.rank)
    return dx


def largest(g: Graph, x: Value, *, size: Sequence[int]) -> tuple[str, str]:
    """Return the maximum of each window and its position in the image. Axes are reduced last to first, so the first maximum wins."""
    y, index, beyond = x.name, None, g.ints([1])
    least = g.scalar(float("-inf"), x.dtype)
    for axis in reversed(range(2, x.rank)):
        members = _window_members(g, g.dim(x, axis), size[axis - 2])
        members = g.unsqueeze(members, *range(axis), *range(axis + 2, x.rank + 1))
        inside = g("Where", members, g.unsqueeze(y, axis), least)
        y = g.reduce("ReduceMax", inside, [axis + 1])
        place = g("ArgMax", inside, axis=axis + 1, keepdims=0)
        further = g("Mul", place, beyond)
        index = further if index is None else g("Add", further, g("GatherElements", index, place, axis=axis))
        beyond = g("Mul", beyond, g.dim(x, axis))
    assert index is not None
    return y, index


for rank in (1, 2, 3):
    export(f"adaptive_average_pool{rank}d")(average)
    export(f"adaptive_average_pool{rank}d_dx")(average_dx)
    export(f"adaptive_max_pool{rank}d")(largest)
