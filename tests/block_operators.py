"""Branches and loops written with the block operators themselves, block by block."""

from collections.abc import Callable

import oarlock as ol
from oarlock.ir.block_stack import current_block
from oarlock.ir.traversal import free_vars
from oarlock.op.control.conditional import conditional_block
from oarlock.op.control.recurrent_loop import recurrent
from oarlock.op.control.while_loop import while_

__all__ = ["counted_while", "ragged_loop", "run_branch"]


def run_branch(name: str, when: ol.Var | None, write: Callable[[], ol.Var]) -> ol.Var:
    """A branch `name`, which runs where `when` holds; what it gives then has one dimension more in front."""
    block = current_block().program.new_block(name, current_block())
    with block:
        block.outputs = [write()]
    return conditional_block([], free_vars(block), when, body=block)[0]


def counted_while(name: str, trips: ol.Var, start: ol.Var, write: Callable[[ol.Var], ol.Var]) -> tuple[ol.Var, ol.Var]:
    """`start` after `write` was applied `trips` times, and the stack of what it was before each; trips: int64[]."""
    main = current_block()
    zero = ol.op.full(shape=(), value=0, dtype="int64")
    block = main.program.new_block(f"{name}.body", main)
    with block:
        number, value = block.new_var(f"{name}.number", zero.dtype, ()), block.new_var(f"{name}.value", start.dtype, start.shape)
        following = number + 1
        block.inputs = [number, value]
        block.outputs = [ol.op.less(following, trips), value, following, write(value)]
    stacked, final = while_(ol.op.less(zero, trips), [zero, start], free_vars(block), body=block)
    return final[1], stacked[0]


def ragged_loop(name: str, values: ol.Var, splits: ol.Var, write: Callable[[ol.Var], ol.Var]) -> ol.Var:
    """`write` applied to the rows of each step of ragged sequences."""
    block = current_block().program.new_block(f"{name}.body", current_block())
    with block:
        step = block.new_var(f"{name}.step", values.dtype, (block.program.unique("active"), *values.shape[1:]))
        block.inputs, block.outputs = [step], [write(step)]
    return recurrent([values], [], free_vars(block), splits, body=block)[0][0]
