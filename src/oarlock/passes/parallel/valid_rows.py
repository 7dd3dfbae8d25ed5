"""Means over the rows that labels do not ignore, which `valid_mean` takes, where each worker has rows of its own.

    Before                                   After
        cost = valid_mean(loss, label)           count = all_reduce(reduce_sum(label != ignore_index))
                                                 cost = divide(reduce_sum(loss), count), added up over the workers
        dloss = valid_mean_dx(label, dcost)      dloss = broadcast_to_like(divide(dcost, count), label)

Losses and gradients are 0 where the label is ignored: by a `where`, unless the operator of the losses, or of their gradient, does so.
"""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from oarlock.ir.dtype import DType
from oarlock.ir.operation import Op
from oarlock.ir.var import Var, is_among
from oarlock.op.choice import where
from oarlock.op.collective import all_reduce
from oarlock.op.comparison import not_equal
from oarlock.op.composed.arithmetic import constant_like
from oarlock.op.dtype_conversion import cast
from oarlock.op.elementwise import divide
from oarlock.op.reduction import broadcast_to_like, reduce_sum
from oarlock.passes.parallel.placement import PARTIAL, REPLICATED, Decision, Placement, sharded
from oarlock.passes.parallel.rows_of_workers import free_name, written_into
from oarlock.passes.rows import Place

if TYPE_CHECKING:
    from oarlock.passes.parallel.writing import Writing

__all__ = ["VALID_WAYS", "decide_valid_mean"]

_LOSSES = ("softmax_with_cross_entropy", "negative_log_likelihood")
_GRADIENTS_OF_LOSSES = ("softmax_with_cross_entropy_dlogits", "negative_log_likelihood_dlog_p")


def decide_valid_mean(op: Op, placed: Mapping[Var, Place], needs: Mapping[Var, Placement], exact: bool) -> Decision | None:
    """The decision about `valid_mean` and its gradient; None where the rows of the labels are not those of the values."""
    rows = [var for slot, vars in op.inputs.items() if slot != "dy" for var in vars]
    if not all(var in placed for var in rows) or len({placed[var] for var in rows}) != 1:
        return None
    place = placed[rows[0]]
    assert isinstance(place.outer, int), "no variable is placed otherwise"
    needs = dict(needs) | dict.fromkeys(op.inputs.get("dy", ()), REPLICATED)
    given = sharded(place.axis, place.outer) if op.type == "valid_mean_dx" else PARTIAL if exact else REPLICATED
    return Decision(needs, dict.fromkeys(op.writes, given), op.type)


def _valid_mean(writing: "Writing", op: Op) -> None:
    """Each worker gives its sum by the number of the valid rows of all. Other dtypes than float32 and float64 are summed in float32."""
    (x,), (label,), (y,) = op.inputs["x"], op.inputs["label"], op.writes
    exact = y.dtype if y.dtype is DType.FLOAT64 else DType.FLOAT32
    valid_count = _valid_count(writing, op, label)
    with written_into(op.block, op.role):
        if x.op is None or x.op.type not in _LOSSES or not _ignores_alike(x.op, op):
            x = where(_valid(op, label), x, constant_like(0.0, x))
        total = reduce_sum(x if x.dtype is exact else cast(x, dtype=exact))
        if exact is y.dtype:
            writing.define(op, "divide", {"x": total, "y": cast(valid_count, dtype=exact)})
        else:
            (total,) = all_reduce([total])
            writing.count += 1
            writing.define(op, "cast", {"x": divide(total, cast(valid_count, dtype=exact))}, {"dtype": y.dtype})


def _valid_mean_gradient(writing: "Writing", op: Op) -> None:
    (dy,), (label,), (dx,) = op.inputs["dy"], op.inputs["label"], op.writes
    readers = [other for other in writing.decisions if is_among(dx, other.reads)]
    valid_count = _valid_count(writing, op, label)
    with written_into(op.block, op.role):
        each = divide(dy, cast(valid_count, dtype=dy.dtype))
        if readers and all(other.type in _GRADIENTS_OF_LOSSES and _ignores_alike(other, op) for other in readers):
            writing.define(op, "broadcast_to_like", {"x": each, "like": label})
        else:
            inputs = {"condition": _valid(op, label), "x": broadcast_to_like(each, label), "y": constant_like(0.0, each)}
            writing.define(op, "where", inputs)


def _valid(op: Op, label: Var) -> Var:
    return not_equal(label, constant_like(op.attributes["ignore_index"], label))  # type: ignore[arg-type]


def _valid_count(writing: "Writing", op: Op, label: Var) -> Var:
    """The number of labels of all workers that are not ignored: int64[]."""
    key = (label, op.attributes["ignore_index"], op.block)
    if key not in writing.valid_counts:
        with written_into(op.block, op.role):
            (count,) = all_reduce([reduce_sum(cast(_valid(op, label), dtype=DType.INT64))])
        op.block.rename(count, free_name(op.block, label.name, "valid_count"))
        writing.valid_counts[key] = count
        writing.count += 1
    return writing.valid_counts[key]


def _ignores_alike(losses: Op, mean: Op) -> bool:
    """Whether an op gives 0 to the rows that the mean ignores."""
    return losses.inputs["label"][0] is mean.inputs["label"][0] and losses.attributes["ignore_index"] == mean.attributes["ignore_index"]


VALID_WAYS: dict[str, Callable[["Writing", Op], None]] = {"valid_mean": _valid_mean, "valid_mean_dx": _valid_mean_gradient}
