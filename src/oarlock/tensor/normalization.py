"""Batch normalization by channel, and the gradients of batch and layer normalization."""

from collections.abc import Sequence

import torch

from oarlock.tensor.memory_format import in_format_of, is_channels_last

__all__ = ["batch_gradients", "by_channel", "by_statistics", "normalize_batch", "row_gradients", "sum_by_channel"]

_batch_norm = torch.ops.aten.native_batch_norm.default
_batch_norm_backward = torch.ops.aten.native_batch_norm_backward.default
_layer_norm_backward = torch.ops.aten.native_layer_norm_backward.default


def by_channel(values: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    """Reshape one number per channel to broadcast with ``x``."""
    return values.reshape(-1, *(1 for _ in x.shape[2:]))


def sum_by_channel(x: torch.Tensor) -> torch.Tensor:
    """Sum over all axes except the channels."""
    return x.sum([axis for axis in range(x.ndim) if axis != 1])


def by_statistics(x: torch.Tensor, scale: torch.Tensor | None, bias: torch.Tensor | None, mean, variance, epsilon: float) -> torch.Tensor:
    """Normalize ``x`` by the given mean and variance of each channel; images as PyTorch's module does in evaluation, bit for bit.

    PyTorch's kernel multiplies ``x`` before it subtracts the mean. The columns of a table may be far from 0 relative to their deviation, so
    for them the difference is computed first, which is exact.
    """
    if x.ndim > 2 and x.numel():
        return _batch_norm(x, scale, bias, mean, variance, False, 0.0, epsilon)[0]
    rstd = torch.rsqrt(variance + epsilon)
    y = (x - by_channel(mean, x)) * by_channel(rstd if scale is None else rstd * scale, x)
    return y if bias is None else y + by_channel(bias, x)


def normalize_batch(
    x: torch.Tensor, scale: torch.Tensor | None, bias: torch.Tensor | None, running: Sequence[torch.Tensor], momentum: float, epsilon: float
) -> Sequence[torch.Tensor]:
    """Normalize each channel of ``x`` to mean 0 and variance 1; return that, the mean, ``rstd``, and the next running mean and variance.

    For channels-last images, PyTorch's kernel adds positions sequentially, which costs a digit of the variance if there are thousands, so
    sums are used instead. In other formats, its kernel is as accurate, and faster.
    """
    running_mean, running_variance = running
    if not is_channels_last(x) or x.element_size() < 4:  # in half precision, the sums would overflow
        next_mean, next_variance = running_mean.clone(), running_variance.clone()
        return *torch.native_batch_norm(x, scale, bias, next_mean, next_variance, True, momentum, epsilon), next_mean, next_variance
    count = x.numel() // x.shape[1]
    mean = sum_by_channel(x).div_(count)
    centred = x - by_channel(mean, x)
    squares = sum_by_channel(centred * centred)
    rstd = (squares / count).add_(epsilon).rsqrt_()
    factor = by_channel(rstd if scale is None else rstd * scale, x)
    y = centred * factor if bias is None else torch.addcmul(by_channel(bias, x), centred, factor)
    next_mean = running_mean * (1 - momentum) + mean * momentum
    return y, mean, rstd, next_mean, running_variance * (1 - momentum) + squares * (momentum / max(count - 1, 1))


def batch_gradients(
    x, mean, rstd, uses_batch_statistics: torch.Tensor, dy, scale, wanted: Sequence[bool] = (True, True, True)
) -> Sequence[torch.Tensor | None]:
    """Return the gradients of ``x``, scale and bias that are `wanted`. Batch statistics depend on ``x``.

    Empty batches are handled separately, as PyTorch's kernel divides by the number of elements.
    """
    if x.numel() and bool(uses_batch_statistics):
        if scale is None and not wanted[0]:
            scale = x.new_empty(x.shape[1])  # only its shape is read
        return _batch_norm_backward(in_format_of(dy, x), x, scale, None, None, mean, rstd, True, 0.0, list(wanted))
    dx = dy * by_channel(rstd if scale is None else rstd * scale, x) if wanted[0] else None
    dscale = sum_by_channel(dy * (x - by_channel(mean, x))) * rstd if wanted[1] else None
    return dx, dscale, sum_by_channel(dy) if wanted[2] else None


def row_gradients(dy, x, mean, rstd, scale, wanted: Sequence[bool]) -> Sequence[torch.Tensor]:
    """Return the gradients of ``x``, scale and bias that are `wanted`, for a normalization along the last axis.

    PyTorch's kernel requires statistics without gaps in memory. It only reads the shape of the bias, so the scale is passed; a list of
    sizes is faster to pass than a slice of a shape.
    """
    if scale is None and wanted[1]:  # for the gradient of the scale, only its shape is read; for that of ``x``, its values
        scale = x.new_ones(x.size(-1)) if wanted[0] else x.new_empty(x.size(-1))
    return _layer_norm_backward(dy, x, [x.size(-1)], mean.contiguous(), rstd.contiguous(), scale, scale, wanted)
