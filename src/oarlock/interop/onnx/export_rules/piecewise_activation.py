"""Piecewise activations and their gradients."""

from oarlock.interop.onnx.export_graph import Graph, Value
from oarlock.interop.onnx.export_rule import export

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
