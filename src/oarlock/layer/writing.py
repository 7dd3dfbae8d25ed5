"""Writing the block of a loop or of a branch."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from oarlock.errors import ProgramError, ShapeError
from oarlock.ir.block import Block
from oarlock.ir.dtype import DType
from oarlock.ir.location import here
from oarlock.ir.restoring import restored_on_error
from oarlock.ir.size import names_in
from oarlock.ir.variable import Var
from oarlock.op.shaping import reshape
from oarlock.registry.creator import require_type

__all__ = ["as_scalar", "count_values", "open_block", "require_even", "require_handed_out", "require_same_block"]


@contextmanager
def open_block(name: str, around: Block) -> Iterator[Block]:
    """A new block inside `around`, in which what is written meanwhile is written.

    Where that raises, it is taken back, and all that was written with it: parameters too.
    """
    with restored_on_error(around.program):
        block = around.program.new_block(name, around)
        with block:
            yield block


def require_same_block(block: Block, around: Block, what: str) -> None:
    """Raises ProgramError where what was begun in `around` is ended in another block."""
    if block is not around:
        raise ProgramError(
            f"{what}: it was written in {around.path}, so it cannot be closed in {block.path}",
            location=here(),
            hint="call it in the block in which its own blocks were written",
        )


def require_handed_out(values: Sequence[object], block: Block, what: str) -> list[Var]:
    """`values` as variables that `block` sees. Raises ArgumentError, or ProgramError for a value of another block."""
    around = set(block.enclosing())
    vars = [require_type(value, f"{what}: value") for value in values]
    for var in vars:
        if var.block not in around:
            raise ProgramError(
                f'{what}: "{var.name}" is not visible in {block.path}; it belongs to {var.block.path}',
                location=here(),
                given=[var.describe()],
                hint="hand it out of its block as an output",
            )
    return vars


def count_values(count: int) -> str:
    """`1 value`, `2 values`."""
    return f"{count or 'no'} value{'' if count == 1 else 's'}"


def require_even(vars: Sequence[Var], block: Block, what: str) -> None:
    """Raises ShapeError where a value has a size that is another one in each trip, so that a stack of it has gaps."""
    inside = _sizes_made_in(block)
    for var in vars:
        uneven = [name for size in var.shape or () for name in names_in(size) if name in inside]
        if uneven:
            raise ShapeError(
                f'{what}: "{var.name}" has {uneven[0]} rows, another number in each trip, so its trips cannot be stacked',
                location=here(),
                given=[var.describe()],
                hint="hand out what is the same size in each trip: a sum, a mean, the rows merged in their order",
            )


def _sizes_made_in(block: Block) -> set[str]:
    """The names of sizes that no variable around `block` has: each trip makes its own."""
    around = {
        name
        for outer in block.enclosing()
        if outer is not block
        for var in outer.vars.values()
        for size in var.shape or ()
        for name in names_in(size)
    }
    inside = {name for var in block.vars.values() for size in var.shape or () for name in names_in(size)}
    return inside - around


def as_scalar(condition: Var, what: str) -> Var:
    """A condition as bool[], given as that or as bool[1]. Raises ShapeError or ArgumentError."""
    require_type(condition, f"{what}: the condition")
    if condition.dtype is not DType.BOOL or condition.shape not in ((), (1,)):
        raise ShapeError(
            f"{what}: the condition is one bool, bool[], not {condition.type_text}",
            location=here(),
            given=[condition.describe()],
            hint="ol.ifelse() takes a condition for each row",
        )
    return condition if condition.shape == () else reshape(condition, shape=())
