"""Size names that have one value everywhere, unlike those of uneven stacks."""

from collections.abc import Collection

from oarlock.ir.block import Block
from oarlock.ir.size import names_in
from oarlock.ir.var import Var

__all__ = ["even_sizes"]


def even_sizes(block: Block, around: Collection[str] = ()) -> set[str]:
    """Return the names in `block` that have one value, if those in `around` do.

    Names that only uneven stacks define are left out, and all that are computed from these: stacks of inner blocks, captured variables,
    inputs. A step of an uneven stack may itself be an uneven stack; then only its length is known.
    """
    computed = {var for op in block.ops for var in op.writes}
    given = set() if block.parent is None else set(block.inputs)
    known = {name for var in block.vars.values() if var not in computed and var not in given for name in _names(var)}
    known |= {name for var in given if var.shape and len(names := names_in(var.shape[0])) == 1 for name in names}
    captured = {var for op in block.ops for var in op.reads if var.block is not block}
    uneven = {name for var in captured for name in _names(var)}
    uneven |= {name for var in given for size in (var.shape or ())[1:] for name in names_in(size)}
    known -= uneven
    for op in block.ops:
        if not op.blocks and all(name in known or name in around for var in op.reads for name in _names(var)):
            known.update(name for var in op.writes for name in _names(var) if name not in uneven)
    return known


def _names(var: Var) -> set[str]:
    return {name for size in var.shape or () for name in names_in(size)}
