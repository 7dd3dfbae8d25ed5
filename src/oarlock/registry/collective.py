"""Collective ops, in which workers exchange tensors: all workers run each of them, in the same order, even if nothing fetches them."""

from collections.abc import Iterable

from oarlock.ir.operation import Op
from oarlock.ir.traversal import walk_ops
from oarlock.ir.var import Var
from oarlock.registry.catalogue import Catalogue

__all__ = ["ENDED_BY", "exchanged", "is_collective"]

ENDED_BY = {"all_reduce_start": "all_reduce_done"}
"""The ops that start an exchange, and those that finish it and are the only ones allowed to read its result."""


def is_collective(op: Op, catalogue: Catalogue) -> bool:
    """Return whether an op, or an op in its blocks, exchanges tensors between workers."""
    return any(catalogue.get(each.type).effects == "collective" for each in walk_ops([op]))


def exchanged(ops: Iterable[Op], catalogue: Catalogue) -> list[Var]:
    """Return the results of all exchanges among `ops`; for an asynchronous exchange, the results of the op that finishes it."""
    return [
        var for op in ops if op.type in ENDED_BY.values() or is_collective(op, catalogue) for var in op.writes if op.type not in ENDED_BY
    ]
