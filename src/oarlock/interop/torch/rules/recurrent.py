"""Recurrent layers as loops: GRU, LSTM and plain cells, of any depth, in one or both directions."""

from collections.abc import Callable, Sequence

from oarlock import op
from oarlock.interop.torch.rules.arguments import permuted, refuse, reshaped, shape_of
from oarlock.interop.torch.rules.registry import rule
from oarlock.ir.var import Var
from oarlock.layer.control.rnn import Recurrence

Cell = Callable[[Var, Var, Sequence[Var]], tuple[Var, ...]]
"""Maps input gates, state gates and previous states to new states; the first one is the output."""


def _gru(of_input: Var, of_state: Var, before: Sequence[Var]) -> tuple[Var, ...]:
    x_r, x_z, x_n = op.split(of_input, sections=3, axis=-1)
    h_r, h_z, h_n = op.split(of_state, sections=3, axis=-1)
    n = op.tanh(op.add(x_n, op.multiply(op.sigmoid(op.add(x_r, h_r)), h_n)))
    return (op.add(n, op.multiply(op.sigmoid(op.add(x_z, h_z)), op.subtract(before[0], n))),)


def _lstm(of_input: Var, of_state: Var, before: Sequence[Var]) -> tuple[Var, ...]:
    i, f, g, o = op.split(op.add(of_input, of_state), sections=4, axis=-1)
    cell = op.add(op.multiply(op.sigmoid(f), before[1]), op.multiply(op.sigmoid(i), op.tanh(g)))
    return op.multiply(op.sigmoid(o), op.tanh(cell)), cell


def _tanh(of_input: Var, of_state: Var, before: Sequence[Var]) -> tuple[Var, ...]:
    return (op.tanh(op.add(of_input, of_state)),)


def _relu(of_input: Var, of_state: Var, before: Sequence[Var]) -> tuple[Var, ...]:
    return (op.relu(op.add(of_input, of_state)),)


def _run_layers(
    cell: Cell,
    input: Var,
    starts: Sequence[Var],
    params: Sequence[Var],
    has_biases: bool,
    num_layers: int,
    rate: float,
    bidirectional: bool,
    batch_first: bool,
) -> tuple[Var, ...]:
    """Return the outputs of the last layer, then the final states of all layers and directions."""
    alone = len(shape_of(input)) == 2
    x = reshaped(input, _with_batch(input, batch_first)) if alone else input
    starts = [reshaped(start, [shape_of(start)[0], 1, shape_of(start)[1]]) if alone else start for start in starts]
    x = permuted(x, (1, 0, 2)) if batch_first else x
    directions, each = 1 + bidirectional, 4 if has_biases else 2
    refuse(len(params) != num_layers * directions * each, "projections of the state are not supported")
    finals: list[list[Var]] = [[] for _ in starts]
    for layer in range(num_layers):
        outputs = []
        for direction in range(directions):
            number = layer * directions + direction
            own = [select_row(start, number) for start in starts]
            y, last = _run_direction(cell, x, own, params[number * each : (number + 1) * each], reverse=direction == 1)
            outputs.append(y)
            for kept, state in zip(finals, last, strict=True):
                kept.append(state)
        x = outputs[0] if directions == 1 else op.concat(outputs, axis=2)
        if rate and layer + 1 < num_layers:
            x = op.dropout(x, rate=rate)
    y = permuted(x, (1, 0, 2)) if batch_first else x
    stacked = [op.stack(states) for states in finals]
    if alone:
        return tuple(
            reshaped(z, [item for axis, item in enumerate(shape_of(z)) if axis != (0 if z is y and batch_first else 1)])
            for z in (y, *stacked)
        )
    return (y, *stacked)


def _with_batch(x: Var, batch_first: bool) -> list:
    steps, width = shape_of(x)
    return [1, steps, width] if batch_first else [steps, 1, width]


def select_row(x: Var, number: int) -> Var:
    """Return one row of `x`, without its axis."""
    return reshaped(op.slice(x, axis=0, start=number, stop=number + 1, clip=False), shape_of(x)[1:])


def _run_direction(cell: Cell, x: Var, starts: Sequence[Var], params: Sequence[Var], *, reverse: bool) -> tuple[Var, list[Var]]:
    """Run one layer in one direction. The products with the inputs of all steps are computed before the loop."""
    of_input, of_state = (params[2], params[3]) if len(params) == 4 else (None, None)
    gates, matrix = op.linear(x, op.matrix_transpose(params[0]), of_input), op.matrix_transpose(params[1])
    loop = Recurrence(reverse=reverse)
    with loop.step():
        step = loop.step_input(gates)
        memories = [loop.memory(init=start) for start in starts]
        before = [loop.previous_memory(memory) for memory in memories]
        bias = None if of_state is None else loop.whole(of_state)
        after = cell(step, op.linear(before[0], loop.whole(matrix), bias), before)
        for memory, state in zip(memories, after, strict=True):
            loop.update_memory(memory, state)
        loop.output(after[0])
    y = loop()
    assert isinstance(y, Var)
    return y, [loop.final_memory(memory) for memory in memories]


@rule("aten.gru.input")
def gru(
    input: Var, hx: Var, params: Sequence[Var], has_biases: bool, num_layers: int, dropout: float, train: bool, bidirectional: bool,
    batch_first: bool,
):  # fmt: skip
    rate = dropout if train else 0.0
    return _run_layers(_gru, input, [hx], params, has_biases, num_layers, rate, bidirectional, batch_first)


@rule("aten.lstm.input")
def lstm(
    input: Var, hx: Sequence[Var], params: Sequence[Var], has_biases: bool, num_layers: int, dropout: float, train: bool,
    bidirectional: bool, batch_first: bool,
):  # fmt: skip
    rate = dropout if train else 0.0
    return _run_layers(_lstm, input, hx, params, has_biases, num_layers, rate, bidirectional, batch_first)


@rule("aten.rnn_tanh.input")
def rnn_tanh(
    input: Var, hx: Var, params: Sequence[Var], has_biases: bool, num_layers: int, dropout: float, train: bool, bidirectional: bool,
    batch_first: bool,
):  # fmt: skip
    rate = dropout if train else 0.0
    return _run_layers(_tanh, input, [hx], params, has_biases, num_layers, rate, bidirectional, batch_first)


@rule("aten.rnn_relu.input")
def rnn_relu(
    input: Var, hx: Var, params: Sequence[Var], has_biases: bool, num_layers: int, dropout: float, train: bool, bidirectional: bool,
    batch_first: bool,
):  # fmt: skip
    rate = dropout if train else 0.0
    return _run_layers(_relu, input, [hx], params, has_biases, num_layers, rate, bidirectional, batch_first)


@rule("aten.gru_cell.default")
def gru_cell(input: Var, hx: Var, w_ih: Var, w_hh: Var, b_ih: Var | None = None, b_hh: Var | None = None):
    return _gru(_compute_gates(input, w_ih, b_ih), _compute_gates(hx, w_hh, b_hh), [hx])[0]


@rule("aten.lstm_cell.default")
def lstm_cell(input: Var, hx: Sequence[Var], w_ih: Var, w_hh: Var, b_ih: Var | None = None, b_hh: Var | None = None):
    return _lstm(_compute_gates(input, w_ih, b_ih), _compute_gates(hx[0], w_hh, b_hh), hx)


@rule("aten.rnn_tanh_cell.default")
def rnn_tanh_cell(input: Var, hx: Var, w_ih: Var, w_hh: Var, b_ih: Var | None = None, b_hh: Var | None = None):
    return _tanh(_compute_gates(input, w_ih, b_ih), _compute_gates(hx, w_hh, b_hh), [hx])[0]


@rule("aten.rnn_relu_cell.default")
def rnn_relu_cell(input: Var, hx: Var, w_ih: Var, w_hh: Var, b_ih: Var | None = None, b_hh: Var | None = None):
    return _relu(_compute_gates(input, w_ih, b_ih), _compute_gates(hx, w_hh, b_hh), [hx])[0]


def _compute_gates(x: Var, weight: Var, bias: Var | None) -> Var:
    return op.linear(x, op.matrix_transpose(weight), bias)
