"""Batch normalization by the statistics of the rows of each worker alone."""

from typing import TYPE_CHECKING

from oarlock.errors import ProgramError
from oarlock.ir.operation import Op
from oarlock.ir.var import Var
from oarlock.op.choice import maximum
from oarlock.op.collective import all_reduce
from oarlock.op.comparison import greater
from oarlock.op.composed.arithmetic import constant_like
from oarlock.op.dtype_conversion import cast
from oarlock.op.elementwise import divide, subtract
from oarlock.op.told_shape import size
from oarlock.passes.parallel.rows_of_workers import written_into
from oarlock.passes.rewriter import declare

if TYPE_CHECKING:
    from oarlock.passes.parallel.writing import Writing

__all__ = ["keep_statistics_local"]

_READERS = {"batch_norm_grad", "batch_norm_scale_grad"}


def keep_statistics_local(writing: "Writing", op: Op) -> None:
    """Leave `batch_norm` and its gradient as they are, of this worker's rows, and let the running statistics move by the workers' mean.

        y, mean, rstd, next_mean.own, ... = batch_norm(x, running_mean, ...)
        next_mean = running_mean + all_reduce(next_mean.own - running_mean) / all_reduce(whether there are rows)

    So these stay the same bits on all workers. Raises ProgramError where something else reads the statistics, such as a gradient of a
    gradient: it would take those of one worker to be those of all.
    """
    op.block.ops.append(op)
    if op.type != "batch_norm":
        return
    found = {*op.outputs["mean"], *op.outputs["rstd"]}
    reader = next((other for other in writing.decisions if other.type not in _READERS and not found.isdisjoint(other.reads)), None)
    if reader is not None:
        raise ProgramError(
            f"{reader.type} reads the statistics of a batch normalization, of which each worker would have its own",
            location=reader.location or op.location,
            hint="sync_batch_norm=True takes those of the rows of all workers",
        )
    (x,) = op.inputs["x"]
    results = [(slot, op.outputs[f"next_{slot}"][0], op.inputs[f"running_{slot}"][0]) for slot in ("mean", "variance")]
    with written_into(op.block, op.role):
        rows = size(x, axis=0)
        has_rows = cast(greater(rows, constant_like(0, rows)), dtype=results[0][1].dtype)
        moves = [subtract(_own(op, slot), running) for slot, _, running in results]  # 0 of a worker without rows
        *sums, count = all_reduce([*moves, has_rows])
        writing.count += 1
        count = maximum(count, constant_like(1, count))
        for (_, following, running), moved in zip(results, sums, strict=True):
            following.op = None
            writing.define(op, "add", {"x": running, "y": divide(moved, count)}, result=following)


def _own(op: Op, slot: str) -> Var:
    """The next running statistic of this worker alone, which the op gives in place of the one that all shall have."""
    (following,) = op.outputs[f"next_{slot}"]
    own = declare(following, following.shape, "OWN")
    own.op, op.outputs = op, {**op.outputs, f"next_{slot}": (own,)}
    return own
