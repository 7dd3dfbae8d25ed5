"""Activations, and dropout."""

from oarlock.interop.torch.rules.registry import rule
from oarlock.op import activation, randomness

__all__ = []


@rule("aten.relu.default")
def relu(self):
    return activation.relu(self)


@rule("aten.native_dropout.default")
def dropout(input, p, train):  # its mask is read by gradients alone, which are ours
    return (randomness.dropout(input, rate=float(p)) if train is not False and p > 0 else input), None
