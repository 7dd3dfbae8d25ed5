"""Whether the rows of requests may be run together: whether a program computes each row of its inputs alone.

This is shown by the program, op by op (`passes/rows.py`), and where it is not shown, it is not so.

Rows begin as the first dimension, and may be another one on the way, or a part of one: a transformer has its words first for a while.
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

_FILLED = ("full", "full_batch_size_like", "full_like")  # of which every row is the same


class Rows(NamedTuple):
    """The name of the size that counts rows, which every output leads with; or None, and `reason`, why rows are not shown to be alone."""

    symbol: str | None
    inputs: tuple[Var, ...] = ()
    reason: str = ""


class _NotShownError(Exception):
    """Why it is not shown."""


def find_rows(program: Program, catalogue: Catalogue) -> Rows:
    """The rows of a program that is run for its targets, outside of training."""
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
                raise _NotShownError(f"the output {label!r} is {var.type_text}, and does not lead with the rows {symbol}")
    except _NotShownError as why:
        return Rows(None, inputs, str(why))
    return Rows(symbol, inputs)


def _leading_symbol(inputs: Collection[Var]) -> str:
    leading = {var.shape[0] if var.shape else None for var in inputs}
    symbol = next(iter(leading)) if len(leading) == 1 else None
    legal = isinstance(symbol, str) and all(var.row_splits_of is None and axes_with(var.shape, symbol) == [0] for var in inputs)
    if not isinstance(symbol, str) or not legal or names_in(symbol) != {symbol}:
        raise _NotShownError("its inputs do not lead with one size that a request chooses")
    return symbol


def _follow_numbers(op: Op, symbol: str, places: dict[Var, Place], numbers: dict[Var, Place]) -> bool:
    """Whether `op` makes, or reads, the numbers of rows from 0 on, which are in `numbers`. Who takes by them has from each row its own.

    Masks are written so: `x[arange(n)[:, None], places]`. Raises _NotShownError for anything else that reads such numbers.
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
    """Add to `places` where `op` has rows in what it computes. Raises _NotShownError where it is not shown that it computes each alone."""
    told = {slot.name for slot in operator.signature.inputs if slot.shape_only}
    carrying = [var for slot, vars in op.inputs.items() if slot not in told for var in vars if var in places]
    attributes = [value for value in op.attributes.values() if isinstance(value, Var)]
    counts = any(axes_with(var.shape, symbol) for slot in told for var in op.inputs.get(slot, ()))
    if op.blocks or (attributes and (carrying or counts)) or any(var in places for var in attributes):
        raise _not_shown(op)
    if carrying:
        place = None if op.type not in SHAPED and _is_told(op, symbol) else place_after(operator, op, symbol, places)
    elif op.type in (*_FILLED, "broadcast_to"):  # every row of what is made is the same
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
        elif axes or op.type != "batch_norm":  # whose other outputs are the running statistics, as they were
            raise _not_shown(op)


def _names(op: Op, symbol: str) -> bool:
    """Whether an attribute, or the shape of what is computed, has to do with the number of rows."""
    return _is_told(op, symbol) or any(axes_with(var.shape, symbol) for var in op.writes)


def _is_told(op: Op, symbol: str) -> bool:
    """Whether an attribute has to do with the number of rows."""
    sizes = [size for value in op.attributes.values() if isinstance(value, tuple) for size in value if isinstance(size, str)]
    return any(symbol in names_in(size) for size in sizes)


def _counts_others(op: Op, symbol: str) -> bool:
    """Whether `op` reads how large something is along an axis that has nothing to do with rows."""
    (like,) = op.inputs["like"] if op.type == "size" else (None,)
    return like is not None and like.shape is not None and symbol not in names_in(like.shape[op.attributes.get("axis", 0)])  # type: ignore[call-overload]


def _not_shown(op: Op) -> _NotShownError:
    return _NotShownError(f"{op.writes[0].name} ({op.type}) is not shown to compute each row alone")
