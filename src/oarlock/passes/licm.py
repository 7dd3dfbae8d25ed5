"""Loop-invariant code motion: what is the same in every iteration of a loop is computed once, before it."""

from oarlock.ir.operation import Op
from oarlock.ir.program import Program
from oarlock.ir.substitution import replace_reads
from oarlock.ir.traversal import inner_blocks
from oarlock.ir.var import Var
from oarlock.op.control.layout import Layout
from oarlock.passes.loops import copy_op
from oarlock.registry.catalogue import Catalogue
from oarlock.registry.value_checks import checks_values

__all__ = ["licm"]


def licm(program: Program, catalogue: Catalogue) -> int:
    """Hoist loop invariants of `program`; return how many ops that were.

    Before                                       After
        hs = recurrent(xs, h0, body=                 one = full(1.0)
            one = full(1.0)                          hs = recurrent(xs, h0, body=
            h' = multiply(x, subtract(one, h)))          h' = multiply(x, subtract(one, h)))

    Legal for an op that reads nothing of its trip, draws nothing and cannot refuse values: a loop that makes no trip would
    not have run it. Costs the memory of its results while the loop runs, and the op itself where there is no trip.
    """
    count = 0
    for block in reversed(inner_blocks(program.main)):
        for op in [op for op in block.ops if op.type in ("recurrent", "while")]:
            count += _hoist_from(op, catalogue)
    return count


def _hoist_from(loop: Op, catalogue: Catalogue) -> int:
    layout = Layout.of(loop)
    block = loop.block
    moved: dict[Var, Var] = {}
    kept: list[Op] = []
    for op in layout.body.ops:
        operator = catalogue.get(op.type)
        fixed = all(var in moved or var.block is not layout.body for var in op.reads)
        if not fixed or op.blocks or operator.effects or checks_values(operator, op):
            kept.append(op)
            continue
        names = block.program.unique
        outer = {
            var: block.new_var(names(f"{var.name.partition('@')[0]}@HOISTED"), var.dtype, var.shape, location=var.location)
            for var in op.writes
        }
        for var, held in outer.items():
            held.stop_gradient = var.stop_gradient
        outputs = {slot: tuple(outer[var] for var in vars) for slot, vars in op.outputs.items()}
        copy_op(op, block, block.ops.index(loop), moved, outputs)
        moved |= outer
    if moved:
        layout.body.ops = kept
        replace_reads(layout.body, moved)
        Layout.of(loop).write()
    return len({id(var.op) for var in moved.values()})
