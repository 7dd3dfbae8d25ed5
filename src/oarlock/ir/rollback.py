"""Undoing changes to a program after an error."""

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice

from oarlock.ir.block_stack import innermost_block
from oarlock.ir.program import Program

__all__ = ["restored_on_error", "undone_on_error"]


@contextmanager
def undone_on_error(program: Program) -> Iterator[None]:
    """Remove additions to a program if the `with` block raises: new blocks, and ops and variables of the innermost open block and its
    parents.

    Names stay marked as used. It only records counts, so building a program with many loops takes linear time. Use it for code that only
    adds to a program, and `restored_on_error` for code that rewrites existing ops.
    """
    blocks = len(program.blocks)
    counts = [(block, len(block.vars), block.tail_start, len(block.tail)) for block in innermost_block(program).enclosing()]
    try:
        yield
    except BaseException:
        del program.blocks[blocks:]
        for block, vars, ops, commits in counts:
            start = block.tail_start  # new ops precede the tail, new commits end it
            block.ops[ops:] = block.ops[start : start + commits]
            for name in list(islice(reversed(block.vars), len(block.vars) - vars)):
                del block.vars[name]
        program.changed()
        raise


@contextmanager
def restored_on_error(program: Program) -> Iterator[None]:
    """Restore the blocks, ops and variables of a program if the `with` block raises. Names stay marked as used.

    It copies the lists of the whole program, so use it for rare operations such as adding gradients.
    """
    blocks = list(program.blocks)
    held = [(block, list(block.ops), dict(block.vars), list(block.inputs), list(block.outputs)) for block in blocks]
    owners = [(op, op.inputs, op.outputs, op.attributes) for _, ops, *_ in held for op in ops if op.blocks]
    try:
        yield
    except BaseException:
        program.blocks = blocks
        for block, ops, vars, inputs, outputs in held:
            block.ops, block.vars, block.inputs, block.outputs = ops, vars, inputs, outputs
            for name, var in vars.items():
                var.name = name
        for op, given, made, attributes in owners:
            op.inputs, op.outputs, op.attributes = given, made, attributes
        for index, block in enumerate(blocks):
            block.index = index
        program.changed()
        raise
