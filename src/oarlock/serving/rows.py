"""Whether the rows of requests may be run together: whether a program computes each row of its inputs alone.

This is shown by the program, and where it is not shown, it is not so. What operators promise shows it: of `*b` in a signature, and of the
axes in front of `axis_attribute`, each index is computed alone, and `tests/op` holds every operator to that. What computes images promises
nothing in its signature; those operators are listed here, and `tests/serving` holds them to it.
"""

from collections.abc import Collection
from typing import NamedTuple

from oarlock.ir.operation import Op
from oarlock.ir.program import Program
from oarlock.ir.size import Shape, Size, multiply, names_in, rename
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
        rows = set(inputs)
        for op in ops:
            _follow(op, catalogue.get(op.type), symbol, rows)
        for label, var in program.targets.items():
            if var not in rows or not var.shape or var.shape[0] != symbol:
                raise _NotShownError(f"the output {label!r} is {var.type_text}, and does not lead with the rows {symbol}")
    except _NotShownError as why:
        return Rows(None, inputs, str(why))
    return Rows(symbol, inputs)


def _leading_symbol(inputs: Collection[Var]) -> str:
    leading = {var.shape[0] if var.shape else None for var in inputs}
    symbol = next(iter(leading)) if len(leading) == 1 else None
    if not isinstance(symbol, str) or names_in(symbol) != {symbol} or any(var.row_splits_of is not None for var in inputs):
        raise _NotShownError("its inputs do not lead with one size that a request chooses")
    return symbol


def _follow(op: Op, operator: Operator, symbol: str, rows: set[Var]) -> None:
    """Add to `rows` what `op` computes row by row. Raises _NotShownError where that is not shown."""
    read = [*op.reads, *(value for value in op.attributes.values() if isinstance(value, Var))]
    if not any(var in rows for var in read):
        if any(symbol in names_in(size) for var in op.writes for size in var.shape or ()) or symbol in _named_by(op):
            if op.type not in (*_FILLED, "broadcast_to") or any(var.shape and _has_rows(var.shape, symbol) for var in op.reads):
                raise _not_shown(op)
            rows.update(var for var in op.writes if _has_rows(var.shape, symbol))
        return
    if op.blocks or any(isinstance(value, Var) for value in op.attributes.values()) or not _computes_rows_alone(operator, op, symbol, rows):
        raise _not_shown(op)
    for var in op.writes:
        if _has_rows(var.shape, symbol):
            rows.add(var)
        elif op.type != "batch_norm":  # whose other outputs are the running statistics, as they were
            raise _not_shown(op)


def _named_by(op: Op) -> set[str]:
    """The names of sizes in the attributes of an op."""
    sizes = [size for value in op.attributes.values() if isinstance(value, tuple) for size in value if isinstance(size, str)]
    return {name for size in sizes for name in names_in(size)}


def _has_rows(shape: Shape | None, symbol: str) -> bool:
    """Whether the first size is a number of places for each row, and no other one has to do with rows."""
    return bool(shape) and _is_multiple(shape[0], symbol) and not any(symbol in names_in(size) for size in shape[1:])


def _is_multiple(size: Size, symbol: str) -> bool:
    """Whether `size` is `symbol` times what does not depend on it."""
    if symbol not in names_in(size) or "//" in str(size):
        return False
    return rename(size, {symbol: 0}) == 0 and rename(size, {symbol: 2}) == multiply(2, rename(size, {symbol: 1}))


def _computes_rows_alone(operator: Operator, op: Op, symbol: str, rows: set[Var]) -> bool:
    """Whether each row of the outputs follows from that row of the inputs."""
    slots = operator.signature.inputs
    by_row = {slot.name for slot in slots if any(var in rows for var in op.inputs.get(slot.name, ()))}
    if op.type in _FILLED:
        return True
    if op.type in BY_FIRST_AXIS:
        return by_row == {slots[0].name}
    if operator.effects or any(slot.shape_only and slot.name in by_row for slot in slots):
        return False
    if op.type in ("reshape", "broadcast_to"):  # rows lie one after another, before and after
        (var,) = op.inputs["x"]
        return op.type == "reshape" or len(var.shape or ()) == len(op.writes[0].shape or ())
    if op.type == "gather":
        axis = op.attributes.get("axis", 0)
        return (by_row == {"rows"} and axis == 0) or (by_row == {"x"} and isinstance(axis, int) and axis > 0)
    if operator.row_group is not None:
        leading = {slot.name: len(slot.axes or ()) for slot in slots if slot.leading_group == operator.row_group}
        have_rows = all(len(var.shape or ()) >= leading[slot] for slot in leading for var in op.inputs.get(slot, ()))
        return have_rows and all((var in rows) == (slot in leading) for slot, vars in op.inputs.items() for var in vars)
    if operator.axis_attribute is not None:
        rank = max(len(var.shape or ()) for var in (*op.reads, *op.writes))
        return all(var in rows for var in op.reads) and axes_alone(operator, op.attributes, rank) > 0
    return _broadcasts_rows(operator, op, rows)


def _broadcasts_rows(operator: Operator, op: Op, rows: set[Var]) -> bool:
    """The same for an operator that broadcasts: rows are the first dimension of the result, and what is shared has none or one there."""
    declared = (*operator.signature.inputs, *operator.signature.outputs)
    if operator.infer_function or not all(slot.axes and len(slot.axes) == 1 and slot.axes[0].kind == "broadcast" for slot in declared):
        return False
    rank = len(op.writes[0].shape or ())
    shapes: dict[Var, Shape] = {var: var.shape or () for var in op.reads}
    return all(len(shape) == rank if var in rows else len(shape) < rank or shape[0] == 1 for var, shape in shapes.items())


def _not_shown(op: Op) -> _NotShownError:
    return _NotShownError(f"{op.writes[0].name} ({op.type}) is not shown to compute each row alone")
