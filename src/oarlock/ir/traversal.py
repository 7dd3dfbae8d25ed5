"""Traversal of ops through nested blocks, and the variables they capture."""

from collections.abc import Iterable, Iterator, Sequence

from oarlock.ir.block import Block
from oarlock.ir.operation import Op
from oarlock.ir.var import Var

__all__ = ["free_vars", "inner_blocks", "needed_ops", "walk", "walk_ops"]


def walk(block: Block) -> Iterator[Op]:
    """Yield every op of `block` and its nested blocks in program order, an op before those of its blocks.

    Each block is entered once, so the walk ends even for illegal programs.
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
    """Yield each of `ops`, followed by every op of its nested blocks."""
    for op in ops:
        yield op
        for block in op.blocks:
            yield from walk(block)


def inner_blocks(block: Block) -> list[Block]:
    """Return `block` and every block nested in it, in program order."""
    return [block, *(inner for op in walk(block) for inner in op.blocks)]


def free_vars(block: Block) -> list[Var]:
    """Return the variables of enclosing blocks that `block` or a nested block reads or returns, in order of first use."""
    blocks = inner_blocks(block)
    reads = [var for op in walk(block) for var in op.reads]
    reads += [var for inner in blocks for var in inner.outputs]
    inside = set(blocks)
    return [var for var in dict.fromkeys(reads) if var.block not in inside]


def needed_ops(ops: Sequence[Op], targets: Iterable[Var | Op]) -> list[Op]:
    """Return the `ops` that are needed to compute `targets`, which are variables and ops, in order.

    This is one scan from the end: an op is needed if a target or a needed op reads one of its outputs. The inputs of an op with blocks
    include everything that its blocks capture. Commits define nothing: readers of a persistable variable read the value before the step.
    """
    wanted: set[Var | Op] = set(targets)
    needed: list[Op] = []
    for op in reversed(ops):
        if op in wanted or (not op.is_commit and any(var in wanted for var in op.writes)):
            needed.append(op)
            wanted.update(op.reads)
    needed.reverse()
    return needed
