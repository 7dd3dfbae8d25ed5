"""Keep what the targets need."""

from collections.abc import Mapping

from oarlock.errors import UndefinedVarError
from oarlock.ir.block import Block
from oarlock.ir.program import Program
from oarlock.ir.variable import Var
from oarlock.ir.walk import needed_ops, walk

__all__ = ["prune"]


def prune(program: Program, targets: Mapping[str, Var]) -> Program:
    """A new program with only what `targets` (label -> variable of the main block) need.

    Before, with target `y`                    After
        h = linear(x, w)                           h = linear(x, w)
        y = softmax(h)                             y = softmax(h)
        loss = cross_entropy(h, label)
        w <- w@NEXT

    Updates go: what reads a persistable variable reads its value from before the step. Inputs, parameters and
    blocks that nothing needs any more go too; row splits stay with what they cut. `program` itself is not changed.
    Raises UndefinedVarError for a target of another program.
    """
    for var in targets.values():
        if var.block.program is not program or var.block is not program.main:
            raise UndefinedVarError(f'target "{var.name}" is not a variable of the main block of this program', given=[var.describe()])
    kept = program.clone()
    kept.training = None
    kept.targets = {label: kept.main.vars[var.name] for label, var in targets.items()}
    _prune_block(kept.main, list(kept.targets.values()))
    used = {var for op in kept.main.ops for var in op.reads} | set(kept.targets.values())
    used |= {splits for var, levels in kept.ragged_inputs().items() if var in used for splits in levels}
    kept.main.inputs = [var for var in kept.main.inputs if var in used]
    kept.main.keep(kept.main.ops)
    reachable = {kept.main} | {block for op in walk(kept.main) for block in op.blocks}
    kept.blocks = [block for block in kept.blocks if block in reachable]
    for index, block in enumerate(kept.blocks):
        block.index = index
    return kept


def _prune_block(block: Block, wanted: list[Var]) -> None:
    block.keep(needed_ops(block.ops, wanted))
    for op in block.ops:
        for inner in op.blocks:
            _prune_block(inner, inner.outputs)
