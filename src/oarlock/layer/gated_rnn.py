"""Gated recurrent layers, written with `ol.rnn()` as a user would write them."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from oarlock.errors import ShapeError
from oarlock.ir.location import here
from oarlock.ir.rollback import undone_on_error
from oarlock.ir.var import Var
from oarlock.layer.control.memory import Memory
from oarlock.layer.control.rnn import Recurrence
from oarlock.layer.initializer import Rule, constant, uniform
from oarlock.layer.parameter import layer_name, new_parameter, require_count, require_number
from oarlock.op.activation import sigmoid, tanh
from oarlock.op.elementwise import add, multiply, subtract
from oarlock.op.manipulation import split
from oarlock.op.matrix import linear
from oarlock.registry.creator import block_for, require_type

__all__ = ["gru", "lstm"]


def lstm(
    input: Var,
    size: int,
    *,
    init: tuple[Var, Var] | None = None,
    reverse: bool = False,
    initializer: Rule | None = None,
    name: str | None = None,
) -> tuple[Var, Var, Var]:
    """Long short-term memory over a sequence, float[t n d]: every output, float[t n size], then the last h and c, float[n size].

    The input may be ragged, float[t d] of n sequences; the outputs are then ragged too, float[t size], and each sequence has its own
    last step. ``i, f, g, o = x W + h U + b``; ``c' = sigmoid(f) c + sigmoid(i) tanh(g)``; ``h' = sigmoid(o) tanh(c')`` (Hochreiter and
    Schmidhuber, 1997; forget gates of Gers et al., 2000). h and c start as `init`, else as zeros. Parameters `<name>.w` [d, 4 size],
    `<name>.u` [size, 4 size], both uniform within ±1/sqrt(size) unless `initializer` says otherwise, and `<name>.b` [4 size], zeros.
    Raises ShapeError where the input is no sequence of rows.
    """
    start: tuple[Var | None, Var | None] = (None, None) if init is None else init
    with _cell("lstm", input, size, 4, initializer, name) as weights:
        rnn = Recurrence(reverse=reverse)
        with rnn.step():
            x = rnn.step_input(input)
            hidden, cell = (_state(rnn, initial, size) for initial in start)
            before = rnn.previous_memory(cell)
            i, f, g, o = split(add(weights.of_input(x), weights.of_state(rnn.previous_memory(hidden))), sections=4, axis=-1)
            c = add(multiply(sigmoid(f), before), multiply(sigmoid(i), tanh(g)))
            h = multiply(sigmoid(o), tanh(c))
            rnn.update_memory(hidden, h)
            rnn.update_memory(cell, c)
            rnn.output(h)
        return rnn(), rnn.final_memory(hidden), rnn.final_memory(cell)  # type: ignore[return-value]


def gru(
    input: Var,
    size: int,
    *,
    init: Var | None = None,
    reverse: bool = False,
    initializer: Rule | None = None,
    name: str | None = None,
) -> tuple[Var, Var]:
    """Gated recurrent units over a sequence, float[t n d]: every output, float[t n size], then the last h, float[n size].

    The input may be ragged, as that of `lstm`. ``r, z = sigmoid(x W + b + h U)``;
    ``n = tanh(x W + b + r (h U))``; ``h' = (1 - z) n + z h``, each with its third of the columns (Cho et al., 2014, the
    reset gate after the product). h starts as `init`, else as zeros.
    Parameters `<name>.w` [d, 3 size], `<name>.u` [size, 3 size] and `<name>.b` [3 size], which start as those of `lstm`.
    Raises ShapeError where the input is no sequence of rows.
    """
    with _cell("gru", input, size, 3, initializer, name) as weights:
        rnn = Recurrence(reverse=reverse)
        with rnn.step():
            x = rnn.step_input(input)
            hidden = _state(rnn, init, size)
            before = rnn.previous_memory(hidden)
            x_r, x_z, x_n = split(weights.of_input(x), sections=3, axis=-1)
            h_r, h_z, h_n = split(weights.of_state(before), sections=3, axis=-1)
            n = tanh(add(x_n, multiply(sigmoid(add(x_r, h_r)), h_n)))
            h = add(n, multiply(sigmoid(add(x_z, h_z)), subtract(before, n)))
            rnn.update_memory(hidden, h)
            rnn.output(h)
        return rnn(), rnn.final_memory(hidden)  # type: ignore[return-value]


@dataclass(frozen=True)
class _Weights:
    """The parameters that all gates of a cell share."""

    w: Var
    u: Var
    b: Var

    def of_input(self, x: Var) -> Var:
        return linear(x, self.w, self.b)

    def of_state(self, h: Var) -> Var:
        return linear(h, self.u)


@contextmanager
def _cell(kind: str, input: Var, size: int, gates: int, rule: Rule | None, name: str | None) -> Iterator[_Weights]:
    """Declare the parameters of a cell; take them back where the layer is refused."""
    input = require_type(input, f"{kind}: input")
    width = require_count(size, f"{kind}: size")
    shape = input.shape or ()
    ragged = bool(shape) and block_for([input], kind).splits_of(shape[0]) is not None
    if len(shape) != (2 if ragged else 3):
        raise ShapeError(
            f'{kind}: "{input.name}" is no sequence of rows',
            location=here(),
            contract="float[t n d], the steps first, or ragged, float[t d]",
            given=[input.describe()],
        )
    k = require_number(shape, -1, kind, input)
    program = input.block.program
    name = layer_name(program, name, kind)
    bound = width**-0.5
    rule = rule or uniform(-bound, bound)
    with undone_on_error(program):
        yield _Weights(
            new_parameter(input.block, f"{name}.w", (k, gates * width), input.dtype, rule),
            new_parameter(input.block, f"{name}.u", (width, gates * width), input.dtype, rule),
            new_parameter(input.block, f"{name}.b", (gates * width,), input.dtype, constant(0.0)),
        )


def _state(rnn: Recurrence, initial: Var | None, size: int) -> Memory:
    return rnn.memory(shape=[size]) if initial is None else rnn.memory(init=initial)
