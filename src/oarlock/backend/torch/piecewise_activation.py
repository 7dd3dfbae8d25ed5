"""In-place piecewise activations: handwritten variants, as PyTorch does not tag these functions as pointwise."""

import torch

from oarlock.backend.torch.variants import in_place_variant
from oarlock.op.piecewise_activation import hardsigmoid_dx, hardswish, hardswish_dx, hardtanh_dx, leaky_relu_dx

aten = torch.ops.aten


@in_place_variant(hardswish, "x")
def hardswish_in_place(x):
    return aten.hardswish.out(x, out=x)


@in_place_variant(hardswish_dx, "dy")
def hardswish_dx_in_place(x, dy):
    return aten.hardswish_backward.out(dy, x, out=dy)


@in_place_variant(hardsigmoid_dx, "dy")
def hardsigmoid_dx_in_place(x, dy):
    return aten.hardsigmoid_backward.grad_input(dy, x, grad_input=dy)


@in_place_variant(hardtanh_dx, "dy")
def hardtanh_dx_in_place(x, dy, *, lower, upper):
    return aten.hardtanh_backward.grad_input(dy, x, min_val=lower, max_val=upper, grad_input=dy)


@in_place_variant(leaky_relu_dx, "dy")
def leaky_relu_dx_in_place(x, dy, *, slope):
    return aten.leaky_relu_backward.grad_input(dy, x, slope, False, grad_input=dy)
