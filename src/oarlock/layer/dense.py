"""Fully connected layers."""

from oarlock.ir.variable import Var
from oarlock.layer.activation import activate
from oarlock.layer.initializer import Rule, constant, xavier
from oarlock.layer.parameter import layer_name, new_parameter, output_name, require_number
from oarlock.op.matrix import linear
from oarlock.registry.creator import require_type

__all__ = ["fc"]


def fc(
    input: Var,
    size: int,
    *,
    act: str | None = None,
    bias: bool = True,
    initializer: Rule | None = None,
    name: str | None = None,
) -> Var:
    """Contract the last dimension: float[*b k] -> float[*b size], ``act(input @ w + b)``.

    Parameters `<name>.w` [k, size], Xavier-uniform unless `initializer` says otherwise, and `<name>.b` [size],
    zeros. Layers of one `name` share them. `act` names an activation: relu, sigmoid, tanh, softmax.
    """
    require_type(input, "fc: input")
    k = require_number(input.shape, -1, "fc", input)
    name = layer_name(input.block.program, name, "fc")
    w = new_parameter(input.block, f"{name}.w", (k, size), input.dtype, initializer or xavier())
    b = new_parameter(input.block, f"{name}.b", (size,), input.dtype, constant(0.0)) if bias else None
    return activate(linear(input, w, b, name=output_name(input.block.program, name)), act)
