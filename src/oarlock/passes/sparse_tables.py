"""Tables whose gradient is had by rows: those that nothing reads but lookups, one of which asks for it."""

from collections.abc import Iterator, Sequence

from oarlock.ir.location import warn_here
from oarlock.ir.operation import Op
from oarlock.ir.var import Var, are_same
from oarlock.registry.catalogue import standard

__all__ = ["find_sparse_tables", "is_lookup"]


def find_sparse_tables(ops: Sequence[Op], variables: Sequence[Var]) -> set[Var]:
    """Those of `variables` that are looked up in `ops`, and in the blocks inside them, and read otherwise by none.

    Warns where a lookup asks for rows in vain, since another op makes the gradient a whole table.
    """
    asked: set[Var] = set()
    whole: dict[Var, Op] = {}
    candidates = {var for var in variables if var.persistable and var.shape and 0 not in var.shape}
    for op, var in _reads(ops, candidates):
        if not is_lookup(op, var):
            whole.setdefault(var, op)
        elif op.attributes.get("sparse"):
            asked.add(var)
    for var in variables:
        if var in asked and var in whole:
            reader = whole[var]
            place = "" if reader.location is None else f", at {reader.location}"
            warn_here(f'the gradient of "{var.name}" is a whole table, though a lookup asks for rows: "{reader.type}" reads it too{place}')
    return asked - whole.keys()


def is_lookup(op: Op, table: Var) -> bool:
    """Whether an op takes rows of `table` and reads it in no other way."""
    if op.type != "gather" or sum(read is table for read in op.reads) != 1:
        return False
    return are_same(op.inputs["x"], (table,)) and op.attributes.get("axis", 0) == 0


def _reads(ops: Sequence[Op], tables: set[Var]) -> Iterator[tuple[Op, Var]]:
    """Each op by which a gradient may come to one of `tables`, with that table; an op with a block where it hands it in or out."""
    for op in ops:
        if not tables.isdisjoint(op.reads):
            operator = standard.get(op.type)
            for slot, vars in op.inputs.items():
                if (slot != "free" or not op.blocks) and operator.differentiates(slot):
                    yield from ((op, var) for var in vars if var in tables)
        for block in op.blocks:
            yield from _reads(block.ops, tables)
            yield from ((op, var) for var in block.outputs if var in tables)
