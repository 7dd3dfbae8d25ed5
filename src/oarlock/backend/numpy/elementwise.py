"""Elementwise arithmetic, comparisons, logic and activations; softmax along an axis."""

import math

import numpy as np

from oarlock.backend.numpy.kernels import KERNELS, kernel
from oarlock.registry.catalogue import standard

__all__: list[str] = []

_FUNCTIONS = {
    "abs": np.abs,
    "acos": np.arccos,
    "acosh": np.arccosh,
    "add": np.add,
    "asin": np.arcsin,
    "asinh": np.arcsinh,
    "atan": np.arctan,
    "atan2": np.arctan2,
    "atanh": np.arctanh,
    "bitwise_and": np.bitwise_and,
    "bitwise_not": np.bitwise_not,
    "bitwise_or": np.bitwise_or,
    "bitwise_xor": np.bitwise_xor,
    "ceil": np.ceil,
    "cos": np.cos,
    "cosh": np.cosh,
    "divide": np.divide,
    "equal": np.equal,
    "exp": np.exp,
    "exp2": np.exp2,
    "expm1": np.expm1,
    "floor": np.floor,
    "greater": np.greater,
    "greater_equal": np.greater_equal,
    "isfinite": np.isfinite,
    "isinf": np.isinf,
    "isnan": np.isnan,
    "less": np.less,
    "less_equal": np.less_equal,
    "log": np.log,
    "log10": np.log10,
    "log1p": np.log1p,
    "log2": np.log2,
    "logical_and": np.logical_and,
    "logical_not": np.logical_not,
    "logical_or": np.logical_or,
    "logical_xor": np.logical_xor,
    "maximum": np.maximum,
    "minimum": np.minimum,
    "multiply": np.multiply,
    "neg": np.negative,
    "not_equal": np.not_equal,
    "reciprocal": np.reciprocal,
    "round": np.rint,
    "sign": np.sign,
    "sin": np.sin,
    "sinh": np.sinh,
    "sqrt": np.sqrt,
    "square": np.square,
    "subtract": np.subtract,
    "tan": np.tan,
    "tanh": np.tanh,
    "trunc": np.trunc,
    "where": np.where,
}
"""NumPy functions that are kernels without changes, by operator name."""

KERNELS |= {(standard, name): function for name, function in _FUNCTIONS.items()}


def _require_divisor(y):
    if y.dtype.kind == "i" and not np.all(y):
        raise ValueError("division of an integer by 0")


@kernel
def floor_divide(x, y):
    _require_divisor(y)
    return np.floor_divide(x, y)


@kernel
def remainder(x, y):
    _require_divisor(y)
    return np.remainder(x, y)


@kernel
def fmod(x, y):
    _require_divisor(y)
    return np.fmod(x, y)


@kernel
def power(x, y):
    if x.dtype.kind == "f":
        return np.power(x, y)
    below = np.where(x == 1, 1, np.where(x == -1, np.where(y % 2 == 0, 1, -1), 0))
    return np.where(y < 0, below, np.power(x, np.maximum(y, 0))).astype(x.dtype)


@kernel
def rsqrt(x):
    return 1 / np.sqrt(x)


@kernel
def stop_gradient(x):
    return x


@kernel
def abs_dx(x, dy):
    return dy * np.sign(x)


@kernel
def assign(x):
    return x


@kernel
def cast(x, *, dtype):
    return x.astype(dtype.value)


@kernel
def clip(x, lower=None, upper=None):
    y = x if lower is None else np.maximum(x, lower)
    return y if upper is None else np.minimum(y, upper)


def _inside(x, lower, upper):
    return (lower is None or x >= lower) & np.asarray(upper is None or x <= upper)


@kernel
def clip_dx(x, dy, lower=None, upper=None):
    return _summed_to(np.where(_inside(x, lower, upper), dy, dy.dtype.type(0)), x.shape)


def _summed_to(y, shape):
    y = y.sum(tuple(range(y.ndim - len(shape))))
    return y.sum(tuple(axis for axis, size in enumerate(shape) if size == 1 and y.shape[axis] != 1), keepdims=True)


@kernel
def clip_dx_ddy(x, ddx, dy_shape, lower=None, upper=None):
    return np.broadcast_to(np.where(_inside(x, lower, upper), ddx, ddx.dtype.type(0)), dy_shape)


@kernel
def sum_(xs):
    return sum(xs[1:], xs[0])


@kernel
def lerp(start, end, weight):
    return (1 - weight) * start + weight * end


@kernel
def addcmul(base, x, y, *, subtracted):
    return base - x * y if subtracted else base + x * y


@kernel
def dropout_dx(mask, dy):
    return dy * mask


# Activations


@kernel
def relu(x):
    return np.maximum(x, 0)


@kernel
def relu_dx(y, dy):
    return np.where(y <= 0, dy.dtype.type(0), dy)


@kernel
def sigmoid(x):
    return 1 / (1 + np.exp(-x))


@kernel
def sigmoid_dx(y, dy):
    return dy * y * (1 - y)


@kernel
def tanh_dx(y, dy):
    return dy * (1 - y * y)


_erf = np.vectorize(math.erf, otypes=[np.float64])
_SCALE = math.sqrt(2 / math.pi)


def _inner(x):
    return np.tanh(_SCALE * (x + 0.044715 * x**3))


@kernel
def gelu(x, *, approximate):
    return (x * (1 + (_inner(x) if approximate else _erf(x / math.sqrt(2)))) / 2).astype(x.dtype)


@kernel
def gelu_dx(x, dy, *, approximate):
    if approximate:
        t = _inner(x)
        return dy * (1 + t + x * (1 - t * t) * _SCALE * (1 + 3 * 0.044715 * x * x)) / 2
    return (dy * ((1 + _erf(x / math.sqrt(2))) / 2 + x * np.exp(-x * x / 2) / math.sqrt(2 * math.pi))).astype(x.dtype)


@kernel
def softmax(x, *, axis=-1):
    y = np.exp(x - x.max(axis, keepdims=True, initial=-np.inf))
    return y / y.sum(axis, keepdims=True)


@kernel
def softmax_dx(y, dy, *, axis=-1):
    return y * (dy - (dy * y).sum(axis, keepdims=True))


@kernel
def log_softmax(x, *, axis=-1):
    x = x - x.max(axis, keepdims=True, initial=-np.inf)
    return x - np.log(np.exp(x).sum(axis, keepdims=True))


@kernel
def log_softmax_dx(y, dy, *, axis=-1):
    return dy - np.exp(y) * dy.sum(axis, keepdims=True)


@kernel
def causal_softmax(x):
    t, s = x.shape[-2:]
    if t > s:
        raise ValueError(f"{t} rows are more than {s} columns, so the first ones would see nothing")
    return softmax(np.where(np.tri(t, s, s - t, dtype=bool), x, -np.inf).astype(x.dtype))
