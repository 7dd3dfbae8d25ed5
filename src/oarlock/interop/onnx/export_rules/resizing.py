"""Resizing and grid sampling of images."""

from collections.abc import Sequence
from typing import Any

import numpy
import torch

from oarlock.interop.onnx.export_graph import Graph, Unsupported, Value, numpy_dtype
from oarlock.interop.onnx.export_rule import export
from oarlock.interop.onnx.export_rules.pooling import multiplied_along
from oarlock.ir.size import Size
from oarlock.tensor.images import resized

_RESIZE = {"nearest": ("nearest", "asymmetric"), "linear": ("linear", "half_pixel"), "cubic": ("cubic", "half_pixel")}


def _matrices(x: Value, y: Sequence[Size], scale: Sequence[float] | None, mode: str, align_corners: bool) -> list[numpy.ndarray]:
    """Return the interpolation matrix, [to from], of each axis."""
    found = []
    for axis, (before, after) in enumerate(zip(x.sizes[2:], y[2:], strict=True)):
        if not isinstance(before, int) or not isinstance(after, int):
            raise Unsupported(f'resizing images of unknown size in the mode "{mode}" is not supported')
        each = torch.eye(before, dtype=torch.float64)[None]
        along = "linear" if mode == "cubic" else mode
        if mode == "cubic":  # only supported for images: one row of pixels, with unchanged height
            shares = torch.nn.functional.interpolate(
                each[:, :, None],
                size=None if scale is not None else (1, after),
                scale_factor=None if scale is None else (1.0, scale[axis]),
                mode="bicubic",
                align_corners=align_corners,
            )[0, :, 0]
        else:
            shares = resized(each, None if scale is not None else [after], None if scale is None else [scale[axis]], along, align_corners)[
                0
            ]
        found.append(shares.T.numpy().astype(numpy_dtype(x.dtype)))
    return found


@export("resize")
def resize(
    g: Graph,
    x: Value,
    *,
    size: Sequence[int] | None = None,
    scale: Sequence[float] | None = None,
    mode: str = "nearest",
    align_corners: bool = False,
) -> str:
    """Resize by `Resize` if ONNX has the mode for images; otherwise multiply by a matrix along each axis."""
    if x.rank != 4 or mode not in _RESIZE:
        y = x.name
        for axis, matrix in enumerate(_matrices(x, g.result().shape or (), scale, mode, align_corners), start=2):
            y = multiplied_along(g, y, g.constant(numpy.ascontiguousarray(matrix.T)), axis, x.rank)
        return y
    kind, place = _RESIZE[mode]
    how: dict[str, Any] = {"mode": kind, "coordinate_transformation_mode": "align_corners" if align_corners else place}
    if mode == "nearest":
        how["nearest_mode"] = "floor"
    if mode == "cubic":
        how["cubic_coeff_a"] = -0.75
    if scale is not None:
        factors = g.constant(numpy.array([1.0, 1.0, *scale], dtype=numpy.float32))
        return g("Resize", x, None, factors, **how)
    assert size is not None
    sizes = g("Concat", g.dim(x, 0), g.dim(x, 1), g.ints(list(size)), axis=0)
    return g("Resize", x, None, None, sizes, **how)


@export("resize_dx")
def resize_dx(
    g: Graph,
    dy: Value,
    x: Value,
    *,
    size: Sequence[int] | None = None,
    scale: Sequence[float] | None = None,
    mode: str,
    align_corners: bool,
) -> str:
    """Multiply by the transposed matrices."""
    dx = dy.name
    like = Value(x.name, dy.dtype, x.shape)
    for axis, matrix in enumerate(_matrices(like, dy.sizes, scale, mode, align_corners), start=2):
        dx = multiplied_along(g, dx, g.constant(matrix), axis, dy.rank)
    return dx


@export("grid_sample")
def grid_sample(g: Graph, x: Value, grid: Value, *, mode: str, padding_mode: str, align_corners: bool) -> str:
    if x.rank == 5:
        g.require_opset(20, "GridSample of volumes")
    names = {"bilinear": "linear", "bicubic": "cubic"} if g.opset >= 20 else {}
    return g("GridSample", x, grid, mode=names.get(mode, mode), padding_mode=padding_mode, align_corners=int(align_corners))
