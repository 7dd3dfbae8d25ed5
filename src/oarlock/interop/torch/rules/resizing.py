"""Resize signals, images and volumes, to a size or by factors. A factor also determines the positions of the pixels."""

import math
from collections.abc import Callable, Sequence

import torch

from oarlock import op
from oarlock.interop.torch.rules.arguments import numbers, rank_of, shape_of
from oarlock.interop.torch.rules.registry import rule
from oarlock.ir.block_stack import current_block
from oarlock.ir.names import CONSTANT
from oarlock.ir.size import Size
from oarlock.ir.var import HeldValue, Var
from oarlock.tensor.dtype import to_torch

Scales = Sequence[float | None]


def _resized(x: Var, output_size: Sequence[Size] | None, scales: Scales, mode: str, align_corners: bool) -> Var:
    factors = [float(scale) for scale in scales if scale is not None]
    if len(factors) == rank_of(x) - 2 and _fits(shape_of(x)[2:], output_size, factors):
        return op.resize(x, scale=tuple(factors), mode=mode, align_corners=align_corners)
    return op.resize(x, size=numbers(output_size or (), "the size of a resized image"), mode=mode, align_corners=align_corners)


def _fits(sizes: Sequence[Size], wanted: Sequence[Size] | None, factors: Sequence[float]) -> bool:
    """Return whether the factors give the requested size, if there is one."""
    if not wanted:
        return True
    return all(isinstance(s, int) and math.floor(s * factor) == w for s, w, factor in zip(sizes, wanted, factors, strict=True))


def _declare(name: str, axes: int, mode: str) -> None:
    """Register the rules of one interpolation mode: factors in a list, or one factor per axis."""

    def by_list(input: Var, output_size: Sequence[Size] | None, scale_factors: Sequence[float] | None, align_corners: bool = False) -> Var:
        return _resized(input, output_size, scale_factors or (), mode, align_corners)

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
        return _resized(self, output_size, each, mode, align_corners)

    rule(f"aten.{name}.vec")(by_list)
    rule(f"aten.{name}.default")(by_axis)


for _axes in (1, 2, 3):
    _declare(f"upsample_nearest{_axes}d", _axes, "nearest")
    _declare(f"_upsample_nearest_exact{_axes}d", _axes, "nearest-exact")
for _axes, _name in enumerate(("upsample_linear1d", "upsample_bilinear2d", "upsample_trilinear3d"), 1):
    _declare(_name, _axes, "linear")
_declare("upsample_bicubic2d", 2, "cubic")


# Antialiasing averages each pixel over a window. The weights are the same in all rows and in all columns, so it is a matrix product.


def _averaged(resize: Callable[..., torch.Tensor], x: Var, size: Sequence[Size], align_corners: bool, scales: Scales) -> Var:
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


def _declare_averaged(name: str) -> None:
    resize = getattr(torch.ops.aten, name).default

    def by_list(input: Var, output_size: Sequence[Size] | None, align_corners: bool, scale_factors: Sequence[float] | None) -> Var:
        scales = list(scale_factors or (None, None))
        if output_size is None:
            sizes = numbers(shape_of(input)[2:], "the size of an image to resize with antialiasing")
            output_size = [math.floor(item * factor) for item, factor in zip(sizes, scale_factors or (), strict=True)]
        return _averaged(resize, input, output_size, align_corners, scales)

    def by_axis(
        self: Var, output_size: Sequence[Size], align_corners: bool, scales_h: float | None = None, scales_w: float | None = None
    ) -> Var:
        return _averaged(resize, self, output_size, align_corners, (scales_h, scales_w))

    rule(f"aten.{name}.vec")(by_list)
    rule(f"aten.{name}.default")(by_axis)


for _name in ("_upsample_bilinear2d_aa", "_upsample_bicubic2d_aa"):
    _declare_averaged(_name)
