"""Max and average pooling in one, two and three dimensions."""

from collections.abc import Callable, Sequence

from oarlock import op
from oarlock.interop.torch.rules.arguments import numbers, rank_of, refuse, repeated, reshaped, shape_of
from oarlock.interop.torch.rules.registry import rule
from oarlock.ir import size
from oarlock.ir.var import Var

Steps = int | Sequence[int]


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
        return y, _places(y)

    return apply


def _places(y: Var) -> Var:
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
        wanted = _adaptive_size(self, axes, output_size)
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
        wanted = _adaptive_size(self, axes, output_size)
        y = batched(self, axes, lambda x: operator(x, size=wanted))
        return y, _places(y)

    return apply


def _adaptive_size(x: Var, axes: int, output_size: Sequence[int]) -> tuple[int, ...]:
    return numbers(repeated(output_size, axes), "the pooled size")


for _axes in (1, 2, 3):
    rule(f"aten.max_pool{_axes}d.default")(_max_pool(_axes))
    rule(f"aten.max_pool{_axes}d_with_indices.default")(_max_pool_with_places(_axes))
    rule(f"aten.avg_pool{_axes}d.default")(_average_pool(_axes))
    rule(f"aten.adaptive_avg_pool{_axes}d.default", *([f"aten._adaptive_avg_pool{_axes}d.default"] if _axes > 1 else []))(
        _adaptive_average_pool(_axes)
    )
    rule(f"aten.adaptive_max_pool{_axes}d.default")(_adaptive_max_pool(_axes))
