"""Fully connected layers."""

from collections.abc import Sequence

from oarlock.errors import ArgumentError
from oarlock.ir.location import here
from oarlock.ir.names import require_user_name
from oarlock.ir.restoring import undone_on_error
from oarlock.ir.variable import Var
from oarlock.layer.activation import activate, require_activation
from oarlock.layer.initializer import Rule, constant, xavier
from oarlock.layer.parameter import layer_name, new_parameter, output_name, require_count, require_number
from oarlock.op.matrix import linear
from oarlock.registry.creator import require_type

__all__ = ["fc"]


def fc(
    input: Var,
    size: int | None = None,
    *,
    output_size: int | None = None,
    act: str | None = None,
    bias: bool = True,
    initializer: Rule | None = None,
    params: Sequence[str] | None = None,
    name: str | None = None,
) -> Var:
    """Contract the last dimension: float[*b k] -> float[*b size], ``act(input @ w + b)``.

    Parameters `<name>.w` [k, size], Xavier-uniform unless `initializer` says otherwise, and `<name>.b` [size],
    zeros; or `params` says what the two are called. Layers that call them alike share them. `act` names an
    activation: relu, sigmoid, tanh, softmax. `output_size` is `size` as issue 3129 spells it.
    Raises ArgumentError where there is not one size, or not a name per parameter; ShapeError for a shared
    parameter of another shape.
    """
    require_type(input, "fc: input")
    width = output_size if size is None else size
    if width is None or (size is not None and output_size is not None):
        raise ArgumentError("fc: it takes one size", location=here(), given=[input.describe()], hint="ol.layer.fc(x, 10)")
    k = require_number(input.shape, -1, "fc", input)
    program = input.block.program
    name = layer_name(program, name, "fc")
    names = [f"{name}.w", f"{name}.b"][: 1 + bias] if params is None else [require_user_name(item) for item in params]
    if len(names) != 1 + bias:
        raise ArgumentError(f"fc: params names {1 + bias} parameters, not {len(names)}", location=here(), hint='params=["fc.w", "fc.b"]')
    require_activation(act)
    with undone_on_error(program):
        w = new_parameter(input.block, names[0], (k, require_count(width, "fc: size")), input.dtype, initializer or xavier())
        b = new_parameter(input.block, names[1], (width,), input.dtype, constant(0.0)) if bias else None
        return activate(linear(input, w, b, name=output_name(program, name)), act)
