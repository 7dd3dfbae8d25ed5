"""Tensors made from nothing."""

from oarlock import op

__all__ = ["CALLS"]


def full(shape, value, *, dtype=None, device=None, layout=None, pin_memory=False, requires_grad=False):
    return op.full(shape=shape, value=float(value), dtype=dtype or "float32")


def like(value):
    def call(x, *, dtype=None, device=None, layout=None, memory_format=None, pin_memory=False, requires_grad=False):
        return op.full_like(x, value=value, dtype=dtype or x.dtype)

    return call


CALLS = {
    "ones_like": like(1.0),
    "zeros_like": like(0.0),
    "zero_": lambda x: op.full_like(x, value=0.0, dtype=x.dtype),
}
