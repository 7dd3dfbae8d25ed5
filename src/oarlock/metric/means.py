"""Means over all elements of all batches: of values, errors and cross entropy. NaN before the first batch."""

from collections.abc import Iterator
from contextlib import contextmanager

from oarlock.errors import ShapeError
from oarlock.ir.dtype import DType
from oarlock.ir.location import here
from oarlock.ir.var import Var
from oarlock.metric.state import State, can_be_equal, measuring
from oarlock.op.comparison import not_equal
from oarlock.op.composed.arithmetic import constant_like
from oarlock.op.creation import numel
from oarlock.op.dtype_conversion import cast
from oarlock.op.elementwise import divide, subtract
from oarlock.op.loss import softmax_with_cross_entropy
from oarlock.op.magnitude import abs_
from oarlock.op.reduction import reduce_sum
from oarlock.op.unary import exp, sqrt, square
from oarlock.registry.creator import require_type

__all__ = ["add_up", "mean", "mean_absolute_error", "mean_squared_error", "perplexity", "root_mean_squared_error"]


def mean(x: Var, *, name: str | None = None) -> Var:
    """Return the mean of all elements of all batches: real[...s] -> float64[]. State `<name>.sum` float64[], `<name>.count` int64[]."""
    x = require_type(x, "metric.mean: x")
    with measuring("mean", name, x) as state:
        return state.out(_mean(state, x))


def mean_absolute_error(predict: Var, target: Var, *, name: str | None = None) -> Var:
    """Return the mean of ``|predict - target|`` over all elements of all batches: float[...s], float[...s] -> float64[].

    State is as in `mean`. Raises ShapeError if the shapes differ.
    """
    with _of_errors("mean_absolute_error", name, predict, target) as (state, error):
        return state.out(_mean(state, abs_(error)))


def mean_squared_error(predict: Var, target: Var, *, name: str | None = None) -> Var:
    """Return the mean of ``(predict - target)**2`` over all elements of all batches: float[...s], float[...s] -> float64[].

    State is as in `mean`. Raises ShapeError if the shapes differ.
    """
    with _of_errors("mean_squared_error", name, predict, target) as (state, error):
        return state.out(_mean(state, square(error)))


def root_mean_squared_error(predict: Var, target: Var, *, name: str | None = None) -> Var:
    """Return the square root of `mean_squared_error` over all batches: float[...s], float[...s] -> float64[].

    It is not the mean of the roots of batches. State is as in `mean`. Raises ShapeError if the shapes differ.
    """
    with _of_errors("root_mean_squared_error", name, predict, target) as (state, error):
        return state.out(sqrt(_mean(state, square(error))))


def perplexity(logits: Var, label: Var, *, ignore_index: int = -100, name: str | None = None) -> Var:
    """Return the exponential of the mean cross entropy of all labels of all batches: float[*b k], int64[*b] -> float64[].

    Labels equal to `ignore_index` are not counted. Each label of a padded or ragged sequence counts once, regardless of its length. State
    `<name>.sum` float64[], `<name>.count` int64[].
    """
    logits, label = require_type(logits, "metric.perplexity: logits"), require_type(label, "metric.perplexity: label")
    with measuring("perplexity", name, logits, label) as state:
        losses = softmax_with_cross_entropy(logits, label, ignore_index=ignore_index)
        counted = not_equal(label, constant_like(ignore_index, label))
        total, count = add_up(state, "sum", cast(losses, dtype=DType.FLOAT64)), add_up(state, "count", cast(counted, dtype=DType.INT64))
        return state.out(exp(divide(total, cast(count, dtype=DType.FLOAT64))))


def add_up(state: State, part: str, x: Var) -> Var:
    """Add the sum of `x` to a part of the state."""
    return state.add(part, reduce_sum(x))


def _mean(state: State, x: Var) -> Var:
    total = add_up(state, "sum", cast(x, dtype=DType.FLOAT64))
    return divide(total, cast(state.add("count", numel(x, dtype=DType.INT64)), dtype=DType.FLOAT64))


@contextmanager
def _of_errors(kind: str, name: str | None, predict: Var, target: Var) -> Iterator[tuple[State, Var]]:
    """Open the state of a metric; return it with the difference in float64, to sum many batches accurately. Raises ShapeError."""
    predict, target = require_type(predict, f"metric.{kind}: predict"), require_type(target, f"metric.{kind}: target")
    if not can_be_equal(predict.shape, target.shape):
        raise ShapeError(
            f"metric.{kind}: predict and target have different shapes, but errors are per element",
            location=here(),
            given=[predict.describe(), target.describe()],
        )
    with measuring(kind, name, predict, target) as state:
        yield state, subtract(cast(predict, dtype=DType.FLOAT64), cast(target, dtype=DType.FLOAT64))
