"""Uses of the operators that own blocks: loops over sequences, loops on a condition, branches; and of optimizers."""

from collections.abc import Callable

import torch
from block_operators import counted_while
from hostile_values.uses import Inputs

import oarlock as ol
from oarlock.ir.block_stack import current_block
from oarlock.ir.size import Shape
from oarlock.ir.traversal import free_vars
from oarlock.op.control.conditional import conditional_block
from oarlock.op.control.recurrent_loop import recurrent

__all__ = ["BLOCKS", "Stated", "Write", "numbers", "shape_of"]

Write = Callable[[Inputs, dict[str, object]], object]
Stated = tuple[str, str, dict[str, list[torch.Tensor]], dict[str, object], Write]
"""The operator, the name of the use, tensors by slot, attributes, and the function that writes it."""


def numbers(*shape: int) -> torch.Tensor:
    """Different numbers between -1 and 1, as float64."""
    return torch.linspace(-1.0, 1.0, torch.Size(shape).numel(), dtype=torch.float64).reshape(shape)


def shape_of(var: ol.Var) -> Shape:
    """The shape of a variable whose number of dimensions is known."""
    assert var.shape is not None
    return var.shape


def _whole(*values: int) -> torch.Tensor:
    return torch.tensor(values, dtype=torch.int64)


def _loop(*, ragged: bool = False, reverse: bool = False) -> Write:
    """A loop with two sequences, a memory, and a weight and a bias from outside."""

    def write(inputs: Inputs, attributes: dict[str, object]) -> object:
        sequences, (start,), (weight, bias) = inputs["sequences"], inputs["initial"], inputs["free"]
        block = current_block().program.new_block("loop.body", current_block())
        with block:
            active = block.program.unique("active") if ragged else None
            shapes = [shape_of(var)[1:] if active is None else (active, *shape_of(var)[1:]) for var in sequences]
            steps = [block.new_var(f"loop.step{number}", sequences[number].dtype, shape) for number, shape in enumerate(shapes)]
            memory = block.new_var("loop.memory", start.dtype, shape_of(start) if active is None else (active, *shape_of(start)[1:]))
            following = ol.op.tanh(ol.op.matmul(memory, weight) + steps[0] + bias)
            stacked = following * steps[1]
            block.inputs, block.outputs = [*steps, memory], [stacked, following]
        return recurrent(sequences, [start], free_vars(block), inputs["splits"][0] if ragged else None, body=block, reverse=reverse)

    return write


def _rnn(inputs: Inputs, attributes: dict[str, object]) -> object:
    """The same loop as a user writes it, and its sum."""
    (first, second), (start,), (weight, bias) = inputs["sequences"], inputs["initial"], inputs["free"]
    rnn = ol.rnn()
    with rnn.step():
        steps = rnn.step_input(first), rnn.step_input(second)
        memory = rnn.memory(init=start)
        previous = rnn.previous_memory(memory)
        following = ol.op.tanh(ol.op.matmul(previous, weight) + steps[0] + bias)
        rnn.update_memory(memory, following)
        rnn.output(following * steps[1])
    return rnn()


def _while(inputs: Inputs, attributes: dict[str, object]) -> object:
    (start,), (weight, bias) = inputs["initial"], inputs["free"]
    trips = ol.op.full(shape=(), value=3, dtype="int64")
    return counted_while("counted", trips, start, lambda value: ol.op.tanh(ol.op.matmul(value, weight) + bias))


def _branch(inputs: Inputs, attributes: dict[str, object]) -> object:
    """A block that runs where a condition holds, on a value with one dimension more in front."""
    (value,), (weight, bias) = inputs["values"], inputs["free"]
    block = current_block().program.new_block("branch.true", current_block())
    with block:
        given = block.new_var("branch.value", value.dtype, shape_of(value)[1:])
        block.inputs, block.outputs = [given], [ol.op.tanh(ol.op.matmul(given, weight) + bias)]
    when = ol.op.full(shape=(), value=True, dtype="bool")
    return conditional_block([value], free_vars(block), when, body=block)


def _plain_block(inputs: Inputs, attributes: dict[str, object]) -> object:
    """A block that always runs."""
    (value,), (weight, bias) = inputs["values"], inputs["free"]
    block = current_block().program.new_block("block", current_block())
    with block:
        given = block.new_var("block.value", value.dtype, value.shape)
        block.inputs, block.outputs = [given], [ol.op.tanh(ol.op.matmul(given, weight) + bias)]
    return conditional_block([value], free_vars(block), body=block)


def _rows(inputs: Inputs, attributes: dict[str, object]) -> object:
    """Rows that take one of two branches."""
    (x,), (condition,), (weight, bias) = inputs["x"], inputs["condition"], inputs["free"]
    ifelse = ol.ifelse()
    with ifelse.true_block():
        ifelse.output(ol.op.matmul(ifelse.input(x), weight))
    with ifelse.false_block():
        ifelse.output(ifelse.input(x) + bias)
    return ifelse(condition)


def _trained(optimizer: Callable[[], object]) -> Write:
    """A step of an optimizer on two layers whose parameters are their own."""

    def write(inputs: Inputs, attributes: dict[str, object]) -> object:
        (x,), (label,) = inputs["x"], inputs["label"]
        hidden = ol.layer.fc(x, 4, act="relu")
        cost = ol.layer.mean(ol.layer.softmax_with_cross_entropy(hidden, label))
        optimizer().minimize(cost)  # type: ignore[attr-defined]
        return cost

    return write


_LOOP = {"sequences": [numbers(3, 2, 2), numbers(3, 2, 2)], "initial": [numbers(2, 2)], "free": [numbers(2, 2), numbers(2)]}
_RAGGED = {
    "sequences": [numbers(6, 2), numbers(6, 2)],
    "initial": [numbers(4, 2)],
    "free": [numbers(2, 2), numbers(2)],
    "splits": [_whole(0, 2, 2, 5, 6)],
}
_WHILE = {"initial": [numbers(2, 2)], "free": [numbers(2, 2), numbers(2)]}
_BRANCH = {"values": [numbers(1, 2, 2)], "free": [numbers(2, 2), numbers(2)]}
_ROWS = {"x": [numbers(4, 2)], "condition": [torch.tensor([[True], [False], [True], [False]])], "free": [numbers(2, 2), numbers(2)]}
_BATCH = {"x": [numbers(3, 4)], "label": [_whole(0, 3, 1)]}

BLOCKS: list[Stated] = [
    ("recurrent", "recurrent", _LOOP, {}, _loop()),
    ("recurrent", "recurrent-reverse", _LOOP, {}, _loop(reverse=True)),
    ("recurrent", "recurrent-rnn", _LOOP, {}, _rnn),
    ("recurrent", "recurrent-ragged", _RAGGED, {}, _loop(ragged=True)),
    ("while", "while", _WHILE, {}, _while),
    ("conditional_block", "conditional_block", _BRANCH, {}, _branch),
    ("conditional_block", "conditional_block-always", _BRANCH, {}, _plain_block),
    ("ifelse", "ifelse", _ROWS, {}, _rows),
    ("SGD", "SGD", _BATCH, {}, _trained(lambda: ol.optimizer.SGD(0.1))),
    ("Momentum", "Momentum", _BATCH, {}, _trained(lambda: ol.optimizer.Momentum(0.1))),
    ("Adam", "Adam", _BATCH, {}, _trained(lambda: ol.optimizer.Adam(0.1))),
]
