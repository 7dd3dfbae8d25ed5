"""Convolutions in one, two and three dimensions, transposed ones, and their gradients."""

from collections.abc import Sequence

from oarlock.interop.onnx.export_graph import Graph, Value
from oarlock.interop.onnx.export_rule import export
from oarlock.ir.size import Size

__all__ = ["transposed_to_sizes"]

Numbers = Sequence[int]


def _settings(x: Value, stride: Numbers, padding: Numbers, dilation: Numbers | None, groups: int) -> dict:
    return {
        "strides": list(stride),
        "pads": [*padding, *padding],
        "dilations": list(dilation or [1] * (x.rank - 2)),
        "group": groups,
    }


def convolution(
    g: Graph,
    x: Value,
    filter: Value,
    bias: Value | None = None,
    *,
    stride: Numbers,
    padding: Numbers,
    dilation: Numbers | None = None,
    groups: int = 1,
) -> str:
    return g("Conv", x, filter, bias, **_settings(x, stride, padding, dilation, groups))


def transposed_to_sizes(
    g: Graph,
    dy: Value | str,
    filter: Value | str,
    kernel: Sequence[Size],
    before: Sequence[Size],
    after: Sequence[Size],
    front: int,
    settings: dict,
    like: Value,
) -> str:
    """Return the transposed convolution whose result has the spatial sizes `before`, of a convolution whose result has `after`.

    Several input sizes give one output size; `output_padding` selects one. If they are symbolic, the largest is computed and cropped.
    """
    known = all(isinstance(size, int) for size in (*kernel, *before, *after))
    strides, dilations, pads = settings["strides"], settings["dilations"], settings["pads"]
    if known:
        least = [
            (there - 1) * stride - 2 * pad + dilation * (window - 1) + 1  # type: ignore[operator]
            for there, stride, pad, dilation, window in zip(after, strides, pads, dilations, kernel, strict=False)
        ]
        more = [here - size for here, size in zip(before, least, strict=True)]  # type: ignore[operator]
        return g("ConvTranspose", dy, filter, output_padding=more if any(more) else None, **settings)
    wide = [stride - 1 for stride in strides]
    dx = g("ConvTranspose", dy, filter, output_padding=wide if any(wide) else None, **settings)
    for axis, stride in enumerate(strides):
        dx = dx if stride == 1 else g.slice(dx, front + axis, 0, g.dim(like, front + axis))
    return dx


def convolution_dx(
    g: Graph, filter: Value, dy: Value, x: Value, *, stride: Numbers, padding: Numbers, dilation: Numbers | None = None, groups: int = 1
) -> str:
    settings = _settings(dy, stride, padding, dilation, groups)
    return transposed_to_sizes(g, dy, filter, filter.sizes[2:], x.sizes[2:], dy.sizes[2:], 2, settings, x)


def convolution_dfilter(
    g: Graph, x: Value, dy: Value, filter: Value, *, stride: Numbers, padding: Numbers, dilation: Numbers | None = None, groups: int = 1
) -> str:
    """Convolve the images with the gradient: channels act as images and images as channels; strides and dilations are swapped."""
    spatial = list(range(2, x.rank))
    if groups == 1:
        images = g("Transpose", x, perm=[1, 0, *spatial])
    else:
        sizes = [g.dim(x, axis) for axis in spatial]
        each = g.dim(filter, 1)
        apart = g.reshape(x, g("Concat", g.dim(x, 0), g.ints([groups]), each, *sizes, axis=0))  # [n g c/g ...]
        apart = g("Transpose", apart, perm=[2, 1, 0, *(axis + 1 for axis in spatial)])  # [c/g g n ...]
        images = g.reshape(apart, g("Concat", each, g("Mul", g.dim(x, 0), g.ints([groups])), *sizes, axis=0))
    windows = g("Transpose", dy, perm=[1, 0, *spatial])
    found = g(
        "Conv",
        images,
        windows,
        strides=list(dilation or [1] * len(spatial)),
        pads=[*padding, *padding],
        dilations=list(stride),
        group=groups,
    )
    found = g("Transpose", found, perm=[1, 0, *spatial])
    ends = g("Concat", *(g.dim(filter, axis) for axis in spatial), axis=0)
    return g("Slice", found, g.ints([0] * len(spatial)), ends, g.ints(spatial))


def convolution_dbias(g: Graph, dy: Value) -> str:
    return g.reduce("ReduceSum", dy, [axis for axis in range(dy.rank) if axis != 1])


def transposed_convolution(
    g: Graph,
    x: Value,
    filter: Value,
    bias: Value | None = None,
    *,
    stride: Numbers,
    padding: Numbers,
    output_padding: Numbers | None = None,
    dilation: Numbers | None = None,
    groups: int = 1,
) -> str:
    settings = _settings(x, stride, padding, dilation, groups)
    return g(
        "ConvTranspose",
        x,
        filter,
        bias,
        output_padding=list(output_padding) if output_padding and any(output_padding) else None,
        **settings,
    )


def transposed_convolution_dx(
    g: Graph,
    filter: Value,
    dy: Value,
    x: Value | None = None,
    *,
    stride: Numbers,
    padding: Numbers,
    output_padding: Numbers | None = None,
    dilation: Numbers | None = None,
    groups: int = 1,
) -> str:
    return g("Conv", dy, filter, **_settings(dy, stride, padding, dilation, groups))


def transposed_convolution_dfilter(
    g: Graph,
    x: Value,
    dy: Value,
    filter: Value,
    *,
    stride: Numbers,
    padding: Numbers,
    output_padding: Numbers | None = None,
    dilation: Numbers | None = None,
    groups: int = 1,
) -> str:
    """Return the filter's gradient of the underlying convolution, with images and gradients swapped."""
    return convolution_dfilter(g, dy, x, filter, stride=stride, padding=padding, dilation=dilation, groups=groups)


for rank in (1, 2, 3):
    export(f"conv{rank}d")(convolution)
    export(f"conv{rank}d_dx")(convolution_dx)
    export(f"conv{rank}d_dfilter")(convolution_dfilter)
    export(f"conv{rank}d_dbias", f"conv_transpose{rank}d_dbias")(convolution_dbias)
    export(f"conv_transpose{rank}d")(transposed_convolution)
    export(f"conv_transpose{rank}d_dx")(transposed_convolution_dx)
    export(f"conv_transpose{rank}d_dfilter")(transposed_convolution_dfilter)
