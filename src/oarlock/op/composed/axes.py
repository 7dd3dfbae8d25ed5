"""Axes reordered, rotated and split, and shuffles of pixels and channels."""

from collections.abc import Sequence

from oarlock.errors import ArgumentError, ShapeError
from oarlock.ir.location import here
from oarlock.ir.size import Size, floor_divide, multiply
from oarlock.ir.var import Var
from oarlock.op.composed.composition import composition
from oarlock.op.composed.shape import known_shape, require_axis_of
from oarlock.op.manipulation import reshape, transpose
from oarlock.op.rearrangement import flip

__all__ = ["channel_shuffle", "moveaxis", "pixel_shuffle", "pixel_unshuffle", "rot90", "swapaxes", "unflatten"]

Axes = int | Sequence[int]


def _axes_of(x: Var, axes: Axes, what: str) -> list[int]:
    """Return axes counted from 0. Raises ShapeError for a missing or repeated axis."""
    found = [require_axis_of(x, axis, what) for axis in ([axes] if isinstance(axes, int) else axes)]
    if len(set(found)) < len(found):
        raise ShapeError(f"{what}: axes {tuple(found)} contain the same axis twice", location=here(), given=[x.describe()])
    return found


@composition
def moveaxis(x: Var, source: Axes, destination: Axes) -> Var:
    """``x`` with the axes ``source`` moved to ``destination``; the others keep their order."""
    origins, places = _axes_of(x, source, "moveaxis"), _axes_of(x, destination, "moveaxis")
    if len(origins) != len(places):
        raise ArgumentError(f"moveaxis: {len(origins)} axes cannot move to {len(places)} positions", location=here())
    order = [axis for axis in range(len(known_shape(x, "moveaxis"))) if axis not in origins]
    for place, origin in sorted(zip(places, origins, strict=True)):
        order.insert(place, origin)
    return x if order == sorted(order) else transpose(x, axes=tuple(order))


@composition
def swapaxes(x: Var, first: int, second: int) -> Var:
    """``x`` with two axes swapped."""
    (one,), (other,) = _axes_of(x, first, "swapaxes"), _axes_of(x, second, "swapaxes")
    order = list(range(len(known_shape(x, "swapaxes"))))
    order[one], order[other] = other, one
    return x if one == other else transpose(x, axes=tuple(order))


@composition
def rot90(x: Var, *, k: int = 1, axes: tuple[int, int] = (0, 1)) -> Var:
    """``x`` rotated ``k`` times by 90 degrees in the plane of two axes, from the first towards the second."""
    found = _axes_of(x, axes, "rot90")
    if len(found) != 2:
        raise ArgumentError(f"rot90: axes must be two, not {axes}", location=here())
    first, second = found
    if k % 4 == 0:
        return x
    if k % 4 == 2:
        return flip(x, axes=(first, second))
    return flip(swapaxes(x, first, second), axes=(first if k % 4 == 1 else second,))


@composition
def unflatten(x: Var, *, axis: int, sizes: Sequence[Size]) -> Var:
    """``x`` with an axis split into several of ``sizes``; one size may be -1."""
    (at,) = _axes_of(x, axis, "unflatten")
    shape = known_shape(x, "unflatten")
    sizes, whole = list(sizes), shape[at]
    if not sizes:
        raise ArgumentError("unflatten: sizes is empty", location=here())
    if -1 in sizes and isinstance(whole, int):
        known = 1
        for size in sizes:
            known = multiply(known, size) if size != -1 else known
        if isinstance(known, int) and known > 0 and whole % known == 0:
            sizes[sizes.index(-1)] = whole // known
    product: Size = 1
    for size in sizes:
        product = multiply(product, size)
    if isinstance(product, int) and isinstance(whole, int) and product != whole:
        raise ShapeError(
            f"unflatten: axis {axis} has the size {whole}, which is not the product of {sizes}", location=here(), given=[x.describe()]
        )
    return reshape(x, shape=(*shape[:at], *sizes, *shape[at + 1 :]))


def _image(x: Var, what: str, least: int = 3) -> tuple[list[Size], Size, Size, Size]:
    shape = known_shape(x, what)
    if len(shape) < least:
        raise ShapeError(f"{what}: x must have channels, height and width", location=here(), given=[x.describe()])
    *front, channels, height, width = shape
    return front, channels, height, width


def _divided(size: Size, by: int, what: str, x: Var) -> Size:
    part = floor_divide(size, by) if by > 0 else 0
    if by < 1 or multiply(part, by) != size:
        raise ShapeError(f"{what}: {size} is not a multiple of {by}", location=here(), given=[x.describe()])
    return part


@composition
def pixel_shuffle(x: Var, *, factor: int) -> Var:
    """Rearrange channels into pixels: T[... c*r*r h w] -> T[... c h*r w*r] (Shi et al., 2016). Raises ShapeError."""
    front, channels, height, width = _image(x, "pixel_shuffle")
    kept = _divided(channels, factor * abs(factor), "pixel_shuffle", x)
    rank = len(front)
    apart = reshape(x, shape=(*front, kept, factor, factor, height, width))
    mixed = transpose(apart, axes=(*range(rank), rank, rank + 3, rank + 1, rank + 4, rank + 2))
    return reshape(mixed, shape=(*front, kept, multiply(height, factor), multiply(width, factor)))


@composition
def pixel_unshuffle(x: Var, *, factor: int) -> Var:
    """Rearrange pixels into channels, the inverse of `pixel_shuffle`: T[... c h*r w*r] -> T[... c*r*r h w]. Raises ShapeError."""
    front, channels, height, width = _image(x, "pixel_unshuffle")
    rows, columns = (_divided(size, factor, "pixel_unshuffle", x) for size in (height, width))
    rank = len(front)
    apart = reshape(x, shape=(*front, channels, rows, factor, columns, factor))
    mixed = transpose(apart, axes=(*range(rank), rank, rank + 2, rank + 4, rank + 1, rank + 3))
    return reshape(mixed, shape=(*front, multiply(channels, factor * factor), rows, columns))


@composition
def channel_shuffle(x: Var, *, groups: int) -> Var:
    """Interleave the channels of groups in T[n c ...s]: the first of each, then the second (Zhang et al., 2018). Raises ShapeError."""
    shape = known_shape(x, "channel_shuffle")
    if len(shape) < 3:
        raise ShapeError("channel_shuffle: x must have images, channels and positions", location=here(), given=[x.describe()])
    n, channels, *sizes = shape
    each = _divided(channels, groups, "channel_shuffle", x)
    apart = reshape(x, shape=(n, groups, each, *sizes))
    return reshape(transpose(apart, axes=(0, 2, 1, *range(3, len(shape) + 1))), shape=shape)
