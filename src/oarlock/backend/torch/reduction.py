"""Sums and means: variants that are written by hand. What is spread over many elements is spread in memory that is there."""

from ctypes import c_float

import torch

from oarlock.backend.torch.variants import number_function, out_variant
from oarlock.op.reduction import beside, count_of, mean, mean_dx, reduce_sum_dx, share_of


@out_variant(reduce_sum_dx)
def reduce_sum_dx_out(dy, x_shape, *, out, axis=None, keep):
    return out.copy_(beside(dy, axis, keep))


@out_variant(mean_dx)
def mean_dx_out(dy, x_shape, *, out, axis=None, keep):
    if axis is None and dy.is_cpu:
        return out.fill_(share_of(dy, x_shape))
    return out.copy_(beside(dy / count_of(x_shape, axis), axis, keep))


@number_function(mean)
def mean_as_number(x, *, axis=None, keep):
    """The sum is divided at the host, which saves a kernel. A double rounds a quotient of floats no otherwise than they do."""
    count = x.numel()
    if x.dtype is torch.float32 and 0 < count < 2**24:
        return c_float(torch.sum(x).item() / count).value  # a loop asks in each trip, and a number of numpy's costs more
    if x.dtype is torch.float64 and count:
        return torch.sum(x).item() / count
    return torch.mean(x).item()
