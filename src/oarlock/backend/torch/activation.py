"""Gradients of softmax and its logarithm: variants that are written by hand, since PyTorch writes into memory as if it had no gaps."""

from oarlock.backend.torch.private import log_softmax_backward, softmax_backward
from oarlock.backend.torch.variants import in_place_variant, out_variant
from oarlock.op.activation import log_softmax_dx, softmax_dx


@out_variant(softmax_dx)
def softmax_dx_out(y, dy, *, out):
    return softmax_backward(dy, y, -1, y.dtype, grad_input=out) if out.is_contiguous() else out.copy_(softmax_dx.kernel(y, dy))


@in_place_variant(softmax_dx, "dy")
def softmax_dx_in_place(y, dy):
    return softmax_dx_out(y, dy, out=dy)


@out_variant(log_softmax_dx)
def log_softmax_dx_out(y, dy, *, out):
    return log_softmax_backward(dy, y, -1, y.dtype, out=out) if out.is_contiguous() else out.copy_(log_softmax_dx.kernel(y, dy))


@in_place_variant(log_softmax_dx, "dy")
def log_softmax_dx_in_place(y, dy):
    return log_softmax_dx_out(y, dy, out=dy)
