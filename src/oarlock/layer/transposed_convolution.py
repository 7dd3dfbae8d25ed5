"""Transposed convolution of signals, images and volumes with trained filters."""

from typing import Any

from oarlock.ir.rollback import undone_on_error
from oarlock.ir.var import Var
from oarlock.layer.convolution import require_grouped
from oarlock.layer.initializer import kaiming
from oarlock.layer.parameter import layer_name, new_bias, new_parameter, output_name, require_number
from oarlock.layer.parameter_options import Given
from oarlock.layer.window import Numbers, numbers
from oarlock.op import convolution
from oarlock.op.composed.named_activation import Activation, activate, require_activation
from oarlock.registry.creator import require_type
from oarlock.registry.range_check import require_count

__all__ = ["conv_transpose1d", "conv_transpose2d", "conv_transpose3d"]

_OPERATORS = {1: convolution.conv_transpose1d, 2: convolution.conv_transpose2d, 3: convolution.conv_transpose3d}


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
        return activate(_OPERATORS[axes](input, w, b, **steps, groups=groups, name=output_name(input.block.program, name)), act)
