"""Activations, softmax and their gradients."""

import math

from oarlock.interop.onnx.export_graph import Graph, Value
from oarlock.interop.onnx.export_rule import export
from oarlock.interop.onnx.export_rules.functions import expm1

__all__ = ["causal_mask", "softmax_gradient"]

for ours, theirs in {
    "relu": "Relu",
    "sigmoid": "Sigmoid",
    "tanh": "Tanh",
}.items():
    export(ours)(lambda g, x, theirs=theirs: g(theirs, x))


@export("relu_dx")
def relu_dx(g: Graph, y: Value, dy: Value) -> str:
    zero = g.scalar(0, y.dtype)
    return g("Where", g("LessOrEqual", y, zero), zero, dy)  # dy for NaN


@export("sigmoid_dx")
def sigmoid_dx(g: Graph, y: Value, dy: Value) -> str:
    return g("Mul", dy, g("Mul", y, g("Sub", g.scalar(1, y.dtype), y)))


@export("tanh_dx")
def tanh_dx(g: Graph, y: Value, dy: Value) -> str:
    return g("Mul", dy, g("Sub", g.scalar(1, y.dtype), g("Mul", y, y)))


# gelu


@export("gelu")
def gelu(g: Graph, x: Value, *, approximate: bool) -> str:
    if g.opset >= 20:
        return g("Gelu", x, approximate="tanh" if approximate else "none")
    half, one = g.scalar(0.5, x.dtype), g.scalar(1, x.dtype)
    share = _inner_tanh(g, x) if approximate else g("Erf", g("Mul", x, g.scalar(math.sqrt(0.5), x.dtype)))
    return g("Mul", g("Mul", x, half), g("Add", share, one))


def _inner_tanh(g: Graph, x: Value) -> str:
    """Return ``tanh(sqrt(2 / pi) (x + 0.044715 x**3))``."""
    cube = g("Mul", g("Mul", g("Mul", x, x), x), g.scalar(0.044715, x.dtype))
    return g("Tanh", g("Mul", g("Add", x, cube), g.scalar(math.sqrt(2 / math.pi), x.dtype)))


def _slope(g: Graph, x: Value) -> str:
    """Return the derivative of the argument of that tanh."""
    scale = math.sqrt(2 / math.pi)
    return g("Add", g("Mul", g("Mul", x, x), g.scalar(3 * 0.044715 * scale, x.dtype)), g.scalar(scale, x.dtype))


@export("gelu_dx")
def gelu_dx(g: Graph, x: Value, dy: Value, *, approximate: bool) -> str:
    one, half = g.scalar(1, x.dtype), g.scalar(0.5, x.dtype)
    if approximate:
        t = _inner_tanh(g, x)
        inner = g("Mul", g("Mul", g("Sub", one, g("Mul", t, t)), _slope(g, x)), x)
        return g("Mul", dy, g("Mul", half, g("Add", g("Add", one, t), inner)))
    share = g("Mul", half, g("Add", one, g("Erf", g("Mul", x, g.scalar(math.sqrt(0.5), x.dtype)))))
    return g("Mul", dy, g("Add", share, g("Mul", x, _density(g, x))))


def _density(g: Graph, x: Value) -> str:
    """Return ``exp(-x**2 / 2) / sqrt(2 pi)``."""
    return g("Mul", g("Exp", g("Mul", g("Mul", x, x), g.scalar(-0.5, x.dtype))), g.scalar(1 / math.sqrt(2 * math.pi), x.dtype))


@export("gelu_dx_dx")
def gelu_dx_dx(g: Graph, x: Value, dy: Value, ddx: Value, *, approximate: bool) -> str:
    both, one = g("Mul", dy, ddx), g.scalar(1, x.dtype)
    if not approximate:
        return g("Mul", both, g("Mul", g("Sub", g.scalar(2, x.dtype), g("Mul", x, x)), _density(g, x)))
    t, slope = _inner_tanh(g, x), _slope(g, x)
    half_bend = g("Mul", x, g.scalar(math.sqrt(2 / math.pi) * 3 * 0.044715, x.dtype))
    inner = g("Sub", half_bend, g("Mul", t, g("Mul", slope, slope)))
    return g("Mul", g("Mul", both, g("Sub", one, g("Mul", t, t))), g("Add", slope, g("Mul", x, inner)))


# softmax


@export("softmax")
def softmax(g: Graph, x: Value, *, axis: int | None = None) -> str:
    return g("Softmax", x, axis=-1 if axis is None else axis)


@export("log_softmax")
def log_softmax(g: Graph, x: Value, *, axis: int | None = None) -> str:
    return g("LogSoftmax", x, axis=-1 if axis is None else axis)


def softmax_gradient(g: Graph, y: Value | str, dy: Value | str, axis: int | None = None) -> str:
    """Return ``y * (dy - sum(dy * y))``."""
    along = g.reduce("ReduceSum", g("Mul", dy, y), [-1 if axis is None else axis], keepdim=True)
    return g("Mul", y, g("Sub", dy, along))


@export("softmax_dx")
def softmax_dx(g: Graph, y: Value, dy: Value, *, axis: int | None = None) -> str:
    return softmax_gradient(g, y, dy, axis)


@export("log_softmax_dx")
def log_softmax_dx(g: Graph, y: Value, dy: Value, *, axis: int | None = None) -> str:
    along = g.reduce("ReduceSum", dy, [-1 if axis is None else axis], keepdim=True)
    return g("Sub", dy, g("Mul", g("Exp", y), along))


def causal_mask(g: Graph, rows: str, columns: str) -> str:
    """Return whether row ``i`` of ``t`` must not see column ``j`` of ``s``: ``j > i + s - t``. bool[t, s]; the sizes are int64[1]."""
    row = g("Add", g.unsqueeze(g.arange(rows), 1), g("Sub", columns, rows))
    return g("Greater", g.unsqueeze(g.arange(columns), 0), row)


@export("causal_softmax")
def causal_softmax(g: Graph, x: Value) -> str:
    hidden = causal_mask(g, g.dim(x, -2), g.dim(x, -1))
    return g("Softmax", g("Where", hidden, g.scalar(-math.inf, x.dtype), x), axis=-1)


# Smooth activations


export("log_sigmoid")(lambda g, x: g("Neg", g("Softplus", g("Neg", x))))
export("silu")(lambda g, x: g("Mul", x, g("Sigmoid", x)))
export("mish")(lambda g, x: g("Mul", x, g("Tanh", g("Softplus", x))))


def _bend(g: Graph, s: str, x: Value) -> str:
    """Return ``s (1 - s)``, the derivative of the sigmoid ``s``."""
    return g("Mul", s, g("Sub", g.scalar(1, x.dtype), s))


@export("silu_dx")
def silu_dx(g: Graph, x: Value, dy: Value) -> str:
    """Return ``dy (s + x s (1 - s))``."""
    s = g("Sigmoid", x)
    return g("Mul", dy, g("Add", s, g("Mul", x, _bend(g, s, x))))


@export("mish_dx")
def mish_dx(g: Graph, x: Value, dy: Value) -> str:
    """Return ``dy (t + x s (1 - t t))``, with the tanh ``t`` of softplus and the sigmoid ``s``."""
    t = g("Tanh", g("Softplus", x))
    rest = g("Sub", g.scalar(1, x.dtype), g("Mul", t, t))
    return g("Mul", dy, g("Add", t, g("Mul", g("Mul", x, g("Sigmoid", x)), rest)))


@export("elu")
def elu(g: Graph, x: Value, *, alpha: float, scale: float, input_scale: float) -> str:
    zero = g.scalar(0, x.dtype)
    below = expm1(g, Value(g("Mul", g("Min", x, zero), g.scalar(input_scale, x.dtype)), x.dtype, x.shape))
    below = g("Mul", below, g.scalar(alpha * scale, x.dtype))
    return g("Where", g("Greater", x, zero), g("Mul", x, g.scalar(scale, x.dtype)), below)


@export("elu_dx")
def elu_dx(g: Graph, x: Value, dy: Value, *, alpha: float, scale: float, input_scale: float) -> str:
    zero = g.scalar(0, x.dtype)
    below = g("Exp", g("Mul", g("Min", x, zero), g.scalar(input_scale, x.dtype)))
    slope = g("Mul", below, g.scalar(alpha * scale * input_scale, x.dtype))
    return g("Mul", dy, g("Where", g("Greater", x, zero), g.scalar(scale, x.dtype), slope))


@export("softplus")
def softplus(g: Graph, x: Value, *, beta: float, threshold: float) -> str:
    """Return ``log(1 + exp(beta x)) / beta``, and ``x`` itself above the threshold."""
    scaled = g("Mul", x, g.scalar(beta, x.dtype))
    soft = g("Div", g("Softplus", scaled), g.scalar(beta, x.dtype))
    return g("Where", g("Greater", scaled, g.scalar(threshold, x.dtype)), x, soft)


@export("softplus_dx")
def softplus_dx(g: Graph, x: Value, dy: Value, *, beta: float, threshold: float) -> str:
    scaled = g("Mul", x, g.scalar(beta, x.dtype))
    return g("Where", g("Greater", scaled, g.scalar(threshold, x.dtype)), dy, g("Mul", dy, g("Sigmoid", scaled)))


# Piecewise activations


export("hardswish")(lambda g, x: g("HardSwish", x))
export("hardsigmoid")(lambda g, x: g("HardSigmoid", x, alpha=1 / 6, beta=0.5))
export("leaky_relu")(lambda g, x, *, slope: g("LeakyRelu", x, alpha=slope))
export("hardtanh")(lambda g, x, *, lower, upper: g("Min", g("Max", x, g.scalar(lower, x.dtype)), g.scalar(upper, x.dtype)))


def _between(g: Graph, x: Value, lower: float, upper: float) -> str:
    return g("And", g("Greater", x, g.scalar(lower, x.dtype)), g("Less", x, g.scalar(upper, x.dtype)))


@export("hardtanh_dx")
def hardtanh_dx(g: Graph, x: Value, dy: Value, *, lower: float, upper: float) -> str:
    return g("Where", _between(g, x, lower, upper), dy, g.scalar(0, dy.dtype))


@export("hardsigmoid_dx")
def hardsigmoid_dx(g: Graph, x: Value, dy: Value) -> str:
    return g("Where", _between(g, x, -3.0, 3.0), g("Mul", dy, g.scalar(1 / 6, dy.dtype)), g.scalar(0, dy.dtype))


@export("hardswish_dx")
def hardswish_dx(g: Graph, x: Value, dy: Value) -> str:
    """Return the derivative: ``x / 3 + 1 / 2`` between -3 and 3, 0 below and 1 above."""
    slope = g("Add", g("Div", x, g.scalar(3, x.dtype)), g.scalar(0.5, x.dtype))
    outside = g("Where", g("Less", x, g.scalar(0, x.dtype)), g.scalar(0, dy.dtype), dy)
    return g("Where", _between(g, x, -3.0, 3.0), g("Mul", dy, slope), outside)


@export("leaky_relu_dx")
def leaky_relu_dx(g: Graph, x: Value, dy: Value, *, slope: float) -> str:
    return g("Where", g("Greater", x, g.scalar(0, x.dtype)), dy, g("Mul", dy, g.scalar(slope, dy.dtype)))
