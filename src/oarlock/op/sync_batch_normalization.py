"""Batch normalization by statistics over the rows of all workers (Zhang et al., 2018, "Context encoding for semantic segmentation")."""

from typing import Any

import torch

from oarlock.op.batch_normalization import YES, declare_gradients, normalize_by_running
from oarlock.op.collective import all_reduce
from oarlock.op.trusted_operator import operator
from oarlock.registry import Case, GradCheck
from oarlock.tensor.normalization import by_channel, sum_by_channel

__all__ = ["sync_batch_norm", "sync_batch_norm_grad"]


@operator(
    "x: float[n c ...s], running_mean: float[c], running_variance: float[c], scale?: float[c], bias?: float[c]"
    " -> y: float[n c ...s], mean: float[c], rstd: float[c], next_mean: float[c], next_variance: float[c], uses_batch_statistics: bool[]",
    intermediate=("mean", "rstd", "next_mean", "next_variance", "uses_batch_statistics"),
    effects="collective",
    sensitive_to="layout",
    cases=[
        Case(
            x=[[1.0], [3.0]], scale=[2.0], bias=[1.0], running_mean=[2.0], running_variance=[0.25], epsilon=0.0,
            y=[[-3.0], [5.0]], mean=[2.0], rstd=[2.0], next_mean=[2.0], next_variance=[0.25], uses_batch_statistics=False,
        ),
        GradCheck(low=0.5, high=2.0),
    ],
)  # fmt: skip
def sync_batch_norm(context, x, running_mean, running_variance, scale=None, bias=None, *, momentum: float = 0.1, epsilon: float = 1e-5):
    """`batch_norm` with the mean and variance over the rows of all workers. A worker may have no rows."""
    if not context.training:
        return normalize_by_running(x, running_mean, running_variance, scale, bias, epsilon)
    exact = x.to(torch.promote_types(x.dtype, torch.float32))
    own = exact.new_tensor([x.numel() // x.shape[1] if x.shape[1] else 0])
    sums, counts = context.workers.all_reduce([sum_by_channel(exact), own], "sum")
    count = int(counts)
    if not count:
        return normalize_by_running(x, running_mean, running_variance, scale, bias, epsilon)
    mean = sums / count
    centred = exact - by_channel(mean, x)
    (squares,) = context.workers.all_reduce([sum_by_channel(centred * centred)], "sum")
    rstd = torch.rsqrt(squares / count + epsilon)
    y = centred * by_channel(rstd if scale is None else rstd * scale, x)
    y = y if bias is None else y + by_channel(bias, x)
    next_mean = running_mean * (1 - momentum) + mean.to(running_mean.dtype) * momentum
    variance = (squares * (momentum / max(count - 1, 1))).to(running_variance.dtype)
    next_variance = running_variance * (1 - momentum) + variance if count > 1 else running_variance.clone()
    return y.to(x.dtype), mean.to(x.dtype), rstd.to(x.dtype), next_mean, next_variance, YES.clone()


_CHANNELS = [[0.5, -1.0], [2.0, 0.1], [0.7, -0.4]]
_STATISTICS: dict[str, Any] = {"mean": [0.4, -0.2], "rstd": [0.8, 1.7]}


@operator(
    "x: float[n c ...s], mean: float[c], rstd: float[c], uses_batch_statistics: bool[], dy: float[n c ...s], scale?: float[c]"
    " -> dx: float[n c ...s]",
    effects="collective",
    cases=[
        Case(x=[[3.0]], mean=[2.0], rstd=[0.5], uses_batch_statistics=False, dy=[[5.0]], scale=[4.0], dx=[[10.0]]),
        Case(x=[[1.0], [3.0]], mean=[2.0], rstd=[1.0], uses_batch_statistics=True, dy=[[1.0], [5.0]], dx=[[0.0], [0.0]]),
        Case(x=[[1.0], [3.0]], mean=[2.0], rstd=[0.5], uses_batch_statistics=True, dy=[[1.0], [5.0]], scale=[2.0], dx=[[-1.5], [1.5]]),
        GradCheck(x=_CHANNELS, **_STATISTICS, uses_batch_statistics=True, dy=(3, 2), scale=(2,)),
        GradCheck(x=_CHANNELS, **_STATISTICS, uses_batch_statistics=False, dy=(3, 2), scale=(2,)),
    ],
)
def sync_batch_norm_grad(context, x, mean, rstd, uses_batch_statistics, dy, scale=None):
    """`batch_norm_grad` with means over the rows of all workers."""
    g = dy if scale is None else dy * by_channel(scale, dy)
    if not bool(uses_batch_statistics):
        return g * by_channel(rstd, x)
    exact = torch.promote_types(x.dtype, torch.float32)
    g, xhat = g.to(exact), (x.to(exact) - by_channel(mean.to(exact), x)) * by_channel(rstd.to(exact), x)
    own = g.new_tensor([x.numel() // x.shape[1] if x.shape[1] else 0])
    sums, along, counts = context.workers.all_reduce([sum_by_channel(g), sum_by_channel(g * xhat), own], "sum")
    count = max(int(counts), 1)
    dx = (g - by_channel(sums / count, x) - xhat * by_channel(along / count, x)) * by_channel(rstd.to(exact), x)
    return dx.to(x.dtype)


declare_gradients(sync_batch_norm, sync_batch_norm_grad, lambda var: all_reduce([var])[0])


sync_batch_norm_grad.declare_edges(
    **dict.fromkeys(("infinite", "nan", "zero"), "x, mean and rstd are independent inputs; in PyTorch mean and rstd depend on x")
)
