"""The active rows of ragged sequences, those that still have a step: their number as a size symbol, and its other uses."""

from collections.abc import Iterable, Sequence

from oarlock.errors import ShapeError
from oarlock.ir.block import Block
from oarlock.ir.operation import Op
from oarlock.ir.size import evaluate, names_in, solve
from oarlock.ir.var import Var
from oarlock.tensor.stacks import Stack

__all__ = ["active_rows", "is_by_row", "require_rows", "told_elsewhere"]


def active_rows(body: Block) -> str:
    """Return the size symbol, in a body, for the number of rows that still have a step. Raises ShapeError if there is none."""
    first = body.inputs[0].shape if body.inputs else None
    if not first or not isinstance(first[0], str) or names_in(first[0]) != {first[0]}:
        raise ShapeError("the first input of the body of a ragged loop must begin with a size symbol of its own: the number of active rows")
    return first[0]


def is_by_row(var: Var, body: Block) -> bool:
    """Return whether `var` has an element for each active row, which means that its first size is their number."""
    return bool(var.shape) and var.shape[0] == active_rows(body)  # type: ignore[index]


def told_elsewhere(op: Op, body: Block) -> list[Var]:
    """Return the step inputs and captured variables of a ragged loop with the number of active rows in a size after the first.

    An example are values of a forward step that its gradient reads. A value with only a first size of that number is cut to as many rows.
    """
    rows = active_rows(body)
    given = [var for var in body.inputs if any(rows in names_in(size) for size in (var.shape or ())[is_by_row(var, body) :])]
    return given + [var for var in op.inputs.get("free", ()) if any(rows in names_in(size) for size in var.shape or ())]


def require_rows(rows: str, count: int, vars: Sequence[Var], values: Iterable[Stack]) -> None:
    """Raise ValueError for a value whose sizes do not match the declaration of its variable, if `count` rows are active."""
    sizes = {rows: count}
    known = [(var, actual) for var, value in zip(vars, values, strict=True) for actual in [_sizes(var, value)] if actual is not None]
    for var, actual in known:
        for size, number in zip(var.shape or (), actual, strict=True):
            name, solved = solve(size, number) or (None, None)
            if name is not None and solved is not None:
                sizes.setdefault(name, solved)
    for var, actual in known:
        for size, number in zip(var.shape or (), actual, strict=True):
            if evaluate(size, sizes) not in (None, number):
                raise ValueError(f'"{var.name}" is declared {var.type_text}, but is {list(actual)} with {rows} = {count}')


def _sizes(var: Var, value: Stack) -> list[int] | None:
    """Return the sizes of a value, or None for an uneven stack, which is passed on without being read."""
    return None if isinstance(value, list) else list(value.shape)
