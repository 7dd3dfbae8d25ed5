"""Ops on the rows of a worker that are written otherwise than the ops on all rows were."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from oarlock.ir.attribute import Sizes
from oarlock.ir.dtype import DType
from oarlock.ir.operation import Op
from oarlock.ir.shape_rules import require_axes
from oarlock.ir.var import Var
from oarlock.op.composed.arithmetic import constant_like
from oarlock.op.dtype_conversion import cast
from oarlock.op.elementwise import add, divide, multiply
from oarlock.op.matrix import dot
from oarlock.op.reduction import reduce_sum
from oarlock.op.told_shape import size
from oarlock.passes.parallel.placement import PARTIAL, REPLICATED
from oarlock.passes.parallel.rows_of_workers import written_into
from oarlock.passes.parallel.rules import EXACT

if TYPE_CHECKING:
    from oarlock.passes.parallel.writing import Writing

__all__ = ["ROW_WAYS", "with_known_sizes"]


def _elements(writing: "Writing", op: Op, var: Var, dtype: DType) -> Var:
    """How many elements a mean is of, over the rows of all workers: dtype[]."""
    axes = require_axes(var.shape or (), op.attributes.get("axis"))  # type: ignore[arg-type]
    axis = writing.placed[var].axis
    count = writing.rows.get(var.shape[axis], op.block).total  # type: ignore[index]
    with written_into(op.block, op.role):
        for other in axes:
            if other != axis:
                count = multiply(count, size(var, axis=other))
        return cast(count, dtype=dtype)


def _mean(writing: "Writing", op: Op) -> None:
    """Divide the sum of each worker by the number of all elements, so that a cost is exchanged late. Other dtypes are summed in float32."""
    (x, *_), (y,) = op.reads, op.writes
    exact = y.dtype if y.dtype in EXACT else DType.FLOAT32
    with written_into(op.block, op.role):
        values = [var if var.dtype is exact else cast(var, dtype=exact) for var in op.reads]
        axes = {name: op.attributes[name] for name in ("axis", "keepdim") if name in op.attributes}
        summed = dot(*values) if op.type == "dot" else reduce_sum(*values, **axes)  # type: ignore[arg-type]
        count = _elements(writing, op, x, exact)
        if exact is y.dtype:
            writing.define(op, "divide", {"x": summed, "y": count})
        else:
            writing.placed[summed] = PARTIAL
            total = writing.convert(summed, REPLICATED)
            writing.define(op, "cast", {"x": divide(total, count)}, {"dtype": y.dtype})


def _mean_gradient(writing: "Writing", op: Op) -> None:
    (dy,), (x,) = op.inputs["dy"], op.inputs["x_shape"]
    count = _elements(writing, op, x, dy.dtype)
    with written_into(op.block, op.role):
        writing.define(op, "reduce_sum_dx", {"dy": divide(dy, count), "x_shape": x}, op.attributes)


def _synchronized(writing: "Writing", op: Op) -> None:
    op.type = f"sync_{op.type}"
    writing.count += 1
    op.block.ops.append(op)


def _random(writing: "Writing", op: Op) -> None:
    """Draw the numbers of this worker's rows: from where they begin in the batch, which may itself begin later."""
    rows = writing.rows.get(op.writes[0].shape[0], op.block)  # type: ignore[index]
    first, given = rows.first, op.attributes.get("first_row", 0)
    if isinstance(given, Var) or given:
        with written_into(op.block, op.role):
            first = add(first, given if isinstance(given, Var) else constant_like(given, first))  # type: ignore[arg-type]
    op.attributes = {**op.attributes, "first_row": first}
    if op.type == "random_normal_like" and not op.attributes.get("all_rows"):
        op.attributes["all_rows"] = rows.total
    op.block.ops.append(op)


def with_known_sizes(op: Op) -> Sizes:
    """The shape that a reshape names, with a number for -1 where that is known: a worker without rows has no elements to find it by."""
    shape: Sizes = op.attributes["shape"]  # type: ignore[assignment]
    known = op.writes[0].shape or shape
    return Sizes(size if item == -1 and isinstance(size, int) else item for item, size in zip(shape, known, strict=True))


ROW_WAYS: dict[str, Callable[["Writing", Op], None]] = {
    "mean": _mean,
    "mean_dx": _mean_gradient,
    "sync_batch_norm": _synchronized,
    "random": _random,
}
