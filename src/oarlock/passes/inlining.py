"""Inlining: the ops of a branch that always runs stand in the block around it."""

from oarlock.ir.block import Block
from oarlock.ir.operation import Op
from oarlock.ir.program import Program
from oarlock.ir.traversal import inner_blocks
from oarlock.ir.var import Var
from oarlock.op.control.layout import Layout
from oarlock.registry.catalogue import Catalogue
from oarlock.registry.value_checks import checks_values

__all__ = ["inline"]


def inline(program: Program, catalogue: Catalogue) -> int:
    """Put the ops of branches without a condition where the branches stand; return how many branches that were.

    Before                                       After
        y = conditional_block(rows, body=            y@INLINED = linear(rows, w)
            z = linear(r, w)                         y = relu(y@INLINED)
            -> relu(z))

    What else the passes know of a block, they know of these ops then: gradients of weights that rows of one branch alone have
    become updates. Costs nothing. Does not apply to blocks with ops whose kernels may refuse values or ask for the run, for their
    messages and their random numbers name the branch, nor to blocks with blocks.
    """
    count = 0
    for block in reversed(inner_blocks(program.main)):
        if any(_may_go(op, catalogue) for op in block.ops):
            count += _inline_into(block, catalogue)
    return count


def _may_go(op: Op, catalogue: Catalogue) -> bool:
    if op.type != "conditional_block" or "when" in op.inputs:
        return False
    return not any(inner.blocks or _minds(catalogue, inner) for inner in Layout.of(op).body.ops)


def _minds(catalogue: Catalogue, op: Op) -> bool:
    """Whether where an op stands can be told from what it does."""
    operator = catalogue.get(op.type)
    return bool(operator.effects or checks_values(operator, op) or operator.wants_context)


def _inline_into(block: Block, catalogue: Catalogue) -> int:
    ops: list[Op] = []
    count = 0
    for op in block.ops:
        if _may_go(op, catalogue):
            ops += _outside(op)
            count += 1
        else:
            ops.append(op)
    block.ops = ops
    block.program.changed()
    return count


def _outside(branch: Op) -> list[Op]:
    """The ops of a branch, reading and defining variables of the block around it."""
    layout, block = Layout.of(branch), branch.block
    names = dict(layout.steps)
    returned = dict(reversed(layout.stacked))
    ops: list[Op] = []
    for op in layout.body.ops:
        for var in op.writes:
            name = f"{var.name.partition('@')[0]}@INLINED"
            outer = returned.get(var)
            names[var] = block.new_var(block.program.unique(name), var.dtype, var.shape, location=var.location) if outer is None else outer
        inputs = {slot: tuple(names.get(var, var) for var in vars) for slot, vars in op.inputs.items()}
        outputs = {slot: tuple(names[var] for var in vars) for slot, vars in op.outputs.items()}
        attributes = {name: names.get(value, value) if isinstance(value, Var) else value for name, value in op.attributes.items()}
        ops.append(Op(block, op.type, inputs, outputs, attributes, role=op.role, location=op.location))
    for inner, outer in layout.stacked:
        value = names.get(inner, inner)
        if value is not outer:
            ops.append(Op(block, "assign", {"x": (value,)}, {"y": (outer,)}, {}, role=branch.role, location=branch.location))
    for op in ops:
        for var in op.writes:
            var.op = op
    return ops
