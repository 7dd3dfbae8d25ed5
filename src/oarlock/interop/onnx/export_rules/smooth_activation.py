"""Smooth activations: silu, mish, elu, softplus, log_sigmoid."""

from oarlock.interop.onnx.export_graph import Graph, Value
from oarlock.interop.onnx.export_rule import export
from oarlock.interop.onnx.export_rules.unary import expm1

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
