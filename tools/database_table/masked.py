"""Masked reductions, `torch.masked`: a program puts the neutral element in place of masked elements."""

import math

from database_table.reductions import axes_of, dtyped
from oarlock import op

__all__ = ["CALLS"]


def kept(x, mask, neutral):
    """Return ``x`` at true positions of the mask, which is broadcast."""
    if mask is None:
        return x
    return op.where(mask, x, op.full(shape=(), value=neutral, dtype=x.dtype))


def mask_like(x, mask):
    """Return the mask as numbers with the shape of ``x``."""
    one = op.full_like(x, value=1.0, dtype=x.dtype)
    return one if mask is None else op.where(mask, one, op.full(shape=(), value=0.0, dtype=x.dtype))


def reduction(function, neutral):
    def call(x, dim=None, *, keepdim=False, dtype=None, mask=None):
        return function(kept(dtyped(x, dtype), mask, neutral), axis=axes_of(x, dim), keepdim=keepdim)

    return call


def mean(x, dim=None, *, keepdim=False, dtype=None, mask=None):
    x = dtyped(x, dtype)
    over = {"axis": axes_of(x, dim), "keepdim": keepdim}
    return op.divide(op.reduce_sum(kept(x, mask, 0.0), **over), op.reduce_sum(mask_like(x, mask), **over))


def variance(x, dim=None, unbiased=None, *, correction=None, keepdim=False, dtype=None, mask=None):
    x = dtyped(x, dtype)
    axis = axes_of(x, dim)
    less = (1.0 if unbiased is None or unbiased else 0.0) if correction is None else float(correction)
    count = op.reduce_sum(mask_like(x, mask), axis=axis, keepdim=True)
    centred = kept(op.subtract(x, op.divide(op.reduce_sum(kept(x, mask, 0.0), axis=axis, keepdim=True), count)), mask, 0.0)
    total = op.reduce_sum(op.square(centred), axis=axis, keepdim=keepdim)
    left = op.reduce_sum(mask_like(x, mask), axis=axis, keepdim=keepdim) - less
    return op.divide(total, op.clip(left, 0.0))


def norm(x, ord, dim=None, *, keepdim=False, dtype=None, mask=None):
    x = dtyped(x, dtype)
    return op.vector_norm(kept(x, mask, math.inf if ord == -math.inf else 0.0), order=float(ord), axis=axes_of(x, dim), keepdim=keepdim)


def along(function, neutral):
    def call(x, dim, *, dtype=None, mask=None):
        x = kept(dtyped(x, dtype), mask, neutral)
        if not x.shape:
            return op.reshape(function(op.reshape(x, shape=(1,)), axis=dim), shape=())
        return function(x, axis=dim)

    return call


def normalize(x, ord, dim, *, eps=1e-12, dtype=None, mask=None):
    x = kept(dtyped(x, dtype), mask, 0.0)
    return op.normalize(x, order=float(ord), axis=axes_of(x, dim), epsilon=eps)


def place(function, neutral):
    def call(x, dim=None, *, keepdim=False, dtype=None, mask=None):
        held = kept(x, mask, neutral)
        if dim is None or not x.shape:
            found = op.reshape(function(op.reshape(held, shape=(-1,)), axis=0), shape=(1,) * len(x.shape) if keepdim else ())
        else:
            found = function(held, axis=dim, keepdim=keepdim)
        return op.cast(found, dtype=dtype or x.dtype)  # PyTorch gives places in the dtype of the numbers

    return call


CALLS = {
    "masked.amax": reduction(op.amax, -math.inf),
    "masked.amin": reduction(op.amin, math.inf),
    "masked.argmax": place(op.argmax, -math.inf),
    "masked.argmin": place(op.argmin, math.inf),
    "masked.cumprod": along(op.cumprod, 1.0),
    "masked.cumsum": along(op.cumsum, 0.0),
    "masked.log_softmax": along(op.log_softmax, -math.inf),
    "masked.logsumexp": reduction(op.logsumexp, -math.inf),
    "masked.mean": mean,
    "masked.norm": norm,
    "masked.normalize": normalize,
    "masked.prod": reduction(op.reduce_prod, 1.0),
    "masked.softmax": along(op.softmax, -math.inf),
    "masked.softmin": along(op.softmin, math.inf),
    "masked.std": lambda x, *others, **how: op.sqrt(variance(x, *others, **how)),
    "masked.sum": reduction(op.reduce_sum, 0.0),
    "masked.var": variance,
}
