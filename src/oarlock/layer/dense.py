"""Fully connected layers."""

from collections.abc import Sequence
from typing import Literal

from oarlock.errors import ArgumentError, ShapeError
from oarlock.ir.location import here
from oarlock.ir.names import require_user_name
from oarlock.ir.rollback import undone_on_error
from oarlock.ir.var import Var
from oarlock.layer.initializer import Rule, uniform, xavier
from oarlock.layer.parameter import layer_name, new_bias, new_parameter, output_name, require_number
from oarlock.layer.parameter_options import Given
from oarlock.op.composed.arithmetic import constant_like, is_one
from oarlock.op.composed.broadcast_product import matrix_product
from oarlock.op.composed.named_activation import Activation, activate, require_activation
from oarlock.op.composed.shape import unsqueeze
from oarlock.op.elementwise import add, multiply
from oarlock.op.manipulation import reshape
from oarlock.op.matrix import linear as linear_product
from oarlock.registry.creator import describe_value, require_type
from oarlock.registry.range_check import require_count

__all__ = ["bilinear", "fc", "linear", "sharded_axis"]


def fc(
    input: Var,
    size: "int | Var | None" = None,
    *,
    output_size: int | None = None,
    act: Activation | None = None,
    scale: "float | Var" = 1.0,
    bias: bool | Given = True,
    initializer: Rule | None = None,
    weight: Given | None = None,
    params: Sequence[str] | None = None,
    shard: Literal["columns", "rows"] | None = None,
    name: str | None = None,
) -> Var:
    """Apply a fully connected layer to the last dimension: float[*b k] -> float[*b size], ``act(scale (input @ w) + b)``.

    Parameters are `<name>.w` [k, size], Xavier-uniform by default (see `initializer`), and `<name>.b` [size], initialized to 0. `weight`
    and `bias` accept `ParameterOptions`; `params` gives their names, and layers that use the same names share them. `act` is the name of an
    activation, such as "relu", "sigmoid", "tanh" or "softmax", or a function of a variable, such as `ol.op.gelu`. `scale` is a number or a
    variable of one number, float[] or float[1]. `output_size` is an alias of `size`.

    `shard` is the axis of w that workers divide under `ol.passes.tensor_parallel`; without that pass it has no effect. With "columns", each
    worker computes its share of the outputs, and the bias is divided as well. With "rows", each worker needs its share of the inputs, and
    the results are summed over workers. A layer by columns followed by one by rows therefore needs a single exchange (Shoeybi et al.,
    2019).

    With two variables, ``fc(w, x)`` multiplies `x`, float[*b k], by an existing weight, float[k size] or float[1], without a bias:
    ``act(scale (x @ w))``. It creates no parameters. Raises ArgumentError unless there is exactly one size and one name per parameter;
    ShapeError if a shared parameter has another shape.

        y = ol.layer.fc(rows, 10, act="relu", weight=ol.layer.ParameterOptions(initializer=ol.initializer.orthogonal(), l2=1e-4))
    """
    if isinstance(size, Var):
        if not (output_size is initializer is params is weight is shard is None):
            raise ArgumentError(
                "fc: with a given weight, it creates no parameters",
                location=here(),
                contract="fc(w, x) takes act, scale and name; fc(x, size) takes output_size, initializer, weight, params and shard",
                given=[input.describe() if isinstance(input, Var) else describe_value(input), size.describe()],
            )
        return _weighted(require_type(input, "fc: w"), require_type(size, "fc: x"), act, scale, name)
    input = require_type(input, "fc: input")
    width = output_size if size is None else size
    if width is None or (size is not None and output_size is not None):
        raise ArgumentError("fc: it takes exactly one size", location=here(), given=[input.describe()], hint="ol.layer.fc(x, 10)")
    k = require_number(input.shape, -1, "fc", input)
    axis = sharded_axis("fc", shard)
    program = input.block.program
    name = layer_name(program, name, "fc")
    has_bias = bias is not False
    names = [f"{name}.w", f"{name}.b"][: 1 + has_bias] if params is None else [require_user_name(item) for item in params]
    if len(names) != 1 + has_bias:
        raise ArgumentError(
            f"fc: params must name {1 + has_bias} parameters, not {len(names)}", location=here(), hint='params=["fc.w", "fc.b"]'
        )
    require_activation(act)
    with undone_on_error(program):
        size = require_count("fc: size", width)
        w = new_parameter(input.block, names[0], (k, size), input.dtype, initializer or xavier(), weight, shard=axis)
        by_columns = w.sharding is not None and w.sharding.axis == 1
        b = new_bias(input.block, names[-1], (size,), input.dtype, bias, shard=0 if by_columns else None)
        if is_one(scale):
            return activate(linear_product(input, w, b, name=output_name(program, name)), act)
        scaled = multiply(
            linear_product(input, w), constant_like(scale, input, what="fc: scale"), name=output_name(program, name) if b is None else None
        )
        return activate(scaled if b is None else add(scaled, b, name=output_name(program, name)), act)


def _weighted(w: Var, x: Var, act: Activation | None, scale: "float | Var", name: str | None) -> Var:
    """Apply an existing weight: ``act(scale (x @ w))``."""
    require_activation(act)
    program = x.block.program
    with undone_on_error(program):
        if w.shape == (1,) and x.shape and x.shape[-1] == 1:
            product = multiply(w, x, name=name)
        elif w.ndim == 2 and all(isinstance(size, int) for size in w.shape or ()):
            product = linear_product(x, w, name=name)
        else:
            raise ShapeError(
                f'fc: "{w.name}" is not a weight for "{x.name}"',
                location=here(),
                contract="fc(w: float[k size], x: float[*b k]), the weight first, or fc(w: float[1], x: float[*b 1])",
                given=[w.describe(), x.describe()],
                hint="ol.layer.fc(x, 10) creates its own weight; w * x multiplies element by element",
            )
        return activate(product if is_one(scale) else multiply(product, constant_like(scale, product, what="fc: scale")), act)


def sharded_axis(kind: str, shard: object) -> int | None:
    """Return the axis of a matrix named by `shard`, or None. Raises ArgumentError."""
    if shard not in (None, "rows", "columns"):
        raise ArgumentError(f'{kind}: shard must be "columns", "rows" or None, not {shard!r:.60}', location=here())
    return None if shard is None else int(shard == "columns")


def linear(
    input: Var,
    size: int,
    *,
    bias: bool | Given = True,
    weight: Given | None = None,
    shard: Literal["columns", "rows"] | None = None,
    name: str | None = None,
) -> Var:
    """Apply `fc` without an activation: float[*b k] -> float[*b size], ``input @ w + b``.

    Parameters are `<name>.w` [k, size], Xavier-uniform, and `<name>.b` [size], 0; `weight` and `bias` override these defaults. `shard` is
    the same as in `fc`. Raises as `fc`.

        y = ol.layer.linear(rows, 10, bias=False)
    """
    input = require_type(input, "linear: input")
    size = require_count("linear: size", size)
    return fc(input, size, bias=bias, weight=weight, shard=shard, name=layer_name(input.block.program, name, "linear"))


def bilinear(
    first: Var,
    second: Var,
    size: int,
    *,
    act: Activation | None = None,
    bias: bool | Given = True,
    weight: Given | None = None,
    name: str | None = None,
) -> Var:
    """Apply a bilinear layer to two inputs: float[*b j], float[*b k] -> float[*b size], ``y_i = first' w_i second + b_i``.

    Parameters are `<name>.w` [j, k, size], uniform within ±1/sqrt(j), and `<name>.b` [size], 0; `weight` and `bias` override these
    defaults. Raises ShapeError if the leading dimensions of the inputs differ or the last ones are not numbers; ArgumentError.

        y = ol.layer.bilinear(rows, rows, 3)
    """
    first, second = require_type(first, "bilinear: first"), require_type(second, "bilinear: second")
    j, k = (require_number(var.shape, -1, "bilinear", var) for var in (first, second))
    if (first.shape or ())[:-1] != (second.shape or ())[:-1]:
        raise ShapeError(
            "bilinear: the inputs differ before their last dimensions",
            location=here(),
            contract="first: float[*b j], second: float[*b k]",
            given=[first.describe(), second.describe()],
        )
    size = require_count("bilinear: size", size)
    require_activation(act)
    program = first.block.program
    name = layer_name(program, name, "bilinear")
    with undone_on_error(program):
        w = new_parameter(first.block, f"{name}.w", (j, k, size), first.dtype, uniform(-(j**-0.5), j**-0.5), weight)
        b = new_bias(first.block, f"{name}.b", (size,), first.dtype, bias)
        front = (first.shape or ())[:-1]
        matrices = reshape(linear_product(first, reshape(w, shape=(j, k * size))), shape=(*front, k, size))
        result = output_name(program, name)
        y = matrix_product(unsqueeze(second, -2), matrices)
        y = reshape(y, shape=(*front, size), name=result if b is None else None)
        return activate(y if b is None else add(y, b, name=result), act)
