"""Checks whether requests may be batched: whether a program computes each row of its inputs independently.

This is proved from the program, op by op (`passes/rows.py`); without a proof, requests are not batched. The row dimension is the first
one in inputs and outputs, but may be another one, or part of one, in between, as in a transformer.
"""

from collections.abc import Collection
from typing import NamedTuple

from oarlock.ir.operation import Op
from oarlock.ir.program import Program
from oarlock.ir.size import names_in
from oarlock.ir.traversal import needed_ops
from oarlock.ir.var import Var
from oarlock.passes.rows import SHAPED, TOLD, Place, axes_with, is_multiple, place_after, reshaped
from oarlock.registry.catalogue import Catalogue
from oarlock.registry.declaration import Operator

__all__ = ["Rows", "find_rows"]

_FILLED = ("full", "full_batch_size_like", "full_like")  # all rows of their results are equal


class Rows(NamedTuple):
    """The symbol of the row count, which leads every output; or None with the `reason` why rows are not provably independent."""

    symbol: str | None
    inputs: tuple[Var, ...] = ()
    reason: str = ""


class _NotShownError(Exception):
    """The reason why independence of rows is not proved."""


def find_rows(program: Program, catalogue: Catalogue) -> Rows:
    """Return the rows of a program that computes its targets, outside of training."""
    ops = needed_ops(program.main.ops, program.targets.values())
    needed = {var for op in ops for var in op.reads} | set(program.targets.values())
    inputs = tuple(var for var in program.main.inputs if var in needed and var.initializer is None)
    try:
        symbol = _leading_symbol(inputs)
        places, numbers = dict.fromkeys(inputs, Place(0)), dict[Var, Place]()
        for op in ops:
            if not _follow_numbers(op, symbol, places, numbers):
                _follow(op, catalogue.get(op.type), symbol, places)
        for label, var in program.targets.items():
            if places.get(var) != Place(0) or not var.shape or var.shape[0] != symbol:
                raise _NotShownError(f"the first dimension of the output {label!r}, {var.type_text}, is not the row count {symbol}")
    except _NotShownError as why:
        return Rows(None, inputs, str(why))
    return Rows(symbol, inputs)


def _leading_symbol(inputs: Collection[Var]) -> str:
    leading = {var.shape[0] if var.shape else None for var in inputs}
    symbol = next(iter(leading)) if len(leading) == 1 else None
    legal = isinstance(symbol, str) and all(var.row_splits_of is None and axes_with(var.shape, symbol) == [0] for var in inputs)
    if not isinstance(symbol, str) or not legal or names_in(symbol) != {symbol}:
        raise _NotShownError("the first dimension of its inputs is not one variable size")
    return symbol


def _follow_numbers(op: Op, symbol: str, places: dict[Var, Place], numbers: dict[Var, Place]) -> bool:
    """Return whether `op` creates or reads the row indexes 0, 1, ..., which are in `numbers`. Indexing by them selects each row's own
    element.

    Masks are built this way: `x[arange(n)[:, None], places]`. Raises _NotShownError for any other use of row indexes.
    """
    bounds = {"start": (0,), "stop": None, "step": 1} | op.attributes
    if op.type == "arange" and (bounds["start"], bounds["stop"], bounds["step"]) == ((0,), (symbol,), 1):
        numbers[op.writes[0]] = Place(0)
        return True
    if not any(var in numbers for var in op.reads):
        return False
    (written,), (x,) = op.writes, op.inputs.get("x", (None,))
    if op.type in ("reshape", "view") and x is not None and x in numbers:
        place = reshaped(x.shape or (), written.shape or (), numbers[x], symbol)
        if place is not None and axes_with(written.shape, symbol) == [place.axis]:
            numbers[written] = place
            return True
    if op.type == "index" and x is not None and places.get(x) == Place(0):
        first, *others = op.inputs["indices"]
        axes, rank = op.attributes["axes"], max(len(var.shape or ()) for var in (first, *others))
        back = len(first.shape or ()) - numbers[first].axis if first in numbers else 0
        apart = all(len(var.shape or ()) < back or (var.shape or ())[-back] == 1 for var in others)
        if back and apart and axes == tuple(range(len(others) + 1)) and not any(var in places or var in numbers for var in others):
            places[written] = Place(rank - back)
            if axes_with(written.shape, symbol) == [rank - back]:
                return True
    raise _not_shown(op)


def _follow(op: Op, operator: Operator, symbol: str, places: dict[Var, Place]) -> None:
    """Add to `places` the row dimension of the results of `op`. Raises _NotShownError if it is not proved to compute rows independently."""
    shape_only = {slot.name for slot in operator.signature.inputs if slot.shape_only}
    carrying = [var for slot, vars in op.inputs.items() if slot not in shape_only for var in vars if var in places]
    attributes = [value for value in op.attributes.values() if isinstance(value, Var)]
    counts = any(axes_with(var.shape, symbol) for slot in shape_only for var in op.inputs.get(slot, ()))
    if op.blocks or (attributes and (carrying or counts)) or any(var in places for var in attributes):
        raise _not_shown(op)
    if carrying:
        place = None if op.type not in SHAPED and _attribute_has_rows(op, symbol) else place_after(operator, op, symbol, places)
    elif op.type in (*_FILLED, "broadcast_to"):  # all rows of the result are equal
        place = next((Place(axis) for var in op.writes for axis in axes_with(var.shape, symbol)), None)
        if place is None and not _names(op, symbol):
            return
    elif _names(op, symbol) or (counts and op.type not in TOLD and not _counts_others(op, symbol)):
        raise _not_shown(op)
    else:
        return
    for var in op.writes:
        axes = axes_with(var.shape, symbol)
        if place is not None and axes == [place.axis] and is_multiple((var.shape or ())[place.axis], symbol):
            places[var] = place
        elif axes or op.type != "batch_norm":  # whose other outputs, the running statistics, are unchanged
            raise _not_shown(op)


def _names(op: Op, symbol: str) -> bool:
    """Return whether an attribute or an output shape depends on the row count."""
    return _attribute_has_rows(op, symbol) or any(axes_with(var.shape, symbol) for var in op.writes)


def _attribute_has_rows(op: Op, symbol: str) -> bool:
    """Return whether an attribute depends on the row count."""
    sizes = [size for value in op.attributes.values() if isinstance(value, tuple) for size in value if isinstance(size, str)]
    return any(symbol in names_in(size) for size in sizes)


def _counts_others(op: Op, symbol: str) -> bool:
    """Return whether `op` reads the size of an axis unrelated to rows."""
    (like,) = op.inputs["like"] if op.type == "size" else (None,)
    return like is not None and like.shape is not None and symbol not in names_in(like.shape[op.attributes.get("axis", 0)])  # type: ignore[call-overload]


def _not_shown(op: Op) -> _NotShownError:
    return _NotShownError(f"{op.writes[0].name} ({op.type}) is not proved to compute rows independently")
