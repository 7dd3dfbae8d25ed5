"""Activations with parameters: PReLU, maxout and highway layers."""

from oarlock.ir.rollback import undone_on_error
from oarlock.ir.var import Var
from oarlock.layer.dense import fc
from oarlock.layer.initializer import constant
from oarlock.layer.parameter import layer_name, new_parameter, require_number
from oarlock.layer.parameter_options import Given, ParameterOptions, as_options
from oarlock.op.activation import relu, sigmoid
from oarlock.op.composed import activations
from oarlock.op.composed.named_activation import Activation, activate, require_activation
from oarlock.op.composed.shape import known_shape
from oarlock.op.elementwise import add, multiply, subtract
from oarlock.op.extremes import amax
from oarlock.op.manipulation import reshape
from oarlock.registry.creator import require_type
from oarlock.registry.range_check import require_count

__all__ = ["highway", "maxout", "prelu"]


def prelu(x: Var, *, shared: bool = True, slope: Given | None = None, name: str | None = None) -> Var:
    """Return ``x`` if positive, else ``slope * x``, with a trained slope: float[...s] (He et al., 2015).

    The parameter is `<name>.slope` [1], or, with ``shared=False``, [c] for the c channels of axis 1; it is initialized to 0.25. Raises
    ShapeError.

        y = ol.layer.prelu(image, shared=False)
    """
    x = require_type(x, "prelu: x")
    count = 1 if shared else require_number(x.shape, 1, "prelu", x)
    program = x.block.program
    with undone_on_error(program):
        return activations.prelu(
            x, new_parameter(x.block, f"{layer_name(program, name, 'prelu')}.slope", (count,), x.dtype, constant(0.25), slope)
        )


def maxout(
    input: Var, size: int, *, pieces: int = 2, bias: bool | Given = True, weight: Given | None = None, name: str | None = None
) -> Var:
    """Return the maximum of `pieces` linear functions for each output: float[*b k] -> float[*b size] (Goodfellow et al., 2013).

    Parameters are `<name>.w` [k, size*pieces], with the pieces of an output in adjacent columns, and `<name>.b` [size*pieces]. Raises as
    `fc`.

        y = ol.layer.maxout(rows, 5, pieces=3)
    """
    input = require_type(input, "maxout: input")
    size, pieces = require_count("maxout: size", size), require_count("maxout: pieces", pieces)
    program = input.block.program
    name = layer_name(program, name, "maxout")
    with undone_on_error(program):
        products = fc(input, size * pieces, bias=bias, weight=weight, name=name)
        return amax(reshape(products, shape=(*known_shape(products, "maxout")[:-1], size, pieces)), axis=-1)


def highway(
    x: Var,
    *,
    act: Activation = relu,
    bias: bool | Given = True,
    weight: Given | None = None,
    gate_bias: Given | None = None,
    gate_weight: Given | None = None,
    name: str | None = None,
) -> Var:
    """Interpolate between a fully connected layer and its input with a trained gate: float[*b k] -> float[*b k].

    ``t act(x w + b) + (1 - t) x``, where ``t = sigmoid(x v + c)`` (Srivastava, Greff and Schmidhuber, 2015). Parameters are `<name>.w` and
    `<name>.b`, `<name>.gate.w` [k, k] and `<name>.gate.b` [k]; the last is initialized to -1, so that most of the input passes at first.
    Raises ShapeError, ArgumentError.

        y = ol.layer.highway(rows)
    """
    x = require_type(x, "highway: x")
    k = require_number(x.shape, -1, "highway", x)
    program = x.block.program
    name = layer_name(program, name, "highway")
    require_activation(act)
    starts = as_options(gate_bias, "gate_bias") if gate_bias is not None else ParameterOptions(initializer=constant(-1.0))
    with undone_on_error(program):
        inside = activate(fc(x, k, bias=bias, weight=weight, name=name), act)
        gate = sigmoid(fc(x, k, bias=starts, weight=gate_weight, name=f"{name}.gate"))
        return add(x, multiply(gate, subtract(inside, x)))
