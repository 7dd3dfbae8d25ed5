"""Tensors made from nothing."""

from database_judge import Unmapped

import oarlock as ol
from oarlock import op

__all__ = ["CALLS"]


def full(shape, value, *, dtype=None, device=None, layout=None, pin_memory=False, requires_grad=False):
    return op.full(shape=shape, value=float(value), dtype=dtype or "float32")


def like(value):
    def call(x, *, dtype=None, device=None, layout=None, memory_format=None, pin_memory=False, requires_grad=False):
        return op.full_like(x, value=value, dtype=dtype or x.dtype)

    return call


def filled(value):
    """Zeros or ones of a shape."""
    return lambda *shape, **how: full(shape[0] if isinstance(shape[0], list | tuple) else shape, value, **how)


def new(value):
    """Those of a dtype of another."""

    def call(x, shape, *, dtype=None, **how):
        return full(shape, value, dtype=dtype or x.dtype, **how)

    return call


def new_full(x, shape, value, *, dtype=None, **how):
    return full(shape, value, dtype=dtype or x.dtype, **how)


def steps(function):
    def call(start, end, steps, base=None, *, dtype=None, device=None, layout=None, requires_grad=False):
        if any(isinstance(each, ol.Var) for each in (start, end)):
            raise Unmapped("bounds that depend on values")
        if isinstance(start, complex) or isinstance(end, complex):
            raise Unmapped("complex numbers")
        extra = {} if base is None else {"base": float(base)}
        return function(float(start), float(end), steps, dtype=dtype or "float32", **extra)

    return call


def window(function):
    def call(count, *, sym=True, dtype=None, device=None, layout=None, requires_grad=False):
        return function(count, periodic=not sym, dtype=dtype or "float32")

    return call


def eye(rows, columns=None, *, dtype=None, device=None, layout=None, requires_grad=False):
    return op.eye(rows=rows, columns=columns, dtype=dtype or "float32")


CALLS = {
    "eye": eye,
    "full": full,
    "full_like": lambda x, value, *, dtype=None, device=None, layout=None, requires_grad=False: op.full_like(
        x, value=float(value), dtype=dtype or x.dtype
    ),
    "linspace": steps(op.linspace),
    "linspace.tensor_overload": steps(op.linspace),
    "logspace": steps(op.logspace),
    "logspace.tensor_overload": steps(op.logspace),
    "new_full": new_full,
    "new_ones": new(1.0),
    "new_zeros": new(0.0),
    "ones": filled(1.0),
    "scalar_tensor": lambda value, *, dtype=None, **how: full((), value, dtype=dtype),
    "signal.windows.blackman": window(op.blackman_window),
    "signal.windows.hamming": window(op.hamming_window),
    "signal.windows.hann": window(op.hann_window),
    "zeros": filled(0.0),
    "ones_like": like(1.0),
    "zeros_like": like(0.0),
    "zero_": lambda x: op.full_like(x, value=0.0, dtype=x.dtype),
}
