"""The gradients of normalizations: of a batch by channel, and of rows; and a number for each channel, or a sum over each."""

from collections.abc import Sequence

import torch

from oarlock.tensor.memory_format import in_format_of

__all__ = ["batch_gradients", "by_channel", "row_gradients", "sum_by_channel"]

_batch_norm_backward = torch.ops.aten.native_batch_norm_backward.default
_layer_norm_backward = torch.ops.aten.native_layer_norm_backward.default


def by_channel(values: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    """A number per channel, in a shape that broadcasts to x."""
    return values.reshape(-1, *(1 for _ in x.shape[2:]))


def sum_by_channel(x: torch.Tensor) -> torch.Tensor:
    """The sum of each channel."""
    return x.sum([axis for axis in range(x.ndim) if axis != 1])


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
