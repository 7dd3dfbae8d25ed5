"""Images resized, in one, two and three dimensions: each axis by a matrix of weights, or by the numbers of the nearest.

Where a pixel of the result stands among those of the image is as PyTorch has it: by the middles of pixels, or by the corners.
"""

import math
from collections.abc import Callable, Sequence

from oarlock import op
from oarlock.interop.torch.rules.arguments import like, numbers, rank_of, shape_of, unsqueezed
from oarlock.interop.torch.rules.registry import rule
from oarlock.ir.dtype import DType
from oarlock.ir.size import Size
from oarlock.ir.var import Var

Scales = Sequence[float | None]


def _resized(x: Var, axes: int, output_size: Sequence[Size] | None, scales: Scales, along: Callable[..., Var]) -> Var:
    """`x` with each of its last `axes` axes resized: to a size, or by a factor, which is then where a pixel stands, too."""
    for number in range(axes):
        axis = rank_of(x) - axes + number
        (whole,) = numbers([shape_of(x)[axis]], "the size of an image")
        factor = scales[number] if number < len(scales) else None
        if output_size is not None and len(output_size):
            (wanted,) = numbers([output_size[number]], "the size of a resized image")
        else:
            assert factor is not None
            wanted = math.floor(whole * factor)
        if wanted != whole or factor not in (None, 1.0):
            x = along(x, axis, whole, wanted, factor)
    return x


def _step(whole: int, wanted: int, factor: float | None, align_corners: bool = False) -> float:
    """How far apart pixels of the result stand in the image."""
    if align_corners:
        return (whole - 1) / (wanted - 1) if wanted > 1 else 0.0
    return 1.0 / factor if factor else whole / wanted


def _taken(x: Var, axis: int, places: Sequence[int]) -> Var:
    """The elements at places along an axis: where each stands several times in a row, repeated."""
    count, whole = len(places), shape_of(x)[axis]
    if isinstance(whole, int) and count % whole == 0 and list(places) == [place // (count // whole) for place in range(count)]:
        return op.repeat_interleave(x, repeats=count // whole, axis=axis)
    return op.index(x, [_constant(places, DType.INT64)], axes=(axis,))


def _constant(values: Sequence[float], dtype: DType) -> Var:
    return op.stack([op.full(shape=(), value=float(value), dtype=dtype) for value in values])


def _nearest(offset: float) -> Callable[..., Var]:
    def along(x: Var, axis: int, whole: int, wanted: int, factor: float | None) -> Var:
        step = _step(whole, wanted, factor)
        return _taken(x, axis, [min(math.floor((place + offset) * step), whole - 1) for place in range(wanted)])

    return along


def _weighed(weights: Callable[[Var, Var, int], Var], *, clamp: bool, align_corners: bool) -> Callable[..., Var]:
    """Along an axis, the product with a matrix of ``weights(places [wanted 1], columns [whole], whole)``."""

    def along(x: Var, axis: int, whole: int, wanted: int, factor: float | None) -> Var:
        step = _step(whole, wanted, factor, align_corners)
        rows = op.cast(op.arange(like=[], stop=(wanted,)), dtype=x.dtype)
        middle = 0.0 if align_corners else 0.5
        places = op.subtract(op.multiply(op.add(rows, like(middle, rows)), like(step, rows)), like(middle, rows))
        if clamp:
            places = op.clip(places, like(0.0, places), like(whole - 1.0, places))
        columns = op.cast(op.arange(like=[], stop=(whole,)), dtype=x.dtype)
        matrix = weights(unsqueezed(places, 1), columns, whole)
        order = [*(item for item in range(rank_of(x)) if item != axis), axis]
        moved = x if axis == rank_of(x) - 1 else op.transpose(x, axes=tuple(order))
        y = op.linear(moved, op.matrix_transpose(matrix))
        return y if axis == rank_of(x) - 1 else op.transpose(y, axes=tuple(order.index(item) for item in range(rank_of(x))))

    return along


def _linear(places: Var, columns: Var, whole: int) -> Var:
    """A hat around each place."""
    return op.relu(op.subtract(like(1.0, places), op.abs(op.subtract(places, columns))))


def _cubic(places: Var, columns: Var, whole: int) -> Var:
    """Four neighbours by the cubic of Keys, 1981, with -0.75; beyond an end, its last pixel."""
    low = op.floor(places)
    total = None
    for neighbour in (-1.0, 0.0, 1.0, 2.0):
        at = op.add(low, like(neighbour, low))
        weight = _keys(op.abs(op.subtract(places, at)), near=neighbour in (0.0, 1.0))
        held = op.clip(at, like(0.0, at), like(whole - 1.0, at))
        part = op.multiply(weight, op.cast(op.equal(held, columns), dtype=places.dtype))
        total = part if total is None else op.add(total, part)
    assert total is not None
    return total


def _keys(x: Var, *, near: bool) -> Var:
    """The cubic, of distances up to 1 or from 1 to 2: by Horner's rule."""
    coefficients = (1.25, -2.25, 0.0, 1.0) if near else (-0.75, 3.75, -6.0, 3.0)
    y = like(coefficients[0], x)
    for coefficient in coefficients[1:]:
        y = op.add(op.multiply(y, x), like(coefficient, x))
    return y


def _declare(name: str, axes: int, along: Callable[[bool], Callable[..., Var]]) -> None:
    """The rules of one way to resize: by one list of factors, or by a factor for each axis."""

    def by_list(input: Var, output_size: Sequence[Size] | None, scale_factors: Sequence[float] | None, align_corners: bool = False) -> Var:
        return _resized(input, axes, output_size, scale_factors or (), along(align_corners))

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
        return _resized(self, axes, output_size, each, along(align_corners))

    rule(f"aten.{name}.vec")(by_list)
    rule(f"aten.{name}.default")(by_axis)


for _axes in (1, 2, 3):
    _declare(f"upsample_nearest{_axes}d", _axes, lambda corners: _nearest(0.0))
    _declare(f"_upsample_nearest_exact{_axes}d", _axes, lambda corners: _nearest(0.5))
for _axes, _name in enumerate(("upsample_linear1d", "upsample_bilinear2d", "upsample_trilinear3d"), 1):
    _declare(_name, _axes, lambda corners: _weighed(_linear, clamp=True, align_corners=corners))
_declare("upsample_bicubic2d", 2, lambda corners: _weighed(_cubic, clamp=False, align_corners=corners))
