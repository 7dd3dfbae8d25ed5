"""Inputs at the edge, made from ordinary ones: no rows, no dimensions, shapes that broadcast, memory with gaps."""

from collections.abc import Callable, Iterator, Sequence

import torch
from op.arguments import AnyCase, Arguments, root, root_arguments

from oarlock.registry import Operator
from oarlock.registry.signature import Axis, Slot

# Rows: the group `*b` that an input leads with, else the size `n` that the first one leads with, else a rank `...s`


def row_axis(operator: Operator) -> Axis | None:
    """The axis of rows; None where there is none. A rank counts where the operator knows no other."""
    inputs = [slot for slot in operator.signature.inputs if slot.axes]
    groups = [slot.axes[0] for slot in inputs if slot.axes[0].kind == "group"]
    sizes = [slot.axes[0] for slot in inputs[:1] if slot.axes[0].name == "n"]
    ranks = {axis for slot in (*inputs, *operator.signature.outputs) for axis in slot.axes or ("any shape",)}
    return next(iter([*groups, *sizes, *(axis for axis in ranks if len(ranks) == 1 and axis.kind == "rank")]), None)


def leads(slot: Slot, axis: Axis | None) -> bool:
    return axis is not None and bool(slot.axes) and slot.axes[0] == axis


def row_shape(operator: Operator, arguments: Arguments) -> tuple[int, ...]:
    """The sizes that the axis of rows stands for; () where it stands for none, or where there is none."""
    for slot in operator.signature.inputs:
        if leads(slot, row_axis(operator)) and arguments.tensors.get(slot.name):
            tensor = arguments.tensors[slot.name][0]
            return tuple(tensor.shape[: tensor.ndim - len(slot.axes) + 1])
    return ()


def rows(operator: Operator, arguments: Arguments, take: Callable[[torch.Tensor], torch.Tensor]) -> Arguments:
    """The arguments with `take` applied to every tensor that has rows; the others are shared."""
    having = {slot.name for slot in operator.signature.inputs if leads(slot, row_axis(operator))}
    return arguments.replaced(lambda slot, tensor: take(tensor) if slot in having else tensor)


def _no_rows(operator: Operator, arguments: Arguments) -> Arguments | None:
    return rows(operator, arguments, lambda tensor: tensor[:0]) if row_shape(operator, arguments) else None


def _one_row(operator: Operator, arguments: Arguments) -> Arguments | None:
    """The first row, with no axis of rows at all: no dimensions where there was nothing but rows."""
    axis, shape = row_axis(operator), row_shape(operator, arguments)
    return rows(operator, arguments, lambda tensor: tensor[(0,) * len(shape)]) if shape and axis.kind != "size" else None


ROWS = {"no_rows": _no_rows, "one_row": _one_row}


# Broadcasting


def broadcast_slots(operator: Operator) -> list[str]:
    """The inputs `*#s`."""
    return [slot.name for slot in operator.signature.inputs if slot.axes and slot.axes[0].kind == "broadcast"]


def _shaped(*shapes: tuple[int, ...]) -> Callable[[Operator, Arguments], Arguments | None]:
    """Every `*#s` tensor in one of `shapes`, by turns, filled with what it held."""

    def change(operator: Operator, arguments: Arguments) -> Arguments | None:
        given = [name for name in broadcast_slots(operator) if name in arguments.tensors]
        turn = {name: shapes[number % len(shapes)] for number, name in enumerate(given)}
        return arguments.replaced(lambda slot, tensor: _filled(turn[slot], tensor) if slot in turn else tensor) if turn else None

    return change


def _filled(shape: tuple[int, ...], tensor: torch.Tensor) -> torch.Tensor:
    count = torch.Size(shape).numel()
    return tensor.flatten().repeat(count // tensor.numel() + 1)[:count].reshape(shape)


BROADCASTS = {
    "no_dimensions": _shaped(()),
    "number_and_matrix": _shaped((), (2, 3)),
    "matrix_and_number": _shaped((2, 3), ()),
    "column_and_row": _shaped((2, 1), (1, 3)),
    "matrix_and_row": _shaped((2, 3), (3,)),
    "nothing_and_row": _shaped((0, 3), (3,)),
    "number_and_nothing": _shaped((1,), (0,)),
}

EDGES = {**ROWS, **BROADCASTS}


def edges_of(
    operator: Operator, cases: Sequence[tuple[str, AnyCase]], dtype: torch.dtype = torch.float64, *, only: dict = EDGES
) -> Iterator[tuple[str, Arguments]]:
    """The arguments of the operator's root at the edges of some cases, with a name."""
    for name, case in cases:
        for edge, change in only.items():
            changed = change(root(operator), root_arguments(root(operator), case, dtype))
            if changed is not None:
                yield f"{name}-{edge}", changed


# Memory


def strided(tensor: torch.Tensor) -> torch.Tensor:
    """The same values, every other place in memory."""
    return torch.stack([tensor, torch.zeros_like(tensor)], -1)[..., 0]


def transposed(tensor: torch.Tensor) -> torch.Tensor:
    """The same values, the last two dimensions the other way round in memory."""
    return tensor.mT.contiguous().mT if tensor.ndim > 1 else tensor
