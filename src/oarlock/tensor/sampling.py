"""Second-order gradients of grid sampling: gradients of the grid's gradient along a direction."""

from itertools import product
from typing import NamedTuple

import torch

__all__ = ["sampling_changes"]

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
