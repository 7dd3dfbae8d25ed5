"""Padding, resizing, sampling, window extraction and channel shuffling."""

import math
from collections.abc import Callable, Sequence

import torch

from oarlock import op
from oarlock.interop.torch.rules.arguments import Number, numbers, rank_of, repeated, reshaped, shape_of
from oarlock.interop.torch.rules.registry import Unsupported, rule
from oarlock.ir import size
from oarlock.ir.block_stack import current_block
from oarlock.ir.names import CONSTANT
from oarlock.ir.size import Size
from oarlock.ir.var import HeldValue, Var
from oarlock.tensor.dtype import to_torch

# Padding


@rule("aten.pad.default")
def pad(self: Var, pad: Sequence[Size], mode: str = "constant", value: Number | None = None):
    return padded(self, pad, mode, 0.0 if value is None else value)


@rule("aten.constant_pad_nd.default")
def constant_pad(self: Var, pad: Sequence[Size], value: Number = 0):
    return padded(self, pad, "constant", value)


@rule("aten.reflection_pad1d.default", "aten.reflection_pad2d.default", "aten.reflection_pad3d.default")
def reflection_pad(self: Var, padding: Sequence[Size]):
    return padded(self, padding, "reflect")


@rule("aten.replication_pad1d.default", "aten.replication_pad2d.default", "aten.replication_pad3d.default")
def replication_pad(self: Var, padding: Sequence[Size]):
    return padded(self, padding, "replicate")


@rule("aten._pad_circular.default")
def circular_pad(self: Var, pad: Sequence[Size]):
    return padded(self, pad, "circular")


def padded(x: Var, pad: Sequence[Size], mode: str = "constant", value: Number = 0.0) -> Var:
    """Pad the ends of axes. As in PyTorch, `pad` has two numbers per axis, last axis first; negative ones crop."""
    items = numbers(pad, "a padding")
    before, after = [0] * rank_of(x), [0] * rank_of(x)
    for place in range(len(items) // 2):
        before[-1 - place], after[-1 - place] = items[2 * place], items[2 * place + 1]
    if not any(items):
        return x
    return op.pad(x, before=tuple(before), after=tuple(after), mode=mode, value=float(value))


# Resizing


Scales = Sequence[float | None]


def _resize(x: Var, output_size: Sequence[Size] | None, scales: Scales, mode: str, align_corners: bool) -> Var:
    factors = [float(scale) for scale in scales if scale is not None]
    if len(factors) == rank_of(x) - 2 and _factors_fit(shape_of(x)[2:], output_size, factors):
        return op.resize(x, scale=tuple(factors), mode=mode, align_corners=align_corners)
    return op.resize(x, size=numbers(output_size or (), "the size of a resized image"), mode=mode, align_corners=align_corners)


def _factors_fit(sizes: Sequence[Size], wanted: Sequence[Size] | None, factors: Sequence[float]) -> bool:
    """Return whether the factors give the requested size, if there is one."""
    if not wanted:
        return True
    return all(isinstance(s, int) and math.floor(s * factor) == w for s, w, factor in zip(sizes, wanted, factors, strict=True))


def _register_mode(name: str, axes: int, mode: str) -> None:
    """Register the rules of one interpolation mode: factors in a list, or one factor per axis."""

    def by_list(input: Var, output_size: Sequence[Size] | None, scale_factors: Sequence[float] | None, align_corners: bool = False) -> Var:
        return _resize(input, output_size, scale_factors or (), mode, align_corners)

    def by_axis(
        self: Var,
        output_size: Sequence[Size],
        align_corners: bool = False,
        scales: float | None = None,
        scales_d: float | None = None,
        scales_h: float | None = None,
        scales_w: float | None = None,
    ) -> Var:
        each = ((scales,), (scales_h, scales_w), (scales_d, scales_h, scales_w))[axes - 1]
        return _resize(self, output_size, each, mode, align_corners)

    rule(f"aten.{name}.vec")(by_list)
    rule(f"aten.{name}.default")(by_axis)


for _axes in (1, 2, 3):
    _register_mode(f"upsample_nearest{_axes}d", _axes, "nearest")
    _register_mode(f"_upsample_nearest_exact{_axes}d", _axes, "nearest-exact")
for _axes, _name in enumerate(("upsample_linear1d", "upsample_bilinear2d", "upsample_trilinear3d"), 1):
    _register_mode(_name, _axes, "linear")
_register_mode("upsample_bicubic2d", 2, "cubic")


# Antialiasing averages each pixel over a window. The weights are the same in all rows and in all columns, so it is a matrix product.


def _resize_antialiased(resize: Callable[..., torch.Tensor], x: Var, size: Sequence[Size], align_corners: bool, scales: Scales) -> Var:
    height, width = numbers(shape_of(x)[2:], "the size of an image to resize with antialiasing")
    rows, columns = numbers(size, "the size of a resized image")

    def matrix(before: int, after: int, scale: float | None) -> torch.Tensor:
        """Return the matrix of a resizing: its results for unit vectors."""
        rows = torch.eye(before, dtype=torch.float64).reshape(1, before, 1, before)
        return resize(rows, [1, after], align_corners, None, scale).reshape(before, after)

    left, right = matrix(height, rows, scales[0]), matrix(width, columns, scales[1])
    wide = op.linear(x, _constant(right, x))
    return op.matrix_transpose(op.linear(op.matrix_transpose(wide), _constant(left, x)))


def _constant(value: torch.Tensor, like: Var) -> Var:
    program = current_block().program
    held = value.to(to_torch(like.dtype)).contiguous()
    name, start = program.unique(CONSTANT), HeldValue(held)
    return program.main.new_var(name, like.dtype, tuple(held.shape), persistable=True, stop_gradient=True, initializer=start)


def _register_antialiased(name: str) -> None:
    resize = getattr(torch.ops.aten, name).default

    def by_list(input: Var, output_size: Sequence[Size] | None, align_corners: bool, scale_factors: Sequence[float] | None) -> Var:
        scales = list(scale_factors or (None, None))
        if output_size is None:
            sizes = numbers(shape_of(input)[2:], "the size of an image to resize with antialiasing")
            output_size = [math.floor(item * factor) for item, factor in zip(sizes, scale_factors or (), strict=True)]
        return _resize_antialiased(resize, input, output_size, align_corners, scales)

    def by_axis(
        self: Var, output_size: Sequence[Size], align_corners: bool, scales_h: float | None = None, scales_w: float | None = None
    ) -> Var:
        return _resize_antialiased(resize, self, output_size, align_corners, (scales_h, scales_w))

    rule(f"aten.{name}.vec")(by_list)
    rule(f"aten.{name}.default")(by_axis)


for _name in ("_upsample_bilinear2d_aa", "_upsample_bicubic2d_aa"):
    _register_antialiased(_name)


# Sampling and rearrangement


@rule("aten.grid_sampler.default", "aten.grid_sampler_2d.default", "aten.grid_sampler_3d.default")
def grid_sampler(input: Var, grid: Var, interpolation_mode: int, padding_mode: int, align_corners: bool):
    return op.grid_sample(
        input,
        grid,
        mode=("bilinear", "nearest", "bicubic")[interpolation_mode],
        padding_mode=("zeros", "border", "reflection")[padding_mode],
        align_corners=align_corners,
    )


@rule("aten.pixel_shuffle.default")
def pixel_shuffle(self: Var, upscale_factor: int):
    r = upscale_factor
    *lead, c, h, w = shape_of(self)
    channels = size.floor_divide(c, r * r)
    n = len(lead)
    y = op.transpose(reshaped(self, [*lead, channels, r, r, h, w]), axes=(*range(n), n, n + 3, n + 1, n + 4, n + 2))
    return reshaped(y, [*lead, channels, size.multiply(h, r), size.multiply(w, r)])


@rule("aten.pixel_unshuffle.default")
def pixel_unshuffle(self: Var, downscale_factor: int):
    r = downscale_factor
    *lead, c, h, w = shape_of(self)
    n = len(lead)
    y = op.transpose(
        reshaped(self, [*lead, c, size.floor_divide(h, r), r, size.floor_divide(w, r), r]),
        axes=(*range(n), n, n + 2, n + 4, n + 1, n + 3),
    )
    return reshaped(y, [*lead, size.multiply(c, r * r), size.floor_divide(h, r), size.floor_divide(w, r)])


@rule("aten.channel_shuffle.default", "aten.native_channel_shuffle.default")
def channel_shuffle(self: Var, groups: int):
    n, c, *rest = shape_of(self)
    apart = reshaped(self, [n, groups, size.floor_divide(c, groups), *rest])
    return reshaped(op.transpose(apart, axes=(0, 2, 1, *range(3, 3 + len(rest)))), [n, c, *rest])


@rule("aten.im2col.default")
def im2col(self: Var, kernel_size: Sequence[int], dilation: Sequence[int], padding: Sequence[int], stride: Sequence[int]):
    """Extract each window of an image as a column. Windows are ordered by row, then by column."""
    window, steps = repeated(kernel_size, 2), repeated(stride, 2)
    spread, border = repeated(dilation, 2), repeated(padding, 2)

    def columns(x: Var) -> Var:
        y = padded(x, [border[1], border[1], border[0], border[0]], "constant", 0.0)
        for axis in (0, 1):
            span = spread[axis] * (window[axis] - 1) + 1
            y = op.windows(y, axis=2 + axis, size=span, step=steps[axis])
            if spread[axis] != 1:
                y = op.slice(y, axis=rank_of(y) - 1, step=spread[axis])
        n, c, h, w, kh, kw = shape_of(y)
        laid = op.transpose(y, axes=(0, 1, 4, 5, 2, 3))
        return reshaped(laid, [n, size.product([c, kh, kw]), size.multiply(h, w)])

    if rank_of(self) == 4:
        return columns(self)
    if rank_of(self) == 3:
        y = columns(reshaped(self, [1, *shape_of(self)]))
        return reshaped(y, shape_of(y)[1:])
    raise Unsupported(f"im2col of {rank_of(self)} axes is not supported")


@rule("aten.affine_grid_generator.default")
def affine_grid(theta: Var, size: Sequence[Size], align_corners: bool):
    counts = numbers(size, "the size of a grid")[2:]
    places = []
    for count in counts:
        step = 2.0 / max(count - 1, 1) if align_corners else 2.0 / count
        first = (-1.0 if count > 1 else 0.0) if align_corners else -1.0 + 1.0 / count
        numbers_of_axis = op.cast(op.arange(like=[], stop=(count,)), dtype=theta.dtype)
        places.append(op.add(op.multiply(numbers_of_axis, step), first))
    axes = len(counts)
    spread = []
    for axis in range(axes - 1, -1, -1):
        shape = [1] * axes
        shape[axis] = counts[axis]
        spread.append(op.broadcast_to(reshaped(places[axis], shape), like=[], shape=counts))
    spread.append(op.full(shape=counts, value=1.0, dtype=theta.dtype))
    flat = reshaped(op.stack(spread, axis=axes), [int_product(counts), axes + 1])
    y = op.matmul(
        op.broadcast_to(flat, like=[theta], shape=(shape_of(theta)[0], int_product(counts), axes + 1)), op.matrix_transpose(theta)
    )
    return reshaped(y, [shape_of(theta)[0], *counts, axes])


def int_product(counts: Sequence[int]) -> int:
    total = 1
    for count in counts:
        total *= count
    return total
