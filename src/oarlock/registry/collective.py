"""Ops by which workers exchange tensors: all of them run each, in one order, whatever is fetched."""

from collections.abc import Iterable

from oarlock.ir.operation import Op
from oarlock.ir.traversal import walk_ops
from oarlock.registry.catalogue import Catalogue

__all__ = ["collective_ops", "is_collective"]


def is_collective(op: Op, catalogue: Catalogue) -> bool:
    """Whether workers exchange tensors in an op, or in a block of it."""
    return any(catalogue.get(each.type).effects == "collective" for each in walk_ops([op]))


def collective_ops(ops: Iterable[Op], catalogue: Catalogue) -> list[Op]:
    """Those of `ops` in which workers exchange tensors."""
    return [op for op in ops if is_collective(op, catalogue)]
