"""Names of sizes that are one number wherever they stand, as those of an uneven stack are not."""

from collections.abc import Collection

from oarlock.ir.block import Block
from oarlock.ir.size import names_in
from oarlock.ir.variable import Var

__all__ = ["even_sizes"]


def even_sizes(block: Block, around: Collection[str] = ()) -> set[str]:
    """The names that `block` declares, where those in `around` are even already.

    Left out are those that only the stacks of blocks inside it tell, which may be uneven, and whatever is computed from such.
    """
    computed = {var for op in block.ops for var in op.writes}
    known = {name for var in block.vars.values() if var not in computed for name in _names(var)}
    for op in block.ops:
        if not op.blocks and all(name in known or name in around for var in op.reads for name in _names(var)):
            known.update(name for var in op.writes for name in _names(var))
    return known


def _names(var: Var) -> set[str]:
    return {name for size in var.shape or () for name in names_in(size)}
