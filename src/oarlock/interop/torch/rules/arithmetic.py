"""Arithmetic, element by element."""

from oarlock.interop.torch.rules.registry import rule
from oarlock.op import elementwise

__all__ = []


@rule("aten.add.Tensor", "aten.add.Scalar", promote=("self", "other"))
def add(self, other, *, alpha=1):
    return elementwise.add(self, other if alpha == 1 else elementwise.multiply(other, alpha))


@rule("aten.sub.Tensor", "aten.sub.Scalar", promote=("self", "other"))
def subtract(self, other, *, alpha=1):
    return elementwise.subtract(self, other if alpha == 1 else elementwise.multiply(other, alpha))


@rule("aten.mul.Tensor", "aten.mul.Scalar", promote=("self", "other"))
def multiply(self, other):
    return elementwise.multiply(self, other)


@rule("aten.div.Tensor", "aten.div.Scalar", promote=("self", "other"), to_float=True)
def divide(self, other):
    return elementwise.divide(self, other)


@rule("aten.neg.default")
def negative(self):
    return elementwise.neg(self)
