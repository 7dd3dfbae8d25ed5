"""Fully connected layers."""

from collections.abc import Sequence

from oarlock.errors import ArgumentError, ShapeError
from oarlock.ir.location import here
from oarlock.ir.names import require_user_name
from oarlock.ir.rollback import undone_on_error
from oarlock.ir.var import Var
from oarlock.layer.initializer import Rule, constant, xavier
from oarlock.layer.parameter import layer_name, new_parameter, output_name, require_count, require_number
from oarlock.op.composed.arithmetic import constant_like, is_one
from oarlock.op.composed.named_activation import Activation, activate, require_activation
from oarlock.op.elementwise import add, multiply
from oarlock.op.matrix import linear
from oarlock.registry.creator import describe_value, require_type

__all__ = ["fc"]


def fc(
    input: Var,
    size: "int | Var | None" = None,
    *,
    output_size: int | None = None,
    act: Activation | None = None,
    scale: "float | Var" = 1.0,
    bias: bool = True,
    initializer: Rule | None = None,
    params: Sequence[str] | None = None,
    name: str | None = None,
) -> Var:
    """Contract the last dimension: float[*b k] -> float[*b size], ``act(scale (input @ w) + b)``.

    Parameters `<name>.w` [k, size], Xavier-uniform unless `initializer` says otherwise, and `<name>.b` [size],
    zeros; or `params` says what the two are called. Layers that call them alike share them. `act` names an
    activation - relu, sigmoid, tanh, softmax - or is a function of a variable, such as `ol.op.gelu`. `output_size` is `size` as
    issue 3129 spells it. `scale` is a number, or a variable that holds one, float[] or float[1].

    ``fc(w, x)``, of two variables, multiplies `x`, float[*b k], by a weight that there is, float[k size] or, one number, float[1], and
    makes no parameter and no bias: ``act(scale (x @ w))``.
    Raises ArgumentError where there is not one size, or not a name per parameter; ShapeError for a shared
    parameter of another shape.
    """
    if isinstance(size, Var):
        if output_size is not None or initializer is not None or params is not None:
            raise ArgumentError(
                "fc: it is given its weight, so it makes none",
                location=here(),
                contract="fc(w, x) takes act, scale and name; fc(x, size) takes output_size, initializer and params",
                given=[input.describe() if isinstance(input, Var) else describe_value(input), size.describe()],
            )
        return _weighted(require_type(input, "fc: w"), require_type(size, "fc: x"), act, scale, name)
    input = require_type(input, "fc: input")
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
        if is_one(scale):
            return activate(linear(input, w, b, name=output_name(program, name)), act)
        scaled = multiply(
            linear(input, w), constant_like(scale, input, what="fc: scale"), name=output_name(program, name) if b is None else None
        )
        return activate(scaled if b is None else add(scaled, b, name=output_name(program, name)), act)


def _weighted(w: Var, x: Var, act: Activation | None, scale: "float | Var", name: str | None) -> Var:
    """``act(scale (x @ w))``."""
    require_activation(act)
    program = x.block.program
    with undone_on_error(program):
        if w.shape == (1,) and x.shape and x.shape[-1] == 1:
            product = multiply(w, x, name=name)
        elif w.ndim == 2 and all(isinstance(size, int) for size in w.shape or ()):
            product = linear(x, w, name=name)
        else:
            raise ShapeError(
                f'fc: "{w.name}" is no weight of "{x.name}"',
                location=here(),
                contract="fc(w: float[k size], x: float[*b k]), the weight first, or fc(w: float[1], x: float[*b 1])",
                given=[w.describe(), x.describe()],
                hint="ol.layer.fc(x, 10) makes a weight of its own; w * x multiplies element by element",
            )
        return activate(product if is_one(scale) else multiply(product, constant_like(scale, product, what="fc: scale")), act)
