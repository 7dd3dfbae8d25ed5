"""Blocks of loops and branches: opening, closing and validation."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import chain

from oarlock.errors import ProgramError, ShapeError, VerifyError
from oarlock.ir.block import Block
from oarlock.ir.dtype import DType
from oarlock.ir.location import here
from oarlock.ir.rollback import undone_on_error
from oarlock.ir.size import names_in
from oarlock.ir.traversal import free_vars, inner_blocks, walk
from oarlock.ir.var import Var
from oarlock.op.manipulation import reshape
from oarlock.registry.catalogue import standard
from oarlock.registry.creator import require_type
from oarlock.registry.type_check import check_blocks

__all__ = [
    "as_scalar",
    "count_values",
    "forbid_row_splits",
    "open_block",
    "require_consistent",
    "require_even",
    "require_returned",
    "require_same_block",
]


@contextmanager
def open_block(name: str, around: Block) -> Iterator[Block]:
    """Open a new block inside `around`; ops written in the context go there.

    If the context raises, the block is removed together with everything written in it, parameters included.
    """
    with undone_on_error(around.program):
        block = around.program.new_block(name, around)
        with block:
            yield block


def require_same_block(block: Block, around: Block, what: str) -> None:
    """Raise ProgramError if a construct begun in `around` is closed in another block."""
    if block is not around:
        raise ProgramError(
            f"{what}: it was opened in {around.path}, so it cannot be closed in {block.path}",
            location=here(),
            hint="call it in the block in which it was opened",
        )


def require_returned(values: Sequence[object], block: Block, what: str) -> list[Var]:
    """Return `values` as variables visible in `block`. Raises ArgumentError, or ProgramError for a value of another block."""
    around = set(block.enclosing())
    vars = [require_type(value, f"{what}: value") for value in values]
    for var in vars:
        if var.block not in around:
            raise ProgramError(
                f'{what}: "{var.name}" is not visible in {block.path}; it belongs to {var.block.path}',
                location=here(),
                given=[var.describe()],
                hint="return it from its block as an output",
            )
    return vars


def count_values(count: int) -> str:
    """Return `no values`, `1 value`, `2 values`."""
    return f"{count or 'no'} value{'' if count == 1 else 's'}"


def require_even(vars: Sequence[Var], block: Block, what: str) -> None:
    """Raise ShapeError if the size of a value can differ between iterations, because its values could not be stacked."""
    for var in vars:
        uneven = [name for size in var.shape or () for name in names_in(size) if not _is_size_around(name, block)]
        if uneven:
            raise ShapeError(
                f'{what}: "{var.name}" has {uneven[0]} rows, which differ between iterations, so they cannot be stacked',
                location=here(),
                given=[var.describe()],
                hint="return a value of constant size: a sum, a mean, or the rows merged in their order",
            )


def _is_size_around(name: str, block: Block) -> bool:
    """Return whether a variable around `block` has a size of this name. Likely places are searched first: inputs, then recent variables."""
    around = [outer for outer in block.enclosing() if outer is not block]
    vars = (var for outer in around for var in chain(outer.inputs, reversed(outer.vars.values())))
    return any(name in names_in(size) for var in vars for size in var.shape or ())


def require_consistent(block: Block, what: str, *, contract: str, hint: str) -> None:
    """Raise ShapeError if the ops of `block` are inconsistent after it was restricted to fewer rows."""
    try:
        check_blocks(inner_blocks(block), standard)
    except VerifyError as error:
        raise ShapeError(f"{what}: {error.message}", location=error.location, contract=contract, hint=hint) from None


def forbid_row_splits(body: Block, rows: str) -> None:
    """Raise ShapeError if a step of a ragged loop reads row splits that group all `rows` rows.

    A step contains only the rows that still have a step, longest first, so rows that are adjacent outside are not adjacent in it.
    """
    groups = {var for var in free_vars(body) if var.row_splits_of == rows}
    for op in walk(body) if groups else ():
        splits = next((var for var in op.reads if var in groups), None)
        if splits is not None:
            raise ShapeError(
                f'rnn: {op.type} reads "{splits.name}", which groups all {rows} rows, but a step only has the rows that still have a step',
                location=op.location,
                contract="a step orders rows by length, longest first, without those that have ended; they are not grouped",
                given=[splits.describe()],
                hint="group them before the loop, or group the results of the loop",
                op=op.type,
            )


def as_scalar(condition: Var, what: str) -> Var:
    """Return a condition, bool[] or bool[1], as bool[]. Raises ShapeError or ArgumentError."""
    condition = require_type(condition, f"{what}: the condition")
    if condition.dtype is not DType.BOOL or condition.shape not in ((), (1,)):
        raise ShapeError(
            f"{what}: the condition must be one bool, bool[], not {condition.type_text}",
            location=here(),
            given=[condition.describe()],
            hint="use ol.ifelse() for one condition per row",
        )
    return condition if condition.shape == () else reshape(condition, shape=())
