"""Elementwise arithmetic, comparisons, logic, and mathematical functions."""

import torch

import oarlock as ol
from oarlock import op

__all__ = ["CALLS"]


def scaled(x, alpha):
    """A number or a variable times another number, which most often is 1."""
    return x if alpha == 1 else x * alpha


def add(x, y, *, alpha=1):
    return op.add(x, scaled(y, alpha))


def subtract(x, y, *, alpha=1):
    return op.subtract(x, scaled(y, alpha))


def divide(x, y, *, rounding_mode=None):
    if rounding_mode is None:
        return op.divide(x, y)
    return op.floor_divide(x, y) if rounding_mode == "floor" else op.trunc(op.divide(x, y))


def power(x, y):
    return x**y


def truth(x):
    """Whether a number is not 0."""
    return x if not isinstance(x, ol.Var) or str(x.dtype) == "bool" else op.cast(x, dtype="bool")


def clamp(x, min=None, max=None):
    return op.clip(x, *(op.cast(each, dtype=x.dtype) if isinstance(each, ol.Var) else each for each in (min, max)))


def to(x, *how, dtype=None, device=None, copy=False, non_blocking=False, memory_format=None):
    kinds = [each for each in (*how, dtype) if isinstance(each, torch.dtype)]
    return op.cast(x, dtype=kinds[0]) if kinds else op.assign(x)


CALLS = {
    "abs": op.abs,
    "addcdiv": lambda base, x, y, *, value=1: op.addcdiv(base, x, y, value=value),
    "addcmul": lambda base, x, y, *, value=1: base + scaled(x * y, value),
    "allclose": lambda x, y, rtol=1e-5, atol=1e-8, equal_nan=False: op.allclose(x, y, rtol=rtol, atol=atol, equal_nan=equal_nan),
    "copysign": op.copysign,
    "deg2rad": op.deg2rad,
    "equal": lambda x, y: op.all(op.equal(x, y)) if x.shape == y.shape else False,
    "float_power": op.float_power,
    "fmax": op.fmax,
    "fmin": op.fmin,
    "frac": op.frac,
    "heaviside": op.heaviside,
    "hypot": op.hypot,
    "isclose": lambda x, y, rtol=1e-5, atol=1e-8, equal_nan=False: op.isclose(x, y, rtol=rtol, atol=atol, equal_nan=equal_nan),
    "isin": lambda x, among: op.isin(x, among),
    "isneginf": op.isneginf,
    "isposinf": op.isposinf,
    "isreal": lambda x: op.equal(op.full_like(x, value=0.0, dtype=x.dtype), 0.0),
    "ldexp": op.ldexp,
    "logaddexp": op.logaddexp,
    "logaddexp2": op.logaddexp2,
    "logit": lambda x, eps=None: op.logit(x, epsilon=eps),
    "nan_to_num": lambda x, nan=None, posinf=None, neginf=None: op.nan_to_num(x, nan=nan or 0.0, posinf=posinf, neginf=neginf),
    "nextafter": op.nextafter,
    "positive": op.assign,
    "rad2deg": op.rad2deg,
    "sgn": lambda x: op.sgn(x) if x.dtype.is_complex else op.sign(x),
    "signbit": op.signbit,
    "sinc": op.sinc,
    "acos": op.acos,
    "acosh": op.acosh,
    "add": add,
    "asin": op.asin,
    "asinh": op.asinh,
    "atan": op.atan,
    "atan2": op.atan2,
    "atanh": op.atanh,
    "__rand__": lambda x, y: y & x,
    "__ror__": lambda x, y: y | x,
    "__rxor__": lambda x, y: y ^ x,
    "bitwise_and": op.bitwise_and,
    "bitwise_left_shift": op.bitwise_left_shift,
    "bitwise_not": op.bitwise_not,
    "bitwise_or": op.bitwise_or,
    "bitwise_right_shift": op.bitwise_right_shift,
    "bitwise_xor": op.bitwise_xor,
    "gcd": op.gcd,
    "lcm": op.lcm,
    "ceil": op.ceil,
    "clamp": clamp,
    "clamp_max": lambda x, bound: op.clip(x, upper=bound),
    "clamp_min": lambda x, bound: op.clip(x, bound),
    "cos": op.cos,
    "cosh": op.cosh,
    "div.floor_rounding": divide,
    "div.no_rounding_mode": divide,
    "div.trunc_rounding": divide,
    "eq": op.equal,
    "erf": op.erf,
    "exp": op.exp,
    "exp2": op.exp2,
    "expm1": op.expm1,
    "floor": op.floor,
    "floor_divide": op.floor_divide,
    "fmod": op.fmod,
    "ge": op.greater_equal,
    "gt": op.greater,
    "isfinite": op.isfinite,
    "isinf": op.isinf,
    "isnan": op.isnan,
    "le": op.less_equal,
    "lerp": lambda x, y, weight: x + (y - x) * weight,
    "to": to,
    "log": op.log,
    "log10": op.log10,
    "log1p": op.log1p,
    "log2": op.log2,
    "logical_and": lambda x, y: op.logical_and(truth(x), truth(y)),
    "logical_not": lambda x: op.logical_not(truth(x)),
    "logical_or": lambda x, y: op.logical_or(truth(x), truth(y)),
    "logical_xor": lambda x, y: op.logical_xor(truth(x), truth(y)),
    "lt": op.less,
    "max.binary": op.maximum,
    "maximum": op.maximum,
    "min.binary": op.minimum,
    "minimum": op.minimum,
    "mul": op.multiply,
    "ne": op.not_equal,
    "neg": op.neg,
    "pow": power,
    "reciprocal": op.reciprocal,
    "remainder": op.remainder,
    "round": op.round,
    **{f"round.decimals_{each}": lambda x, *, decimals: op.around(x, decimals=decimals) for each in ("0", "3", "neg_3")},
    "rsqrt": op.rsqrt,
    "rsub": lambda x, y, *, alpha=1: op.subtract(y, scaled(x, alpha)),
    "sigmoid": op.sigmoid,
    "sign": op.sign,
    "sin": op.sin,
    "sinh": op.sinh,
    "sqrt": op.sqrt,
    "square": op.square,
    "sub": subtract,
    "tan": op.tan,
    "tanh": op.tanh,
    "true_divide": divide,
    "trunc": op.trunc,
    "where": lambda x, condition, y: op.where(condition, x, y),
    "__radd__": lambda x, y: y + x,
    "__rdiv__": lambda x, y: y / x,
    "__rmul__": lambda x, y: y * x,
    "__rmod__": lambda x, y: y % x,
    "__rpow__": lambda x, y: y**x,
    "__rsub__": lambda x, y: y - x,
}

for _name, _dtype in (("bfloat16", "bfloat16"), ("bool", "bool"), ("byte", "uint8"), ("char", "int8"), ("double", "float64"),
                      ("float", "float32"), ("half", "float16"), ("int", "int32"), ("long", "int64"), ("short", "int16")):  # fmt: skip
    CALLS[_name] = lambda x, *, memory_format=None, dtype=_dtype: ol.op.cast(x, dtype=dtype)
