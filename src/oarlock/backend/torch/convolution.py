"""Convolution with a prepacked filter."""

import torch

from oarlock.backend.torch.private import convolve_packed, has_packed_filters, pack_filter
from oarlock.backend.torch.variants import prepack
from oarlock.op.convolution import conv2d
from oarlock.tensor.convolution import has_long_sums, is_by_onednn, is_misread, laid
from oarlock.tensor.memory_format import channels_last, contiguous


def pack(filter, *, stride, padding, dilation=(1, 1), groups=1):
    """Return the filter in oneDNN's blocked layout; None if PyTorch would not use oneDNN, or could misread the format of the images."""
    if filter.dtype is not torch.float32 or filter.device.type != "cpu" or filter.shape[2:] == (1, 1) or not filter.numel():
        return None
    if not has_packed_filters():
        return None
    filter = contiguous(filter) if has_long_sums(filter, filter.shape) else channels_last(filter)
    return pack_filter(filter, padding, stride, dilation, groups, None)


@prepack(conv2d, "filter", pack)
def conv2d_packed(x, filter, bias=None, *, packed, stride, padding, dilation=(1, 1), groups=1):
    if packed is None or not is_by_onednn(x, filter, groups) or is_misread(x, filter, stride, padding, dilation):
        return conv2d.kernel(x, filter, bias, stride=stride, padding=padding, dilation=dilation, groups=groups)
    x = contiguous(x) if has_long_sums(x, filter.shape) else laid(x)
    return convolve_packed(x, packed, bias, padding, stride, dilation, groups, "none", (), "")
