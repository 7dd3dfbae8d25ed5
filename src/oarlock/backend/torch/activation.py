"""Activations: variants that are written by hand."""

import torch

from oarlock.backend.torch.private import log_softmax_backward, softmax_backward
from oarlock.backend.torch.variants import in_place_variant, lowers_to, out_variant
from oarlock.op.activation import log_softmax, log_softmax_dx, relu, relu_dx, softmax, softmax_dx
from oarlock.op.memory_format import lay_as

aten = torch.ops.aten


@out_variant(relu)
def relu_out(x, *, out):
    return torch.clamp_min(x, 0, out=out)


@out_variant(relu_dx)
def relu_dx_out(y, dy, *, out):
    """In whatever format ``out`` lies: the kernel chooses one, which costs a copy."""
    return aten.threshold_backward.grad_input(dy, y, 0, grad_input=out)


@in_place_variant(relu_dx, "dy")
def relu_dx_in_place(y, dy, *, alone=False):
    dy = lay_as(dy, y) if alone else dy
    return aten.threshold_backward.grad_input(dy, y, 0, grad_input=dy)


lowers_to(relu_dx, "aten.threshold_backward.grad_input(dy, y, 0, grad_input=dy)", function=relu_dx_in_place, ranks={"y": range(4)})


@in_place_variant(softmax, "x")
def softmax_in_place(x):
    return torch.softmax(x, dim=-1, out=x)


@in_place_variant(log_softmax, "x")
def log_softmax_in_place(x):
    return torch.log_softmax(x, dim=-1, out=x)


@out_variant(softmax_dx)
def softmax_dx_out(y, dy, *, out):
    """Into memory with gaps PyTorch would write as if it had none."""
    return softmax_backward(dy, y, -1, y.dtype, grad_input=out) if out.is_contiguous() else out.copy_(softmax_dx.kernel(y, dy))


@in_place_variant(softmax_dx, "dy")
def softmax_dx_in_place(y, dy):
    return softmax_dx_out(y, dy, out=dy)


@out_variant(log_softmax_dx)
def log_softmax_dx_out(y, dy, *, out):
    """As for softmax."""
    return log_softmax_backward(dy, y, -1, y.dtype, out=out) if out.is_contiguous() else out.copy_(log_softmax_dx.kernel(y, dy))


@in_place_variant(log_softmax_dx, "dy")
def log_softmax_dx_in_place(y, dy):
    return log_softmax_dx_out(y, dy, out=dy)
