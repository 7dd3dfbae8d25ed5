"""The rows of ragged sequences that have a step: what their number is called in a block, and who else bears that name."""

from collections.abc import Iterable, Sequence

from oarlock.errors import ShapeError
from oarlock.ir.block import Block
from oarlock.ir.operation import Op
from oarlock.ir.size import evaluate, names_in, solve
from oarlock.ir.var import Var
from oarlock.tensor.stacks import Stack

__all__ = ["active_rows", "is_by_row", "require_rows", "told_elsewhere"]


def active_rows(body: Block) -> str:
    """The size, inside, that is the number of rows which have a step."""
    first = body.inputs[0].shape if body.inputs else None
    if not first or not isinstance(first[0], str) or names_in(first[0]) != {first[0]}:
        raise ShapeError("the first step of a ragged loop has a size of its own in front: the rows that have a step")
    return first[0]


def is_by_row(var: Var, body: Block) -> bool:
    """Whether `var` has an element for each row that has a step: whether it leads with the size that the first step leads with."""
    return bool(var.shape) and var.shape[0] == active_rows(body)  # type: ignore[index]


def told_elsewhere(op: Op, body: Block) -> list[Var]:
    """The inputs of a step of a ragged loop, and its reads of outer variables, whose shapes name its number of rows not only in front.

    Such are the values of a forward step that its gradient reads. A value that leads with that number alone is cut to that many rows.
    """
    rows = active_rows(body)
    given = [var for var in body.inputs if any(rows in names_in(size) for size in (var.shape or ())[is_by_row(var, body) :])]
    return given + [var for var in op.inputs.get("free", ()) if any(rows in names_in(size) for size in var.shape or ())]


def require_rows(rows: str, count: int, vars: Sequence[Var], values: Iterable[Stack]) -> None:
    """Raises ValueError for a value whose sizes are not those that its variable declares, where as many as `count` rows have a step."""
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
                raise ValueError(f'"{var.name}" is declared {var.type_text}, yet it is {list(actual)} where {rows} is {count}')


def _sizes(var: Var, value: Stack) -> list[int] | None:
    """The sizes of a value; None where it is an uneven stack, which is not read but handed on."""
    return None if isinstance(value, list) else list(value.shape)
