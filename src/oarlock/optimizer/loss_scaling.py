"""Loss scaling: gradients of a scaled cost, so that float16 gradients do not underflow."""

from collections.abc import Mapping, Sequence
from functools import reduce

from oarlock.errors import ArgumentError, ProgramError
from oarlock.ir.block import Block
from oarlock.ir.dtype import DType
from oarlock.ir.location import here
from oarlock.ir.names import COUNTER, next_name
from oarlock.ir.operation import Op, Role
from oarlock.ir.substitution import replace_reads
from oarlock.ir.var import Var, is_among
from oarlock.op.choice import where
from oarlock.op.comparison import equal
from oarlock.op.composed.arithmetic import constant_like
from oarlock.op.dtype_conversion import cast
from oarlock.op.elementwise import add, assign, multiply
from oarlock.op.logical import all_, logical_and, logical_not
from oarlock.op.rounding import isfinite
from oarlock.op.unary import reciprocal
from oarlock.optimizer.optimizer import Optimizer
from oarlock.optimizer.row_step import Gradient, Gradients, as_tables
from oarlock.optimizer.step import Step, commit_all, new_state
from oarlock.passes.backward import append_backward
from oarlock.registry.creator import describe_value
from oarlock.registry.range_check import require_count, require_number

__all__ = ["FINITE", "LossScaling"]

FINITE = ".finite"
"""Suffix of the flag that all gradients of a step are finite: `loss_scale_0.finite`."""


class LossScaling(Optimizer):
    """A wrapper of another optimizer for float16: it scales the cost, unscales the gradients, and skips steps with non-finite ones.

        ol.passes.mixed_precision(program, "float16")
        ol.optimizer.LossScaling(ol.optimizer.Adam(1e-3)).minimize(cost)

    The scale is state of the program, `loss_scale_0`, float32[], initialized to `initial`. If a gradient contains infinity or NaN, the
    parameters, the optimizer state and the update count used by schedules do not change, and the scale is multiplied by `backoff`. After
    `interval` consecutive finite steps it is multiplied by `growth`, unless the result is not finite. This follows PyTorch's GradScaler
    (Micikevicius et al., 2018, section 3.2). Raises ArgumentError for arguments out of range and for an invalid optimizer.
    """

    def __init__(self, optimizer: Optimizer, *, initial: float = 65536.0, growth: float = 2.0, backoff: float = 0.5, interval: int = 2000):
        super().__init__(1.0)
        if not isinstance(optimizer, Optimizer) or isinstance(optimizer, LossScaling):
            raise ArgumentError(f"LossScaling: optimizer must be another optimizer, not {describe_value(optimizer)}", location=here())
        self.optimizer = optimizer
        self.initial = require_number("initial", initial, above=0.0)
        self.growth = require_number("growth", growth, least=1.0)
        self.backoff = require_number("backoff", backoff, above=0.0, most=1.0)
        self.interval = require_count("interval", interval)
        self._scale: Var | None = None  # of the program being written

    def _gradients(self, cost: Var, parameters: Sequence[Var]) -> list[tuple[Var, Gradient]]:
        program = cost.block.program
        scale = new_state(program.main, program.unique("loss_scale"), self.initial, dtype=DType.FLOAT32)
        with program.main:
            scaled = append_backward(multiply(cost, cast(scale, dtype=cost.dtype)), parameters)
            with program.write_as(Role.BACKWARD):
                inverse = reciprocal(scale)
                pairs: list[tuple[Var, Gradient]] = [
                    (parameter, multiply(gradient, cast(inverse, dtype=gradient.dtype))) for parameter, gradient in scaled
                ]
        self._scale = scale
        return pairs

    def _require_usable(self, main: Block, parameters: Sequence[Var]) -> None:
        self.optimizer._require_usable(main, parameters)

    def _append(self, main: Block, pairs: Gradients, cost: Var | None) -> None:
        pairs = as_tables(pairs)  # a skipped step must leave whole tables unchanged
        scale, self._scale = self._scale, None
        if scale is None:
            raise ProgramError(
                "LossScaling has not scaled the cost of these gradients",
                location=here(),
                hint="call its minimize(cost), which scales too; for several optimizers, use LossScaling(Groups(...))",
            )
        checks = [all_(isfinite(gradient)) for _, gradient in pairs]
        finite = assign(reduce(logical_and, checks))
        main.rename(finite, f"{scale.name}{FINITE}")
        updates = new_state(main, f"{scale.name}.updates", 0.0, dtype=DType.INT64)
        following = add(updates, constant_like(1, updates))
        begin, commits = main.tail_start, set(main.tail)
        self.optimizer._append(main, pairs, cost)
        count = main.find_var(next_name(COUNTER))
        if count is not None:
            _replace(main.ops[begin : main.tail_start], count, {count: following, main.program.counter(): updates})
        made = {commit.writes[0]: commit for commit in main.tail if commit not in commits and commit.writes[0].name != COUNTER}
        for var, commit in made.items():
            _keep_unless(main, finite, var, commit)
        commit_all(main, {updates: where(finite, following, updates), **self._adjusted(main, scale, finite)})

    def _adjusted(self, main: Block, scale: Var, finite: Var) -> dict[Var, Var]:
        """Return the next scale, and the next number of consecutive finite steps."""
        streak = new_state(main, f"{scale.name}.streak", 0.0, dtype=DType.INT64)
        longer = add(streak, constant_like(1, streak))
        due = equal(longer, constant_like(self.interval, streak))
        grown = multiply(scale, constant_like(self.growth, scale))
        kept = where(logical_and(due, isfinite(grown)), grown, scale)
        next_scale = where(finite, kept, multiply(scale, constant_like(self.backoff, scale)))
        return {scale: next_scale, streak: where(logical_and(finite, logical_not(due)), longer, constant_like(0, streak))}

    def update(self, step: Step, parameter: Var, gradient: Var) -> None:
        raise NotImplementedError  # the wrapped optimizer updates


def _replace(ops: Sequence[Op], count: Var, counts: Mapping[Var, Var]) -> None:
    """Make updates and schedules read the count of actual updates instead of steps, except in the op that computes `count`."""
    for op in ops:
        if not is_among(count, op.writes):
            op.inputs = {slot: tuple(counts.get(var, var) for var in vars) for slot, vars in op.inputs.items()}
            for block in op.blocks:
                replace_reads(block, counts)


def _keep_unless(main: Block, finite: Var, var: Var, commit: Op) -> None:
    """Make a commit keep the current value if the gradients are not finite."""
    (value,) = commit.reads
    kept = where(finite, value, var)
    if value.name == next_name(var.name):
        main.rename(value, main.program.unique(f"{var.name}@UPDATED"))
    main.rename(kept, next_name(var.name))
    commit.inputs = {"x": (kept,)}
