"""The sizes that a plan needs as numbers, and where the types of variables name them."""

from collections.abc import Iterable, Sequence

from oarlock.ir.operation import Op
from oarlock.ir.size import names_in
from oarlock.ir.traversal import walk_ops
from oarlock.ir.var import Var
from oarlock.runtime.plan import control_flow

__all__ = ["asked_sizes", "symbolic_sizes", "symbols_of"]


def asked_sizes(ops: Sequence[Op]) -> set[str]:
    """The symbols of whatever a block returns, which is zeros of known sizes where it makes no trip; and how long a memory is stacked."""
    owners = [op for op in walk_ops(ops) if op.blocks]
    outermost = set(ops)
    sequences = [var for op in owners if op in outermost or control_flow.stacks_a_memory(op) for var in control_flow.steps_through(op)]
    computed = [var for var in sequences if var.op is not None and not var.op.blocks]
    lengths = {name for var in computed for size in (var.shape or ())[:1] for name in names_in(size)}
    returned = [var for op in owners for block in op.blocks for var in block.outputs]
    return lengths | symbols_of(returned) | symbolic_sizes(returned)


def symbols_of(vars: Iterable[Var]) -> set[str]:
    return {name for var in vars for size in var.shape or () for name in names_in(size)}


def symbolic_sizes(vars: Iterable[Var]) -> set[str]:
    """The sizes of some variables that are symbols, sums and products whole."""
    return {size for var in vars for size in var.shape or () if isinstance(size, str)}
