"""Pooling of signals, images and volumes: over windows, to a given output size, or globally."""

import math
from typing import Any

from oarlock.errors import ArgumentError, ShapeError
from oarlock.ir.location import here
from oarlock.ir.python_number import as_python
from oarlock.ir.rollback import undone_on_error
from oarlock.ir.var import Var
from oarlock.layer.parameter import require_number
from oarlock.layer.window import Numbers, numbers
from oarlock.op import adaptive_pooling, pooling
from oarlock.op.composed.arithmetic import constant_like
from oarlock.op.elementwise import multiply
from oarlock.op.manipulation import flatten
from oarlock.op.padding import pad
from oarlock.op.powers import power
from oarlock.op.reduction import mean
from oarlock.op.selection import reduce_max
from oarlock.registry.creator import require_type
from oarlock.registry.declaration import Operator

__all__ = [
    "adaptive_average_pool1d",
    "adaptive_average_pool2d",
    "adaptive_average_pool3d",
    "adaptive_max_pool1d",
    "adaptive_max_pool2d",
    "adaptive_max_pool3d",
    "average_pool1d",
    "average_pool2d",
    "average_pool3d",
    "global_pool1d",
    "global_pool2d",
    "global_pool3d",
    "lp_pool",
    "max_pool1d",
    "max_pool2d",
    "max_pool3d",
    "pool2d",
]

_MAX = {1: pooling.max_pool1d, 2: pooling.max_pool2d, 3: pooling.max_pool3d}
_AVERAGE = {1: pooling.average_pool1d, 2: pooling.average_pool2d, 3: pooling.average_pool3d}
Sizes = Numbers | tuple[int | None, ...]
"""One number for all axes, or one for each; None keeps the size of an axis."""

_RANKS = {1: "n c w", 2: "n c h w", 3: "n c d h w"}


def max_pool1d(
    input: Var,
    size: Numbers,
    *,
    stride: Numbers | None = None,
    padding: Numbers = 0,
    dilation: Numbers = 1,
    ceil_mode: bool = False,
    name: str | None = None,
) -> Var:
    """Return the maximum of each window of each channel: float[n c w] -> float[n c ow]. Takes the arguments of `max_pool2d`.

    y = ol.layer.max_pool1d(signal, 2)
    """
    how = {"stride": stride, "padding": padding, "dilation": dilation}
    return _pooled(1, "max", input, size, how, ceil_mode, {}, name)


def max_pool2d(
    input: Var,
    size: Numbers,
    *,
    stride: Numbers | None = None,
    padding: Numbers = 0,
    dilation: Numbers = 1,
    ceil_mode: bool = False,
    name: str | None = None,
) -> Var:
    """Return the maximum of each window of each channel: float[n c h w] -> float[n c oh ow].

    ``oh = (h + 2 padding - dilation (size - 1) - 1) // stride + 1``, rounded up with `ceil_mode`. Each argument is one number for all axes,
    or one for each; `stride` defaults to `size`. Raises ArgumentError, and ShapeError if the window does not fit.

        y = ol.layer.max_pool2d(image, 2)
    """
    how = {"stride": stride, "padding": padding, "dilation": dilation}
    return _pooled(2, "max", input, size, how, ceil_mode, {}, name)


def max_pool3d(
    input: Var,
    size: Numbers,
    *,
    stride: Numbers | None = None,
    padding: Numbers = 0,
    dilation: Numbers = 1,
    ceil_mode: bool = False,
    name: str | None = None,
) -> Var:
    """Return the maximum of each window of each channel: float[n c d h w] -> float[n c od oh ow]. Takes the arguments of `max_pool2d`.

    y = ol.layer.max_pool3d(volume, 2)
    """
    how = {"stride": stride, "padding": padding, "dilation": dilation}
    return _pooled(3, "max", input, size, how, ceil_mode, {}, name)


def average_pool1d(
    input: Var,
    size: Numbers,
    *,
    stride: Numbers | None = None,
    padding: Numbers = 0,
    ceil_mode: bool = False,
    count_padding: bool = True,
    divisor: float | None = None,
    name: str | None = None,
) -> Var:
    """Return the mean of each window of each channel: float[n c w] -> float[n c ow]. Takes the arguments of `average_pool2d`.

    y = ol.layer.average_pool1d(signal, 3, stride=1, padding=1, count_padding=False)
    """
    how = {"stride": stride, "padding": padding}
    if divisor is not None:
        return _divided(1, input, size, how, ceil_mode, divisor, name)
    return _pooled(1, "average", input, size, how, ceil_mode, {"count_include_pad": count_padding}, name)


def average_pool2d(
    input: Var,
    size: Numbers,
    *,
    stride: Numbers | None = None,
    padding: Numbers = 0,
    ceil_mode: bool = False,
    count_padding: bool = True,
    divisor: float | None = None,
    name: str | None = None,
) -> Var:
    """Return the mean of each window of each channel: float[n c h w] -> float[n c oh ow].

    Windows are as in `max_pool2d`. Padding counts as zeros, or is excluded with ``count_padding=False``. If `divisor` is given, sums are
    divided by it instead of by the number of elements; together with `ceil_mode`, this requires sizes that are numbers. Raises
    ArgumentError and ShapeError.

        y = ol.layer.average_pool2d(image, 3, stride=1, padding=1, count_padding=False)
    """
    how = {"stride": stride, "padding": padding}
    if divisor is not None:
        return _divided(2, input, size, how, ceil_mode, divisor, name)
    return _pooled(2, "average", input, size, how, ceil_mode, {"count_include_pad": count_padding}, name)


def average_pool3d(
    input: Var,
    size: Numbers,
    *,
    stride: Numbers | None = None,
    padding: Numbers = 0,
    ceil_mode: bool = False,
    count_padding: bool = True,
    divisor: float | None = None,
    name: str | None = None,
) -> Var:
    """Return the mean of each window of each channel: float[n c d h w] -> float[n c od oh ow]. Takes the arguments of `average_pool2d`.

    y = ol.layer.average_pool3d(volume, 3, stride=1, padding=1, count_padding=False)
    """
    how = {"stride": stride, "padding": padding}
    if divisor is not None:
        return _divided(3, input, size, how, ceil_mode, divisor, name)
    return _pooled(3, "average", input, size, how, ceil_mode, {"count_include_pad": count_padding}, name)


def adaptive_max_pool1d(input: Var, size: Sizes, *, name: str | None = None) -> Var:
    """Return the maximum of each of `size` windows of each channel, as equal as possible: float[n c w] -> float[n c ow].

    Raises ArgumentError.

        y = ol.layer.adaptive_max_pool1d(signal, 2)
    """
    return _adaptive(1, "max", input, size, name)


def adaptive_max_pool2d(input: Var, size: Sizes, *, name: str | None = None) -> Var:
    """Return the maximum of each of `size` windows of each channel, as equal as possible: float[n c h w] -> float[n c oh ow].

    A size of None keeps an axis unchanged. Raises ArgumentError.

        y = ol.layer.adaptive_max_pool2d(image, 2)
    """
    return _adaptive(2, "max", input, size, name)


def adaptive_max_pool3d(input: Var, size: Sizes, *, name: str | None = None) -> Var:
    """Return the maximum of each of `size` windows of each channel, as equal as possible: float[n c d h w] -> float[n c od oh ow].

    A size of None keeps an axis unchanged. Raises ArgumentError.

        y = ol.layer.adaptive_max_pool3d(volume, 2)
    """
    return _adaptive(3, "max", input, size, name)


def adaptive_average_pool1d(input: Var, size: Sizes, *, name: str | None = None) -> Var:
    """Return the mean of each of `size` windows of each channel, as equal as possible: float[n c w] -> float[n c ow].

    Raises ArgumentError.

        y = ol.layer.adaptive_average_pool1d(signal, 2)
    """
    return _adaptive(1, "average", input, size, name)


def adaptive_average_pool2d(input: Var, size: Sizes, *, name: str | None = None) -> Var:
    """Return the mean of each of `size` windows of each channel, as equal as possible: float[n c h w] -> float[n c oh ow].

    A size of None keeps an axis unchanged. Raises ArgumentError.

        y = ol.layer.adaptive_average_pool2d(image, 2)
    """
    return _adaptive(2, "average", input, size, name)


def adaptive_average_pool3d(input: Var, size: Sizes, *, name: str | None = None) -> Var:
    """Return the mean of each of `size` windows of each channel, as equal as possible: float[n c d h w] -> float[n c od oh ow].

    A size of None keeps an axis unchanged. Raises ArgumentError.

        y = ol.layer.adaptive_average_pool3d(volume, 2)
    """
    return _adaptive(3, "average", input, size, name)


def pool2d(
    input: Var, size: Numbers, *, stride: Numbers | None = None, padding: Numbers = 0, mode: str = "max", name: str | None = None
) -> Var:
    """Return the maximum of each window, or the mean with ``mode="average"``: float[n c h w] -> float[n c oh ow].

    `stride` defaults to `size`.

        y = ol.layer.pool2d(image, 2, mode="average")
    """
    _require_mode(mode, "pool2d")
    return _pooled(2, mode, input, size, {"stride": stride, "padding": padding}, False, {}, name)


def lp_pool(input: Var, size: Numbers, *, order: float = 2.0, stride: Numbers | None = None, ceil_mode: bool = False) -> Var:
    """Return ``(sum x**order)**(1 / order)`` over each window of signals, images or volumes: float[n c ...s] -> float[n c ...t].

    `stride` defaults to `size`. Raises ShapeError for an input of another rank, ArgumentError.

        y = ol.layer.lp_pool(image, 2, order=2.0)
    """
    input = require_type(input, "lp_pool: input")
    axes = len(input.shape or ()) - 2
    if axes not in _AVERAGE:
        raise ShapeError(f"lp_pool: input must have one to three axes after its channels, not {input.type_text}", location=here())
    window = numbers(size, axes, "size", least=1)
    with undone_on_error(input.block.program):
        mean_power = _pooled(
            axes, "average", power(input, constant_like(float(order), input)), window, {"stride": stride, "padding": 0}, ceil_mode, {}, None
        )
        return power(multiply(mean_power, constant_like(float(math.prod(window)), input)), constant_like(1.0 / order, input))


def global_pool1d(input: Var, *, mode: str = "average") -> Var:
    """Return the mean of each channel of signals, or its maximum with ``mode="max"``: float[n c w] -> float[n c].

    y = ol.layer.global_pool1d(signal, mode="max")
    """
    return _global(1, input, mode)


def global_pool2d(input: Var, *, mode: str = "average") -> Var:
    """Return the mean of each channel of images, or its maximum with ``mode="max"``: float[n c h w] -> float[n c].

    y = ol.layer.global_pool2d(image, mode="max")
    """
    return _global(2, input, mode)


def global_pool3d(input: Var, *, mode: str = "average") -> Var:
    """Return the mean of each channel of volumes, or its maximum with ``mode="max"``: float[n c d h w] -> float[n c].

    y = ol.layer.global_pool3d(volume, mode="max")
    """
    return _global(3, input, mode)


def _adaptive(axes: int, mode: str, input: Var, size: Sizes, name: str | None) -> Var:
    kind = f"adaptive_{mode}_pool{axes}d"
    input = require_type(input, f"{kind}: input")
    each = size if isinstance(size, tuple | list) else (size,) * axes
    if None in each and len(each) == axes == len(input.shape or ()) - 2:
        given = [require_number(input.shape, 2 + axis, kind, input) if item is None else item for axis, item in enumerate(each)]
        each = tuple(given)
    return getattr(adaptive_pooling, kind)(input, size=numbers(each, axes, "size", least=1), name=name)


def _global(axes: int, input: Var, mode: str) -> Var:
    kind = f"global_pool{axes}d"
    input = require_type(input, f"{kind}: input")
    if input.ndim != axes + 2:
        raise ShapeError(f"{kind}: input is float[{_RANKS[axes]}], not {input.type_text}", location=here(), given=[input.describe()])
    _require_mode(mode, kind)
    if mode == "max":
        return reduce_max(flatten(input, start=2), axis=-1)
    return pooling.global_average_pool2d(input) if axes == 2 else mean(input, axis=tuple(range(2, axes + 2)))


def _require_mode(mode: str, kind: str) -> None:
    if mode not in ("max", "average"):
        raise ArgumentError(f"{kind}: mode must be 'max' or 'average', not {mode!r:.60}", location=here())


def _divided(axes: int, input: Var, size: Numbers, how: dict[str, Any], ceil_mode: bool, divisor: float, name: str | None) -> Var:
    """Return the sum of each window divided by `divisor`, computed as the mean of zero-padded windows times their size."""
    kind = f"average_pool{axes}d"
    input, number = require_type(input, f"{kind}: input"), as_python(divisor)
    if not isinstance(number, int | float) or number == 0 or not math.isfinite(number):
        raise ArgumentError(f"{kind}: divisor must be a nonzero number, not {divisor!r:.60}", location=here())
    window = numbers(size, axes, "size", least=1)
    with undone_on_error(input.block.program):
        if ceil_mode:
            shape = _pooled(axes, "average", input, size, how, True, {}, None).shape or ()
            step = numbers(window if how["stride"] is None else how["stride"], axes, "stride", least=1)
            before = numbers(how["padding"], axes, "padding")
            lengths = [require_number(input.shape, 2 + axis, kind, input) for axis in range(axes)]
            counts = [require_number(shape, 2 + axis, kind, input) for axis in range(axes)]
            ends = [(o - 1) * s + k - n - p for o, s, k, n, p in zip(counts, step, window, lengths, before, strict=True)]
            input = pad(input, before=(0, 0, *before), after=(0, 0, *(max(0, end) for end in ends)))
            how = {**how, "padding": 0}
        means = _pooled(axes, "average", input, size, how, False, {}, None)
        return multiply(means, constant_like(math.prod(window) / number, means), name=name)


def _pooled(
    axes: int, mode: str, input: Var, size: Numbers, how: dict[str, Any], ceil_mode: bool, more: dict[str, Any], name: str | None
) -> Var:
    """Apply max or average pooling over windows."""
    operator: Operator = (_MAX if mode == "max" else _AVERAGE)[axes]
    window = numbers(size, axes, "size", least=1)
    steps = {what: numbers(window if value is None else value, axes, what, least=int(what != "padding")) for what, value in how.items()}
    if steps.get("dilation") == (1,) * axes:
        del steps["dilation"]
    if ceil_mode:
        more = {**more, "ceil_mode": True}
    return operator(require_type(input, f"{mode}_pool{axes}d: input"), size=window, **steps, **more, name=name)
