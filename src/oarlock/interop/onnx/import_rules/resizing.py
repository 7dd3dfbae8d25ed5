"""`Resize` axis by axis, following ONNX's definition, and grid sampling."""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy
import torch

from oarlock import op
from oarlock.interop.onnx.import_rules.forms import axes_of, constant, moved, rank_of, shape_of
from oarlock.interop.onnx.known_value import Known, known_numbers
from oarlock.interop.onnx.rule import Unsupported, rule
from oarlock.ir.var import Var
from oarlock.tensor.dtype import to_torch

if TYPE_CHECKING:
    from oarlock.interop.onnx.importer import Importer

_PLACES = ("align_corners", "asymmetric", "half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "tf_crop_and_resize")
_MOST = 2**24  # elements of a matrix
_MOST_PLACES = 2**16


@rule("Resize", since=11, known=("roi", "scales", "sizes"))
def resize(
    x, roi=None, scales=None, sizes=None, *, antialias=0, axes=None, coordinate_transformation_mode="half_pixel", cubic_coeff_a=-0.75,
    exclude_outside=0, extrapolation_value=0.0, keep_aspect_ratio_policy="stretch", mode="nearest", nearest_mode="round_prefer_floor",
    importer: "Importer",
):  # fmt: skip
    rank = rank_of(x)
    chosen = tuple(range(rank)) if axes is None else axes_of(axes, rank)
    if coordinate_transformation_mode not in _PLACES or mode not in ("nearest", "linear", "cubic"):
        raise Unsupported(f"the mode {mode!r:.20} with {coordinate_transformation_mode!r:.40} is not supported")
    factors, lengths = _lengths(x, chosen, scales, sizes, keep_aspect_ratio_policy)
    result, outside = x, []
    for number, axis in enumerate(chosen):
        old, factor, new = shape_of(x)[axis], factors[number], lengths[number]
        if old == new and factor == 1.0 and coordinate_transformation_mode != "tf_crop_and_resize":
            continue
        if isinstance(new, int) and new > _MOST_PLACES:
            raise Unsupported(f"it resizes {old} to {new}, more than the limit of {_MOST_PLACES}")
        if not isinstance(old, int) or old < 1 or new is None:
            raise Unsupported(f"it resizes the size {old}, which is not constant", hint="pass sizes={...} to fix symbolic sizes")
        part = _cropped_region(roi, number, len(chosen)) if coordinate_transformation_mode == "tf_crop_and_resize" else (0.0, 1.0)
        places = [_source_coordinate(at, factor, old, new, coordinate_transformation_mode, part) for at in range(new)]
        if coordinate_transformation_mode == "tf_crop_and_resize":
            outside.append((axis, [not 0.0 <= place <= old - 1 for place in places]))
        if mode == "nearest":
            rows = [min(max(_nearest(place, nearest_mode), 0), old - 1) for place in places]
            index = importer.writer.variable(known_numbers(torch.tensor(rows, dtype=torch.int64)))
            result = moved(op.gather(moved(result, axis, 0), index), 0, axis)
            continue
        if old * new > _MOST:
            raise Unsupported(f"it resizes {old} to {new}, which needs too large a matrix")
        matrix = _matrix(places, old, factor, mode, bool(antialias), bool(exclude_outside), cubic_coeff_a)
        weights = importer.writer.variable(known_numbers(torch.from_numpy(matrix.T.copy()).to(to_torch(x.dtype))))
        result = moved(op.linear(moved(result, axis, -1), weights), -1, axis)
    for axis, there in outside:
        if any(there):
            result = _replace_outside(result, axis, there, extrapolation_value, importer)
    return op.assign(x) if result is x else result


def _lengths(x: Var, axes: Sequence[int], scales: Known | None, sizes: Known | None, policy: str) -> tuple[list[float], list[int | None]]:
    """Return the factor and the new length of each axis. The length is None for an unchanged axis of unknown size."""
    old = [shape_of(x)[axis] for axis in axes]
    if scales is not None and scales.count:
        factors = [float(item) for item in scales.tensor.double().reshape(-1).tolist()]
        if len(factors) != len(axes) or any(not 0 < factor < 2**20 for factor in factors):
            raise Unsupported(f"its scales {factors[:8]} do not fit {len(axes)} axes")
        return factors, [math.floor(size * factor) if isinstance(size, int) else None for size, factor in zip(old, factors, strict=True)]
    if sizes is None or sizes.count != len(axes):
        raise Unsupported(f"it has neither scales nor sizes for {len(axes)} axes")
    wanted = sizes.items()
    if wanted == old:
        return [1.0] * len(axes), [None] * len(axes)
    for size, new in zip(old, wanted, strict=True):
        if size != new and not (isinstance(size, int) and isinstance(new, int) and size > 0 and 0 <= new < 2**20):
            raise Unsupported(f"it resizes {size} to {new}, which are not both constant", hint="pass sizes={...} to fix symbolic sizes")
    factors = [1.0 if size == new else new / size for size, new in zip(old, wanted, strict=True)]
    if policy == "stretch":
        return factors, [new if isinstance(new, int) else None for new in wanted]
    if policy not in ("not_larger", "not_smaller"):
        raise Unsupported(f"keep_aspect_ratio_policy={policy!r:.40} is not supported")
    factor = (min if policy == "not_larger" else max)(factors)
    return [factor] * len(axes), [math.floor(factor * size + 0.5) if isinstance(size, int) else None for size in old]


def _cropped_region(roi: Known | None, number: int, count: int) -> tuple[float, float]:
    """Return the start and the end of the cropped region along an axis, as fractions."""
    if roi is None or roi.count != 2 * count:
        raise Unsupported("it crops, but roi is missing")
    bounds = roi.tensor.double().reshape(-1).tolist()
    return bounds[number], bounds[number + count]


def _source_coordinate(at: int, factor: float, old: int, length: int, mode: str, part: tuple[float, float]) -> float:
    """Return the source coordinate of an output position. The output length may have been rounded down."""
    new = factor * old
    if mode == "align_corners":
        return at * (old - 1) / (new - 1) if new != 1 else 0.0
    if mode == "asymmetric":
        return at / factor
    if mode == "tf_crop_and_resize":
        start, end = part
        if new == 1:
            return (end - start) * (old - 1) / 2
        return start * (old - 1) + at * (end - start) * (old - 1) / (new - 1)
    if mode == "pytorch_half_pixel":
        return -0.5 if new == 1 else (at + 0.5) / factor - 0.5
    if mode == "half_pixel_symmetric":
        return old / 2 * (1 - length / new) + (at + 0.5) / factor - 0.5
    return (at + 0.5) / factor - 0.5


def _nearest(place: float, mode: str) -> int:
    if place == math.floor(place):
        return int(place)
    rounded = {
        "round_prefer_floor": math.ceil(place - 0.5),
        "round_prefer_ceil": math.floor(place + 0.5),
        "floor": math.floor(place),
        "ceil": math.ceil(place),
    }
    if mode not in rounded:
        raise Unsupported(f"nearest_mode={mode!r:.40} is not supported")
    return rounded[mode]


def _matrix(places: Sequence[float], old: int, factor: float, mode: str, antialias: bool, exclude: bool, a: float) -> numpy.ndarray:
    """Return the interpolation matrix, `[new, old]`. Positions beyond the ends use the last element, or are excluded with `exclude`."""
    matrix = numpy.zeros((len(places), old))
    shrink = min(factor, 1.0) if antialias else 1.0
    reach = (1 if mode == "linear" else 2) / shrink
    for row, place in enumerate(places):
        left = math.floor(place)
        ratio = place - left
        steps = numpy.arange(math.floor(-reach) + 1, 1 - math.floor(-reach))
        weights = _weights((steps - ratio) * shrink, mode, a)
        if exclude:
            weights = weights * ((left + steps >= 0) & (left + steps < old))
        total = weights.sum()
        if (antialias or exclude) and total:
            weights = weights / total
        numpy.add.at(matrix[row], numpy.clip(left + steps, 0, old - 1), weights)
    return matrix


def _weights(apart: numpy.ndarray, mode: str, a: float) -> numpy.ndarray:
    """Return the interpolation weights at the given distances."""
    apart = numpy.abs(apart)
    if mode == "linear":
        return numpy.clip(1 - apart, 0, 1)
    near = ((a + 2) * apart - (a + 3)) * apart * apart + 1
    far = ((a * apart - 5 * a) * apart + 8 * a) * apart - 4 * a
    return numpy.where(apart <= 1, near, numpy.where(apart < 2, far, 0.0))


def _replace_outside(x: Var, axis: int, outside: Sequence[bool], value: float, importer: "Importer") -> Var:
    """Replace the positions outside the input by `value`."""
    shape = [len(outside) if other == axis else 1 for other in range(rank_of(x))]
    mask = importer.writer.variable(known_numbers(torch.tensor(outside).reshape(shape)))
    return op.where(mask, constant(value, x), x)


@rule("Upsample", since=9, until=10, known=("scales",))
def upsample(x, scales, *, mode="nearest", importer: "Importer"):
    return resize(x, None, scales, mode=mode, coordinate_transformation_mode="asymmetric", nearest_mode="floor", importer=importer)


# Grid sampling


_MODES = {"bilinear": "bilinear", "linear": "bilinear", "nearest": "nearest", "bicubic": "bicubic", "cubic": "bicubic"}


@rule("GridSample", since=16)
def grid_sample(x, grid, *, align_corners=0, mode=None, padding_mode="zeros"):
    mode = mode or "linear"
    if mode not in _MODES or padding_mode not in ("zeros", "border", "reflection"):
        raise Unsupported(f"the mode {mode!r:.20} with the padding {padding_mode!r:.20} is not supported")
    if rank_of(x) == 5 and _MODES[mode] == "bicubic":
        raise Unsupported("cubic sampling of volumes is not supported")
    if grid.dtype is not x.dtype:
        grid = op.cast(grid, dtype=x.dtype)
    return op.grid_sample(x, grid, mode=_MODES[mode], padding_mode=padding_mode, align_corners=bool(align_corners))
