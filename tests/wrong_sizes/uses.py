"""The uses of operators whose sizes are changed, and the axes that they reach."""

from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

import torch
from hostile_values.uses import USES as OTHER_USES
from hostile_values.uses import Inputs
from op.arguments import Arguments
from op.breadth_twins import BREADTH, WHOLE
from op.fourier_twins import FOURIER
from op.loss_twins import LOSSES
from op.matrix_twins import MATRICES
from op.pytorch_twins import FLOATS, INTEGERS, Twin
from op.test_pytorch_twins import tensors_of

from oarlock.registry import Operator, standard
from oarlock.registry.signature import Slot
from wrong_sizes.blocks import BLOCKS
from wrong_sizes.rare_slots import RARE

__all__ = ["OPERATORS", "Position", "SlotAxis", "Use", "positions", "unreachable"]


class SlotAxis(NamedTuple):
    """An axis of an input slot of an operator, as the signature writes it: `batch_norm`, `x`, `c`."""

    operator: str
    slot: str
    axis: str

    def __str__(self) -> str:
        return f"{self.operator} {self.slot}[{self.axis}]"


@dataclass(frozen=True)
class Use:
    """An operator, or a function of variables, with arguments that fit. `theirs` is the same function of PyTorch."""

    name: str
    operator: str
    arguments: Callable[[], Arguments]
    write: Callable[[Inputs, dict[str, object]], object]
    theirs: Callable[..., object] | None = None


class Position(NamedTuple):
    """A dimension of one argument of a use."""

    use: Use
    slot: str
    item: int
    dimension: int


OPERATORS: dict[str, Operator] = {
    each.type: each for each in (*standard, *standard.gradient_operators.values(), *standard.fused_operators.values())
}


def _uses() -> Iterator[Use]:
    for use in OTHER_USES:
        if use.operator is not None:
            yield Use(use.name, use.operator.type, use.arguments, use.write)
    for operator, name, tensors, attributes, write in (*BLOCKS, *RARE):
        yield Use(name, operator, lambda tensors=tensors, attributes=attributes: Arguments(tensors, attributes), write)
    for twin in (*FLOATS, *INTEGERS, *LOSSES, *BREADTH, *WHOLE, *MATRICES, *FOURIER):
        yield _of_twin(twin)


def _of_twin(twin: Twin) -> Use:
    def arguments() -> Arguments:
        return Arguments({f"x{number}": [tensor] for number, tensor in enumerate(tensors_of(twin))}, {})

    def write(inputs: Inputs, attributes: dict[str, object]) -> object:
        return twin.ours(*(var for items in inputs.values() for var in items))

    return Use(f"PyTorch's {twin.name}", f"PyTorch's {twin.name}", arguments, write, twin.theirs)


@cache
def positions() -> dict[SlotAxis, list[Position]]:
    """The dimensions of all uses, by the axis that each is of."""
    found: dict[SlotAxis, list[Position]] = defaultdict(list)
    for use in _uses():
        for slot, items in use.arguments().tensors.items():
            for item, tensor in enumerate(items):
                for dimension, axis in enumerate(_axes(use.operator, slot, tensor)):
                    found[SlotAxis(use.operator, slot, axis)].append(Position(use, slot, item, dimension))
    return dict(sorted(found.items()))


def _axes(operator: str, slot: str, tensor: torch.Tensor) -> list[str]:
    """The axis of each dimension of a tensor, as the signature writes it; its number where the signature has no axes."""
    declared = OPERATORS[operator].signature.input(slot) if operator in OPERATORS else None
    if declared is None or declared.axes is None:
        return [str(number) for number in range(tensor.ndim)]
    texts = {axis.name: str(axis) for axis in declared.axes}
    return [texts[name] for name, _ in declared.dimensions(tensor.ndim)]


def unreachable() -> dict[SlotAxis, str]:
    """The axes that no use reaches, with the reason; for an operator that has no axes, one entry for the slot."""
    reached = positions()
    return {each: reason for each, reason in _all_axes() if each not in reached}


def _all_axes() -> Iterator[tuple[SlotAxis, str]]:
    for operator in OPERATORS.values():
        if not operator.kernel.__module__.startswith("oarlock."):
            continue
        for slot in operator.signature.inputs:
            yield from _axes_of(operator.type, slot)


def _axes_of(operator: str, slot: Slot) -> Iterator[tuple[SlotAxis, str]]:
    if slot.axes == ():
        yield SlotAxis(operator, slot.name, ""), "a number: it has no axis"
    for axis in slot.axes or ():
        yield SlotAxis(operator, slot.name, str(axis)), "NO USE REACHES IT"
    if slot.axes is None:
        yield SlotAxis(operator, slot.name, "0"), "NO USE REACHES IT"
