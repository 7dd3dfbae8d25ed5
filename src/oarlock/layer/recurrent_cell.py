"""Recurrent cells: one step, for custom loops; the recurrent layers are built from them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from oarlock.errors import ArgumentError, ShapeError
from oarlock.ir.location import here
from oarlock.ir.rollback import undone_on_error
from oarlock.ir.var import Var
from oarlock.layer.initializer import Rule, uniform
from oarlock.layer.parameter import layer_name, new_bias, new_parameter, require_number
from oarlock.layer.parameter_options import Given
from oarlock.op.activation import relu, sigmoid, tanh
from oarlock.op.elementwise import add, multiply, subtract
from oarlock.op.manipulation import split
from oarlock.op.matrix import linear
from oarlock.registry.creator import require_type
from oarlock.registry.range_check import require_count

__all__ = ["CellOptions", "Step", "Weights", "declare_weights", "gru_cell", "lstm_cell", "rnn_cell", "step_of"]


@dataclass(frozen=True)
class CellOptions:
    """The options of the parameters of a cell."""

    rule: Rule | None = None
    weight: Given | None = None
    recurrent: Given | None = None
    bias: bool | Given = True
    recurrent_bias: bool | Given = False


@dataclass(frozen=True)
class Weights:
    """The parameters of a cell, shared by its gates."""

    w: Var
    u: Var
    b: Var | None
    v: Var | None = None
    p: Var | None = None

    def of_input(self, x: Var) -> Var:
        return linear(x, self.w, self.b)

    def of_state(self, h: Var) -> Var:
        return linear(h, self.u, self.v)


def declare_weights(
    kind: str, input: Var, columns: int, size: int, options: CellOptions, name: str, projection: int | None = None
) -> Weights:
    """Declare the parameters of a cell `kind` with `columns` input columns and, if given, `projection` output columns.

    Raises as `new_parameter`.
    """
    wide = GATES[kind] * size
    rule = options.rule or uniform(-(size**-0.5), size**-0.5)
    block, dtype = input.block, input.dtype
    return Weights(
        new_parameter(block, f"{name}.w", (columns, wide), dtype, rule, options.weight),
        new_parameter(block, f"{name}.u", (projection or size, wide), dtype, rule, options.recurrent),
        new_bias(block, f"{name}.b", (wide,), dtype, options.bias),
        new_bias(block, f"{name}.v", (wide,), dtype, options.recurrent_bias),
        None if projection is None else new_parameter(block, f"{name}.p", (size, projection), dtype, rule),
    )


Step = Callable[[Weights, Var, Sequence[Var]], tuple[Var, ...]]
"""A function from an input and the previous states to the next states; the first of them is the output."""


def _lstm(weights: Weights, x: Var, before: Sequence[Var]) -> tuple[Var, ...]:
    hidden, cell = before
    i, f, g, o = split(add(weights.of_input(x), weights.of_state(hidden)), sections=4, axis=-1)
    c = add(multiply(sigmoid(f), cell), multiply(sigmoid(i), tanh(g)))
    h = multiply(sigmoid(o), tanh(c))
    return h if weights.p is None else linear(h, weights.p), c


def _gru(weights: Weights, x: Var, before: Sequence[Var]) -> tuple[Var, ...]:
    (hidden,) = before
    x_r, x_z, x_n = split(weights.of_input(x), sections=3, axis=-1)
    h_r, h_z, h_n = split(weights.of_state(hidden), sections=3, axis=-1)
    n = tanh(add(x_n, multiply(sigmoid(add(x_r, h_r)), h_n)))
    return (add(n, multiply(sigmoid(add(x_z, h_z)), subtract(hidden, n))),)


def _rnn(weights: Weights, x: Var, before: Sequence[Var]) -> tuple[Var, ...]:
    return (tanh(add(weights.of_input(x), weights.of_state(before[0]))),)


def _relu_rnn(weights: Weights, x: Var, before: Sequence[Var]) -> tuple[Var, ...]:
    return (relu(add(weights.of_input(x), weights.of_state(before[0]))),)


GATES = {"lstm": 4, "gru": 3, "simple_rnn": 1, "lstm_cell": 4, "gru_cell": 3, "rnn_cell": 1}
"""The number of columns in a cell's matrices for each column of its state."""
STEPS: dict[str, Step] = {"lstm": _lstm, "gru": _gru, "simple_rnn": _rnn}


def step_of(kind: str, act: str) -> Step:
    """Return the step function of a layer, with its activation for a simple RNN. Raises ArgumentError."""
    if kind == "lstm" or kind == "gru":
        return STEPS[kind]
    if act not in ("tanh", "relu"):
        raise ArgumentError(f"{kind}: act must be 'tanh' or 'relu', not {act!r:.60}", location=here())
    return _rnn if act == "tanh" else _relu_rnn


def lstm_cell(
    input: Var,
    hidden: Var,
    cell: Var,
    *,
    weight: Given | None = None,
    recurrent: Given | None = None,
    bias: bool | Given = True,
    recurrent_bias: bool | Given = False,
    name: str | None = None,
) -> tuple[Var, Var]:
    """Apply one step of `lstm`: float[n d], h: float[n size], c: float[n size] -> the next h and c.

    Parameters and equations are as in `lstm`. Raises ShapeError if the numbers of rows or the sizes differ.

        h, c = ol.layer.lstm_cell(rows, rows, rows)
    """
    options = CellOptions(None, weight, recurrent, bias, recurrent_bias)
    return _cell("lstm_cell", _lstm, input, (hidden, cell), options, name)  # type: ignore[return-value]


def gru_cell(
    input: Var,
    hidden: Var,
    *,
    weight: Given | None = None,
    recurrent: Given | None = None,
    bias: bool | Given = True,
    recurrent_bias: bool | Given = False,
    name: str | None = None,
) -> Var:
    """Apply one step of `gru`: float[n d], h: float[n size] -> the next h. Parameters and equations are as in `gru`.

    Raises ShapeError if the numbers of rows differ.

        h = ol.layer.gru_cell(rows, rows)
    """
    return _cell("gru_cell", _gru, input, (hidden,), CellOptions(None, weight, recurrent, bias, recurrent_bias), name)[0]


def rnn_cell(
    input: Var,
    hidden: Var,
    *,
    act: str = "tanh",
    weight: Given | None = None,
    recurrent: Given | None = None,
    bias: bool | Given = True,
    recurrent_bias: bool | Given = False,
    name: str | None = None,
) -> Var:
    """Apply one step of `simple_rnn`: float[n d], h: float[n size] -> the next h, ``act(x W + b + h U)``. Raises ShapeError, ArgumentError.

    h = ol.layer.rnn_cell(rows, rows, act="relu")
    """
    step = step_of("rnn_cell", act)
    return _cell("rnn_cell", step, input, (hidden,), CellOptions(None, weight, recurrent, bias, recurrent_bias), name)[0]


def _cell(kind: str, step: Step, input: Var, states: Sequence[Var], options: CellOptions, name: str | None) -> tuple[Var, ...]:
    input = require_type(input, f"{kind}: input")
    states = [require_type(state, f"{kind}: a state") for state in states]
    columns = require_number(input.shape, -1, kind, input)
    size = require_count(f"{kind}: the size of its state", require_number(states[0].shape, -1, kind, states[0]))
    rows = (input.shape or ())[:-1]
    if any(state.shape != (*rows, size) for state in states):
        raise ShapeError(
            f"{kind}: each state must have a row for each row of the input",
            location=here(),
            contract="input: float[n d], states: float[n size]",
            given=[var.describe() for var in (input, *states)],
        )
    program = input.block.program
    with undone_on_error(program):
        return step(declare_weights(kind, input, columns, size, options, layer_name(program, name, kind)), input, states)
