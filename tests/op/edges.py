"""Inputs at the edge, made from ordinary ones: no rows, many rows, no dimensions, shapes that broadcast, memory with gaps."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial

import torch
from op.arguments import AnyCase, Arguments, root, root_arguments

from oarlock.registry import Operator
from oarlock.registry.signature import Axis, Slot

MANY = 67  # more than a vector register holds, and no multiple of one

# Rows: the group `*b` that inputs lead with, else the size `n` that the first one leads with, else a rank `...s`

FEW_ARE_LEGAL = {"cholesky"}
"""Operators that refuse most numbers at random: the rows of the case are given over again."""


def row_axis(operator: Operator) -> Axis | None:
    """The axis of rows; None where there is none. A rank counts where the operator knows no other axis, and names none."""
    signature = operator.signature
    inputs = [slot for slot in signature.inputs if slot.axes]
    for slot in inputs:
        if slot.leading_group and slot.leading_group == (operator.row_group or slot.leading_group):
            return slot.axes[0]
    if inputs and inputs[0].axes[0].name == "n":
        return inputs[0].axes[0]
    axes = {axis for slot in (*inputs, *signature.outputs) for axis in slot.axes or ()}
    (only,) = axes if len(axes) == 1 and all(slot.axes for slot in signature.outputs) else (None,)
    return only if only and only.kind == "rank" and not operator.axis_attribute else None


def leads(slot: Slot, axis: Axis | None) -> bool:
    return axis is not None and bool(slot.axes) and slot.axes[0] == axis


def row_shape(operator: Operator, arguments: Arguments) -> tuple[int, ...]:
    """The sizes that the axis of rows stands for; () where it stands for none, where there is none, and where a case has no rows."""
    for slot in operator.signature.inputs:
        if leads(slot, row_axis(operator)) and arguments.tensors.get(slot.name):
            tensor = arguments.tensors[slot.name][0]
            shape = tuple(tensor.shape[: tensor.ndim - len(slot.axes) + 1])
            return shape if all(shape) else ()
    return ()


def rows(operator: Operator, arguments: Arguments, take: Callable[[torch.Tensor], torch.Tensor]) -> Arguments:
    """The arguments with `gather` applied to every tensor that has rows; the others are shared."""
    having = {slot.name for slot in operator.signature.inputs if leads(slot, row_axis(operator))}
    return arguments.replaced(lambda slot, tensor: take(tensor) if slot in having else tensor)


def _no_rows(operator: Operator, arguments: Arguments) -> Arguments:
    return rows(operator, arguments, lambda tensor: tensor[:0])


def _one_row(operator: Operator, arguments: Arguments) -> Arguments:
    """The first row. Of a group or a rank nothing is left: no dimensions, where there was nothing but rows."""
    first = slice(1) if row_axis(operator).kind == "size" else (0,) * len(row_shape(operator, arguments))
    return rows(operator, arguments, lambda tensor: tensor[first])


def _many_rows(operator: Operator, arguments: Arguments) -> Arguments:
    generator = torch.Generator().manual_seed(3)
    if root(operator).type in FEW_ARE_LEGAL:
        return rows(operator, arguments, lambda tensor: tensor[torch.arange(MANY) % len(tensor)])
    return rows(operator, arguments, lambda tensor: _filled((MANY, *tensor.shape[1:]), tensor, generator))


def _filled(shape: tuple[int, ...], tensor: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """A tensor of `shape`: random floats between the least and the largest of `tensor`, or its other values, over again."""
    if tensor.is_floating_point():
        low, high = tensor.min(), tensor.max()
        return low + (high - low) * torch.rand(shape, dtype=tensor.dtype, generator=generator)
    count = torch.Size(shape).numel()
    return tensor.flatten().repeat(count // tensor.numel() + 1)[:count].reshape(shape)


# Broadcasting


def broadcast_slots(operator: Operator) -> list[str]:
    """The inputs `*#s`."""
    return [slot.name for slot in operator.signature.inputs if slot.axes and slot.axes[0].kind == "broadcast"]


def _shaped(shapes: Sequence[tuple[int, ...]], operator: Operator, arguments: Arguments) -> Arguments:
    """Every `*#s` tensor in one of `shapes`, by turns."""
    generator = torch.Generator().manual_seed(3)
    given = [name for name in broadcast_slots(operator) if name in arguments.tensors]
    turn = {name: shapes[number % len(shapes)] for number, name in enumerate(given)}
    return arguments.replaced(lambda slot, tensor: _filled(turn[slot], tensor, generator) if slot in turn else tensor)


Edge = Callable[[Operator, Arguments], Arguments]

ROWS: dict[str, Edge] = {"no_rows": _no_rows, "one_row": _one_row, "many_rows": _many_rows}
BROADCASTS: dict[str, Edge] = {
    "no_dimensions": partial(_shaped, [()]),
    "number_and_matrix": partial(_shaped, [(), (2, 3)]),
    "matrix_and_number": partial(_shaped, [(2, 3), ()]),
    "column_and_row": partial(_shaped, [(2, 1), (1, 3)]),
    "matrix_and_row": partial(_shaped, [(2, 3), (3,)]),
    "nothing_and_row": partial(_shaped, [(0, 3), (3,)]),
    "number_and_nothing": partial(_shaped, [(1,), (0,)]),
    "many_and_many": partial(_shaped, [(MANY,)]),
}


def edges_of(
    operator: Operator, cases: Sequence[tuple[str, AnyCase]], dtype: torch.dtype = torch.float64, *, only: Mapping[str, Edge] | None = None
) -> Iterator[tuple[str, Callable[[], Arguments]]]:
    """A name, and a function that makes the arguments of the operator's root, for each edge of some cases."""
    forward = root(operator)
    for name, case in cases:
        arguments = root_arguments(forward, case, dtype)
        slots = broadcast_slots(forward)
        broadcast = slots and all(item.numel() for slot in slots for item in arguments.tensors.get(slot, ()))  # values to fill others with
        fitting = {**(ROWS if row_shape(forward, arguments) else {}), **(BROADCASTS if broadcast else {})}
        for edge, change in fitting.items():
            if only is None or edge in only:
                yield f"{name}-{edge}", partial(change, forward, arguments)


# Memory


def strided(tensor: torch.Tensor) -> torch.Tensor:
    """The same values, every other place in memory."""
    return torch.stack([tensor, torch.zeros_like(tensor)], -1)[..., 0]


def transposed(tensor: torch.Tensor) -> torch.Tensor:
    """The same values, the last two dimensions the other way round in memory."""
    return tensor.mT.contiguous().mT if tensor.ndim > 1 else tensor
