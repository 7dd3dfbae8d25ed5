"""Where the rows of a batch are in what an op computes, when they are computed alone: of whichever axis, each index, by that of the inputs.

What operators promise shows it: of `*b` in a signature, and of the axes in front of `axis_attribute`, each index is computed alone, and
`tests/op` holds every operator to that. What computes images, and what moves elements about, promises nothing of the kind; those operators
are listed here, and `tests/serving` holds them to it.
"""

from collections.abc import Collection, Mapping
from typing import NamedTuple

from oarlock.ir.operation import Op
from oarlock.ir.size import Shape, Size, is_polynomial, multiply, names_in, product, rename
from oarlock.ir.var import Var
from oarlock.registry.attributes import axes_alone
from oarlock.registry.declaration import Operator

__all__ = ["BY_FIRST_AXIS", "SHAPED", "TOLD", "Place", "axes_with", "is_multiple", "place_after", "reshaped"]

BY_FIRST_AXIS = frozenset(
    f"{name}{dimensions}d"
    for name in ("conv", "conv_transpose", "max_pool", "average_pool", "adaptive_average_pool", "adaptive_max_pool")
    for dimensions in (1, 2, 3)
) | {"batch_norm", "cast", "dropout", "group_norm", "resize"}
"""Operators of which the first input leads with rows, each computed alone wherever nothing is trained; the other inputs are shared."""

_ELEMENT_BY_ELEMENT = ("cast", "dropout")  # of these, whichever dimension the rows are
TOLD = ("arange", "broadcast_to", "narrow", "view")  # whose `like` tells no more than the symbols in their attributes
SHAPED = ("broadcast_to", "reshape", "view")  # whose attribute is the shape of what they make
_WITHIN = {"concat": "axis", "flip": "axes", "narrow": "axis", "roll": "axes", "slice": "axis"}  # which leave every other axis alone


class Place(NamedTuple):
    """Where rows are: the size of this axis is `outer` times their number times what is left, and they are numbered in that order."""

    axis: int
    outer: Size = 1


def axes_with(shape: Shape | None, symbol: str) -> list[int]:
    """The axes whose sizes have to do with the number of rows."""
    return [axis for axis, size in enumerate(shape or ()) if symbol in names_in(size)]


def is_multiple(size: Size, symbol: str) -> bool:
    """Whether `size` is `symbol` times what does not depend on it."""
    if symbol not in names_in(size) or not is_polynomial(size):
        return False
    return rename(size, {symbol: 0}) == 0 and rename(size, {symbol: 2}) == multiply(2, rename(size, {symbol: 1}))


def place_after(operator: Operator, op: Op, symbol: str, places: Mapping[Var, Place]) -> Place | None:
    """Where the outputs have the rows that follow, each, from that row of the inputs; None where that is not shown."""
    slots = operator.signature.inputs
    shared = {var for slot in slots if not slot.shape_only for var in op.inputs.get(slot.name, ())} - places.keys()
    by_row = {slot.name for slot in slots if not slot.shape_only and any(var in places for var in op.inputs.get(slot.name, ()))}
    vars = [var for slot in slots if slot.name in by_row for var in op.inputs[slot.name] if var in places]
    first, place = vars[0], places[vars[0]]
    if op.type in BY_FIRST_AXIS:
        fits = by_row == {slots[0].name} and (place.axis == 0 or op.type in _ELEMENT_BY_ELEMENT)
        return place if fits else None
    if operator.effects or (any(slot.shape_only and op.inputs.get(slot.name) for slot in slots) and op.type not in TOLD):
        return None
    if op.type in ("reshape", "view"):
        return reshaped(first.shape or (), op.writes[0].shape or (), place, symbol)
    if op.type == "gather" or op.type == "index":
        return _taken(op, by_row, place)
    if op.type == "broadcast_to":
        return _broadcast_rows(op, shared, places)
    if op.type == "transpose":
        axes: tuple[int, ...] = op.attributes["axes"]  # type: ignore[assignment]
        return place._replace(axis=axes.index(place.axis))
    if operator.row_group is not None:
        return _in_group(operator, op, places)
    together = not shared and all(places[var] == place for var in vars)
    if op.type in _WITHIN and together:
        named = op.attributes.get(_WITHIN[op.type], 0)
        axes = (named,) if isinstance(named, int) else named  # type: ignore[assignment]
        return place if place.axis not in {axis % len(first.shape or ()) for axis in axes} else None
    if op.type == "grid_sample":
        return place if together and place.axis == 0 else None
    if op.type == "pad":
        before, after = op.attributes["before"], op.attributes["after"]
        padded = [any(pair) for pair in zip(before, after, strict=True)]  # type: ignore[call-overload]  # the last axes
        return place if not ([False] * (len(first.shape or ()) - len(padded)) + padded)[place.axis] else None
    if operator.axis_attribute is not None:
        rank = max(len(var.shape or ()) for var in (*op.reads, *op.writes))
        return place if together and axes_alone(operator, op.attributes, rank) > place.axis else None
    declared = (*slots, *operator.signature.outputs)
    if operator.infer_function or not all(slot.axes and len(slot.axes) == 1 and slot.axes[0].kind == "broadcast" for slot in declared):
        return None
    return _broadcast_rows(op, shared, places)


def reshaped(before: Shape, after: Shape, place: Place, symbol: str) -> Place | None:
    """Where rows are in another shape: elements stay in their order, so as many come before a row as did."""
    ahead = multiply(product(before[: place.axis]), place.outer)
    for axis in axes_with(after, symbol):
        front, factor = product(after[:axis]), rename(after[axis], {symbol: 1})
        if front == ahead:
            return Place(axis)
        if multiply(front, factor) == ahead:
            return Place(axis, factor)
    return None


def _taken(op: Op, by_row: set[str], place: Place) -> Place | None:
    """Rows of what is taken by numbers: of a table that is shared, as the numbers have them; or of what is taken from."""
    slot = "rows" if op.type == "gather" else "indices"
    axes = op.attributes.get("axes", (op.attributes.get("axis", 0),))
    if not isinstance(axes, tuple) or len(axes) != 1 or not isinstance(axes[0], int) or axes[0] < 0 or len(op.inputs[slot]) != 1:
        return None
    if by_row == {slot}:
        return place._replace(axis=axes[0] + place.axis)
    return place if by_row == {"x"} and axes[0] > place.axis else None


def _in_group(operator: Operator, op: Op, places: Mapping[Var, Place]) -> Place | None:
    """The same where a signature promises it: rows are among `*b`, in every input that leads with it, and in no other."""
    leading = {slot.name: len(slot.axes or ()) - 1 for slot in operator.signature.inputs if slot.leading_group == operator.row_group}
    found = set()
    for slot, vars in op.inputs.items():
        for var in vars:
            if (var in places) != (slot in leading) or (var in places and places[var].axis >= len(var.shape or ()) - leading[slot]):
                return None
            found |= {places[var]} if var in places else set()
    return found.pop() if len(found) == 1 else None


def _broadcast_rows(op: Op, shared: Collection[Var], places: Mapping[Var, Place]) -> Place | None:
    """The same where shapes broadcast, which are aligned at their ends: what is shared has no dimension there, or one of size 1."""
    rank = len(op.writes[0].shape or ())
    data = [var for slot, vars in op.inputs.items() if slot != "like" for var in vars]
    found = {place._replace(axis=place.axis + rank - len(var.shape or ())) for var in data if (place := places.get(var)) is not None}
    if len(found) != 1:
        return None
    (place,) = found
    for var in shared:
        axis = place.axis - (rank - len(var.shape or ()))
        if axis >= 0 and (var.shape or ())[axis] != 1:
            return None
    return place
