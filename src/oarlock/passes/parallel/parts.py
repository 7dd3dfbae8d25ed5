"""The names of partial sums: a variable of the program before the rewrite has its whole value after it, or is gone.

Whoever holds such a variable, or knows its name, fetches what one worker with all rows would compute, and never a worker's own part.
"""

from collections.abc import Iterable, Mapping

from oarlock.ir.operation import Op
from oarlock.ir.program import Program
from oarlock.ir.traversal import inner_blocks, walk
from oarlock.ir.var import Var
from oarlock.op.control.layout import Layout
from oarlock.passes.parallel.rows_of_workers import free_name

__all__ = ["name_parts"]


def name_parts(program: Program, sums: Mapping[Var, Var], unsummed: Iterable[Var]) -> None:
    """Give each partial sum to a new variable, `NAME.part`; `sums` are the partial sums that are exchanged, each with its total.

    A variable of `sums` becomes the total, under its own name. A variable of `unsummed` leaves its block: no value of the program is its.
    """
    renamed: dict[Var, Var] = {}
    for var, total in sums.items():
        renamed[var] = _take_over(var)
        renamed[total] = var
        del total.block.vars[total.name]
        var.block.vars[var.name] = var
        var.shape = total.shape
    for var in unsummed:
        renamed[var] = _take_over(var)
    if not renamed:
        return
    owners: list[Op] = []
    for op in walk(program.main):
        op.inputs = {slot: tuple(renamed.get(var, var) for var in vars) for slot, vars in op.inputs.items()}
        op.outputs = {slot: tuple(renamed.get(var, var) for var in vars) for slot, vars in op.outputs.items()}
        op.attributes = {name: renamed.get(value, value) if isinstance(value, Var) else value for name, value in op.attributes.items()}
        for var in () if op.is_commit else op.writes:
            var.op = op
        owners += [op] if op.blocks else []
    for block in inner_blocks(program.main):
        block.outputs = [renamed.get(var, var) for var in block.outputs]
    program.targets = {label: renamed.get(var, var) for label, var in program.targets.items()}
    for op in owners:
        Layout.of(op).write()
    program.changed()


def _take_over(var: Var) -> Var:
    """A new variable for the part of each worker of `var`, which has no name and no op until it becomes the total."""
    block = var.block
    part = block.new_var(free_name(block, var.name, "part"), var.dtype, var.shape, stop_gradient=var.stop_gradient, location=var.location)
    part.place = var.place
    del block.vars[var.name]
    var.op = None
    return part
