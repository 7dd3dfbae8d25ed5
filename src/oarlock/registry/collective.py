"""Ops by which workers exchange tensors: all of them run each, in one order, whatever is fetched."""

from collections.abc import Iterable

from oarlock.ir.operation import Op
from oarlock.ir.traversal import walk_ops
from oarlock.ir.var import Var
from oarlock.registry.catalogue import Catalogue

__all__ = ["ENDED_BY", "exchanged", "is_collective"]

ENDED_BY = {"all_reduce_start": "all_reduce_done"}
"""Ops that begin an exchange, and those that alone may read its result."""


def is_collective(op: Op, catalogue: Catalogue) -> bool:
    """Whether workers exchange tensors in an op, or in a block of it."""
    return any(catalogue.get(each.type).effects == "collective" for each in walk_ops([op]))


def exchanged(ops: Iterable[Op], catalogue: Catalogue) -> list[Var]:
    """The results of all exchanges among `ops`: those of the op that ends one, where it is under way after the op that begins it."""
    return [
        var for op in ops if op.type in ENDED_BY.values() or is_collective(op, catalogue) for var in op.writes if op.type not in ENDED_BY
    ]
