"""Batch normalization: each channel gets mean 0 and variance 1, by statistics of the batch or by running statistics."""

from collections.abc import Callable
from typing import Any

import torch

from oarlock.ir.var import Var
from oarlock.op.creation import numel
from oarlock.op.dtype_conversion import cast
from oarlock.op.elementwise import divide, multiply, neg, subtract
from oarlock.op.trusted_operator import operator
from oarlock.op.unary import square
from oarlock.registry import Case, GradCheck, fused_backward
from oarlock.registry.declaration import Operator
from oarlock.tensor.normalization import batch_gradients, by_statistics, normalize_batch, sum_by_channel

__all__ = [
    "NO",
    "YES",
    "batch_norm",
    "batch_norm_bias_grad",
    "batch_norm_grad",
    "batch_norm_scale_grad",
    "declare_gradients",
    "expand_by_channel",
    "normalize_by_running",
]


YES, NO = torch.tensor([True, False], device="cpu")
"""Values of `uses_batch_statistics`, always on the CPU: the backward pass reads them on the host, and would otherwise wait for a GPU."""


@operator(
    "x: float[n c ...s], running_mean: float[c], running_variance: float[c], scale?: float[c], bias?: float[c]"
    " -> y: float[n c ...s], mean: float[c], rstd: float[c], next_mean: float[c], next_variance: float[c], uses_batch_statistics: bool[]",
    intermediate=("mean", "rstd", "next_mean", "next_variance", "uses_batch_statistics"),
    sensitive_to="layout",
    cases=[
        Case(
            x=[[1.0], [3.0]], scale=[2.0], bias=[1.0], running_mean=[2.0], running_variance=[0.25], epsilon=0.0,
            y=[[-3.0], [5.0]], mean=[2.0], rstd=[2.0], next_mean=[2.0], next_variance=[0.25], uses_batch_statistics=False,
        ),
        GradCheck(low=0.5, high=2.0),
    ],
)  # fmt: skip
def batch_norm(context, x, running_mean, running_variance, scale=None, bias=None, *, momentum: float = 0.1, epsilon: float = 1e-5):
    """``y = (x - mean) * rstd * scale + bias`` for each of ``c`` channels, with ``rstd = 1 / sqrt(variance + epsilon)``.

    In training, it uses the mean and variance of the batch, over all axes but the channels, and updates the running statistics:
    ``next = (1 - momentum) running + momentum batch``, with the unbiased variance of the batch. Otherwise it uses the running statistics,
    which stay unchanged. A batch with a single value per channel leaves the running variance unchanged; an empty batch leaves both
    unchanged (Ioffe and Szegedy, 2015).
    """
    count = x.numel() // x.shape[1] if x.shape[1] else 0
    if not context.training or not count:
        return normalize_by_running(x, running_mean, running_variance, scale, bias, epsilon)
    y, mean, rstd, next_mean, next_variance = normalize_batch(x, scale, bias, (running_mean, running_variance), momentum, epsilon)
    return y, mean, rstd, next_mean, next_variance if count > 1 else running_variance.clone(), YES.clone()


def normalize_by_running(x, running_mean, running_variance, scale, bias, epsilon: float):
    """Return the outputs of `batch_norm` for running statistics, which stay unchanged."""
    y = by_statistics(x, scale, bias, running_mean, running_variance, epsilon)
    rstd = torch.rsqrt(running_variance + epsilon)
    return y, running_mean.clone(), rstd, running_mean.clone(), running_variance.clone(), NO.clone()


@operator(
    "values: float[c], like: shape[n c ...s] -> y: float[n c ...s]",
    cases=[
        Case(values=[1.0, 2.0], like=[[0.0, 0.0], [0.0, 0.0], [0.0, 0.0]], y=[[1.0, 2.0], [1.0, 2.0], [1.0, 2.0]]),
        Case(values=[1.0, 2.0], like=[[[0.0, 0.0], [0.0, 0.0]]], y=[[[1.0, 1.0], [2.0, 2.0]]]),
    ],
)
def expand_by_channel(values, like):
    """Broadcast the value of each channel to the shape of ``like``. ``like`` is not kept alive."""
    return values.reshape(-1, *(1 for _ in like[2:])).expand(like).clone(memory_format=torch.contiguous_format)


expand_by_channel.gradient_programs(values=lambda dy: batch_norm_bias_grad(dy))


_CHANNELS = [[0.5, -1.0], [2.0, 0.1], [0.7, -0.4]]
_STATISTICS: dict[str, Any] = {"mean": [0.4, -0.2], "rstd": [0.8, 1.7]}


@operator(
    "x: float[n c ...s], mean: float[c], rstd: float[c], uses_batch_statistics: bool[], dy: float[n c ...s], scale?: float[c]"
    " -> dx: float[n c ...s]",
    sensitive_to="layout",
    cases=[
        Case(x=[[3.0]], mean=[2.0], rstd=[0.5], uses_batch_statistics=False, dy=[[5.0]], scale=[4.0], dx=[[10.0]]),
        Case(x=[[1.0], [3.0]], mean=[2.0], rstd=[1.0], uses_batch_statistics=True, dy=[[1.0], [5.0]], dx=[[0.0], [0.0]]),
        Case(x=[[1.0], [3.0]], mean=[2.0], rstd=[0.5], uses_batch_statistics=True, dy=[[1.0], [5.0]], scale=[2.0], dx=[[-1.5], [1.5]]),
        GradCheck(x=_CHANNELS, **_STATISTICS, uses_batch_statistics=True, dy=(3, 2), scale=(2,)),
        GradCheck(x=_CHANNELS, **_STATISTICS, uses_batch_statistics=False, dy=(3, 2), scale=(2,)),
        GradCheck(x=(2, 2, 2, 2), **_STATISTICS, uses_batch_statistics=True, dy=(2, 2, 2, 2)),
    ],
)
def batch_norm_grad(x, mean, rstd, uses_batch_statistics, dy, scale=None):
    """The gradient of `batch_norm` with respect to ``x``, from the gradient ``dy`` of its output.

    With ``g = dy * scale``, ``xhat = (x - mean) * rstd`` and means over all axes but the channels:
    ``rstd * (g - mean(g) - xhat * mean(g * xhat))``, or ``rstd * g`` if running statistics were used.
    """
    return batch_gradients(x, mean, rstd, uses_batch_statistics, dy, scale, (True, False, False))[0]


@operator(
    "x: float[n c ...s], mean: float[c], rstd: float[c], uses_batch_statistics: bool[], dy: float[n c ...s] -> dscale: float[c]",
    sensitive_to="layout",
    cases=[
        Case(x=[[1.0], [3.0]], mean=[2.0], rstd=[0.5], uses_batch_statistics=False, dy=[[1.0], [5.0]], dscale=[2.0]),
        Case(x=[[1.0], [3.0]], mean=[2.0], rstd=[0.5], uses_batch_statistics=True, dy=[[1.0], [5.0]], dscale=[2.0]),
        GradCheck(x=_CHANNELS, **_STATISTICS, uses_batch_statistics=True, dy=(3, 2)),
        GradCheck(x=(2, 2, 2, 2), **_STATISTICS, uses_batch_statistics=False, dy=(2, 2, 2, 2)),
    ],
)
def batch_norm_scale_grad(x, mean, rstd, uses_batch_statistics, dy):
    """The gradient of `batch_norm` with respect to the scale: the sum of ``dy * (x - mean) * rstd`` over each channel."""
    return batch_gradients(x, mean, rstd, uses_batch_statistics, dy, None, (False, True, False))[1]


batch_norm_scale_grad.gradient_programs(
    x=lambda rstd, dy, ddscale: multiply(dy, expand_by_channel(multiply(rstd, ddscale), dy)),
    mean=lambda rstd, dy, ddscale: neg(multiply(multiply(rstd, ddscale), batch_norm_bias_grad(dy))),
    rstd=lambda x, mean, dy, ddscale: multiply(batch_norm_bias_grad(multiply(dy, _centred(x, mean))), ddscale),
    dy=lambda x, mean, rstd, ddscale: multiply(_centred(x, mean), expand_by_channel(multiply(rstd, ddscale), x)),
)


@operator(
    "dy: float[n c ...s] -> dbias: float[c]",
    sensitive_to="layout",
    cases=[Case(dy=[[1.0, 2.0], [3.0, 4.0]], dbias=[4.0, 6.0]), Case(dy=[[[1.0, 2.0], [3.0, 4.0]]], dbias=[3.0, 7.0])],
)
def batch_norm_bias_grad(dy):
    """The gradient of `batch_norm` with respect to the bias: the sum of ``dy`` over each channel."""
    return sum_by_channel(dy)


batch_norm_bias_grad.gradient_programs(dy=lambda dy_shape, ddbias: expand_by_channel(ddbias, dy_shape))


def _centred(x, mean):
    return subtract(x, expand_by_channel(mean, x))


def declare_gradients(forward: Operator, backward: Operator, sum_of_workers: Callable[[Var], Var]) -> None:
    """Declare the gradients of a batch normalization and of its gradient; `sum_of_workers` adds up statistics over all workers."""

    def share_of_batch(values, x, uses_batch_statistics):
        """Return the share of one element in a gradient of the batch statistics, per channel; 0 if running statistics were used."""
        count = sum_of_workers(divide(numel(x, dtype=x.dtype), numel(values, dtype=x.dtype)))
        return multiply(sum_of_workers(values), divide(cast(uses_batch_statistics, dtype=x.dtype), count))

    def dx(x, mean, rstd, uses_batch_statistics, dy, scale=None, dmean=None, drstd=None):
        """Return the gradient with respect to ``x``; the paths through the batch statistics occur only in second-order gradients."""
        dx = backward(x, mean, rstd, uses_batch_statistics, dy, scale)
        if dmean is not None:
            dx = dx + expand_by_channel(share_of_batch(dmean, x, uses_batch_statistics), x)
        if drstd is not None:
            share = share_of_batch(multiply(drstd, multiply(rstd, square(rstd))), x, uses_batch_statistics)
            dx = dx - multiply(expand_by_channel(share, x), _centred(x, mean))
        return dx

    def dscale(x, mean, rstd, uses_batch_statistics, dy, dmean=None, drstd=None):
        return batch_norm_scale_grad(x, mean, rstd, uses_batch_statistics, dy)

    forward.gradient_programs(x=dx, scale=dscale, bias=lambda dy, dmean=None, drstd=None: batch_norm_bias_grad(dy))
    forward.no_gradient("running_mean", "running_variance")  # they come from earlier steps

    def dxhat(x, mean, rstd, uses_batch_statistics, dy, scale, ddx):
        """Return the second-order gradient with respect to ``xhat``, 0 if running statistics were used."""
        g = dy if scale is None else multiply(dy, expand_by_channel(scale, x))
        xhat = multiply(_centred(x, mean), expand_by_channel(rstd, x))
        along_g, along_ddx = (share_of_batch(batch_norm_bias_grad(multiply(item, xhat)), x, uses_batch_statistics) for item in (g, ddx))
        both = multiply(ddx, expand_by_channel(along_g, x)) + multiply(g, expand_by_channel(along_ddx, x))
        return neg(multiply(expand_by_channel(rstd, x), both))

    def of_dy(x, mean, rstd, uses_batch_statistics, ddx, scale=None):
        """Return the second-order gradient with respect to ``dy``: the gradient is symmetric in ``g`` and the direction."""
        projected = backward(x, mean, rstd, uses_batch_statistics, ddx)
        return projected if scale is None else multiply(projected, expand_by_channel(scale, x))

    def of_scale(x, mean, rstd, uses_batch_statistics, dy, ddx):
        return batch_norm_bias_grad(multiply(dy, backward(x, mean, rstd, uses_batch_statistics, ddx)))

    def of_x(x, mean, rstd, uses_batch_statistics, dy, ddx, scale=None):
        return multiply(dxhat(x, mean, rstd, uses_batch_statistics, dy, scale, ddx), expand_by_channel(rstd, x))

    def of_mean(x, mean, rstd, uses_batch_statistics, dy, ddx, scale=None):
        return neg(multiply(batch_norm_bias_grad(dxhat(x, mean, rstd, uses_batch_statistics, dy, scale, ddx)), rstd))

    def of_rstd(x, mean, rstd, uses_batch_statistics, dy, dx, ddx, scale=None):
        direct = divide(batch_norm_bias_grad(multiply(ddx, dx)), rstd)
        return direct + batch_norm_bias_grad(multiply(dxhat(x, mean, rstd, uses_batch_statistics, dy, scale, ddx), _centred(x, mean)))

    backward.gradient_programs(dy=of_dy, scale=of_scale, x=of_x, mean=of_mean, rstd=of_rstd)


declare_gradients(batch_norm, batch_norm_grad, lambda var: var)


@fused_backward(batch_norm_grad, batch_norm_scale_grad, batch_norm_bias_grad)
def batch_norm_backward(x, mean, rstd, uses_batch_statistics, dy, scale=None):
    return batch_gradients(x, mean, rstd, uses_batch_statistics, dy, scale)


for _operator in (batch_norm_grad, batch_norm_scale_grad):
    _operator.declare_edges(
        **dict.fromkeys(("infinite", "nan", "zero"), "x, mean and rstd are independent inputs; in PyTorch mean and rstd depend on x")
    )
