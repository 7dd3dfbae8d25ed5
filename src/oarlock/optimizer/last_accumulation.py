"""The last update of a run with gradient accumulation, by the mean of an incomplete set of batches."""

from collections.abc import Iterator

from oarlock.ir.block import Block
from oarlock.ir.dtype import DType
from oarlock.ir.operation import Role
from oarlock.ir.program import Program
from oarlock.ir.substitution import replace_reads
from oarlock.ir.var import Var, is_among
from oarlock.op.choice import maximum
from oarlock.op.comparison import greater
from oarlock.op.composed.arithmetic import constant_like
from oarlock.op.creation import full
from oarlock.op.dtype_conversion import cast
from oarlock.op.elementwise import divide, multiply
from oarlock.optimizer.accumulation import ACCUMULATED, MEAN
from oarlock.optimizer.loss_scaling import FINITE
from oarlock.passes.pruning import remove_dead_code
from oarlock.runtime.executor import Executor
from oarlock.runtime.scope import Scope

__all__ = ["accumulates", "apply_accumulated"]


def apply_accumulated(program: Program, scope: Scope, *, executor: Executor | None = None) -> int:
    """Update the parameters by the gradients accumulated since the last update; return the number of accumulated batches.

    It is the update that the optimizer makes after `accumulate` steps, with the mean gradient of the accumulated batches and the learning
    rate of the last step. The next update follows after `accumulate` more steps. Without accumulated gradients, nothing changes. `ol.train`
    calls it at the end of a run; a custom loop calls it after its last batch: `apply_accumulated(program, scope)`. Raises the errors of
    `Executor.run`.
    """
    names = [var.name for var in program.persistables() if _is_count(program, var)]
    counts = [0 if (found := scope.find_var(name)) is None or not found.is_set else int(scope[name]) for name in names]  # type: ignore[call-overload]
    if any(counts):
        (executor or Executor()).run(_last_update(program), {}, [], scope=scope, training=True)
    return max(counts, default=0)


def accumulates(program: Program) -> bool:
    """Return whether an optimizer of the program makes one update for several steps."""
    return any(_is_count(program, var) for var in program.persistables())


def _is_count(program: Program, var: Var) -> bool:
    return var.name.endswith(".accumulated") and program.main.find_var(f"{var.name.removesuffix('.accumulated')}.due") is not None


def _last_update(program: Program) -> Program:
    """Return the updates of an accumulating training program from its state alone, without a batch."""
    copy = program.clone()
    main, before = copy.main, set(copy.main.ops)
    replaced: dict[Var, Var] = {}
    with copy, copy.write_as(Role.UPDATE):
        for batches in [var for var in copy.persistables() if _is_count(copy, var)]:
            replaced.update(_without_batch(main, batches))
        for finite in [var for var in main.vars.values() if var.name.endswith(FINITE)]:  # of gradients that do not exist
            replaced[finite] = full(shape=(), value=1.0, dtype=DType.BOOL)
    made = [op for op in main.ops if op not in before]
    main.ops[:] = [*made, *(op for op in main.ops if op in before)]
    due = {var for var in replaced if var.name.endswith(".due")}
    for op in main.ops:
        if not op.is_commit and not due.isdisjoint(op.reads):
            due.update(op.writes)
    replace_reads(main, replaced)
    kept = {op for op in main.ops if op.is_commit and not due.isdisjoint(op.reads)}
    main.ops[:] = [op for op in main.ops if not op.is_commit or op in kept]
    copy.targets = {}
    remove_dead_code(main, [])
    copy.changed()
    return copy


def _without_batch(main: Block, batches: Var) -> Iterator[tuple[Var, Var]]:
    """Yield the variables of the step that an update reads, each with its replacement without a batch."""
    name = batches.name.removesuffix(".accumulated")
    is_due = main.var(f"{name}.due")
    updates = [op for op in main.ops if op.blocks and is_among(is_due, op.reads)]
    means = dict.fromkeys(var for op in updates for var in op.reads if var.name.endswith(f"@{MEAN}"))
    steps = full(shape=(), value=_steps_of(is_due), dtype=DType.FLOAT64)
    share = divide(steps, cast(maximum(batches, constant_like(1, batches)), dtype=DType.FLOAT64))
    for mean in means:
        accumulated = main.var(f"{mean.name.removesuffix(MEAN)}{ACCUMULATED}")
        yield mean, multiply(accumulated, cast(share, dtype=accumulated.dtype))
    applied = main.find_var(f"{name}.applied_rate")
    if applied is not None:
        yield applied, main.var(f"{name}.last_learning_rate")
    yield is_due, greater(batches, constant_like(0, batches))


def _steps_of(is_due: Var) -> float:
    """Return the number of steps per update, the constant that the batch count is compared with."""
    assert is_due.op is not None
    (steps,) = is_due.op.inputs["y"]
    assert steps.op is not None
    return float(steps.op.attributes["value"])  # type: ignore[arg-type]
