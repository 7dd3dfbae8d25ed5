"""Elementwise arithmetic, comparisons, logic, functions and activations."""

from collections.abc import Callable

from oarlock import op
from oarlock.interop.onnx.import_rules.forms import by_pairs, constant, filled
from oarlock.interop.onnx.known_value import Known
from oarlock.interop.onnx.rule import Unsupported, rule
from oarlock.interop.onnx.tensors import DTYPES, NAMES
from oarlock.ir.dtype import DType
from oarlock.ir.var import Var

_UNARY = {
    "Abs": "abs",
    "Acos": "acos",
    "Acosh": "acosh",
    "Asin": "asin",
    "Asinh": "asinh",
    "Atan": "atan",
    "Atanh": "atanh",
    "BitwiseNot": "bitwise_not",
    "Ceil": "ceil",
    "Cos": "cos",
    "Cosh": "cosh",
    "Erf": "erf",
    "Exp": "exp",
    "Floor": "floor",
    "HardSwish": "hardswish",
    "Identity": "assign",
    "IsNaN": "isnan",
    "Log": "log",
    "Mish": "mish",
    "Neg": "neg",
    "Not": "logical_not",
    "Reciprocal": "reciprocal",
    "Round": "round",
    "Sigmoid": "sigmoid",
    "Sin": "sin",
    "Sinh": "sinh",
    "Softplus": "softplus",
    "Softsign": "softsign",
    "Sqrt": "sqrt",
    "Tan": "tan",
    "Tanh": "tanh",
}
_BINARY = {
    "Add": "add",
    "And": "logical_and",
    "BitwiseAnd": "bitwise_and",
    "BitwiseOr": "bitwise_or",
    "BitwiseXor": "bitwise_xor",
    "Equal": "equal",
    "Greater": "greater",
    "GreaterOrEqual": "greater_equal",
    "Less": "less",
    "LessOrEqual": "less_equal",
    "Mul": "multiply",
    "Or": "logical_or",
    "Sub": "subtract",
    "Xor": "logical_xor",
}


def _declare_unary(type: str, name: str) -> None:
    @rule(type)
    def write(x):
        return getattr(op, name)(x)


def _declare_binary(type: str, name: str) -> None:
    @rule(type)
    def write(x, y):
        return getattr(op, name)(x, y)


for _type, _name in _UNARY.items():
    _declare_unary(_type, _name)
for _type, _name in _BINARY.items():
    _declare_binary(_type, _name)


@rule("Sign")
def sign(x):
    """Return the sign, and NaN for NaN as ONNX specifies; Oarlock's and PyTorch's `sign` of NaN is 0."""
    return op.where(op.isnan(x), x, op.sign(x)) if x.dtype.is_floating else op.sign(x)


@rule("Div")
def divide(x, y):
    """Divide; integers round towards 0."""
    if x.dtype.is_floating:
        return op.divide(x, y)
    return op.floor_divide(op.subtract(x, op.fmod(x, y)), y)


@rule("Mod")
def remainder(x, y, *, fmod=0):
    return op.fmod(x, y) if fmod else op.remainder(x, y)


@rule("Pow")
def power(x, y):
    """Raise to a power, in the dtype of `x`. An integer with a float exponent is computed in floating point."""
    if x.dtype is y.dtype:
        return op.power(x, y)
    if y.dtype.is_floating and not x.dtype.is_floating:
        return op.cast(op.power(op.cast(x, dtype=y.dtype), y), dtype=x.dtype)
    return op.power(x, op.cast(y, dtype=x.dtype))


@rule("Sum")
def sum_of(*items):
    return by_pairs(op.add, items)


@rule("Max")
def maximum(*items):
    return by_pairs(op.maximum, items)


@rule("Min")
def minimum(*items):
    return by_pairs(op.minimum, items)


@rule("Mean")
def mean(*items):
    return op.divide(by_pairs(op.add, items), constant(len(items), items[0]))


@rule("Clip", since=11)
def clip(x, lower=None, upper=None):
    return op.assign(x) if lower is None and upper is None else op.clip(x, lower, upper)


@rule("BitShift")
def shift(x, y, *, direction):
    if direction not in ("LEFT", "RIGHT"):
        raise Unsupported(f"the direction {direction!r:.40} is not supported")
    return op.bitwise_left_shift(x, y) if direction == "LEFT" else op.bitwise_right_shift(x, y)


@rule("IsInf")
def is_infinite(x, *, detect_negative=1, detect_positive=1):
    infinite = op.isinf(x)
    if detect_negative and detect_positive:
        return infinite
    if not detect_negative and not detect_positive:
        return filled(x, 0.0, DType.BOOL)
    return op.logical_and(infinite, (op.less if detect_negative else op.greater)(x, constant(0.0, x)))


@rule("Where")
def where(condition, x, y):
    return op.where(condition, x, y)


@rule("Cast")
def cast(x, *, to, saturate=1, round_mode="up"):
    if to not in DTYPES:
        raise Unsupported(f"the dtype {NAMES.get(to, to)} is not supported")
    return op.assign(x) if DTYPES[to] is x.dtype else op.cast(x, dtype=DTYPES[to])


@rule("CastLike")
def cast_like(x, like, *, saturate=1, round_mode="up"):
    return op.assign(x) if like.dtype is x.dtype else op.cast(x, dtype=like.dtype)


@rule("Relu")
def relu(x):
    return op.relu(x) if x.dtype.is_floating else op.maximum(x, constant(0.0, x))


@rule("Gelu")
def gelu(x, *, approximate="none"):
    if approximate not in ("none", "tanh"):
        raise Unsupported(f"the approximation {approximate!r:.40} is not supported")
    return op.gelu(x, approximate=approximate == "tanh")


@rule("LeakyRelu")
def leaky_relu(x, *, alpha=0.01):
    return op.leaky_relu(x, slope=alpha)


@rule("PRelu")
def parametric_relu(x, slope):
    return op.where(op.less(x, constant(0.0, x)), op.multiply(slope, x), x)


@rule("Elu")
def elu(x, *, alpha=1.0):
    return op.elu(x, alpha=alpha)


@rule("Celu")
def celu(x, *, alpha=1.0):
    return op.celu(x, alpha=alpha)


@rule("Selu")
def selu(x, *, alpha=1.6732632423543772, gamma=1.0507009873554805):
    return op.elu(x, alpha=alpha, scale=gamma)


@rule("ThresholdedRelu")
def thresholded_relu(x, *, alpha=1.0):
    return op.where(op.greater(x, constant(alpha, x)), x, constant(0.0, x))


@rule("Shrink")
def shrink(x, *, bias=0.0, lambd=0.5):
    if not x.dtype.is_floating:
        raise Unsupported(f"its input is {x.dtype}; only floats are supported")
    inside = op.where(op.greater(x, constant(lambd, x)), op.subtract(x, constant(bias, x)), constant(0.0, x))
    return op.where(op.less(x, constant(-lambd, x)), op.add(x, constant(bias, x)), inside)


@rule("HardSigmoid")
def hard_sigmoid(x, *, alpha=0.2, beta=0.5):
    return _hard_sigmoid(x, alpha, beta)


def _hard_sigmoid(x: Var, alpha: float, beta: float) -> Var:
    line = op.add(op.multiply(x, constant(alpha, x)), constant(beta, x))
    return op.clip(line, constant(0.0, x), constant(1.0, x))


@rule("Swish")
def swish(x, *, alpha=1.0):
    return op.silu(x) if alpha == 1.0 else op.multiply(x, op.sigmoid(op.multiply(x, constant(alpha, x))))


_ACTIVATIONS: dict[str, Callable[..., Var]] = {
    "affine": lambda x, alpha=1.0, beta=0.0: op.add(op.multiply(x, constant(alpha, x)), constant(beta, x)),
    "elu": lambda x, alpha=1.0, beta=None: op.elu(x, alpha=alpha),
    "hardsigmoid": lambda x, alpha=0.2, beta=0.5: _hard_sigmoid(x, alpha, beta),
    "leakyrelu": lambda x, alpha=0.01, beta=None: op.leaky_relu(x, slope=alpha),
    "relu": lambda x, alpha=None, beta=None: op.relu(x),
    "scaledtanh": lambda x, alpha=1.0, beta=1.0: op.multiply(op.tanh(op.multiply(x, constant(beta, x))), constant(alpha, x)),
    "sigmoid": lambda x, alpha=None, beta=None: op.sigmoid(x),
    "softplus": lambda x, alpha=None, beta=None: op.softplus(x),
    "softsign": lambda x, alpha=None, beta=None: op.softsign(x),
    "tanh": lambda x, alpha=None, beta=None: op.tanh(x),
    "thresholdedrelu": lambda x, alpha=1.0, beta=None: thresholded_relu(x, alpha=alpha),
}


def activation(name: str) -> Callable[..., Var]:
    """Return the activation of a recurrent network by name. Raises Unsupported."""
    found = _ACTIVATIONS.get(name.lower())
    if found is None:
        raise Unsupported(f"the activation {name!r:.40} is not supported")
    return found


@rule("Constant")
def constant_node(*, value=None, value_float=None, value_floats=None, value_int=None, value_ints=None):
    for item, dtype in ((value_float, DType.FLOAT32), (value_floats, DType.FLOAT32), (value_int, DType.INT64), (value_ints, DType.INT64)):
        if item is not None:
            return Known.of(item, dtype)
    if value is None:
        raise Unsupported("it has no value of a supported type")
    return value
