"""Copies of ops, with all of their blocks, that read and define other variables."""

from collections.abc import Callable

from oarlock.ir.block import Block
from oarlock.ir.operation import Op, Role
from oarlock.ir.var import Var

__all__ = ["MARK", "copy_with_blocks"]

MARK = "RECOMPUTED"
"""Stands behind the @ in names of what is computed again."""


def copy_with_blocks(op: Op, into: Block, read: Callable[[Var], Var]) -> tuple[Op, dict[Var, Var]]:
    """A copy of `op` for `into`, which is for gradients, and what stands there for each variable that `op` defines.

    `read` gives what is read in place of a variable. Random ops draw the same numbers: what keys them is in their attributes, and in
    names of blocks up to the `@`. The caller puts the op where it belongs.
    """
    program = into.program
    results = {
        var: into.new_var(program.unique(f"{var.name.partition('@')[0]}@{MARK}"), var.dtype, var.shape, location=var.location)
        for var in op.writes
    }
    for var, result in results.items():
        result.stop_gradient = var.stop_gradient

    def block_for(block: Block) -> Block:
        stem, _, part = block.name.partition(".")
        return _copy_block(block, into, f"{program.unique(f'{stem}@{MARK}')}.{part}", read)

    return _copy(op, into, read, results, block_for), results


def _copy_block(block: Block, parent: Block, name: str, read: Callable[[Var], Var]) -> Block:
    made = parent.program.new_block(name, parent)
    vars = {
        var: made.new_var(
            var.name, var.dtype, var.shape, stop_gradient=var.stop_gradient, row_splits_of=var.row_splits_of, location=var.location
        )
        for var in block.ordered_vars()
    }

    def inside(var: Var) -> Var:
        return vars[var] if var in vars else read(var)

    made.inputs = [vars[var] for var in block.inputs]
    for op in block.ops:
        made.ops.append(_copy(op, made, inside, vars, lambda inner: _copy_block(inner, made, inner.name, inside)))
    made.outputs = [inside(var) for var in block.outputs]
    return made


def _copy(op: Op, into: Block, read: Callable[[Var], Var], results: dict[Var, Var], block_for: Callable[[Block], Block]) -> Op:
    def copied(value: object) -> object:
        return block_for(value) if isinstance(value, Block) else read(value) if isinstance(value, Var) else value

    inputs = {slot: tuple([read(var) for var in vars]) for slot, vars in op.inputs.items()}
    outputs = {slot: tuple([results[var] for var in vars]) for slot, vars in op.outputs.items()}
    attributes = {name: copied(value) for name, value in op.attributes.items()}
    blocks = tuple(value for value in attributes.values() if isinstance(value, Block))
    made = Op(into, op.type, inputs, outputs, attributes, blocks=blocks, role=Role.BACKWARD, location=op.location)
    for var in made.writes:
        var.op = made
    return made
