"""Pooling in one, two and three dimensions."""

import math
from collections.abc import Sequence
from typing import Any

import numpy

from oarlock.interop.onnx.export_graph import Graph, Unsupported, Value, numpy_dtype
from oarlock.interop.onnx.export_rule import export
from oarlock.interop.onnx.export_rules.convolution import convolved_back
from oarlock.ir.size import Size

Numbers = Sequence[int]


def _pads(x: Value, y: Sequence[Size], size: Numbers, stride: Numbers, padding: Numbers, dilation: Numbers, ceil_mode: bool) -> list[int]:
    """The padding in front of each axis, then behind it: with `ceil_mode` as much more as the last window needs.

    ONNX has a `ceil_mode` too, which counts windows otherwise where the last begins in the padding.
    """
    if not ceil_mode:
        return [*padding, *padding]
    here, there = x.sizes[2:], y[2:]
    if not all(isinstance(number, int) for number in (*here, *there)):
        raise Unsupported("ceil_mode of images whose sizes are not known")
    behind = []
    for before, after, window, step, pad, apart in zip(here, there, size, stride, padding, dilation, strict=True):
        needed = (after - 1) * step + apart * (window - 1) + 1 - before - pad  # type: ignore[operator]
        behind.append(max(needed, 0))
    return [*padding, *behind]


def max_pool(
    g: Graph,
    x: Value,
    *,
    size: Numbers,
    stride: Numbers,
    padding: Numbers,
    dilation: Numbers | None = None,
    ceil_mode: bool = False,
) -> tuple[str, str]:
    """ONNX numbers places through all images, we within each."""
    dilation = dilation or [1] * len(size)
    y = g.result().shape or ()
    pads = _pads(x, y, size, stride, padding, dilation, ceil_mode)
    found, index = g("MaxPool", x, outputs=2, kernel_shape=list(size), strides=list(stride), pads=pads, dilations=list(dilation))
    return found, g("Mod", index, _places(g, x))


def _places(g: Graph, x: Value) -> str:
    """How many places an image has: int64[]."""
    return g.count(x.sizes[2:])


def max_pool_dx(g: Graph, index: Value, dy: Value, x: Value, **_: object) -> str:
    """The gradient of each window, added where its largest value stood."""
    flat = g("Concat", g.dim(x, 0), g.dim(x, 1), g.unsqueeze(_places(g, x), 0), axis=0)
    rows = g("Concat", g.dim(dy, 0), g.dim(dy, 1), g.unsqueeze(_places(g, dy), 0), axis=0)
    zeros = g.filled(0, dy.dtype, flat)
    put = g("ScatterElements", zeros, g.reshape(index, rows), g.reshape(dy, rows), axis=2, reduction="add")
    return g.reshape(put, g.shape(x))


def average_pool(
    g: Graph,
    x: Value,
    *,
    size: Numbers,
    stride: Numbers,
    padding: Numbers,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
) -> str:
    y = g.result().shape or ()
    pads = _pads(x, y, size, stride, padding, [1] * len(size), ceil_mode)
    common: dict[str, Any] = {"kernel_shape": list(size), "strides": list(stride), "pads": pads}
    if not ceil_mode:
        return g("AveragePool", x, count_include_pad=int(count_include_pad), **common)
    sums = g("AveragePool", x, count_include_pad=1, **common)
    return g("Mul", sums, _shares(g, x, y, size, stride, padding, count_include_pad))


def _shares(g: Graph, x: Value, y: Sequence[Size], size: Numbers, stride: Numbers, padding: Numbers, count_include_pad: bool) -> str:
    """By how much each window's mean over all its places is too small, since fewer count."""
    counts = numpy.ones((1,) * (2 + len(size)))
    for axis, (before, after, window, step, pad) in enumerate(zip(x.sizes[2:], y[2:], size, stride, padding, strict=True)):
        first = numpy.arange(after) * step - pad
        low, high = (-pad, before + pad) if count_include_pad else (0, before)  # type: ignore[operator]
        inside = numpy.minimum(first + window, high) - numpy.maximum(first, low)
        counts = counts * inside.reshape([-1 if other == axis + 2 else 1 for other in range(2 + len(size))])
    return g.constant((math.prod(size) / counts).astype(numpy_dtype(x.dtype)))


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
    """Each window's share to each of its places: a transposed convolution by ones, every channel of every image for itself."""
    pads = _pads(x, dy.sizes, size, stride, padding, [1] * len(size), ceil_mode)
    arriving: Value | str = dy
    if ceil_mode or not count_include_pad:
        if not all(isinstance(number, int) for number in (*x.sizes[2:], *dy.sizes[2:])):
            raise Unsupported("windows that count fewer places at the border, of images whose sizes are not known")
        arriving = g("Mul", dy, _shares(g, x, dy.sizes, size, stride, padding, count_include_pad))
    sizes = [g.dim(dy, axis) for axis in range(2, dy.rank)]
    alone = g.reshape(arriving, g("Concat", g.ints([-1]), g.ints([1]), *sizes, axis=0)) if _filled(dy) else None
    if alone is None:
        return g.filled(0, dy.dtype, g.shape(x))
    share = g.filled(1 / math.prod(size), dy.dtype, g.ints([1, 1, *size]))
    settings = {"strides": list(stride), "pads": pads, "dilations": [1] * len(size), "group": 1}
    if ceil_mode:
        settings["pads"] = [*padding, *padding]
    wide = _back(g, alone, share, size, stride, pads, dy, x, settings)
    return g.reshape(wide, g.shape(x))


def _back(g: Graph, alone: str, share: str, size: Numbers, stride: Numbers, pads: Numbers, dy: Value, x: Value, settings: dict) -> str:
    """The transposed convolution, cut to the image where windows reach beyond it."""
    r = len(size)
    if list(pads[:r]) == list(pads[r:]):
        return convolved_back(g, alone, share, size, x.sizes[2:], dy.sizes[2:], 2, settings, x)
    settings = {**settings, "pads": [*pads[:r], *([0] * r)]}
    wide = g(
        "ConvTranspose", alone, share, output_padding=[step - 1 for step in stride] if any(s > 1 for s in stride) else None, **settings
    )
    ends = g("Concat", *(g.dim(x, axis) for axis in range(2, x.rank)), axis=0)
    return g("Slice", wide, g.ints([0] * r), ends, g.ints(list(range(2, x.rank))))


def _filled(x: Value) -> bool:
    return all(size != 0 for size in x.sizes)


for rank in (1, 2, 3):
    export(f"max_pool{rank}d")(max_pool)
    export(f"max_pool{rank}d_dx")(max_pool_dx)
    export(f"average_pool{rank}d")(average_pool)
    export(f"average_pool{rank}d_dx")(average_pool_dx)


@export("global_average_pool2d")
def global_average_pool2d(g: Graph, x: Value) -> str:
    return g.reduce("ReduceMean", x, [-2, -1])


@export("global_average_pool2d_dx")
def global_average_pool2d_dx(g: Graph, dy: Value, x: Value) -> str:
    places = g.cast(g.count(x.sizes[-2:]), dy.dtype)
    return g("Expand", g.unsqueeze(g("Div", dy, places), -2, -1), g.shape(x))
