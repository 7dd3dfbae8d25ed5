"""Resizing of images, and sampling of images at given positions."""

import torch

from oarlock.errors import ArgumentError, ShapeError
from oarlock.ir.shape_rules import differ
from oarlock.ir.size import format_shape
from oarlock.op.trusted_operator import operator
from oarlock.registry import Case, GradCheck, Rejects
from oarlock.tensor.dtype import at_least_single
from oarlock.tensor.images import RESIZE_MODES, resized, resized_backward, sampling_changes, scaled_size

__all__ = ["grid_sample", "grid_sample_changes", "resize"]


@operator(
    "x: float[n c! ...s] -> y: float[n c ...t]",
    linear_in=("x",),
    sensitive_to="place",
    cases=[
        Case(x=[[[[1.0, 2.0], [3.0, 4.0]]]], scale=(1.0, 2.0), y=[[[[1.0, 1.0, 2.0, 2.0], [3.0, 3.0, 4.0, 4.0]]]]),
        Case(x=[[[1.0, 3.0]]], size=(3,), mode="linear", align_corners=True, y=[[[1.0, 2.0, 3.0]]]),
        Case(x=[[[1.0, 3.0, 8.0]]], size=(2,), mode="area", y=[[[2.0, 5.5]]]),
        GradCheck(x=(2, 2, 3, 4), size=(5, 3), mode="linear"),
        GradCheck(x=(1, 2, 3, 4), scale=(2.0, 0.5), mode="cubic", align_corners=True),
        GradCheck(x=(1, 2, 3, 4), scale=(2.0, 0.5), mode="nearest-exact"),
        GradCheck(x=(1, 2, 3, 4), size=(2, 5), mode="area"),
        GradCheck(x=(1, 2, 2, 3, 2), size=(3, 2, 4), mode="linear", align_corners=True),
        GradCheck(x=(2, 3, 4), scale=(2.0,)),
        Rejects("pass either size or scale, with one number for each axis after the channels", x=(1, 1, 2, 2), size=(2,)),
        Rejects("pass either size or scale, with one number for each axis after the channels", x=(1, 1, 2), size=(2,), scale=(1.0,)),
        Rejects("scale nan is not a positive number", x=(1, 1, 2), scale=(float("nan"),)),
        Rejects("x must have pixels", x=(1, 1, 0), size=(2,)),
        Rejects("size (0,) must be from 1 to 2147483647", x=(1, 1, 2), size=(0,)),
        Rejects('"cubic" is only for images', x=(1, 1, 2), size=(2,), mode="cubic"),
        Rejects("mode must be one of nearest, nearest-exact, linear, cubic, area, not 'lanczos'", x=(1, 1, 2), size=(2,), mode="lanczos"),
        Rejects('align_corners is only for "linear" and "cubic"', x=(1, 1, 2), size=(2,), align_corners=True),
    ],
)
def resize(
    x,
    *,
    size: tuple[int, ...] | None = None,
    scale: tuple[float, ...] | None = None,
    mode: str = "nearest",
    align_corners: bool = False,
):
    """Resize signals, images or volumes to ``size``, or to ``floor(scale s)`` for each size ``s``.

    A pixel is the nearest one of ``x`` (``"nearest"``, or by pixel centres ``"nearest-exact"``), interpolated between two along each axis
    (``"linear"``) or four (``"cubic"``), or the mean of all pixels that it covers (``"area"``). ``align_corners`` aligns the centres of the
    corner pixels instead of their outer edges.
    """
    return resized(x, size, scale, mode, align_corners)


@resize.infer_shape
def resized_shape(x, *, size=None, scale=None, mode, align_corners):
    sizes = x.shape[2:]
    if mode not in RESIZE_MODES:
        raise ArgumentError(f"mode must be one of {', '.join(RESIZE_MODES)}, not {mode!r:.40}")
    if not 1 <= len(sizes) <= 3 or 0 in sizes:
        raise ShapeError("x must have pixels along one, two or three axes after the channels")
    given = size if scale is None else scale if size is None else None
    if given is None or len(given) != len(sizes):
        raise ArgumentError("pass either size or scale, with one number for each axis after the channels")
    if mode == "cubic" and len(sizes) != 2:
        raise ShapeError('"cubic" is only for images')
    if align_corners and mode not in ("linear", "cubic"):
        raise ArgumentError('align_corners is only for "linear" and "cubic"')
    given = given if scale is None else tuple(map(scaled_size, sizes, scale))
    if any(isinstance(each, int) and not 1 <= each < 2**31 for each in given):
        raise ShapeError(f"size {given} must be from 1 to {2**31 - 1}")
    return (*x.shape[:2], *given)


@resize.gradient("x", sensitive_to="place")
def resize_dx(dy, x_shape, *, size=None, scale=None, mode, align_corners):
    if scale is not None and tuple(dy.shape[2:]) != tuple(map(scaled_size, x_shape[2:], scale)):
        raise ValueError(
            f"images of {list(x_shape[2:])} scaled by {scale} are not {list(dy.shape[2:])}"
        )  # PyTorch would read out of bounds
    return resized_backward(dy, x_shape, scale, mode, align_corners)


_MODES, _OUTSIDE = ("bilinear", "nearest", "bicubic"), ("zeros", "border", "reflection")


@operator(
    "x: float[n c! ...s], grid: float[n ...t] -> y: float[n c ...u]",
    linear_in=("x",),
    cases=[
        Case(x=[[[[1.0, 3.0]]]], grid=[[[[-0.5, 0.0], [0.0, 0.0], [3.0, 0.0]]]], y=[[[[1.0, 2.0, 0.0]]]]),
        Case(x=[[[[1.0, 3.0]]]], grid=[[[[0.4, 0.0], [3.0, 0.0]]]], mode="nearest", padding_mode="border", y=[[[[3.0, 3.0]]]]),
        GradCheck(x=(2, 2, 4, 3), grid=(2, 3, 2, 2), low=-0.9, high=0.9),
        GradCheck(x=(1, 2, 4, 3), grid=(1, 2, 2, 2), mode="bicubic", padding_mode="border", align_corners=True, low=-0.9, high=0.9),
        GradCheck(x=(1, 2, 2, 3, 2), grid=(1, 2, 1, 2, 3), padding_mode="reflection", low=-0.9, high=0.9),
        Rejects("grid needs two numbers per position for images, three for volumes", x=(1, 1, 2, 2), grid=(1, 2, 2, 3)),
        Rejects("mode must be one of bilinear, nearest, bicubic, not 'cubic'", x=(1, 1, 2, 2), grid=(1, 2, 2, 2), mode="cubic"),
        Rejects("padding_mode must be one of zeros, border, reflection", x=(1, 1, 2, 2), grid=(1, 2, 2, 2), padding_mode="wrap"),
        Rejects('"bicubic" is only for images', x=(1, 1, 2, 2, 2), grid=(1, 2, 2, 2, 3), mode="bicubic"),
        Rejects("x has no pixel to sample", x=(1, 1, 2, 0), grid=(1, 2, 2, 2)),
    ],
)
def grid_sample(x, grid, *, mode: str = "bilinear", padding_mode: str = "zeros", align_corners: bool = False):
    """The pixels of images or volumes at the positions ``grid``, ``(x, y)`` or ``(x, y, z)``: -1 and 1 are the ends of an axis.

    Positions outside give zero, the nearest pixel (``"border"``) or mirrored pixels (``"reflection"``). Jaderberg et al., 2015.
    """
    how = _MODES.index(mode), _OUTSIDE.index(padding_mode), align_corners
    return _sampler(x, "")(at_least_single(x), _bounded(grid, x.shape), *how).to(x.dtype)


@grid_sample.infer_shape
def sampled_shape(x, grid, *, mode, padding_mode, align_corners):
    axes = len(x.shape) - 2
    for name, value, known in (("mode", mode, _MODES), ("padding_mode", padding_mode, _OUTSIDE)):
        if value not in known:
            raise ArgumentError(f"{name} must be one of {', '.join(known)}, not {value!r:.40}")
    if axes not in (2, 3) or len(grid.shape) != axes + 2 or (isinstance(grid.shape[-1], int) and grid.shape[-1] != axes):
        raise ShapeError("grid needs two numbers per position for images, three for volumes")
    if mode == "bicubic" and axes != 2:
        raise ShapeError('"bicubic" is only for images')
    if 0 in x.shape[2:]:
        raise ShapeError("x has no pixel to sample")
    return (*x.shape[:2], *grid.shape[1:-1])


def _bounded(grid, shape):
    """Return ``grid`` clipped to positions near a pixel: PyTorch counts in 32 bits, and reads out of bounds for others. NaN becomes -1, as
    in PyTorch.

    Half precision becomes float32, as it cannot represent the bounds.
    """
    most = 2.0**30 / max(1, *shape[2:])
    return torch.nan_to_num(at_least_single(grid), nan=-1.0).clamp(-most, most)


def _sampler(x, direction: str):
    return getattr(torch.ops.aten, f"grid_sampler_{x.ndim - 2}d{direction}").default


@grid_sample.gradient("x")
def grid_sample_dx(grid, dy, x_shape, *, mode, padding_mode, align_corners):
    wide = at_least_single(dy)
    like_x = wide.new_zeros(x_shape)  # no gradient depends on its values
    how = _MODES.index(mode), _OUTSIDE.index(padding_mode), align_corners
    return _sampler(like_x, "_backward")(wide, like_x, _bounded(grid, x_shape), *how, [True, False])[0].to(dy.dtype)


@grid_sample.gradient("grid")
def grid_sample_dgrid(x, grid, dy, *, mode, padding_mode, align_corners):
    """The gradient with respect to ``grid``. Its own gradients are `grid_sample_changes`, which PyTorch lacks."""
    how = _MODES.index(mode), _OUTSIDE.index(padding_mode), align_corners
    wide = at_least_single(x)
    return _sampler(x, "_backward")(at_least_single(dy), wide, _bounded(grid, x.shape), *how, [False, True])[1].to(dy.dtype)


@grid_sample_dx.gradient_program("grid")
def grid_sample_dx_dgrid(grid, dy, ddx, *, mode, padding_mode, align_corners):
    """The gradient with respect to the grid: the output is linear in ``x``, so ``ddx`` is sampled in its place."""
    return grid_sample_dgrid(ddx, grid, dy, mode=mode, padding_mode=padding_mode, align_corners=align_corners)


_ONE_PLACE = {"x": [[[[1.0, 3.0]]]], "grid": [[[[0.0, 0.0]]]], "y_gradient": [[[[1.0]]]], "direction": [[[[1.0, 0.0]]]]}


@operator(
    "x: float[n c! ...s], grid: float[n ...t], y_gradient: float[n c ...u], direction: float[n ...t]"
    " -> of_x: float[n c ...s], of_grid: float[n ...t], of_y_gradient: float[n c ...u]",
    cases=[
        Case(**_ONE_PLACE, of_x=[[[[-1.0, 1.0]]]], of_grid=[[[[0.0, -1.0]]]], of_y_gradient=[[[[2.0]]]]),
        Case(**_ONE_PLACE, mode="nearest", of_x=[[[[0.0, 0.0]]]], of_grid=[[[[0.0, 0.0]]]], of_y_gradient=[[[[0.0]]]]),
    ],
)
def grid_sample_changes(
    x, grid, y_gradient, direction, *, mode: str = "bilinear", padding_mode: str = "zeros", align_corners: bool = False
):  # fmt: skip
    """The derivatives of `grid_sample_dgrid`, times a direction, with respect to all of its inputs.

    It has no gradient. Along an axis with linear weights, the gradient does not depend on the position.
    """
    wide = at_least_single(x), _bounded(grid, x.shape), at_least_single(y_gradient), at_least_single(direction)
    found = sampling_changes(*wide, mode=mode, padding_mode=padding_mode, align_corners=align_corners)
    return tuple(each.to(x.dtype) for each in found)


@grid_sample_changes.check_shapes
def require_changes_that_fit(x, grid, y_gradient, direction, **how):
    sampled_shape(x, grid, **how)
    sampled = (*x.shape[:2], *grid.shape[1:-1])
    if len(y_gradient.shape) != len(sampled) or any(map(differ, y_gradient.shape, sampled)):
        raise ShapeError(f"y_gradient is {format_shape(y_gradient.shape)}, but the sampled pixels are {format_shape(sampled)}")


grid_sample_dgrid.gradient_programs(
    x=lambda x, grid, dy, ddgrid, *, mode, padding_mode, align_corners: grid_sample_changes(
        x, grid, dy, ddgrid, mode=mode, padding_mode=padding_mode, align_corners=align_corners
    )[0],
    grid=lambda x, grid, dy, ddgrid, *, mode, padding_mode, align_corners: grid_sample_changes(
        x, grid, dy, ddgrid, mode=mode, padding_mode=padding_mode, align_corners=align_corners
    )[1],
    dy=lambda x, grid, dy, ddgrid, *, mode, padding_mode, align_corners: grid_sample_changes(
        x, grid, dy, ddgrid, mode=mode, padding_mode=padding_mode, align_corners=align_corners
    )[2],
)


grid_sample.declare_edges(
    **dict.fromkeys(
        ("infinite", "nan"), "a NaN position is clipped to the border and has the slope there; PyTorch's is 0 or NaN, by kernel"
    )
)
