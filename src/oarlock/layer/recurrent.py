"""Recurrent layers - simple, gated, in both directions, in stacks - written with `ol.rnn()` as a user would write them."""

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
from oarlock.layer.recurrent_cell import CellOptions, Step, declare_weights, step_of
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
    """Long short-term memory over a sequence, float[t n d]: every output, float[t n size], then the last h and c, float[n size].

    The input may be ragged, float[t d] of n sequences; the outputs are then ragged too, float[t size], and each sequence has its own last
    step. ``i, f, g, o = x W + h U + b``; ``c' = sigmoid(f) c + sigmoid(i) tanh(g)``; ``h' = sigmoid(o) tanh(c')`` (Hochreiter and
    Schmidhuber, 1997; forget gates of Gers et al., 2000). h and c start as `init`, else as zeros. Parameters `<name>.w` [d, 4 size],
    `<name>.u` [size, 4 size], both uniform within ±1/sqrt(size) unless `initializer` says otherwise, and `<name>.b` [4 size], zeros;
    `weight`, `recurrent` and `bias` take `ParameterOptions`. With `recurrent_bias`, ``h U`` has a bias `<name>.v` too, as in PyTorch.

    Where rows are padded, `lengths`, int64[n], says how many steps each has: its state stays after the last, and its outputs are zeros.
    With `batch_first`, input and outputs are float[n t ...]. With `bidirectional`, a second cell, `<name>.reverse.w` ..., starts at each
    row's last step, and outputs have both, float[t n 2*size]. Of several `layers`, `<name>.0.w`, `<name>.1.w` ..., each reads the outputs
    of the one below, in training after a `dropout` of this rate. In both cases h and c, and `init`, are float[layers*directions n size],
    the first layer first and its reverse behind it. Raises ShapeError where the input is no sequence of rows; ArgumentError.

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
    """Gated recurrent units over a sequence, float[t n d]: every output, float[t n size], then the last h, float[n size].

    The input may be ragged, as that of `lstm`. ``r, z = sigmoid(x W + b + h U)``;
    ``n = tanh(x W + b + r (h U))``; ``h' = (1 - z) n + z h``, each with its third of the columns (Cho et al., 2014, the
    reset gate after the product). h starts as `init`, else as zeros.
    Parameters `<name>.w` [d, 3 size], `<name>.u` [size, 3 size] and `<name>.b` [3 size], which start as those of `lstm`; with
    `recurrent_bias`, ``h U + v`` stands for ``h U``, as in PyTorch. All else is as in `lstm`.
    Raises ShapeError where the input is no sequence of rows; ArgumentError.

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
    """A recurrence without gates over a sequence, float[t n d]: every output, float[t n size], then the last h, float[n size].

    ``h' = act(x W + b + h U)``, where `act` is "tanh" or "relu" (Elman, 1990). Parameters `<name>.w` [d, size], `<name>.u` [size, size] and
    `<name>.b` [size]; all else is as in `lstm`. Raises ShapeError where the input is no sequence of rows; ArgumentError.

        y, h = ol.layer.simple_rnn(vectors, 16, batch_first=True, layers=2, dropout=0.1)
    """
    given = CellOptions(initializer, weight, recurrent, bias, recurrent_bias)
    layer = _Layers("simple_rnn", size, given, layers, bidirectional, dropout, reverse, batch_first, name, act)
    outputs, states = layer.run(input, [init], lengths)
    return outputs, states[0]


@dataclass(frozen=True)
class _Layers:
    """A stack of recurrences of one kind, as it was asked for."""

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
        """The outputs of the last layer, and the last states of all. Declares nothing where it raises."""
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
            raise ArgumentError(f"{kind}: bidirectional has both directions, so that reverse means nothing", location=here())
        step = step_of(kind, self.act)
        program = input.block.program
        name = layer_name(program, self.name, kind)
        directions = 2 if self.bidirectional else 1
        if layers * directions > 1:
            require_unnamed(kind, self.options.weight, self.options.recurrent, self.options.bias, self.options.recurrent_bias)
        with undone_on_error(program):
            x = transpose(input, axes=(1, 0, 2)) if self.batch_first else input
            here_yet = None if lengths is None else _steps_before(x, lengths)
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
                    stacked, states = _pass_over(x, weights, step, start, sizes, self.reverse or bool(direction), here_yet)
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
                f'{self.kind}: "{input.name}" is no sequence of rows',
                location=here(),
                contract="float[t n d], the steps first, or ragged, float[t d]",
                given=[input.describe()],
            )
        if ragged and (lengths is not None or self.batch_first):
            raise ArgumentError(
                f"{self.kind}: a ragged input has its own lengths, and no batch in front", location=here(), given=[input.describe()]
            )
        if lengths is None:
            return
        lengths = require_type(lengths, f"{self.kind}: lengths")
        rows = (input.shape or ())[0 if self.batch_first else 1]
        if lengths.dtype is not DType.INT64:
            raise DTypeError(f"{self.kind}: lengths are int64, not {lengths.dtype}", location=here(), given=[lengths.describe()])
        if lengths.shape != (rows,):
            raise ShapeError(
                f"{self.kind}: lengths are one for each row, int64[{rows}], not {lengths.type_text}",
                location=here(),
                given=[input.describe(), lengths.describe()],
            )


def _steps_before(x: Var, lengths: Var) -> Var:
    """Whether each step comes before the end of its row: bool[t n 1]."""
    steps = arange([x], stop=known_shape(x, "lengths")[:1])
    return less(unsqueeze(steps, 1, 2), unsqueeze(lengths, 1))


def _part(init: Var | None, count: int, number: int) -> Var | None:
    """The state with which one of `count` recurrences starts."""
    if init is None or count == 1:
        return init
    if init.shape is None or len(init.shape) != 3 or init.shape[0] != count:
        raise ShapeError(
            f"init is a state for each of {count} recurrences, float[{count} n size], not {init.type_text}",
            location=here(),
            given=[init.describe()],
        )
    return reshape(slice_(init, axis=0, start=number, stop=number + 1), shape=init.shape[1:])


def _pass_over(
    input: Var, weights, step: Step, start: Sequence[Var | None], sizes: Sequence[int], reverse: bool, here_yet: Var | None
) -> tuple[Var, list[Var]]:
    """One recurrence over all steps: its outputs, and its last states."""
    rnn = Recurrence(reverse=reverse)
    with rnn.step():
        x = rnn.step_input(input)
        memories = [rnn.memory(shape=[size]) if init is None else rnn.memory(init=init) for init, size in zip(start, sizes, strict=True)]
        before = [rnn.previous_memory(memory) for memory in memories]
        after = step(weights, x, before)
        output = after[0]
        if here_yet is not None:
            holds = rnn.step_input(here_yet)
            after = tuple(where(holds, new, old) for new, old in zip(after, before, strict=True))
            output = where(holds, output, constant_like(0.0, output))
        for memory, state in zip(memories, after, strict=True):
            rnn.update_memory(memory, state)
        rnn.output(output)
    stacked = rnn()
    return stacked, [rnn.final_memory(memory) for memory in memories]  # type: ignore[return-value]
