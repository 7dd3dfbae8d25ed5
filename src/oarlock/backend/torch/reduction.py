"""The mean as a number on the host: a handwritten variant."""

from ctypes import c_float

import torch

from oarlock.backend.torch.variants import number_function
from oarlock.op.reduction import mean


@number_function(mean)
def mean_as_number(x, *, axis=None, keepdim):
    """Return the mean.

    The division is done on the host, which saves a kernel; rounding a double quotient to float32 gives the same result.
    """
    count = x.numel()
    if x.dtype is torch.float32 and 0 < count < 2**24:
        return c_float(torch.sum(x).item() / count).value  # faster than a NumPy number, for loops that read it in each iteration
    if x.dtype is torch.float64 and count:
        return torch.sum(x).item() / count
    return torch.mean(x).item()
