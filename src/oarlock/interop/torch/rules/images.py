"""Sampling, window extraction and channel shuffling of images."""

from collections.abc import Sequence

from oarlock import op
from oarlock.interop.torch.rules.arguments import numbers, rank_of, repeated, reshaped, shape_of
from oarlock.interop.torch.rules.padding import padded
from oarlock.interop.torch.rules.registry import Unsupported, rule
from oarlock.ir import size
from oarlock.ir.size import Size
from oarlock.ir.var import Var


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
