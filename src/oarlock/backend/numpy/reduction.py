"""Sums, means, variances and extremes over axes; gradients of sums and means."""

import math

import numpy as np

from oarlock.backend.numpy.kernels import kernel

__all__: list[str] = []


@kernel
def reduce_sum(x, *, axis=None, keepdim):
    return x.sum(axis, x.dtype, keepdims=keepdim)


@kernel
def mean(x, *, axis=None, keepdim):
    return x.sum(axis, keepdims=keepdim) / x.dtype.type(_count(x.shape, axis))


def _count(shape, axis):
    """Return the number of elements that are reduced to one, over an axis, several axes or all."""
    return math.prod(shape) if axis is None else math.prod(shape[each] for each in ((axis,) if isinstance(axis, int) else axis))


def _beside(dy, axis, keepdim):
    return dy if axis is None or keepdim else np.expand_dims(dy, axis)


@kernel
def reduce_sum_dx(dy, x_shape, *, axis=None, keepdim):
    return np.broadcast_to(_beside(dy, axis, keepdim), x_shape)


@kernel
def mean_dx(dy, x_shape, *, axis=None, keepdim):
    return np.broadcast_to(_beside(dy / dy.dtype.type(_count(x_shape, axis) or 1), axis, keepdim), x_shape)


@kernel
def sum_to_shape(x, like):
    x = x.sum(tuple(range(x.ndim - len(like))))
    return x.sum(tuple(axis for axis, size in enumerate(like) if size == 1), keepdims=True)


@kernel
def broadcast_to_like(x, like):
    return np.broadcast_to(x, like)


@kernel
def any_(x, *, axis=None, keepdim):
    return np.any(x, axis, keepdims=keepdim)


@kernel
def all_(x, *, axis=None, keepdim):
    return np.all(x, axis, keepdims=keepdim)


@kernel
def amax(x, *, axis=None, keepdim):
    return np.amax(x, axis, keepdims=keepdim)


@kernel
def amin(x, *, axis=None, keepdim):
    return np.amin(x, axis, keepdims=keepdim)


@kernel
def variance(x, *, axis=None, keepdim, correction):
    centred = x - x.mean(axis, keepdims=True)
    left = max(_count(x.shape, axis) - correction, 0)
    return ((centred * centred).sum(axis, keepdims=keepdim) / x.dtype.type(left)).astype(x.dtype)


@kernel
def dot(x, y, *, mean):
    total = (x * y).sum()
    return total / x.dtype.type(x.size) if mean else total


@kernel
def global_average_pool2d(x):
    return x.sum((-2, -1)) / x.dtype.type(x.shape[-2] * x.shape[-1])


@kernel
def global_average_pool2d_dx(dy, x_shape):
    return np.broadcast_to(dy[..., None, None] / dy.dtype.type(x_shape[-2] * x_shape[-1]), x_shape)


@kernel
def conv2d_dbias(dy):
    return dy.sum((0, 2, 3))


@kernel
def accuracy(predict, label, *, ignore_index=-100):
    valid = label != ignore_index
    return np.float32(((predict.argmax(-1) == label) & valid).sum()) / np.float32(valid.sum())
