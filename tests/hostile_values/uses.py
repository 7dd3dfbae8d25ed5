"""The targets of the lies: every operator at every case that it states, fused operators, and loops and branches that values steer."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch
from block_operators import counted_while, ragged_loop, run_branch
from numpy.random import default_rng
from op.arguments import DERIVED, FORWARD, Arguments, arguments_of, cases_of
from op.test_fused_backward import JOINT, arguments_from, cases_of_parts

import oarlock as ol
from oarlock.ir.block_stack import current_block
from oarlock.registry import Case, GradCheck, Operator
from oarlock.registry.creator import append_op

__all__ = ["USES", "Use"]

Inputs = dict[str, list[ol.Var]]


@dataclass(frozen=True)
class Use:
    """Arguments, and what is written on variables that stand for them; of which `operator`, where it is one that has attributes."""

    name: str
    arguments: Callable[[], Arguments]
    write: Callable[[Inputs, dict[str, object]], object]
    operator: Operator | None = None


def _calls(operator: Operator) -> Callable[[Inputs, dict[str, object]], object]:
    variadic = {slot.name for slot in operator.signature.inputs if slot.variadic}

    def write(inputs: Inputs, attributes: dict[str, object]) -> object:
        return operator(**{name: items if name in variadic else items[0] for name, items in inputs.items()}, **attributes)

    return write


def _stated() -> Iterator[Use]:
    for operator in [*FORWARD, *DERIVED]:
        for name, case in cases_of(operator, Case, GradCheck):
            yield Use(name, lambda operator=operator, case=case: arguments_of(operator, case), _calls(operator), operator)


def _joint() -> Iterator[Use]:
    """As a file might have them: no creator makes one."""
    for operator in JOINT:

        def write(inputs: Inputs, attributes: dict[str, object], operator: Operator = operator) -> object:
            order = [slot.name for slot in operator.signature.inputs if slot.name in inputs]
            return append_op(current_block(), operator.type, {slot: inputs[slot] for slot in order}, None, attributes)

        for name, given in cases_of_parts(operator):
            arguments = arguments_from(operator, given)
            if arguments is not None:
                yield Use(name, lambda arguments=arguments: arguments, write, operator)


def _floats(*shape: int) -> torch.Tensor:
    return torch.linspace(-1.0, 1.0, max(1, torch.Size(shape).numel()), dtype=torch.float64)[: torch.Size(shape).numel()].reshape(shape)


def _whole(*numbers: int) -> torch.Tensor:
    return torch.tensor(numbers, dtype=torch.int64)


def _ragged(inputs: Inputs, attributes: dict[str, object]) -> object:
    """A ragged loop on splits that nothing vouches for, and its gradient."""
    (x,), (splits,) = inputs["x"], inputs["splits"]
    y = ragged_loop("loop", x, splits, lambda step: ol.op.tanh(step))
    return ol.gradients([ol.op.reduce_sum(y)], [x])


def _two_ragged(inputs: Inputs, attributes: dict[str, object]) -> object:
    """One loop reads, step by step, what another returns, by splits of its own."""
    (x,), (splits,), (other,) = inputs["x"], inputs["splits"], inputs["other_splits"]
    y = ragged_loop("first", x, splits, lambda step: ol.op.tanh(step))
    return ragged_loop("second", y, other, lambda step: ol.op.sigmoid(step))


def _rows(inputs: Inputs, attributes: dict[str, object]) -> object:
    """Rows that take a branch by condition, cut by splits."""
    (x,), (splits,), (rows,) = inputs["x"], inputs["splits"], inputs["rows"]
    elements, own = ol.op.sequence_elements(splits, rows, ol.op.sequence_lengths(splits))
    taken = ol.op.gather(x, elements)
    return ol.op.sequence_pad(taken, own), ol.op.sequence_softmax(taken, own)


def _counted(inputs: Inputs, attributes: dict[str, object]) -> object:
    (trips,), (x,) = inputs["trips"], inputs["x"]
    return counted_while(
        "counted", ol.op.remainder(trips, ol.op.full(shape=(), value=100, dtype="int64")), x, lambda value: ol.op.tanh(value)
    )


def _branched(inputs: Inputs, attributes: dict[str, object]) -> object:
    (index,), (x,) = inputs["index"], inputs["x"]
    return run_branch("branch.true", ol.op.equal(index, ol.op.full(shape=(), value=1, dtype="int64")), lambda: ol.op.tanh(x))


def _shaped(operator: str) -> Callable[[Inputs, dict[str, object]], object]:
    """An attribute that a variable stands for."""

    def write(inputs: Inputs, attributes: dict[str, object]) -> object:
        (told,) = inputs["told"]
        if operator == "full":
            return ol.op.full(shape=told, value=1.0)
        if operator == "fill_value":
            return ol.op.full(shape=(2,), value=told, dtype="int64")
        if operator == "reshape":
            return ol.op.reshape(inputs["x"][0], shape=told)
        return ol.op.dropout(inputs["x"][0], rate=told, random_id=1)

    return write


def _trained(optimizer: Callable[[], object]) -> Callable[[Inputs, dict[str, object]], object]:
    def write(inputs: Inputs, attributes: dict[str, object]) -> object:
        hidden = ol.layer.fc(inputs["x"][0], 4, act="relu")
        return optimizer().minimize(ol.layer.mean(ol.layer.softmax_with_cross_entropy(hidden, inputs["label"][0])))

    return write


def _pooled(inputs: Inputs, attributes: dict[str, object]) -> object:
    return ol.gradients([ol.op.reduce_sum(ol.op.max_pool2d(inputs["x"][0], size=(2, 2), stride=(1, 1)))], inputs["x"])


def _blocks() -> Iterator[Use]:
    x, splits = _floats(6, 2), _whole(0, 2, 2, 5, 6)
    batch = {"x": [_floats(3, 4)], "label": [_whole(0, 3, 1)]}
    tried: list[tuple[str, dict[str, list[torch.Tensor]], Callable[[Inputs, dict[str, object]], object]]] = [
        ("ragged_loop", {"x": [x], "splits": [splits]}, _ragged),
        ("two_ragged_loops", {"x": [x], "splits": [splits], "other_splits": [_whole(0, 1, 1, 4, 6)]}, _two_ragged),
        ("rows_of_sequences", {"x": [x], "splits": [splits], "rows": [_whole(1, 3, 3)]}, _rows),
        ("counted_while", {"trips": [torch.tensor(3)], "x": [_floats(2)]}, _counted),
        ("conditional_block", {"index": [torch.tensor(1)], "x": [_floats(2)]}, _branched),
        ("fill_of_a_shape", {"told": [_whole(2, 3)]}, _shaped("full")),
        ("fill_of_a_number", {"told": [torch.tensor(2.0, dtype=torch.float64)]}, _shaped("fill_value")),
        ("reshape", {"x": [x], "told": [_whole(3, 4)]}, _shaped("reshape")),
        ("dropout", {"x": [x], "told": [torch.tensor(0.5, dtype=torch.float64)]}, _shaped("dropout")),
        ("sgd_trained", batch, _trained(lambda: ol.optimizer.SGD(0.1))),
        ("momentum_trained", batch, _trained(lambda: ol.optimizer.Momentum(0.1))),
        ("adam_trained", batch, _trained(lambda: ol.optimizer.Adam(0.1))),
        ("pooling_and_back", {"x": [_floats(1, 1, 4, 4)]}, _pooled),
    ]
    for name, tensors, write in tried:
        yield Use(name, lambda tensors=tensors: Arguments(tensors, {}), write)


_ALL = [*_stated(), *_joint(), *_blocks()]
USES = [_ALL[number] for number in default_rng(0).permutation(len(_ALL))]  # so that a few trials are of operators of every family
