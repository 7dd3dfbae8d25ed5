"""Convolutions, transposed convolutions and pooling in one, two and three dimensions."""

from collections.abc import Callable, Sequence
from typing import Any

from oarlock import op
from oarlock.interop.torch.rules.arguments import numbers, rank_of, refuse, repeated, reshaped, shape_of, unsqueezed
from oarlock.interop.torch.rules.images import padded
from oarlock.interop.torch.rules.registry import Unsupported, rule
from oarlock.ir import size
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


# Pooling


def batched(x: Var, axes: int, operation: Callable[[Var], Var]) -> Var:
    """Apply `operation`, which takes images ``n c ...``, to a tensor with other leading axes."""
    lead = shape_of(x)[: rank_of(x) - axes]
    if len(lead) == 2:
        return operation(x)
    y = operation(reshaped(x, [1, size.product(lead), *shape_of(x)[len(lead) :]]))
    return reshaped(y, [*lead, *shape_of(y)[2:]])


def _max_pool(axes: int) -> Callable[..., Var]:
    def apply(self: Var, kernel_size: Steps, stride: Steps = (), padding: Steps = 0, dilation: Steps = 1, ceil_mode: bool = False) -> Var:
        window = repeated(kernel_size, axes)
        given = {
            "size": window,
            "stride": repeated(stride, axes, window),
            "padding": repeated(padding, axes),
            "dilation": repeated(dilation, axes),
            "ceil_mode": ceil_mode,
        }
        operator = (op.max_pool1d, op.max_pool2d, op.max_pool3d)[axes - 1]
        return batched(self, axes, lambda x: operator(x, **given))

    return apply


def _max_pool_with_places(axes: int) -> Callable[..., tuple[Var, Var]]:
    pool = _max_pool(axes)

    def apply(
        self: Var, kernel_size: Steps, stride: Steps = (), padding: Steps = 0, dilation: Steps = 1, ceil_mode: bool = False
    ) -> tuple[Var, Var]:
        y = pool(self, kernel_size, stride, padding, dilation, ceil_mode)
        return y, _positions_of_maxima(y)

    return apply


def _positions_of_maxima(y: Var) -> Var:
    """Return the positions of the maxima, the second output of the pooling operator."""
    found = y
    while found.op is not None and "index" not in found.op.outputs and found.op.type in ("reshape", "view"):
        found = next(iter(found.op.inputs.values()))[0]
    assert found.op is not None
    return reshaped(found.op.outputs["index"][0], shape_of(y))


def _average_pool(axes: int) -> Callable[..., Var]:
    def apply(
        self: Var,
        kernel_size: Steps,
        stride: Steps = (),
        padding: Steps = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: int | None = None,
    ) -> Var:
        refuse(divisor_override is not None, f"divisor_override={divisor_override}")
        window = repeated(kernel_size, axes)
        given = {
            "size": window,
            "stride": repeated(stride, axes, window),
            "padding": repeated(padding, axes),
            "ceil_mode": ceil_mode,
            "count_include_pad": count_include_pad,
        }
        operator = (op.average_pool1d, op.average_pool2d, op.average_pool3d)[axes - 1]
        return batched(self, axes, lambda x: operator(x, **given))

    return apply


def _adaptive_average_pool(axes: int) -> Callable[..., Var]:
    def apply(self: Var, output_size: Sequence[int]) -> Var:
        wanted = _read_output_size(self, axes, output_size)
        if all(item == 1 for item in wanted) and axes == 2:
            y = op.global_average_pool2d(self)
            return reshaped(y, [*shape_of(y), 1, 1])
        if all(item == 1 for item in wanted):
            return op.mean(self, axis=tuple(range(rank_of(self) - axes, rank_of(self))), keepdim=True)
        operator = (op.adaptive_average_pool1d, op.adaptive_average_pool2d, op.adaptive_average_pool3d)[axes - 1]
        return batched(self, axes, lambda x: operator(x, size=wanted))

    return apply


def _adaptive_max_pool(axes: int) -> Callable[..., tuple[Var, Var]]:
    def apply(self: Var, output_size: Sequence[int]) -> tuple[Var, Var]:
        operator = (op.adaptive_max_pool1d, op.adaptive_max_pool2d, op.adaptive_max_pool3d)[axes - 1]
        wanted = _read_output_size(self, axes, output_size)
        y = batched(self, axes, lambda x: operator(x, size=wanted))
        return y, _positions_of_maxima(y)

    return apply


def _read_output_size(x: Var, axes: int, output_size: Sequence[int]) -> tuple[int, ...]:
    return numbers(repeated(output_size, axes), "the pooled size")


for _axes in (1, 2, 3):
    rule(f"aten.max_pool{_axes}d.default")(_max_pool(_axes))
    rule(f"aten.max_pool{_axes}d_with_indices.default")(_max_pool_with_places(_axes))
    rule(f"aten.avg_pool{_axes}d.default")(_average_pool(_axes))
    rule(f"aten.adaptive_avg_pool{_axes}d.default", *([f"aten._adaptive_avg_pool{_axes}d.default"] if _axes > 1 else []))(
        _adaptive_average_pool(_axes)
    )
    rule(f"aten.adaptive_max_pool{_axes}d.default")(_adaptive_max_pool(_axes))
