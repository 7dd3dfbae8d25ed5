"""The mean as a number on the host: a variant that is written by hand."""

from ctypes import c_float

import torch

from oarlock.backend.torch.variants import number_function
from oarlock.op.reduction import mean


@number_function(mean)
def mean_as_number(x, *, axis=None, keepdim):
    """The sum is divided at the host, which saves a kernel. A double rounds a quotient of floats no otherwise than they do."""
    count = x.numel()
    if x.dtype is torch.float32 and 0 < count < 2**24:
        return c_float(torch.sum(x).item() / count).value  # a loop asks in each trip, and a number of numpy's costs more
    if x.dtype is torch.float64 and count:
        return torch.sum(x).item() / count
    return torch.mean(x).item()
