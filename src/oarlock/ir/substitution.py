"""Replacing variables and size symbols in a finished block."""

from collections.abc import Mapping

from oarlock.ir import size
from oarlock.ir.attribute import Sizes
from oarlock.ir.block import Block
from oarlock.ir.size import Shape, Size
from oarlock.ir.traversal import inner_blocks
from oarlock.ir.var import Var

__all__ = ["rename_sizes", "replace_reads"]


def replace_reads(block: Block, replaced: Mapping[Var, Var]) -> None:
    """Replace variables that `block` and its nested blocks read or return."""
    if not replaced:
        return
    for inner in inner_blocks(block):
        for op in inner.ops:
            op.inputs = {slot: tuple(replaced.get(var, var) for var in vars) for slot, vars in op.inputs.items()}
            op.attributes = {name: replaced.get(value, value) if isinstance(value, Var) else value for name, value in op.attributes.items()}
        inner.outputs = [replaced.get(var, var) for var in inner.outputs]
    block.program.changed()


def rename_sizes(block: Block, names: Mapping[str, Size]) -> None:
    """Replace symbols in the shapes of all variables, and in the attributes, of `block` and its nested blocks."""
    if not names:
        return
    for inner in inner_blocks(block):
        for var in inner.vars.values():
            var.shape = None if var.shape is None else _renamed(var.shape, names)
            var.row_splits_of = _renamed((var.row_splits_of,), names)[0] if var.row_splits_of else None  # type: ignore[assignment]
            inner.program.claim_symbols(var.shape)
        for op in inner.ops:
            op.attributes = {
                name: Sizes(_renamed(value, names)) if isinstance(value, Sizes) else value for name, value in op.attributes.items()
            }
    block.program.changed()


def _renamed(shape: Shape, names: Mapping[str, Size]) -> Shape:
    return tuple(size.rename(item, names) for item in shape)
