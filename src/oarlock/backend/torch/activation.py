"""Gradients of softmax and log-softmax: handwritten variants, as PyTorch ignores gaps in the output memory."""

from oarlock.backend.torch.private import log_softmax_backward, softmax_backward
from oarlock.backend.torch.variants import in_place_variant, out_variant
from oarlock.op.activation import last_unless, log_softmax_dx, softmax_dx


@out_variant(softmax_dx)
def softmax_dx_out(y, dy, *, axis=None, out):
    if not out.is_contiguous():
        return out.copy_(softmax_dx.kernel(y, dy, axis=axis))
    return softmax_backward(dy, y, last_unless(axis), y.dtype, grad_input=out)


@in_place_variant(softmax_dx, "dy")
def softmax_dx_in_place(y, dy, *, axis=None):
    return softmax_dx_out(y, dy, axis=axis, out=dy)


@out_variant(log_softmax_dx)
def log_softmax_dx_out(y, dy, *, axis=None, out):
    if not out.is_contiguous():
        return out.copy_(log_softmax_dx.kernel(y, dy, axis=axis))
    return log_softmax_backward(dy, y, last_unless(axis), y.dtype, out=out)


@in_place_variant(log_softmax_dx, "dy")
def log_softmax_dx_in_place(y, dy, *, axis=None):
    return log_softmax_dx_out(y, dy, axis=axis, out=dy)
