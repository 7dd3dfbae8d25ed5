"""Ops in order through nested blocks, and who reads what from outside."""

from collections.abc import Iterable, Iterator, Sequence

from oarlock.ir.block import Block
from oarlock.ir.operation import Op
from oarlock.ir.var import Var

__all__ = ["free_vars", "inner_blocks", "needed_ops", "walk", "walk_ops"]


def walk(block: Block) -> Iterator[Op]:
    """Every op of `block` and of the blocks inside it, in program order, an owner before its blocks.

    A block is entered once, whoever owns it, so the walk ends for programs that `verify` has yet to refuse.
    """
    entered = {block}
    pending = [iter(block.ops)]
    while pending:
        for op in pending[-1]:
            yield op
            inside = [inner for inner in op.blocks if inner not in entered] if op.blocks else None
            if inside:
                entered.update(inside)
                pending.extend(iter(inner.ops) for inner in reversed(inside))
                break
        else:
            pending.pop()


def walk_ops(ops: Iterable[Op]) -> Iterator[Op]:
    """Each of some ops of a block, followed by every op of the blocks inside it."""
    for op in ops:
        yield op
        for block in op.blocks:
            yield from walk(block)


def inner_blocks(block: Block) -> list[Block]:
    """`block` and every block inside it, in program order."""
    return [block, *(inner for op in walk(block) for inner in op.blocks)]


def free_vars(block: Block) -> list[Var]:
    """The variables of enclosing blocks that `block`, or a block inside it, reads or returns; in order of first use."""
    blocks = inner_blocks(block)
    reads = [var for op in walk(block) for var in op.reads]
    reads += [var for inner in blocks for var in inner.outputs]
    inside = set(blocks)
    return [var for var in dict.fromkeys(reads) if var.block not in inside]


def needed_ops(ops: Sequence[Op], targets: Iterable[Var | Op]) -> list[Op]:
    """Those of `ops` without which some of `targets`, variables and ops, would have no value or not run; in order.

    One scan from the end: an op is needed when it defines something that a target or a needed op reads.
    A block operator reads everything that its blocks capture, which its own input slots name. Ops that
    commit define nothing: what reads a persistable variable reads its value from before the step.
    """
    wanted: set[Var | Op] = set(targets)
    needed: list[Op] = []
    for op in reversed(ops):
        if op in wanted or (not op.is_commit and any(var in wanted for var in op.writes)):
            needed.append(op)
            wanted.update(op.reads)
    needed.reverse()
    return needed
