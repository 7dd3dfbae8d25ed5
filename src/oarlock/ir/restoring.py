"""Taking back what was written into a program, where the writing fails."""

from collections.abc import Iterator
from contextlib import contextmanager

from oarlock.ir.program import Program

__all__ = ["restored_on_error"]


@contextmanager
def restored_on_error(program: Program) -> Iterator[None]:
    """Make `program` what it was before, blocks, ops and variables, where something is raised meanwhile. Names stay used up."""
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
