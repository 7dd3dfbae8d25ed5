"""Writing the block of a loop or of a branch."""

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
    "open_block",
    "require_consistent",
    "require_even",
    "require_returned",
    "require_same_block",
    "require_uncut",
]


@contextmanager
def open_block(name: str, around: Block) -> Iterator[Block]:
    """A new block inside `around`, in which what is written meanwhile is written.

    Where that raises, it is taken back, and all that was written with it: parameters too.
    """
    with undone_on_error(around.program):
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


def require_returned(values: Sequence[object], block: Block, what: str) -> list[Var]:
    """`values` as variables that `block` sees. Raises ArgumentError, or ProgramError for a value of another block."""
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
    """`1 value`, `2 values`."""
    return f"{count or 'no'} value{'' if count == 1 else 's'}"


def require_even(vars: Sequence[Var], block: Block, what: str) -> None:
    """Raises ShapeError where a value has a size that is another one in each trip, so that a stack of it has gaps."""
    for var in vars:
        uneven = [name for size in var.shape or () for name in names_in(size) if not _is_size_around(name, block)]
        if uneven:
            raise ShapeError(
                f'{what}: "{var.name}" has {uneven[0]} rows, another number in each trip, so its trips cannot be stacked',
                location=here(),
                given=[var.describe()],
                hint="return what is the same size in each trip: a sum, a mean, the rows merged in their order",
            )


def _is_size_around(name: str, block: Block) -> bool:
    """Whether a variable around `block` has a size of this name; trips make the others. Looks where it finds soon: inputs, new ones."""
    around = [outer for outer in block.enclosing() if outer is not block]
    vars = (var for outer in around for var in chain(outer.inputs, reversed(outer.vars.values())))
    return any(name in names_in(size) for var in vars for size in var.shape or ())


def require_consistent(block: Block, what: str, *, contract: str, hint: str) -> None:
    """Raises ShapeError where the ops of `block`, made to see other rows than they were written for, do not fit together any more."""
    try:
        check_blocks(inner_blocks(block), standard)
    except VerifyError as error:
        raise ShapeError(f"{what}: {error.message}", location=error.location, contract=contract, hint=hint) from None


def require_uncut(body: Block, rows: str) -> None:
    """Raises ShapeError where a step of a ragged loop reads by what its `rows` are grouped outside: by row splits of all of them.

    It has those that still have a step, the longest first, so that rows which stand side by side outside do not do so here.
    """
    groups = {var for var in free_vars(body) if var.row_splits_of == rows}
    for op in walk(body) if groups else ():
        splits = next((var for var in op.reads if var in groups), None)
        if splits is not None:
            raise ShapeError(
                f'rnn: {op.type} reads "{splits.name}", which groups all {rows} rows, where a step has those that still have a step',
                location=op.location,
                contract="rows stand in a step the longest first, and without those that have ended; nothing groups them there",
                given=[splits.describe()],
                hint="group them before the loop, or group what the loop returns after it",
                op=op.type,
            )


def as_scalar(condition: Var, what: str) -> Var:
    """A condition as bool[], given as that or as bool[1]. Raises ShapeError or ArgumentError."""
    condition = require_type(condition, f"{what}: the condition")
    if condition.dtype is not DType.BOOL or condition.shape not in ((), (1,)):
        raise ShapeError(
            f"{what}: the condition is one bool, bool[], not {condition.type_text}",
            location=here(),
            given=[condition.describe()],
            hint="ol.ifelse() takes a condition for each row",
        )
    return condition if condition.shape == () else reshape(condition, shape=())
