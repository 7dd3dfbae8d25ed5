"""Optimizer steps, as in `op/update.py`."""

from oarlock.interop.onnx.export_graph import Graph, Value
from oarlock.interop.onnx.export_rule import export
from oarlock.interop.onnx.export_rules.indexing import add_rows
from oarlock.interop.onnx.export_rules.matrix import linear_dw
from oarlock.ir.dtype import DType


@export("sgd")
def sgd(g: Graph, param: Value, grad: Value | str, learning_rate: Value) -> str:
    return g("Sub", param, g("Mul", grad, g.cast(learning_rate, param.dtype)))


@export("momentum")
def momentum(g: Graph, param: Value, grad: Value, velocity: Value, learning_rate: Value, *, mu: float, nesterov: bool) -> tuple[str, str]:
    faster = g("Add", g("Mul", velocity, g.scalar(mu, param.dtype)), grad)
    ahead = g("Add", grad, g("Mul", faster, g.scalar(mu, param.dtype))) if nesterov else faster
    return sgd(g, param, ahead, learning_rate), faster


@export("adam")
def adam(
    g: Graph,
    param: Value,
    grad: Value,
    moment1: Value,
    moment2: Value,
    step: Value,
    learning_rate: Value,
    *,
    beta1: float,
    beta2: float,
    epsilon: float,
    weight_decay: float = 0.0,
) -> tuple[str, str, str]:
    """Update by Adam. Factors that depend only on the step are computed in float64, as in PyTorch's kernel."""
    of = DType.FLOAT64
    count = g.cast(step, of)
    left1, left2 = (g("Sub", g.scalar(1, of), g("Pow", g.scalar(beta, of), count)) for beta in (beta1, beta2))
    rate = g.cast(g("Div", g.cast(learning_rate, of), left1), param.dtype)
    first = g("Add", g("Mul", moment1, g.scalar(beta1, param.dtype)), g("Mul", grad, g.scalar(1 - beta1, param.dtype)))
    squared = g("Mul", grad, grad)
    second = g("Add", g("Mul", moment2, g.scalar(beta2, param.dtype)), g("Mul", squared, g.scalar(1 - beta2, param.dtype)))
    root = g("Div", g("Sqrt", second), g.cast(g("Sqrt", left2), param.dtype))
    decayed: Value | str = param
    if weight_decay:
        taken = g("Mul", g.cast(learning_rate, of), g.scalar(weight_decay, of))
        decayed = g("Mul", param, g.cast(g("Sub", g.scalar(1, of), taken), param.dtype))
    return g("Sub", decayed, g("Mul", rate, g("Div", first, g("Add", root, g.scalar(epsilon, param.dtype))))), first, second


@export("multi_tensor_sgd")
def multi_tensor_sgd(g: Graph, params: list[Value], grads: list[Value], learning_rate: Value) -> list[str]:
    return [sgd(g, param, grad, learning_rate) for param, grad in zip(params, grads, strict=True)]


@export("multi_tensor_momentum")
def multi_tensor_momentum(
    g: Graph, params: list[Value], grads: list[Value], velocities: list[Value], learning_rate: Value, *, mu: float, nesterov: bool
) -> tuple[list[str], ...]:
    each = [momentum(g, *item, learning_rate, mu=mu, nesterov=nesterov) for item in zip(params, grads, velocities, strict=True)]
    return tuple(list(found) for found in zip(*each, strict=True))


@export("multi_tensor_adam")
def multi_tensor_adam(
    g: Graph,
    params: list[Value],
    grads: list[Value],
    moments1: list[Value],
    moments2: list[Value],
    step: Value,
    learning_rate: Value,
    **settings: float,
) -> tuple[list[str], ...]:
    beside = zip(params, grads, moments1, moments2, strict=True)
    each = [adam(g, *item, step, learning_rate, **settings) for item in beside]
    return tuple(list(found) for found in zip(*each, strict=True))


@export("sgd_addmm")
def sgd_addmm(g: Graph, param: Value, x: Value, dout: Value, learning_rate: Value) -> str:
    return sgd(g, param, linear_dw(g, x, dout), learning_rate)


@export("sparse_sgd")
def sparse_sgd(g: Graph, param: Value, rows: Value, values: Value, learning_rate: Value) -> str:
    return sgd(g, param, add_rows(g, values, rows, param), learning_rate)


@export("put_rows")
def put_rows(g: Graph, param: Value, rows: Value, values: Value) -> str:
    return g("ScatterND", param, g.unsqueeze(rows, 1), values)


@export("coalesce")
def coalesce(g: Graph, rows: Value, values: Value) -> tuple[str, str]:
    """Merge duplicate rows by adding their values."""
    distinct, first, inverse, _ = g("Unique", rows, outputs=4, sorted=1)
    zeros = g.filled(0, values.dtype, g("Shape", g("Gather", values, first, axis=0)))
    return distinct, g("ScatterND", zeros, g.unsqueeze(inverse, 1), values, reduction="add")
