"""Convolution of signals, images and volumes with trained filters, plain and transposed."""

from typing import Any

from oarlock.errors import ArgumentError
from oarlock.ir.location import here
from oarlock.ir.rollback import undone_on_error
from oarlock.ir.var import Var
from oarlock.layer.initializer import Rule, kaiming
from oarlock.layer.parameter import layer_name, new_bias, new_parameter, output_name, require_number
from oarlock.layer.parameter_options import Given
from oarlock.layer.window import Numbers, numbers
from oarlock.op import convolution
from oarlock.op.composed.arithmetic import constant_like, is_one
from oarlock.op.composed.named_activation import Activation, activate, require_activation
from oarlock.op.elementwise import add, multiply
from oarlock.op.manipulation import reshape
from oarlock.op.padding import pad
from oarlock.registry.creator import require_type
from oarlock.registry.range_check import require_count

__all__ = [
    "conv",
    "conv1d",
    "conv2d",
    "conv3d",
    "conv_transpose1d",
    "conv_transpose2d",
    "conv_transpose3d",
    "require_grouped",
]

_OPERATORS = {1: convolution.conv1d, 2: convolution.conv2d, 3: convolution.conv3d}
_PADDING_MODES = {"zeros": "constant", "reflect": "reflect", "replicate": "replicate", "circular": "circular"}


def conv1d(
    input: Var,
    filters: int,
    size: Numbers,
    *,
    stride: Numbers = 1,
    padding: Numbers | str = 0,
    dilation: Numbers = 1,
    groups: int = 1,
    padding_mode: str = "zeros",
    act: Activation | None = None,
    scale: float | Var = 1.0,
    bias: bool | Given = True,
    initializer: Rule | None = None,
    weight: Given | None = None,
    name: str | None = None,
) -> Var:
    """Apply a convolution to signals: float[n c w] -> float[n filters ow]. Takes the arguments of `conv2d`, for one axis.

    y = ol.layer.conv1d(signal, 8, 3, dilation=2, padding="same")
    """
    how = {"stride": stride, "padding": padding, "dilation": dilation}
    return _convolved(1, input, filters, size, how, groups, padding_mode, act, scale, bias, initializer, weight, name)


def conv2d(
    input: Var,
    filters: int,
    size: Numbers,
    *,
    stride: Numbers = 1,
    padding: Numbers | str = 0,
    dilation: Numbers = 1,
    groups: int = 1,
    padding_mode: str = "zeros",
    act: Activation | None = None,
    scale: float | Var = 1.0,
    bias: bool | Given = True,
    initializer: Rule | None = None,
    weight: Given | None = None,
    name: str | None = None,
) -> Var:
    """Apply a convolution to images: float[n c h w] -> float[n filters oh ow].

    ``oh = (h + 2 padding - dilation (size - 1) - 1) // stride + 1``. `size`, `stride`, `padding` and `dilation` are one number for both
    axes, or one for each. ``padding="same"`` preserves the size and requires a stride of 1; "valid" is 0. `padding_mode` is "zeros",
    "reflect", "replicate" or "circular". `groups` must divide `filters` and the c channels; each filter then sees only the channels of its
    group. The result is ``act(scale (input * w) + b)``, where `scale` is a number or a variable of one number, float[] or float[1].

    Parameters are `<name>.w` [filters, c / groups, kh, kw], Kaiming-normal by default (see `initializer`), and `<name>.b` [filters],
    initialized to 0; `weight` and `bias` accept `ParameterOptions`. Raises ArgumentError, and ShapeError if the window does not fit.

        y = ol.layer.conv2d(image, 16, 3, stride=2, padding=1, groups=2, act="relu")
    """
    how = {"stride": stride, "padding": padding, "dilation": dilation}
    return _convolved(2, input, filters, size, how, groups, padding_mode, act, scale, bias, initializer, weight, name)


conv = conv2d
"""Alias of `conv2d`, from the Framework document of 2017."""


def conv3d(
    input: Var,
    filters: int,
    size: Numbers,
    *,
    stride: Numbers = 1,
    padding: Numbers | str = 0,
    dilation: Numbers = 1,
    groups: int = 1,
    padding_mode: str = "zeros",
    act: Activation | None = None,
    scale: float | Var = 1.0,
    bias: bool | Given = True,
    initializer: Rule | None = None,
    weight: Given | None = None,
    name: str | None = None,
) -> Var:
    """Apply a convolution to volumes: float[n c d h w] -> float[n filters od oh ow]. Takes the arguments of `conv2d`, for three axes.

    y = ol.layer.conv3d(volume, 8, (1, 3, 3), padding="same")
    """
    how = {"stride": stride, "padding": padding, "dilation": dilation}
    return _convolved(3, input, filters, size, how, groups, padding_mode, act, scale, bias, initializer, weight, name)


def _convolved(
    axes: int,
    input: Var,
    filters: int,
    size: Numbers,
    how: dict[str, Any],
    groups: int,
    padding_mode: str,
    act: Activation | None,
    scale: float | Var,
    bias: bool | Given,
    rule: Rule | None,
    weight: Given | None,
    name: str | None,
) -> Var:
    """Apply a convolution over `axes` axes."""
    kind = f"conv{axes}d"
    input = require_type(input, f"{kind}: input")
    channels = require_number(input.shape, 1, kind, input)
    name = layer_name(input.block.program, name, kind)
    filters = require_count(f"{kind}: filters", filters)
    require_grouped(kind, groups, {"channels": channels, "filters": filters}, input)
    window = numbers(size, axes, "size", least=1)
    stride, dilation = (numbers(how[what], axes, what, least=1) for what in ("stride", "dilation"))
    before, after = _padding(kind, how["padding"], window, stride, dilation)
    if padding_mode not in _PADDING_MODES:
        raise ArgumentError(f"{kind}: padding_mode is one of {', '.join(_PADDING_MODES)}, not {padding_mode!r:.60}", location=here())
    require_activation(act)
    with undone_on_error(input.block.program):
        w = new_parameter(input.block, f"{name}.w", (filters, channels // groups, *window), input.dtype, rule or kaiming(), weight)
        b = new_bias(input.block, f"{name}.b", (filters,), input.dtype, bias)
        if any(before + after) and (before != after or padding_mode != "zeros"):
            input = pad(input, before=before, after=after, mode=_PADDING_MODES[padding_mode])
            before = (0,) * axes
        steps = {"stride": stride, "padding": before}
        if groups != 1 or dilation != (1,) * axes:
            steps |= {"dilation": dilation, "groups": groups}
        result = output_name(input.block.program, name)
        if is_one(scale):
            return activate(_OPERATORS[axes](input, w, b, **steps, name=result), act)
        scaled = multiply(
            _OPERATORS[axes](input, w, **steps), constant_like(scale, input, what=f"{kind}: scale"), name=result if b is None else None
        )
        return activate(scaled if b is None else add(scaled, reshape(b, shape=(filters, *(1,) * axes)), name=result), act)


def _padding(
    kind: str, padding: Numbers | str, window: tuple[int, ...], stride: tuple[int, ...], dilation: tuple[int, ...]
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the padding before and after each axis. Raises ArgumentError."""
    if padding == "same":
        if stride != (1,) * len(window):
            raise ArgumentError(f'{kind}: the padding "same" requires a stride of 1, not {stride}', location=here())
        reach = [step * (size - 1) for step, size in zip(dilation, window, strict=True)]
        return tuple(each // 2 for each in reach), tuple(each - each // 2 for each in reach)
    each = (0,) * len(window) if padding == "valid" else numbers(padding, len(window), "padding")
    return each, each


def require_grouped(kind: str, groups: int, counts: dict[str, int], input: Var) -> None:
    """Raise ArgumentError if `groups` does not divide each of the `counts`."""
    require_count(f"{kind}: groups", groups)
    for what, count in counts.items():
        if count % groups:
            raise ArgumentError(f"{kind}: {groups} groups do not divide {count} {what}", location=here(), given=[input.describe()])


_TRANSPOSED_OPERATORS = {1: convolution.conv_transpose1d, 2: convolution.conv_transpose2d, 3: convolution.conv_transpose3d}


def conv_transpose1d(
    input: Var,
    filters: int,
    size: Numbers,
    *,
    stride: Numbers = 1,
    padding: Numbers = 0,
    output_padding: Numbers = 0,
    dilation: Numbers = 1,
    groups: int = 1,
    act: Activation | None = None,
    bias: bool | Given = True,
    weight: Given | None = None,
    name: str | None = None,
) -> Var:
    """Apply a transposed convolution to signals: float[n c w] -> float[n filters ow]. Takes the arguments of `conv_transpose2d`.

    y = ol.layer.conv_transpose1d(signal, 2, 4, stride=2, padding=1)
    """
    how = {"stride": stride, "padding": padding, "output_padding": output_padding, "dilation": dilation}
    return _transposed(1, input, filters, size, how, groups, act, bias, weight, name)


def conv_transpose2d(
    input: Var,
    filters: int,
    size: Numbers,
    *,
    stride: Numbers = 1,
    padding: Numbers = 0,
    output_padding: Numbers = 0,
    dilation: Numbers = 1,
    groups: int = 1,
    act: Activation | None = None,
    bias: bool | Given = True,
    weight: Given | None = None,
    name: str | None = None,
) -> Var:
    """Apply a transposed convolution, the transpose of `conv2d`, to images: float[n c h w] -> float[n filters oh ow].

    ``oh = (h - 1) stride + dilation (size - 1) + 1 + output_padding - 2 padding``. Each of these arguments is one number for both axes, or
    one for each. `groups` must divide `filters` and the c channels; the channels of a group produce the filters of that group.

    Parameters are `<name>.w` [c, filters / groups, kh, kw], Kaiming-normal, and `<name>.b` [filters], 0; `weight` and `bias` accept
    `ParameterOptions`. Raises ArgumentError, and ShapeError if the output would be empty.

        y = ol.layer.conv_transpose2d(image, 2, 4, stride=2, padding=1)
    """
    how = {"stride": stride, "padding": padding, "output_padding": output_padding, "dilation": dilation}
    return _transposed(2, input, filters, size, how, groups, act, bias, weight, name)


def conv_transpose3d(
    input: Var,
    filters: int,
    size: Numbers,
    *,
    stride: Numbers = 1,
    padding: Numbers = 0,
    output_padding: Numbers = 0,
    dilation: Numbers = 1,
    groups: int = 1,
    act: Activation | None = None,
    bias: bool | Given = True,
    weight: Given | None = None,
    name: str | None = None,
) -> Var:
    """Apply a transposed convolution to volumes: float[n c d h w] -> float[n filters od oh ow]. Takes the arguments of
    `conv_transpose2d`.

        y = ol.layer.conv_transpose3d(volume, 2, 2, stride=2)
    """
    how = {"stride": stride, "padding": padding, "output_padding": output_padding, "dilation": dilation}
    return _transposed(3, input, filters, size, how, groups, act, bias, weight, name)


def _transposed(
    axes: int,
    input: Var,
    filters: int,
    size: Numbers,
    how: dict[str, Any],
    groups: int,
    act: Activation | None,
    bias: bool | Given,
    weight: Given | None,
    name: str | None,
) -> Var:
    """Apply a transposed convolution over `axes` axes."""
    kind = f"conv_transpose{axes}d"
    input = require_type(input, f"{kind}: input")
    channels = require_number(input.shape, 1, kind, input)
    name = layer_name(input.block.program, name, kind)
    filters = require_count(f"{kind}: filters", filters)
    require_grouped(kind, groups, {"channels": channels, "filters": filters}, input)
    window = numbers(size, axes, "size", least=1)
    steps = {what: numbers(value, axes, what, least=int(what in ("stride", "dilation"))) for what, value in how.items()}
    require_activation(act)
    with undone_on_error(input.block.program):
        w = new_parameter(input.block, f"{name}.w", (channels, filters // groups, *window), input.dtype, kaiming(), weight)
        b = new_bias(input.block, f"{name}.b", (filters,), input.dtype, bias)
        return activate(_TRANSPOSED_OPERATORS[axes](input, w, b, **steps, groups=groups, name=output_name(input.block.program, name)), act)
