"""Accumulation: gradients of several steps are added up before one update, as when a batch does not fit into memory."""

from collections.abc import Callable

from oarlock.ir.block import Block
from oarlock.ir.var import Var
from oarlock.layer.control.switch import cond
from oarlock.op.comparison import equal
from oarlock.op.composed.arithmetic import constant_like
from oarlock.op.creation import full_like
from oarlock.op.elementwise import add, multiply, remainder
from oarlock.optimizer.clipping import Pairs
from oarlock.optimizer.step import new_state

__all__ = ["accumulated"]


def accumulated(main: Block, pairs: Pairs, count: Var, steps: int, update: Callable[[Pairs], dict[Var, Var]]) -> dict[Var, Var]:
    """Append what `update` writes, given mean gradients of `steps` steps, in a block that every `steps`th step runs.

    The means are states beside the parameters, `w@ACCUMULATED`, which begin again after an update. Returns what is to be committed: what
    `update` returns where the block runs, else what there was.
    """
    means: dict[Var, Var] = {}
    for parameter, gradient in pairs:
        mean = new_state(main, f"{parameter.name}@ACCUMULATED", 0.0, dtype=parameter.dtype, shape=parameter.shape, place=parameter.place)
        means[mean] = add(mean, multiply(gradient, constant_like(1.0 / steps, gradient)))
    held: list[Var] = []

    def due() -> list[Var]:
        written = update([(parameter, total) for (parameter, _), total in zip(pairs, means.values(), strict=True)])
        held.extend(written)
        return [*written.values(), *(full_like(mean, value=0.0, dtype=mean.dtype) for mean in means)]

    def not_due() -> list[Var]:
        return [*held, *means.values()]

    is_due = equal(remainder(count, constant_like(steps, count)), constant_like(0, count))
    values = cond(is_due, due, not_due)
    assert isinstance(values, tuple)  # a parameter and its mean, at least
    return dict(zip([*held, *means], values, strict=True))
