"""Convolutions and transposed convolutions in one, two and three dimensions."""

from collections.abc import Sequence
from typing import Any

from oarlock import op
from oarlock.interop.torch.rules.arguments import numbers, rank_of, refuse, repeated, reshaped, shape_of, unsqueezed
from oarlock.interop.torch.rules.padding import padded
from oarlock.interop.torch.rules.registry import Unsupported, rule
from oarlock.ir.var import Var

Steps = int | Sequence[int]


@rule("aten.conv1d.default", "aten.conv2d.default", "aten.conv3d.default")
def conv(input: Var, weight: Var, bias: Var | None = None, stride: Steps = 1, padding: Steps = 0, dilation: Steps = 1, groups: int = 1):
    axes = rank_of(weight) - 2
    return _by_rank(input, axes, _Convolution(weight, bias, stride, padding, dilation, groups, axes))


@rule("aten.conv1d.padding", "aten.conv2d.padding", "aten.conv3d.padding")
def conv_padding(
    input: Var, weight: Var, bias: Var | None = None, stride: Steps = 1, padding: str = "valid", dilation: Steps = 1, groups: int = 1
):
    """Convolve with "same" or "valid" padding. If "same" padding is odd, the end is padded by one more element, before the convolution."""
    axes = rank_of(weight) - 2
    if padding == "valid":
        return conv(input, weight, bias, stride, 0, dilation, groups)
    windows = numbers(shape_of(weight)[2:], "the size of a filter")
    spread = [step * (window - 1) for step, window in zip(repeated(dilation, axes), windows, strict=True)]
    odd = [total % 2 for total in spread]
    x = padded(input, [item for more in reversed(odd) for item in (0, more)])
    return conv(x, weight, bias, stride, [total // 2 for total in spread], dilation, groups)


@rule("aten.convolution.default", "aten._convolution.default")
def convolution(
    input: Var,
    weight: Var,
    bias: Var | None,
    stride: Steps,
    padding: Steps,
    dilation: Steps,
    transposed: bool,
    output_padding: Steps,
    groups: int,
    benchmark: bool = False,
    deterministic: bool = False,
    cudnn_enabled: bool = True,
    allow_tf32: bool = True,
):
    if transposed:
        return conv_transpose(input, weight, bias, stride, padding, output_padding, groups, dilation)
    return conv(input, weight, bias, stride, padding, dilation, groups)


@rule("aten.conv_transpose1d.default", "aten.conv_transpose2d.input", "aten.conv_transpose3d.input")
def conv_transpose(
    input: Var,
    weight: Var,
    bias: Var | None = None,
    stride: Steps = 1,
    padding: Steps = 0,
    output_padding: Steps = 0,
    groups: int = 1,
    dilation: Steps = 1,
):
    axes = rank_of(weight) - 2
    made = _Convolution(weight, bias, stride, padding, dilation, groups, axes)
    made.given["output_padding"] = repeated(output_padding, axes)
    made.operator = (op.conv_transpose1d, op.conv_transpose2d, op.conv_transpose3d)[axes - 1]  # type: ignore[assignment]
    return _by_rank(input, axes, made)


class _Convolution:
    """A convolution with all arguments bound except the batch of images."""

    def __init__(self, weight: Var, bias: Var | None, stride: Steps, padding: Steps, dilation: Steps, groups: int, axes: int):
        if not 1 <= axes <= 3:
            raise Unsupported(f"convolutions in {axes} dimensions are not supported")
        self.operator = (op.conv1d, op.conv2d, op.conv3d)[axes - 1]
        self.filter = weight
        self.given: dict[str, Any] = {"groups": groups} if groups != 1 else {}
        for name, value in (("stride", stride), ("padding", padding), ("dilation", dilation)):
            self.given[name] = repeated(value, axes)
        if bias is not None:
            self.given["bias"] = bias

    def __call__(self, x: Var) -> Var:
        return self.operator(x, self.filter, **self.given)


def _by_rank(x: Var, axes: int, operation) -> Var:
    """Apply `operation`, which takes a batch, to a batch or to a single image."""
    if rank_of(x) == axes + 2:
        return operation(x)
    refuse(rank_of(x) != axes + 1, f"the input has {rank_of(x)} axes, expected {axes + 1} or {axes + 2}")
    y = operation(unsqueezed(x, 0))
    return reshaped(y, shape_of(y)[1:])
