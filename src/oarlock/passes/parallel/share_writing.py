"""Ops on shares that are written otherwise than the ops on whole values were."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from oarlock.ir.attribute import Sizes
from oarlock.ir.operation import Op
from oarlock.ir.var import Var
from oarlock.op.choice import where
from oarlock.op.composed.arithmetic import constant_like
from oarlock.op.composed.shape import unsqueeze
from oarlock.op.creation import full
from oarlock.op.indexing import gather
from oarlock.op.randomness import dropout
from oarlock.op.reduction import mean, mean_dx
from oarlock.op.shares import rows_of_share
from oarlock.op.told_shape import broadcast_to
from oarlock.passes.parallel.rows_of_workers import written_into

if TYPE_CHECKING:
    from oarlock.passes.parallel.writing import Writing

__all__ = ["SHARE_WAYS"]


def _reshape(writing: "Writing", op: Op) -> None:
    """By the shape itself, rather than that of another value."""
    writing.define(op, "reshape", {"x": op.inputs["x"][0]}, {"shape": op.attributes["shape"]})


def _part_of_mean(writing: "Writing", op: Op) -> None:
    """The mean of a share, divided by the number of workers."""
    (x,) = op.inputs["x"]
    with written_into(op.block, op.role):
        own = mean(x, axis=op.attributes.get("axis"), keepdim=op.attributes["keepdim"])
        writing.define(op, "multiply", {"x": own, "y": constant_like(1.0 / writing.placed[x].workers, own)})


def _part_of_mean_gradient(writing: "Writing", op: Op) -> None:
    (dy,), (x,) = op.inputs["dy"], op.inputs["x_shape"]
    with written_into(op.block, op.role):
        own = mean_dx(dy, x, axis=op.attributes.get("axis"), keepdim=op.attributes["keepdim"])
        writing.define(op, "multiply", {"x": own, "y": constant_like(1.0 / writing.placed[x].workers, own)})


def _lookup(writing: "Writing", op: Op) -> None:
    """Rows of the share, and zeros in place of those of other workers."""
    (x,), (rows,), (y,) = op.inputs["x"], op.inputs["rows"], op.writes
    with written_into(op.block, op.role):
        local, here = rows_of_share(rows, x, workers=writing.placed[x].workers)
        found = gather(x, local)
        writing.define(op, "where", {"condition": _ahead(here, y), "x": found, "y": constant_like(0.0, found)})


def _lookup_gradient(writing: "Writing", op: Op) -> None:
    (values,), (rows,), (like,) = op.inputs["values"], op.inputs["rows"], op.inputs["like"]
    with written_into(op.block, op.role):
        local, here = rows_of_share(rows, like, workers=writing.placed[like].workers)
        own = where(_ahead(here, values), values, constant_like(0.0, values))
        writing.define(op, "scatter_add", {"values": own, "rows": local, "like": like})


def _ahead(condition: Var, like: Var) -> Var:
    """A condition on the first axes of a value, so that it broadcasts."""
    more = len(like.shape or ()) - len(condition.shape or ())
    return unsqueeze(condition, *range(-more, 0)) if more else condition


def _dropout(writing: "Writing", op: Op) -> None:
    """Numbers are drawn for the whole, so that what one process would drop is dropped, and each worker takes its share of them."""
    (x,) = op.inputs["x"]
    y, mask = (op.outputs[slot][0] for slot in ("y", "mask"))
    placed = writing.placed[x]
    shape = list(x.shape or ())
    shape[placed.axis] = shape[placed.axis] * placed.workers  # type: ignore[operator]
    with written_into(op.block, op.role):
        one = full(shape=(), value=1.0, dtype=x.dtype)
        drawn = dropout(broadcast_to(one, [x], shape=Sizes(shape)), **op.attributes)  # type: ignore[arg-type]
        writing.define(op, "shard", {"x": drawn}, {"axis": placed.axis, "workers": placed.workers}, result=mask)
        writing.define(op, "multiply", {"x": x, "y": mask}, result=y)


SHARE_WAYS: dict[str, Callable[["Writing", Op], None]] = {
    "reshape": _reshape,
    "part_of_mean": _part_of_mean,
    "part_of_mean_dx": _part_of_mean_gradient,
    "gather": _lookup,
    "scatter_add": _lookup_gradient,
    "dropout": _dropout,
}
