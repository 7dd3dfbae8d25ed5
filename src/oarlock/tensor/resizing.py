"""Resizing of images: output sizes, interpolation, and its transpose."""

import math
from collections.abc import Sequence

import torch

from oarlock.errors import ShapeError
from oarlock.ir.size import Size, floor_divide, multiply

__all__ = ["RESIZE_MODES", "resized", "resized_backward", "scaled_size"]

RESIZE_MODES = ("nearest", "nearest-exact", "linear", "cubic", "area")

_LINEAR = {1: "linear", 2: "bilinear", 3: "trilinear"}


def scaled_size(length: Size, scale: float) -> Size:
    """Return ``floor(length * scale)``. Raises ShapeError if a symbol is scaled by neither an integer nor an inverse power of 2."""
    if not 0 < scale < 2**31:
        raise ShapeError(f"scale {scale} is not a positive number")
    if isinstance(length, int):
        return math.floor(float(length) * scale)
    part = 1 / scale
    if float(scale).is_integer():
        return multiply(length, int(scale))
    if part.is_integer() and math.log2(part).is_integer():
        return floor_divide(length, int(part))
    raise ShapeError(f"the size {length} times {scale} is unknown: pass the size instead of the scale")


def resized(x: torch.Tensor, size: Sequence[int] | None, scale: Sequence[float] | None, mode: str, align_corners: bool) -> torch.Tensor:
    """Call PyTorch's `interpolate` with Oarlock's mode names."""
    axes = x.ndim - 2
    how = _LINEAR[axes] if mode == "linear" else "bicubic" if mode == "cubic" else mode
    corners = align_corners if mode in ("linear", "cubic") else None
    sizes, factors = None if size is None else list(size), None if scale is None else list(scale)
    return torch.nn.functional.interpolate(x, sizes, factors, how, corners)


def resized_backward(dy: torch.Tensor, shape: Sequence[int], scale: Sequence[float] | None, mode: str, align_corners: bool) -> torch.Tensor:
    """Return the transpose of `resized` for images of a `shape`: by PyTorch's public kernels if there is one, otherwise axis by axis."""
    if not dy.numel():
        return dy.new_zeros(shape)
    axes = len(shape) - 2
    name = {"nearest": f"nearest{axes}d", "linear": f"{_LINEAR[axes]}{axes}d", "cubic": "bicubic2d"}.get(mode)
    size = list(dy.shape[2:])
    if name is not None:
        kernel = getattr(torch.ops.aten, f"upsample_{name}_backward").default
        corners = [] if mode == "nearest" else [align_corners]
        return kernel(dy.contiguous(), size, list(shape), *corners, *([None] * axes if scale is None else scale))
    dx = dy
    for axis in range(2, len(shape)):
        factor = None if scale is None else [scale[axis - 2]]
        each = torch.eye(shape[axis], dtype=dy.dtype, device=dy.device)[None]  # unit vectors
        shares = resized(each, None if scale is not None else size[axis - 2 : axis - 1], factor, mode, align_corners)[0]
        dx = torch.movedim(torch.movedim(dx, axis, -1) @ shares.T, -1, axis)
    return dx.contiguous()
