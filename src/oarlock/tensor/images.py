"""Images: padding, pooling, resizing, and second-order gradients of grid sampling."""

import math
from collections.abc import Iterator, Sequence
from itertools import product
from typing import NamedTuple

import torch

from oarlock.errors import ShapeError
from oarlock.ir.size import Size, floor_divide, multiply

__all__ = [
    "PAD_MODES",
    "RESIZE_MODES",
    "adaptive_average_backward",
    "padded_by_places",
    "padded_with_value",
    "require_places",
    "require_room",
    "resized",
    "resized_backward",
    "sampling_changes",
    "scaled_size",
    "summed_at_places",
]

# Padding


PAD_MODES = ("constant", "reflect", "replicate", "circular")


def require_room(shape: Sequence[object], before: Sequence[int], after: Sequence[int], mode: str) -> None:
    """Raise ValueError if an axis is known to lose more elements than it has, or to have none to pad with. Kernels call this, too."""
    for length, start, stop in zip(shape[len(shape) - len(before) :], before, after, strict=True):
        if isinstance(length, int):
            if max(-start, 0) + max(-stop, 0) > length:
                raise ValueError(f"an axis of size {length} cannot lose {max(-start, 0)} elements before and {max(-stop, 0)} after")
            left = length + min(start, 0) + min(stop, 0)
            if mode != "constant" and not left and max(start, stop) > 0:
                raise ValueError(f"an axis of size {length} has no element left to pad with")


def padded_with_value(x: torch.Tensor, before: Sequence[int], after: Sequence[int], value: float) -> torch.Tensor:
    """Pad the last axes of ``x`` with a constant. Returns a new tensor."""
    ends = [number for pair in zip(reversed(before), reversed(after), strict=True) for number in pair]
    return torch.constant_pad_nd(x, ends, value if x.is_floating_point() or x.is_complex() else int(value))


def padded_by_places(x: torch.Tensor, before: Sequence[int], after: Sequence[int], mode: str) -> torch.Tensor:
    """Pad the last axes of ``x`` with its own elements."""
    y = x
    for axis, places in _places(x.shape, before, after, mode, x.device):
        y = y.index_select(axis, places)
    return y


def summed_at_places(dy: torch.Tensor, shape: Sequence[int], before: Sequence[int], after: Sequence[int], mode: str) -> torch.Tensor:
    """Return the transpose of `padded_by_places`: each element of `shape` gets the sum over its copies."""
    dx = dy
    for axis, places in _places(shape, before, after, mode, dy.device):
        dx = dx.new_zeros(*dx.shape[:axis], shape[axis], *dx.shape[axis + 1 :]).index_add_(axis, places, dx)
    return dx


def _places(
    shape: Sequence[int], before: Sequence[int], after: Sequence[int], mode: str, device: torch.device
) -> Iterator[tuple[int, torch.Tensor]]:
    """Iterate over padded axes and the source positions of their elements, all valid."""
    first = len(shape) - len(before)
    for axis, (start, stop) in enumerate(zip(before, after, strict=True), first):
        length = shape[axis]
        places = torch.arange(-start, length + stop, device=device)
        if mode == "replicate":
            places = places.clamp_(0, max(0, length - 1))
        elif mode == "circular":  # the ring consists of the remaining elements
            cut, left = max(0, -start), length + min(start, 0) + min(stop, 0)
            places = (places - cut).remainder_(max(1, left)) + cut
        else:
            turn = max(1, 2 * (length - 1))
            places = places.remainder_(turn)
            places = torch.minimum(places, turn - places) if length > 1 else places.zero_()
        yield axis, places


# Positions


_LARGE = {1: "a signal", 2: "an image", 3: "a volume"}


def require_places(index: torch.Tensor, sizes: Sequence[int]) -> torch.Tensor:
    """Return ``index`` after checking that it is in range for an image of these sizes. Raises ValueError.

    On a GPU, indices are clamped instead, to avoid waiting for the device.
    """
    count = torch.Size(sizes).numel()
    if not index.is_cpu:
        return index.clamp(0, max(0, count - 1))
    if index.numel():
        low, high = (int(end) for end in torch.aminmax(index))
        if low < 0 or high >= count:
            size = " x ".join(map(str, sizes))
            what = _LARGE.get(len(sizes), "an array")
            raise ValueError(f"index {low if low < 0 else high} is out of range for {what} of {size} positions, numbered from 0")
    return index


# Pooling


def _shares(length: int, count: int, like: torch.Tensor) -> torch.Tensor:
    """Return the weight of each of `length` elements in each of `count` windows, which may overlap: [count length]."""
    at, number = torch.arange(length, device=like.device), torch.arange(count, device=like.device)[:, None]
    first, end = number * length // count, -((number + 1) * -length // count)
    inside = (first <= at) & (at < end)
    return inside.to(like.dtype) / (end - first)


def adaptive_average_backward(dy: torch.Tensor, x_shape) -> torch.Tensor:
    """Return the gradient of the mean over windows, whose number along each axis is the size of ``dy``: one matrix product per axis."""
    dx = dy
    for axis in range(2, dy.ndim):
        if dy.shape[axis] == 1:
            sizes = [*dx.shape[:axis], x_shape[axis], *dx.shape[axis + 1 :]]
            dx = (dx / x_shape[axis]).expand(sizes)
        else:
            dx = torch.movedim(torch.movedim(dx, axis, -1) @ _shares(x_shape[axis], dy.shape[axis], dy), -1, axis)
    return dx.contiguous() if dx is not dy else dx.clone()


# Resizing


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


# Sampling


_A = -0.75  # the constant of PyTorch's cubic weights


class _Axis(NamedTuple):
    """Sampling along one axis: the pixels of each position, [taps], their weights with two derivatives, and the slope of the coordinate."""

    pixels: list[torch.Tensor]
    weights: list[tuple[torch.Tensor, torch.Tensor, torch.Tensor]]
    speed: torch.Tensor


def sampling_changes(x, grid, dy, direction, *, mode: str, padding_mode: str, align_corners: bool) -> tuple[torch.Tensor, ...]:
    """Return the gradients of the sum of ``D`` times the direction, with respect to x [n c ...s], grid [n ...t axes] and dy [n c ...t].

    ``D`` is the gradient of the sum of ``dy`` times the samples with respect to the grid. Grid positions must not be NaN.
    """
    n, c, *sizes = x.shape
    axes, shape = len(sizes), grid.shape
    of_x, of_grid, of_dy = x.new_zeros((n, c, x[0, 0].numel() if n and c else 1)), torch.zeros_like(grid), torch.zeros_like(dy)
    if mode == "nearest" or not (n and c and grid.numel()):
        return of_x.new_zeros(x.shape), of_grid, of_dy
    places, towards = grid.reshape(n, -1, axes), direction.reshape(n, -1, axes)
    arriving, pixels = dy.reshape(n, c, -1), x.reshape(n, c, -1)
    along = [_axis(places[..., a], sizes[axes - 1 - a], mode, padding_mode, align_corners) for a in range(axes)]
    moved = [towards[..., a] * along[a].speed for a in range(axes)]
    strides = [1]
    for size in sizes[:0:-1]:
        strides.append(strides[-1] * size)
    changes_of_grid, changes_of_dy = torch.zeros_like(places), torch.zeros_like(arriving)
    for taps in product(*(range(len(each.pixels)) for each in along)):
        at = [each.pixels[tap] for each, tap in zip(along, taps, strict=True)]
        inside = torch.stack([(i >= 0) & (i < sizes[axes - 1 - a]) for a, i in enumerate(at)]).all(0)
        flat = sum(i.clamp(0, sizes[axes - 1 - a] - 1).long() * stride for a, (i, stride) in enumerate(zip(at, strides, strict=True)))
        rows = flat.unsqueeze(1).expand(-1, c, -1)  # type: ignore[union-attr]
        taken = pixels.gather(2, rows) * inside.unsqueeze(1)
        factors = [each.weights[tap] for each, tap in zip(along, taps, strict=True)]
        change = sum(moved[a] * _product(factors, (a,)) for a in range(axes)) * inside
        changes_of_dy += change.unsqueeze(1) * taken
        of_x.scatter_add_(2, rows, arriving * change.unsqueeze(1))
        both = (arriving * taken).sum(1)
        for b in range(axes):
            twice = sum(moved[a] * _product(factors, (a, b)) for a in range(axes))
            changes_of_grid[..., b] += both * twice * along[b].speed
    return of_x.reshape(x.shape), changes_of_grid.reshape(shape), changes_of_dy.reshape(dy.shape)


def _product(factors: list[tuple[torch.Tensor, torch.Tensor, torch.Tensor]], derived: tuple[int, ...]) -> torch.Tensor:
    """Return the product of the weights of a pixel over all axes; `derived` lists the axes to differentiate, once per derivative."""
    result = factors[0][derived.count(0)]
    for axis in range(1, len(factors)):
        result = result * factors[axis][derived.count(axis)]
    return result


def _axis(place: torch.Tensor, size: int, mode: str, padding_mode: str, align_corners: bool) -> _Axis:
    scale = (size - 1) / 2 if align_corners else size / 2
    at = (place + 1) * scale - (0.0 if align_corners else 0.5)
    speed = torch.full_like(at, scale)
    if mode == "bilinear":
        if padding_mode == "reflection":
            at, sign = _reflected(at, size, align_corners)
            speed = speed * sign
        if padding_mode != "zeros":
            speed = torch.where((at <= 0) | (at >= size - 1), 0.0, speed)
            at = at.clamp(0, size - 1)
        first = at.floor()
        t, none, one = at - first, torch.zeros_like(at), torch.ones_like(at)
        return _Axis([first, first + 1], [(1 - t, -one, none), (t, one, none)], speed)
    first = at.floor()
    t = at - first
    pixels = [first + step for step in (-1, 0, 1, 2)]
    if padding_mode == "reflection":
        pixels = [_reflected(pixel, size, align_corners)[0] for pixel in pixels]
    if padding_mode != "zeros":
        pixels = [pixel.clamp(0, size - 1) for pixel in pixels]
    return _Axis(pixels, [_outer(t + 1, 1.0), _inner(t, 1.0), _inner(1 - t, -1.0), _outer(2 - t, -1.0)], speed)


def _inner(z: torch.Tensor, sign: float) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Return the cubic weight at a distance up to 1 and its derivatives; `sign` is the derivative of the distance."""
    return ((_A + 2) * z - (_A + 3)) * z * z + 1, sign * (3 * (_A + 2) * z - 2 * (_A + 3)) * z, 6 * (_A + 2) * z - 2 * (_A + 3)


def _outer(z: torch.Tensor, sign: float) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Return the cubic weight at a distance from 1 to 2 and its derivatives; `sign` is the derivative of the distance."""
    return ((_A * z - 5 * _A) * z + 8 * _A) * z - 4 * _A, sign * ((3 * _A * z - 10 * _A) * z + 8 * _A), 6 * _A * z - 10 * _A


def _reflected(at: torch.Tensor, size: int, align_corners: bool) -> tuple[torch.Tensor, torch.Tensor]:
    """Reflect positions into the image, at its outer pixels or their edges; return them and the sign of their slope."""
    low, span = (0.0, size - 1.0) if align_corners else (-0.5, float(size))
    if span == 0:
        return torch.zeros_like(at), torch.zeros_like(at)
    off = at - low
    sign = torch.where(off < 0, -1.0, 1.0).to(at.dtype)
    off = off.abs()
    back = (off / span).floor().remainder(2) == 1
    rest = off.fmod(span)
    return torch.where(back, span - rest, rest) + low, torch.where(back, -sign, sign)
