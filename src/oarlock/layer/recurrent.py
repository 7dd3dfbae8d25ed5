"""Recurrent layers - simple, LSTM and GRU, bidirectional and stacked - written with the public `ol.rnn()`."""

from collections.abc import Sequence
from dataclasses import dataclass

from oarlock.errors import ArgumentError, DTypeError, ShapeError
from oarlock.ir.dtype import DType
from oarlock.ir.location import here
from oarlock.ir.rollback import undone_on_error
from oarlock.ir.var import Var
from oarlock.layer.control.rnn import Recurrence
from oarlock.layer.initializer import Rule
from oarlock.layer.parameter import layer_name, require_number
from oarlock.layer.parameter_options import Given, require_unnamed
from oarlock.layer.recurrent_cell import CellOptions, Step, Weights, declare_weights, step_of
from oarlock.op.choice import where
from oarlock.op.comparison import less
from oarlock.op.composed.arithmetic import constant_like
from oarlock.op.composed.shape import known_shape, unsqueeze
from oarlock.op.manipulation import concat, reshape, slice_, stack, transpose
from oarlock.op.randomness import dropout as drop
from oarlock.op.told_shape import arange
from oarlock.registry.creator import block_for, require_type
from oarlock.registry.range_check import require_count

__all__ = ["gru", "lstm", "simple_rnn"]


def lstm(
    input: Var,
    size: int,
    *,
    init: tuple[Var, Var] | None = None,
    lengths: Var | None = None,
    layers: int = 1,
    bidirectional: bool = False,
    dropout: float = 0.0,
    reverse: bool = False,
    batch_first: bool = False,
    projection: int | None = None,
    initializer: Rule | None = None,
    weight: Given | None = None,
    recurrent: Given | None = None,
    bias: bool | Given = True,
    recurrent_bias: bool | Given = False,
    name: str | None = None,
) -> tuple[Var, Var, Var]:
    """Apply a long short-term memory to a sequence, float[t n d]: all outputs, float[t n size], then the last h and c, float[n size].

    ``i, f, g, o = x W + h U + b``; ``c' = sigmoid(f) c + sigmoid(i) tanh(g)``; ``h' = sigmoid(o) tanh(c')`` (Hochreiter and Schmidhuber,
    1997; forget gates of Gers et al., 2000). `init` holds the initial h and c, by default zeros. The input may be ragged, float[t d] of n
    sequences; the outputs are then ragged too, float[t size], and h and c are those at the end of each sequence. With `batch_first`, input
    and outputs are float[n t ...].

    For padded rows, `lengths`, int64[n], is the number of steps of each row: later steps keep the state and output zeros. `reverse` starts
    at the last step. `bidirectional` adds a second cell, `<name>.reverse.w` ..., that starts at the last step of each row; outputs contain
    both, float[t n 2*size]. With several `layers`, `<name>.0.w`, `<name>.1.w` ..., each reads the outputs of the previous one, after
    `dropout` in training. With more than one layer or direction, h, c and `init` are float[layers*directions n size], ordered by layer,
    each followed by its reverse. `projection` multiplies h by a trained `<name>.p` [size, projection], so that outputs and h have
    `projection` columns.

    Parameters are `<name>.w` [d, 4 size] and `<name>.u` [size, 4 size], uniform within ±1/sqrt(size) by default (see `initializer`), and
    `<name>.b` [4 size], 0; `weight`, `recurrent` and `bias` accept `ParameterOptions`. `recurrent_bias` adds a bias `<name>.v` to ``h U``,
    as in PyTorch. Raises ShapeError if the input is not a sequence of rows; ArgumentError.

        y, h, c = ol.layer.lstm(words, 16)
    """
    given = CellOptions(initializer, weight, recurrent, bias, recurrent_bias)
    start = [None, None] if init is None else list(init)
    layer = _Layers("lstm", size, given, layers, bidirectional, dropout, reverse, batch_first, name, projection=projection)
    outputs, states = layer.run(input, start, lengths)
    return outputs, states[0], states[1]


def gru(
    input: Var,
    size: int,
    *,
    init: Var | None = None,
    lengths: Var | None = None,
    layers: int = 1,
    bidirectional: bool = False,
    dropout: float = 0.0,
    reverse: bool = False,
    batch_first: bool = False,
    initializer: Rule | None = None,
    weight: Given | None = None,
    recurrent: Given | None = None,
    bias: bool | Given = True,
    recurrent_bias: bool | Given = False,
    name: str | None = None,
) -> tuple[Var, Var]:
    """Apply a gated recurrent unit to a sequence, float[t n d]: all outputs, float[t n size], then the last h, float[n size].

    ``r, z = sigmoid(x W + b + h U)``; ``n = tanh(x W + b + r (h U))``; ``h' = (1 - z) n + z h``, each with a third of the columns; the
    reset gate is applied after the product (Cho et al., 2014). `init` is the initial h, by default zeros. Parameters are `<name>.w` [d, 3
    size], `<name>.u` [size, 3 size] and `<name>.b` [3 size], initialized as in `lstm`; `recurrent_bias` replaces ``h U`` by ``h U + v``, as
    in PyTorch. The input may be ragged, and the other arguments are as in `lstm`. Raises ShapeError if the input is not a sequence of
    rows; ArgumentError.

        y, h = ol.layer.gru(steps, 16, lengths=lengths, bidirectional=True)
    """
    given = CellOptions(initializer, weight, recurrent, bias, recurrent_bias)
    outputs, states = _Layers("gru", size, given, layers, bidirectional, dropout, reverse, batch_first, name).run(input, [init], lengths)
    return outputs, states[0]


def simple_rnn(
    input: Var,
    size: int,
    *,
    act: str = "tanh",
    init: Var | None = None,
    lengths: Var | None = None,
    layers: int = 1,
    bidirectional: bool = False,
    dropout: float = 0.0,
    reverse: bool = False,
    batch_first: bool = False,
    initializer: Rule | None = None,
    weight: Given | None = None,
    recurrent: Given | None = None,
    bias: bool | Given = True,
    recurrent_bias: bool | Given = False,
    name: str | None = None,
) -> tuple[Var, Var]:
    """Apply a recurrence without gates to a sequence, float[t n d]: all outputs, float[t n size], then the last h, float[n size].

    ``h' = act(x W + b + h U)``, where `act` is "tanh" or "relu" (Elman, 1990). Parameters are `<name>.w` [d, size], `<name>.u` [size, size]
    and `<name>.b` [size]; the other arguments are as in `lstm`. Raises ShapeError if the input is not a sequence of rows; ArgumentError.

        y, h = ol.layer.simple_rnn(vectors, 16, batch_first=True, layers=2, dropout=0.1)
    """
    given = CellOptions(initializer, weight, recurrent, bias, recurrent_bias)
    layer = _Layers("simple_rnn", size, given, layers, bidirectional, dropout, reverse, batch_first, name, act)
    outputs, states = layer.run(input, [init], lengths)
    return outputs, states[0]


@dataclass(frozen=True)
class _Layers:
    """The settings of a stack of recurrences of one kind."""

    kind: str
    size: int
    options: CellOptions
    layers: int
    bidirectional: bool
    dropout: float
    reverse: bool
    batch_first: bool
    name: str | None
    act: str = ""
    projection: int | None = None

    def run(self, input: Var, init: Sequence[Var | None], lengths: Var | None) -> tuple[Var, list[Var]]:
        """Return the outputs of the last layer and the final states of all layers. Declares nothing if it raises."""
        kind = self.kind
        input = require_type(input, f"{kind}: input")
        size = require_count(f"{kind}: size", self.size)
        layers = require_count(f"{kind}: layers", self.layers)
        given = size if self.projection is None else require_count(f"{kind}: projection", self.projection)
        sizes = [given, *(size for _ in init[1:])]
        shape = input.shape or ()
        ragged = bool(shape) and block_for([input], kind).splits_of(shape[0]) is not None
        self._require_sequence(input, ragged, lengths)
        columns = require_number(shape, -1, kind, input)
        for var in (state for state in init if state is not None):
            require_type(var, f"{kind}: init")
        if self.bidirectional and self.reverse:
            raise ArgumentError(f"{kind}: bidirectional runs in both directions, so reverse cannot be used", location=here())
        step = step_of(kind, self.act)
        program = input.block.program
        name = layer_name(program, self.name, kind)
        directions = 2 if self.bidirectional else 1
        if layers * directions > 1:
            require_unnamed(kind, self.options.weight, self.options.recurrent, self.options.bias, self.options.recurrent_bias)
        with undone_on_error(program):
            x = transpose(input, axes=(1, 0, 2)) if self.batch_first else input
            is_within = None if lengths is None else _steps_before(x, lengths)
            last: list[list[Var]] = []
            for layer in range(layers):
                base = name if layers == 1 else f"{name}.{layer}"
                if layer and self.dropout:
                    x = drop(x, rate=self.dropout)
                outputs = []
                for direction in range(directions):
                    weights = declare_weights(
                        kind, input, columns, size, self.options, f"{base}.reverse" if direction else base, self.projection
                    )
                    start = [_part(var, layers * directions, layer * directions + direction) for var in init]
                    stacked, states = _pass_over(x, weights, step, start, sizes, self.reverse or bool(direction), is_within)
                    outputs.append(stacked)
                    last.append(states)
                x = outputs[0] if directions == 1 else concat(outputs, axis=-1)
                columns = directions * given
            y = transpose(x, axes=(1, 0, 2)) if self.batch_first else x
            if len(last) == 1:
                return y, last[0]
            return y, [stack([states[number] for states in last]) for number in range(len(init))]

    def _require_sequence(self, input: Var, ragged: bool, lengths: Var | None) -> None:
        if len(input.shape or ()) != (2 if ragged else 3):
            raise ShapeError(
                f'{self.kind}: "{input.name}" is not a sequence of rows',
                location=here(),
                contract="float[t n d], the steps first, or ragged, float[t d]",
                given=[input.describe()],
            )
        if ragged and (lengths is not None or self.batch_first):
            raise ArgumentError(
                f"{self.kind}: a ragged input has its own lengths and no batch dimension", location=here(), given=[input.describe()]
            )
        if lengths is None:
            return
        lengths = require_type(lengths, f"{self.kind}: lengths")
        rows = (input.shape or ())[0 if self.batch_first else 1]
        if lengths.dtype is not DType.INT64:
            raise DTypeError(f"{self.kind}: lengths must be int64, not {lengths.dtype}", location=here(), given=[lengths.describe()])
        if lengths.shape != (rows,):
            raise ShapeError(
                f"{self.kind}: lengths must be one per row, int64[{rows}], not {lengths.type_text}",
                location=here(),
                given=[input.describe(), lengths.describe()],
            )


def _steps_before(x: Var, lengths: Var) -> Var:
    """Return whether each step comes before the end of its row: bool[t n 1]."""
    steps = arange([x], stop=known_shape(x, "lengths")[:1])
    return less(unsqueeze(steps, 1, 2), unsqueeze(lengths, 1))


def _part(init: Var | None, count: int, number: int) -> Var | None:
    """Return the initial state of one of `count` recurrences."""
    if init is None or count == 1:
        return init
    if init.shape is None or len(init.shape) != 3 or init.shape[0] != count:
        raise ShapeError(
            f"init must be a state for each of {count} recurrences, float[{count} n size], not {init.type_text}",
            location=here(),
            given=[init.describe()],
        )
    return reshape(slice_(init, axis=0, start=number, stop=number + 1), shape=init.shape[1:])


def _pass_over(
    input: Var, weights: Weights, step: Step, start: Sequence[Var | None], sizes: Sequence[int], reverse: bool, is_within: Var | None
) -> tuple[Var, list[Var]]:
    """Run one recurrence over all steps; return its outputs and its last states."""
    rnn = Recurrence(reverse=reverse)
    with rnn.step():
        x = rnn.step_input(input)
        memories = [rnn.memory(shape=[size]) if init is None else rnn.memory(init=init) for init, size in zip(start, sizes, strict=True)]
        before = [rnn.previous_memory(memory) for memory in memories]
        after = step(weights, x, before)
        output = after[0]
        if is_within is not None:
            active = rnn.step_input(is_within)
            after = tuple(where(active, new, old) for new, old in zip(after, before, strict=True))
            output = where(active, output, constant_like(0.0, output))
        for memory, state in zip(memories, after, strict=True):
            rnn.update_memory(memory, state)
        rnn.output(output)
    stacked = rnn()
    return stacked, [rnn.final_memory(memory) for memory in memories]  # type: ignore[return-value]
