"""Batch prologue of a loop: what each step computes of its sequences alone is computed by one op on the whole sequence, before the loop."""

from oarlock.ir.operation import Op
from oarlock.ir.program import Program
from oarlock.op.control.layout import Layout
from oarlock.passes.loops import StackedNames, attributes_outside, copy_op, loops_in, outside_shape
from oarlock.passes.rewriter import declare
from oarlock.registry.catalogue import Catalogue

__all__ = ["batch_prologue"]


def batch_prologue(program: Program, catalogue: Catalogue) -> int:
    """Lift what may be lifted out of the loops of `program`; return how many ops that were.

    Before                                           After
        hs = recurrent(xs, h0, body=                     zs = linear(xs, w)
            z = linear(x, w)                             hs = recurrent(zs, h0, body=
            h' = tanh(add(z, linear(h, u)))                  h' = tanh(add(z, linear(h, u)))
            -> h', h')                                       -> h', h')

    Legal for an op that computes each leading index alone, where all that varies from step to step comes from the sequences, as its
    signature promises, or what is said of its axes: a `split` of a step becomes one of the sequence. One product of many rows rounds
    differently from many products: values change in their last bits. Costs the memory of the stack. Does not apply to values whose
    sizes differ from step to step, to random ops, or to what depends on a memory.
    """
    count, names = 0, StackedNames()
    for op in loops_in(program.main):
        count += _lift_from(op, names.of(op.block), catalogue)
    return count


def _lift_from(loop: Op, names: set[str], catalogue: Catalogue) -> int:
    layout = Layout.of(loop)
    ragged = "splits" in loop.inputs
    whole = {inner: outer for inner, outer in layout.steps if not ragged or outside_shape(layout, inner, names) is not None}
    kept: list[Op] = []
    for op in layout.body.ops:
        shapes = [outside_shape(layout, var, names) for var in op.writes]
        free = all(var in whole or var.block is not layout.body for var in op.reads)
        attributes = attributes_outside(catalogue.get(op.type), op, whole, ragged=ragged)
        if not free or None in shapes or attributes is None:
            kept.append(op)
            continue
        outer = {var: declare(var, shape, "LIFTED", loop.block) for var, shape in zip(op.writes, shapes, strict=True)}
        copy_op(
            op,
            loop.block,
            loop.block.ops.index(loop),
            whole,
            {slot: tuple(outer[var] for var in vars) for slot, vars in op.outputs.items()},
            attributes,
        )
        for var, stack in outer.items():
            var.op = None
            whole[var] = stack
            layout.steps.append((var, stack))
    lifted = len(layout.body.ops) - len(kept)
    if lifted:
        layout.body.ops = kept
        layout.write()
    return lifted
