"""Depthwise and separable convolution of signals and images."""

from oarlock.ir.rollback import undone_on_error
from oarlock.ir.var import Var
from oarlock.layer.convolution import conv1d, conv2d
from oarlock.layer.parameter import layer_name, require_number
from oarlock.layer.parameter_options import Given
from oarlock.layer.window import Numbers
from oarlock.op.composed.named_activation import Activation
from oarlock.registry.creator import require_type
from oarlock.registry.range_check import require_count

__all__ = ["depthwise_conv1d", "depthwise_conv2d", "separable_conv1d", "separable_conv2d"]

_CONVOLUTIONS = {1: conv1d, 2: conv2d}


def depthwise_conv1d(
    input: Var,
    size: Numbers,
    *,
    multiplier: int = 1,
    stride: Numbers = 1,
    padding: Numbers | str = 0,
    dilation: Numbers = 1,
    act: Activation | None = None,
    bias: bool | Given = True,
    weight: Given | None = None,
    name: str | None = None,
) -> Var:
    """Apply a depthwise convolution to signals, as `depthwise_conv2d`: float[n c w] -> float[n c*multiplier ow].

    y = ol.layer.depthwise_conv1d(signal, 3, multiplier=2)
    """
    how = {"stride": stride, "padding": padding, "dilation": dilation}
    return _by_channel(1, input, size, multiplier, how, act, bias, weight, name)


def depthwise_conv2d(
    input: Var,
    size: Numbers,
    *,
    multiplier: int = 1,
    stride: Numbers = 1,
    padding: Numbers | str = 0,
    dilation: Numbers = 1,
    act: Activation | None = None,
    bias: bool | Given = True,
    weight: Given | None = None,
    name: str | None = None,
) -> Var:
    """Apply `multiplier` filters to each channel separately, a `conv2d` in c groups: float[n c h w] -> float[n c*multiplier oh ow].

    Parameters are `<name>.w` [c multiplier, 1, kh, kw] and `<name>.b` [c multiplier]; the other arguments are as in `conv2d`.

        y = ol.layer.depthwise_conv2d(image, 3, padding="same")
    """
    how = {"stride": stride, "padding": padding, "dilation": dilation}
    return _by_channel(2, input, size, multiplier, how, act, bias, weight, name)


def separable_conv1d(
    input: Var,
    filters: int,
    size: Numbers,
    *,
    multiplier: int = 1,
    stride: Numbers = 1,
    padding: Numbers | str = 0,
    dilation: Numbers = 1,
    act: Activation | None = None,
    bias: bool | Given = True,
    depthwise: Given | None = None,
    pointwise: Given | None = None,
    name: str | None = None,
) -> Var:
    """Apply a separable convolution to signals, as `separable_conv2d`: float[n c w] -> float[n filters ow].

    y = ol.layer.separable_conv1d(signal, 8, 3)
    """
    how = {"stride": stride, "padding": padding, "dilation": dilation}
    return _separable(1, input, filters, size, multiplier, how, act, bias, depthwise, pointwise, name)


def separable_conv2d(
    input: Var,
    filters: int,
    size: Numbers,
    *,
    multiplier: int = 1,
    stride: Numbers = 1,
    padding: Numbers | str = 0,
    dilation: Numbers = 1,
    act: Activation | None = None,
    bias: bool | Given = True,
    depthwise: Given | None = None,
    pointwise: Given | None = None,
    name: str | None = None,
) -> Var:
    """Apply a depthwise convolution, then a 1 x 1 convolution: float[n c h w] -> float[n filters oh ow].

    Parameters are `<name>.depthwise.w` [c multiplier, 1, kh, kw], `<name>.pointwise.w` [filters, c multiplier, 1, 1] and
    `<name>.pointwise.b` [filters], with options `depthwise`, `pointwise` and `bias` (Chollet, 2017). The depthwise convolution has no bias.
    Raises as `conv2d`.

        y = ol.layer.separable_conv2d(image, 16, 3, padding="same", act="relu")
    """
    how = {"stride": stride, "padding": padding, "dilation": dilation}
    return _separable(2, input, filters, size, multiplier, how, act, bias, depthwise, pointwise, name)


def _by_channel(
    axes: int,
    input: Var,
    size: Numbers,
    multiplier: int,
    how: dict,
    act: Activation | None,
    bias: bool | Given,
    weight: Given | None,
    name: str | None,
) -> Var:
    kind = f"depthwise_conv{axes}d"
    input = require_type(input, f"{kind}: input")
    channels = require_number(input.shape, 1, kind, input)
    filters = channels * require_count(f"{kind}: multiplier", multiplier)
    name = layer_name(input.block.program, name, kind)
    return _CONVOLUTIONS[axes](input, filters, size, **how, groups=channels, act=act, bias=bias, weight=weight, name=name)


def _separable(
    axes: int,
    input: Var,
    filters: int,
    size: Numbers,
    multiplier: int,
    how: dict,
    act: Activation | None,
    bias: bool | Given,
    depthwise: Given | None,
    pointwise: Given | None,
    name: str | None,
) -> Var:
    kind = f"separable_conv{axes}d"
    input = require_type(input, f"{kind}: input")
    program = input.block.program
    name = layer_name(program, name, kind)
    with undone_on_error(program):
        between = _by_channel(axes, input, size, multiplier, how, None, False, depthwise, f"{name}.depthwise")
        return _CONVOLUTIONS[axes](between, filters, 1, act=act, bias=bias, weight=pointwise, name=f"{name}.pointwise")
