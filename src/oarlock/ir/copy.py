"""Copying programs without serialization."""

from oarlock.ir.block import Block
from oarlock.ir.operation import Op
from oarlock.ir.program import Program
from oarlock.ir.traversal import inner_blocks
from oarlock.ir.var import HeldValue, Initializer, Var

__all__ = ["blocks_in_order", "copy_program"]


def blocks_in_order(program: Program) -> list[Block]:
    """Return the blocks in the order of a file: each after the op that owns it, then the blocks without an owner."""
    return list(dict.fromkeys([*inner_blocks(program.main), *program.blocks]))


def copy_program(program: Program) -> Program:
    """Return an independent copy of a legal program."""
    copy = Program(seed=program.seed)
    blocks: dict[Block, Block] = {}
    vars: dict[Var, Var] = {}
    for number, block in enumerate(blocks_in_order(program)):
        blocks[block] = Block(copy, number, block.name, None if block.parent is None else blocks[block.parent])
        for var in block.ordered_vars():
            vars[var] = _copy_var(var, blocks[block])
        blocks[block].inputs = [vars[var] for var in block.inputs]
    copy.blocks = list(blocks.values())
    for block, copied in blocks.items():
        copied.ops = [_copy_op(op, copied, blocks, vars) for op in block.ops]
        copied.outputs = [vars[var] for var in block.outputs]
    copy.targets = {label: vars[var] for label, var in program.targets.items()}
    copy.training = program.training
    copy.claim_names()
    copy.changed()
    return copy


def _copy_var(var: Var, block: Block) -> Var:
    block.vars[var.name] = copy = Var(
        block,
        var.name,
        var.dtype,
        var.shape,
        persistable=var.persistable,
        parameter=var.parameter,
        trainable=var.trainable,
        stop_gradient=var.stop_gradient,
        initializer=_copy_initializer(var.initializer),
        row_splits_of=var.row_splits_of,
        update_settings=var.update_settings,
        sharding=var.sharding,
        place=var.place,
        location=var.location,
    )
    return copy


def _copy_initializer(initializer: Initializer | None) -> Initializer | None:
    if initializer is None or isinstance(initializer, HeldValue):
        return initializer
    return Initializer(initializer.type, dict(initializer.attributes))


def _copy_op(op: Op, block: Block, blocks: dict[Block, Block], vars: dict[Var, Var]) -> Op:
    def copied(value: object) -> object:
        return blocks[value] if isinstance(value, Block) else vars[value] if isinstance(value, Var) else value

    inputs, outputs = ({slot: tuple([vars[var] for var in items]) for slot, items in given.items()} for given in (op.inputs, op.outputs))
    attributes = {name: copied(op.attributes[name]) for name in sorted(op.attributes)}
    owned = tuple(value for value in attributes.values() if isinstance(value, Block))
    copy = Op(block, op.type, inputs, outputs, attributes, blocks=owned, role=op.role, location=op.location, name=op.name)
    for var in copy.writes:
        if not var.persistable and var.op is None:
            var.op = copy
    return copy
