"""Whether the rows of requests may be run together: whether a program computes each row of its inputs alone.

This is shown by the program, and where it is not shown, it is not so. What operators promise shows it: of `*b` in a signature, and of the
axes in front of `axis_attribute`, each index is computed alone, and `tests/op` holds every operator to that. What computes images, and what
moves elements about, promises nothing of the kind; those operators are listed here, and `tests/serving` holds them to it.

Rows begin as the first dimension, and may be another one on the way, or a part of one: a transformer has its words first for a while.
"""

from collections.abc import Collection, Mapping
from typing import NamedTuple

from oarlock.ir.operation import Op
from oarlock.ir.program import Program
from oarlock.ir.size import Shape, Size, multiply, names_in, product, rename
from oarlock.ir.traversal import needed_ops
from oarlock.ir.var import Var
from oarlock.registry.axes import axes_alone
from oarlock.registry.catalogue import Catalogue
from oarlock.registry.declaration import Operator

__all__ = ["BY_FIRST_AXIS", "Rows", "find_rows"]

BY_FIRST_AXIS = frozenset(
    f"{name}{dimensions}d"
    for name in ("conv", "conv_transpose", "max_pool", "average_pool", "adaptive_average_pool", "adaptive_max_pool")
    for dimensions in (1, 2, 3)
) | {"batch_norm", "cast", "dropout", "group_norm", "resize"}
"""Operators of which the first input leads with rows, each computed alone wherever nothing is trained; the other inputs are shared."""

_ELEMENT_BY_ELEMENT = ("cast", "dropout")  # of these, whichever dimension the rows are
_FILLED = ("full", "full_batch_size_like", "full_like")  # of which every row is the same
_TOLD = ("arange", "broadcast_to", "narrow", "view")  # whose `like` tells no more than the symbols in their attributes
_SHAPED = ("broadcast_to", "reshape", "view")  # whose attribute is the shape of what they make
_WITHIN = {"concat": "axis", "flip": "axes", "narrow": "axis", "roll": "axes", "slice": "axis"}  # which leave every other axis alone


class Rows(NamedTuple):
    """The name of the size that counts rows, which every output leads with; or None, and `reason`, why rows are not shown to be alone."""

    symbol: str | None
    inputs: tuple[Var, ...] = ()
    reason: str = ""


class _Place(NamedTuple):
    """Where rows are: the size of this axis is `outer` times their number times what is left, and they are numbered in that order."""

    axis: int
    outer: Size = 1


class _NotShownError(Exception):
    """Why it is not shown."""


def find_rows(program: Program, catalogue: Catalogue) -> Rows:
    """The rows of a program that is run for its targets, outside of training."""
    ops = needed_ops(program.main.ops, program.targets.values())
    needed = {var for op in ops for var in op.reads} | set(program.targets.values())
    inputs = tuple(var for var in program.main.inputs if var in needed and var.initializer is None)
    try:
        symbol = _leading_symbol(inputs)
        places, numbers = dict.fromkeys(inputs, _Place(0)), dict[Var, _Place]()
        for op in ops:
            if not _follow_numbers(op, symbol, places, numbers):
                _follow(op, catalogue.get(op.type), symbol, places)
        for label, var in program.targets.items():
            if places.get(var) != _Place(0) or not var.shape or var.shape[0] != symbol:
                raise _NotShownError(f"the output {label!r} is {var.type_text}, and does not lead with the rows {symbol}")
    except _NotShownError as why:
        return Rows(None, inputs, str(why))
    return Rows(symbol, inputs)


def _leading_symbol(inputs: Collection[Var]) -> str:
    leading = {var.shape[0] if var.shape else None for var in inputs}
    symbol = next(iter(leading)) if len(leading) == 1 else None
    legal = isinstance(symbol, str) and all(var.row_splits_of is None and _axes_with(var.shape, symbol) == [0] for var in inputs)
    if not isinstance(symbol, str) or not legal or names_in(symbol) != {symbol}:
        raise _NotShownError("its inputs do not lead with one size that a request chooses")
    return symbol


def _follow_numbers(op: Op, symbol: str, places: dict[Var, _Place], numbers: dict[Var, _Place]) -> bool:
    """Whether `op` makes, or reads, the numbers of rows from 0 on, which are in `numbers`. Who takes by them has from each row its own.

    Masks are written so: `x[arange(n)[:, None], places]`. Raises _NotShownError for anything else that reads such numbers.
    """
    bounds = {"start": (0,), "stop": None, "step": 1} | op.attributes
    if op.type == "arange" and (bounds["start"], bounds["stop"], bounds["step"]) == ((0,), (symbol,), 1):
        numbers[op.writes[0]] = _Place(0)
        return True
    if not any(var in numbers for var in op.reads):
        return False
    (written,), (x,) = op.writes, op.inputs.get("x", (None,))
    if op.type in ("reshape", "view") and x in numbers:
        place = _reshaped(x.shape or (), written.shape or (), numbers[x], symbol)
        if place is not None and _axes_with(written.shape, symbol) == [place.axis]:
            numbers[written] = place
            return True
    if op.type == "index" and x is not None and places.get(x) == _Place(0):
        first, *others = op.inputs["indices"]
        axes, rank = op.attributes["axes"], max(len(var.shape or ()) for var in (first, *others))
        back = len(first.shape or ()) - numbers[first].axis if first in numbers else 0
        apart = all(len(var.shape or ()) < back or (var.shape or ())[-back] == 1 for var in others)
        if back and apart and axes == tuple(range(len(others) + 1)) and not any(var in places or var in numbers for var in others):
            places[written] = _Place(rank - back)
            if _axes_with(written.shape, symbol) == [rank - back]:
                return True
    raise _not_shown(op)


def _follow(op: Op, operator: Operator, symbol: str, places: dict[Var, _Place]) -> None:
    """Add to `places` where `op` has rows in what it computes. Raises _NotShownError where it is not shown that it computes each alone."""
    told = {slot.name for slot in operator.signature.inputs if slot.shape_only}
    carrying = [var for slot, vars in op.inputs.items() if slot not in told for var in vars if var in places]
    attributes = [value for value in op.attributes.values() if isinstance(value, Var)]
    counts = any(_axes_with(var.shape, symbol) for slot in told for var in op.inputs.get(slot, ()))
    if op.blocks or (attributes and (carrying or counts)) or any(var in places for var in attributes):
        raise _not_shown(op)
    if carrying:
        place = None if op.type not in _SHAPED and _is_told(op, symbol) else _place_after(operator, op, symbol, places)
    elif op.type in (*_FILLED, "broadcast_to"):  # every row of what is made is the same
        place = next((_Place(axis) for var in op.writes for axis in _axes_with(var.shape, symbol)), None)
        if place is None and not _names(op, symbol):
            return
    elif _names(op, symbol) or (counts and op.type not in _TOLD and not _counts_others(op, symbol)):
        raise _not_shown(op)
    else:
        return
    for var in op.writes:
        axes = _axes_with(var.shape, symbol)
        if place is not None and axes == [place.axis] and _is_multiple((var.shape or ())[place.axis], symbol):
            places[var] = place
        elif axes or op.type != "batch_norm":  # whose other outputs are the running statistics, as they were
            raise _not_shown(op)


def _names(op: Op, symbol: str) -> bool:
    """Whether an attribute, or the shape of what is computed, has to do with the number of rows."""
    return _is_told(op, symbol) or any(_axes_with(var.shape, symbol) for var in op.writes)


def _is_told(op: Op, symbol: str) -> bool:
    """Whether an attribute has to do with the number of rows."""
    sizes = [size for value in op.attributes.values() if isinstance(value, tuple) for size in value if isinstance(size, str)]
    return any(symbol in names_in(size) for size in sizes)


def _counts_others(op: Op, symbol: str) -> bool:
    """Whether `op` reads how large something is along an axis that has nothing to do with rows."""
    (like,) = op.inputs["like"] if op.type == "size" else (None,)
    return like is not None and like.shape is not None and symbol not in names_in(like.shape[op.attributes.get("axis", 0)])  # type: ignore[call-overload]


def _axes_with(shape: Shape | None, symbol: str) -> list[int]:
    """The axes whose sizes have to do with the number of rows."""
    return [axis for axis, size in enumerate(shape or ()) if symbol in names_in(size)]


def _is_multiple(size: Size, symbol: str) -> bool:
    """Whether `size` is `symbol` times what does not depend on it."""
    if symbol not in names_in(size) or "//" in str(size):
        return False
    return rename(size, {symbol: 0}) == 0 and rename(size, {symbol: 2}) == multiply(2, rename(size, {symbol: 1}))


def _place_after(operator: Operator, op: Op, symbol: str, places: Mapping[Var, _Place]) -> _Place | None:
    """Where the outputs have the rows that follow, each, from that row of the inputs; None where that is not shown."""
    slots = operator.signature.inputs
    shared = {var for slot in slots if not slot.shape_only for var in op.inputs.get(slot.name, ())} - places.keys()
    by_row = {slot.name for slot in slots if not slot.shape_only and any(var in places for var in op.inputs.get(slot.name, ()))}
    vars = [var for slot in slots if slot.name in by_row for var in op.inputs[slot.name] if var in places]
    first, place = vars[0], places[vars[0]]
    if op.type in BY_FIRST_AXIS:
        fits = by_row == {slots[0].name} and (place.axis == 0 or op.type in _ELEMENT_BY_ELEMENT)
        return place if fits else None
    if operator.effects or (any(slot.shape_only and op.inputs.get(slot.name) for slot in slots) and op.type not in _TOLD):
        return None
    if op.type in ("reshape", "view"):
        return _reshaped(first.shape or (), op.writes[0].shape or (), place, symbol)
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


def _reshaped(before: Shape, after: Shape, place: _Place, symbol: str) -> _Place | None:
    """Where rows are in another shape: elements stay in their order, so as many come before a row as did."""
    ahead = multiply(product(before[: place.axis]), place.outer)
    for axis in _axes_with(after, symbol):
        front, factor = product(after[:axis]), rename(after[axis], {symbol: 1})
        if front == ahead:
            return _Place(axis)
        if multiply(front, factor) == ahead:
            return _Place(axis, factor)
    return None


def _taken(op: Op, by_row: set[str], place: _Place) -> _Place | None:
    """Rows of what is taken by numbers: of a table that is shared, as the numbers have them; or of what is taken from."""
    slot = "rows" if op.type == "gather" else "indices"
    axes = op.attributes.get("axes", (op.attributes.get("axis", 0),))
    if not isinstance(axes, tuple) or len(axes) != 1 or not isinstance(axes[0], int) or axes[0] < 0 or len(op.inputs[slot]) != 1:
        return None
    if by_row == {slot}:
        return place._replace(axis=axes[0] + place.axis)
    return place if by_row == {"x"} and axes[0] > place.axis else None


def _in_group(operator: Operator, op: Op, places: Mapping[Var, _Place]) -> _Place | None:
    """The same where a signature promises it: rows are among `*b`, in every input that leads with it, and in no other."""
    leading = {slot.name: len(slot.axes or ()) - 1 for slot in operator.signature.inputs if slot.leading_group == operator.row_group}
    found = set()
    for slot, vars in op.inputs.items():
        for var in vars:
            if (var in places) != (slot in leading) or (var in places and places[var].axis >= len(var.shape or ()) - leading[slot]):
                return None
            found |= {places[var]} if var in places else set()
    return found.pop() if len(found) == 1 else None


def _broadcast_rows(op: Op, shared: Collection[Var], places: Mapping[Var, _Place]) -> _Place | None:
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


def _not_shown(op: Op) -> _NotShownError:
    return _NotShownError(f"{op.writes[0].name} ({op.type}) is not shown to compute each row alone")
