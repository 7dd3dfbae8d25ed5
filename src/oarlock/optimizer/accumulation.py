"""Gradient accumulation: one update for several steps, for batches that do not fit into memory."""

from collections.abc import Callable
from dataclasses import dataclass

from oarlock.ir.block import Block
from oarlock.ir.dtype import DType
from oarlock.ir.var import Var
from oarlock.layer.control.switch import cond
from oarlock.op.choice import where
from oarlock.op.comparison import equal
from oarlock.op.composed.arithmetic import constant_like
from oarlock.op.creation import full_like
from oarlock.op.elementwise import add, assign, multiply
from oarlock.optimizer.clipping import Pairs
from oarlock.optimizer.step import new_state

__all__ = ["ACCUMULATED", "MEAN", "Accumulation"]

ACCUMULATED = "ACCUMULATED"
"""Suffix of the accumulated mean gradient of a parameter: `fc_0.w@ACCUMULATED`."""

MEAN = "MEAN"
"""Suffix of the accumulated mean including the gradient of the step: `fc_0.w@MEAN`."""


@dataclass(frozen=True)
class Accumulation:
    """The states of an optimizer with one update for several steps: the number of accumulated `batches` and of `updates`.

    `apply_accumulated` finds its variables by name: `sgd_0.due`, `sgd_0.applied_rate` and `w@MEAN`.
    """

    main: Block
    name: str
    steps: int
    batches: Var
    updates: Var

    @classmethod
    def new(cls, main: Block, name: str, steps: int) -> "Accumulation":
        """Declare the states, `sgd_0.accumulated` and `sgd_0.updates`: int64[]."""
        batches, updates = (new_state(main, f"{name}.{suffix}", 0.0, dtype=DType.INT64) for suffix in ("accumulated", "updates"))
        return cls(main, name, steps, batches, updates)

    def append(self, pairs: Pairs, rate: Var, update: Callable[[Pairs, Var, Var], dict[Var, Var]]) -> dict[Var, Var]:
        """Append the ops of `update`, called with mean gradients, rate and update count, in a block that every `steps`th step runs.

        The means are state of the parameters, `w@ACCUMULATED`, and are reset after an update. Returns the values to commit: those of
        `update` if the block runs, else the current ones.
        """
        main = self.main
        written: dict[Var, Var] = {}
        if not rate.persistable:  # an update without a batch uses the rate of the previous step
            applied = assign(rate)
            main.rename(applied, f"{self.name}.applied_rate")
            written[new_state(main, f"{self.name}.last_learning_rate", 0.0)] = assign(applied)
            rate = applied
        following, counted = add(self.batches, constant_like(1, self.batches)), add(self.updates, constant_like(1, self.updates))
        means: dict[Var, Var] = {}
        for parameter, gradient in pairs:
            name, place = f"{parameter.name}@{ACCUMULATED}", parameter.place
            mean = new_state(main, name, 0.0, dtype=parameter.dtype, shape=parameter.shape, place=place)
            means[mean] = add(mean, multiply(gradient, constant_like(1.0 / self.steps, gradient)))
            main.rename(means[mean], f"{parameter.name}@{MEAN}")
        held: list[Var] = []

        def due() -> list[Var]:
            totals = [(parameter, total) for (parameter, _), total in zip(pairs, means.values(), strict=True)]
            updated = update(totals, rate, counted)
            held.extend(updated)
            return [*updated.values(), *(full_like(mean, value=0.0, dtype=mean.dtype) for mean in means)]

        def not_due() -> list[Var]:
            return [*held, *means.values()]

        is_due = equal(following, constant_like(self.steps, following))
        main.rename(is_due, f"{self.name}.due")
        values = cond(is_due, due, not_due)
        assert isinstance(values, tuple)  # at least a parameter and its mean
        written |= dict(zip([*held, *means], values, strict=True))
        written[self.batches] = where(is_due, constant_like(0, following), following)
        written[self.updates] = where(is_due, counted, self.updates)
        return written
