"""Products of matrices."""

from oarlock.interop.torch.rules.registry import rule
from oarlock.op import matrix

__all__ = []


@rule("aten.linear.default")
def linear(input, weight, bias=None):
    return matrix.linear(input, matrix.matrix_transpose(weight), bias)
