"""Normalization of a batch by channel; the gradients of that, and of one of rows; and a number for each channel, or a sum over each."""

from collections.abc import Sequence

import torch

from oarlock.tensor.memory_format import in_format_of, is_channels_last

__all__ = ["batch_gradients", "by_channel", "by_statistics", "normalize_batch", "row_gradients", "sum_by_channel"]

_batch_norm = torch.ops.aten.native_batch_norm.default
_batch_norm_backward = torch.ops.aten.native_batch_norm_backward.default
_layer_norm_backward = torch.ops.aten.native_layer_norm_backward.default


def by_channel(values: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    """A number per channel, in a shape that broadcasts to x."""
    return values.reshape(-1, *(1 for _ in x.shape[2:]))


def sum_by_channel(x: torch.Tensor) -> torch.Tensor:
    """The sum of each channel."""
    return x.sum([axis for axis in range(x.ndim) if axis != 1])


def by_statistics(x: torch.Tensor, scale: torch.Tensor | None, bias: torch.Tensor | None, mean, variance, epsilon: float) -> torch.Tensor:
    """``x`` less a mean, over the root of a variance, in each channel: of images, the bits that PyTorch's module gives in evaluation.

    PyTorch's kernel multiplies ``x`` before it takes the mean away. Columns of a table may lie far from 0 beside their spread, and what
    is left of them there is exact here.
    """
    if x.ndim > 2 and x.numel():
        return _batch_norm(x, scale, bias, mean, variance, False, 0.0, epsilon)[0]
    rstd = torch.rsqrt(variance + epsilon)
    y = (x - by_channel(mean, x)) * by_channel(rstd if scale is None else rstd * scale, x)
    return y if bias is None else y + by_channel(bias, x)


def normalize_batch(
    x: torch.Tensor, scale: torch.Tensor | None, bias: torch.Tensor | None, running: Sequence[torch.Tensor], momentum: float, epsilon: float
) -> Sequence[torch.Tensor]:
    """``x`` with the mean 0 and the variance 1 in each channel, its mean and ``rstd``, and the next running mean and variance.

    PyTorch's kernel adds up channels that stand side by side one place after another, which costs a digit of the variance where there are
    thousands; its sums do not. Elsewhere its kernel is as exact, and faster.
    """
    running_mean, running_variance = running
    if not is_channels_last(x) or x.element_size() < 4:  # in half precision, sums would be more than there is a number for
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
    """The gradients of ``x``, scale and bias, as far as they are `wanted`; statistics of the batch depend on ``x``.

    No elements have no statistics, and PyTorch's kernel divides by their number.
    """
    if x.numel() and bool(uses_batch_statistics):
        if scale is None and not wanted[0]:
            scale = x.new_empty(x.shape[1])  # of which only the shape is read
        return _batch_norm_backward(in_format_of(dy, x), x, scale, None, None, mean, rstd, True, 0.0, list(wanted))
    dx = dy * by_channel(rstd if scale is None else rstd * scale, x) if wanted[0] else None
    dscale = sum_by_channel(dy * (x - by_channel(mean, x))) * rstd if wanted[1] else None
    return dx, dscale, sum_by_channel(dy) if wanted[2] else None


def row_gradients(dy, x, mean, rstd, scale, wanted: Sequence[bool]) -> Sequence[torch.Tensor]:
    """The gradients of ``x``, scale and bias, as far as they are `wanted`, of a normalization along the last axis.

    PyTorch's kernel takes the statistics to lie in memory without gaps; of a bias it reads the shape, which is the scale's, and a list of
    sizes costs less to hand to it than a part of a shape.
    """
    if scale is None and wanted[1]:  # whose shape is read, and for the gradient of ``x`` what it is
        scale = x.new_ones(x.size(-1)) if wanted[0] else x.new_empty(x.size(-1))
    return _layer_norm_backward(dy, x, [x.size(-1)], mean.contiguous(), rstd.contiguous(), scale, scale, wanted)
