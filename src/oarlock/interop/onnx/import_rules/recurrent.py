"""Recurrent networks as loops. The products with the inputs of all steps are computed before the loop."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from oarlock import op
from oarlock.interop.onnx.import_rules.control_flow import loop_over
from oarlock.interop.onnx.import_rules.elementwise import activation
from oarlock.interop.onnx.import_rules.forms import constant, reshaped, shape_of
from oarlock.interop.onnx.rule import Unsupported, rule
from oarlock.ir.attribute import Sizes
from oarlock.ir.dtype import DType
from oarlock.ir.var import Var

if TYPE_CHECKING:
    from oarlock.interop.onnx.importer import Importer

State = Sequence[Var]
Cell = Callable[["Direction", Var, State], State]


class Direction:
    """One direction of a layer: its weights, `[gates h, i]` and `[gates h, h]`, biases, peepholes and activations."""

    def __init__(self, number: int, given: "Layer"):
        self.layer = given
        self.w, self.r = (op.matrix_transpose(_part(item, number)) for item in (given.w, given.r))
        biases = [None, None] if given.b is None else op.split(_part(given.b, number), sections=2)
        self.bias, self.state_bias = biases
        self.peepholes = [] if given.p is None else list(op.split(_part(given.p, number), sections=3))
        self.activations = given.activations[number * given.kinds : (number + 1) * given.kinds]

    def gates(self, x: Var) -> list[Var]:
        """Split rows into the inputs of the gates."""
        return list(op.split(x, sections=self.layer.count, axis=1))


def _part(x: Var, number: int) -> Var:
    """Return the weights of one direction."""
    return reshaped(op.slice(x, axis=0, start=number, stop=number + 1, clip=False), shape_of(x)[1:])


class Layer:
    """The inputs and attributes of a recurrent node."""

    def __init__(self, importer: "Importer", x, w, r, b, lengths, initial: Sequence[Var | None], p=None, *, count: int, kinds: int, **how):
        if how["clip"] is not None or how["direction"] not in ("forward", "reverse", "bidirectional"):
            raise Unsupported(
                f"the direction {how['direction']!r:.20} is not supported" if how["clip"] is None else "clip is not supported"
            )
        self.importer = importer
        self.batch_first = bool(how["layout"])
        self.x = op.transpose(x, axes=(1, 0, 2)) if self.batch_first else x
        self.w, self.r, self.b, self.p, self.lengths = w, r, b, p, lengths
        self.count, self.kinds = count, kinds
        self.directions = 2 if how["direction"] == "bidirectional" else 1
        self.first_reversed = how["direction"] == "reverse"
        self.activations = self._activations(how)
        self.initial = [item if item is None or not self.batch_first else op.transpose(item, axes=(1, 0, 2)) for item in initial]

    def _activations(self, how: dict) -> list[Callable[[Var], Var]]:
        names = list(how["activations"] or how["default"] * self.directions)
        if len(names) != self.kinds * self.directions:
            raise Unsupported(f"it has {len(names)} activations, expected {self.kinds * self.directions}")
        numbers = [list(how[key] or ()) for key in ("activation_alpha", "activation_beta")]
        found = []
        for name in names:
            function, given = activation(name), {}
            for key, left in zip(("alpha", "beta"), numbers, strict=True):
                if left and name.lower() in _PARAMETERS[key]:
                    given[key] = left.pop(0)
            found.append(_bind(function, given))
        return found

    def run(self, cell: Cell) -> list[Var]:
        """Return the states of all steps, `[t, directions, n, h]`, then each final state, `[directions, n, h]`."""
        results = [self._direction(number, cell) for number in range(self.directions)]
        joined = []
        for parts in zip(*results, strict=True):
            axis = len(shape_of(parts[0])) - 2
            parts = [reshaped(part, (*shape_of(part)[:axis], 1, *shape_of(part)[axis:]), self.importer) for part in parts]
            joined.append(parts[0] if len(parts) == 1 else op.concat(parts, axis=axis))
        if self.batch_first:
            joined = [op.transpose(joined[0], axes=(2, 0, 1, 3)), *(op.transpose(item, axes=(1, 0, 2)) for item in joined[1:])]
        return joined

    def _direction(self, number: int, cell: Cell) -> list[Var]:
        direction = Direction(number, self)
        rows = shape_of(self.x)[1]
        width = shape_of(direction.r)[0]
        zeros = op.broadcast_to(
            constant(0.0, self.x), self.importer.writer.variables_with_sizes([rows]) or [self.x], shape=Sizes((rows, width))
        )
        initial = [zeros if item is None else _part(item, number) for item in self.initial]
        given = op.linear(self.x, direction.w, direction.bias)  # for all steps together
        sequences, lengths = [given], None
        if self.lengths is not None:
            places = op.arange_like(self.x)
            sequences.append(places)
            lengths = op.cast(self.lengths, dtype=DType.INT64)

        def write(step: Sequence[Var], state: Sequence[Var]) -> tuple[Sequence[Var], Sequence[Var]]:
            following = cell(direction, step[0], state)
            if lengths is None:
                return following[:1], following
            there = reshaped(op.less(step[1], lengths), (rows, 1), self.importer)
            kept = [op.where(there, new, old) for new, old in zip(following, state, strict=True)]
            return [op.where(there, following[0], constant(0.0, following[0]))], kept

        reverse = self.first_reversed or number == 1
        stacks, final = loop_over(sequences, initial, write, self.importer, reverse=reverse)
        return [*stacks, *final]


_PARAMETERS = {
    "alpha": ("affine", "elu", "hardsigmoid", "leakyrelu", "scaledtanh", "thresholdedrelu"),
    "beta": ("affine", "hardsigmoid", "scaledtanh"),
}


def _bind(function: Callable[..., Var], given: dict[str, float]) -> Callable[[Var], Var]:
    return lambda x: function(x, **given)


@rule("RNN", since=7)
def plain_network(
    x, w, r, b=None, lengths=None, initial=None, *,
    activation_alpha=None, activation_beta=None, activations=None, clip=None, direction="forward", hidden_size=None, layout=0,
    outputs, importer: "Importer",
):  # fmt: skip
    how = {"activation_alpha": activation_alpha, "activation_beta": activation_beta, "activations": activations, "clip": clip}
    layer = Layer(importer, x, w, r, b, lengths, [initial], count=1, kinds=1, default=["Tanh"], direction=direction, layout=layout, **how)

    def cell(direction: Direction, given: Var, state: State) -> State:
        (function,) = direction.activations
        return [function(op.add(given, op.linear(state[0], direction.r, direction.state_bias)))]

    return layer.run(cell)[:outputs]


@rule("GRU", since=7)
def gated_network(
    x, w, r, b=None, lengths=None, initial=None, *,
    activation_alpha=None, activation_beta=None, activations=None, clip=None, direction="forward", hidden_size=None, layout=0,
    linear_before_reset=0, outputs, importer: "Importer",
):  # fmt: skip
    how = {"activation_alpha": activation_alpha, "activation_beta": activation_beta, "activations": activations, "clip": clip}
    default = ["Sigmoid", "Tanh"]
    layer = Layer(importer, x, w, r, b, lengths, [initial], count=3, kinds=2, default=default, direction=direction, layout=layout, **how)

    def cell(direction: Direction, given: Var, state: State) -> State:
        (h,) = state
        gate, function = direction.activations
        z, r, n = direction.gates(given)
        if linear_before_reset:
            of_z, of_r, of_n = direction.gates(op.linear(h, direction.r, direction.state_bias))
            z, r = gate(op.add(z, of_z)), gate(op.add(r, of_r))
            new = function(op.add(n, op.multiply(r, of_n)))
        else:
            parts = op.split(direction.r, sections=3, axis=1)
            biases = [None] * 3 if direction.state_bias is None else op.split(direction.state_bias, sections=3)
            z, r = (gate(op.add(item, op.linear(h, *pair))) for item, *pair in zip((z, r), parts[:2], biases[:2], strict=True))  # type: ignore[arg-type]
            new = function(op.add(n, op.linear(op.multiply(r, h), parts[2], biases[2])))
        return [op.add(op.multiply(op.subtract(constant(1.0, z), z), new), op.multiply(z, h))]

    return layer.run(cell)[:outputs]


@rule("LSTM", since=7)
def long_short_term_memory(
    x, w, r, b=None, lengths=None, initial=None, initial_cell=None, peepholes=None, *,
    activation_alpha=None, activation_beta=None, activations=None, clip=None, direction="forward", hidden_size=None, input_forget=0,
    layout=0, outputs, importer: "Importer",
):  # fmt: skip
    how = {"activation_alpha": activation_alpha, "activation_beta": activation_beta, "activations": activations, "clip": clip}
    default, start = ["Sigmoid", "Tanh", "Tanh"], [initial, initial_cell]
    layer = Layer(
        importer, x, w, r, b, lengths, start, peepholes, count=4, kinds=3, default=default, direction=direction, layout=layout, **how
    )

    def cell(direction: Direction, given: Var, state: State) -> State:
        h, c = state
        gate, function, out = direction.activations
        i, o, f, new = direction.gates(op.add(given, op.linear(h, direction.r, direction.state_bias)))
        peep_i, peep_o, peep_f = direction.peepholes or (None, None, None)
        i = gate(_add_peephole(i, c, peep_i))
        f = op.subtract(constant(1.0, i), i) if input_forget else gate(_add_peephole(f, c, peep_f))
        c = op.add(op.multiply(f, c), op.multiply(i, function(new)))
        o = gate(_add_peephole(o, c, peep_o))
        return [op.multiply(o, out(c)), c]

    return layer.run(cell)[:outputs]


def _add_peephole(x: Var, cell: Var, peephole: Var | None) -> Var:
    return x if peephole is None else op.add(x, op.multiply(cell, peephole))
