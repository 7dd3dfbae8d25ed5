"""Classification metrics: accuracies, and metrics computed from a confusion matrix.

Definitions and values for a zero denominator follow scikit-learn: precision, recall and F1 are 0, and a fraction of no rows is NaN.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from oarlock.errors import ArgumentError, ShapeError
from oarlock.ir.dtype import DType
from oarlock.ir.location import here
from oarlock.ir.shape_rules import require_axis
from oarlock.ir.var import Var
from oarlock.layer.parameter import require_number
from oarlock.metric.means import add_up
from oarlock.metric.state import State, can_be_equal, measuring, ratio
from oarlock.op.comparison import equal, greater, not_equal
from oarlock.op.composed.arithmetic import constant_like
from oarlock.op.composed.shape import unsqueeze
from oarlock.op.dtype_conversion import cast
from oarlock.op.elementwise import add, divide, multiply, subtract
from oarlock.op.logical import any_, logical_and
from oarlock.op.manipulation import reshape, slice_
from oarlock.op.measurement import contingency_table
from oarlock.op.rearrangement import diagonal
from oarlock.op.reduction import reduce_sum
from oarlock.op.selection import argmax, top_k
from oarlock.registry.creator import require_type
from oarlock.registry.range_check import require_count

__all__ = ["accuracy", "binary_accuracy", "confusion_matrix", "f1", "mean_iou", "precision", "recall", "table_of", "top_k_accuracy"]

_AVERAGES = ("macro", "micro", "weighted", None)


def accuracy(predict: Var, label: Var, *, axis: int = -1, ignore_index: int = -100, name: str | None = None) -> Var:
    """Return the fraction of labels at which `predict` is largest: float[...s k ...t], int64[...s ...t] -> float64[].

    `axis` is the class axis of `predict`. Labels equal to `ignore_index` are not counted; NaN if no label is counted. State `<name>.right`,
    `<name>.count` int64[].
    """
    with _given("accuracy", name, predict, label, axis) as (state, predict, label):
        return state.out(_share(state, equal(argmax(predict, axis=axis), label), label, ignore_index))


def top_k_accuracy(predict: Var, label: Var, k: int, *, ignore_index: int = -100, name: str | None = None) -> Var:
    """Return the fraction of labels among the `k` largest entries of their row: float[*b c], int64[*b] -> float64[].

    Ignored labels and state are as in `accuracy`.
    """
    require_count("metric.top_k_accuracy: k", k)
    with _given("top_k_accuracy", name, predict, label, -1) as (state, predict, label):
        _, indices = top_k(predict, k=k)
        found = any_(equal(indices, unsqueeze(label, -1)), axis=-1)
        return state.out(_share(state, found, label, ignore_index))


def binary_accuracy(predict: Var, label: Var, *, threshold: float = 0.5, ignore_index: int = -100, name: str | None = None) -> Var:
    """Return the fraction of labels, 0 or 1, that equal ``predict > threshold``: float[...s], int64[...s] -> float64[].

    Ignored labels and state are as in `accuracy`.
    """
    with _given("binary_accuracy", name, predict, label) as (state, predict, label):
        predicted = cast(greater(predict, constant_like(threshold, predict)), dtype=DType.INT64)
        return state.out(_share(state, equal(predicted, label), label, ignore_index))


def confusion_matrix(
    predict: Var, label: Var, *, axis: int = -1, threshold: float = 0.5, ignore_index: int = -100, name: str | None = None
) -> Var:
    """Count how often each true class (row) was predicted as each class (column): int64[k k].

    `predict` has a score for each class along `axis`, float[...s k ...t], with labels int64[...s ...t]; or the shape of the labels,
    float[...s], where scores above `threshold` mean class 1 and others class 0. Labels equal to `ignore_index` are not counted; an invalid
    class makes the run raise KernelError. State `<name>.counts` int64[k k].
    """
    with _given("confusion_matrix", name, predict, label, axis) as (state, predict, label):
        return state.out(table_of(state, predict, label, axis, threshold, ignore_index))


def precision(
    predict: Var,
    label: Var,
    *,
    average: str | None = "macro",
    axis: int = -1,
    threshold: float = 0.5,
    ignore_index: int = -100,
    name: str | None = None,
) -> Var:
    """Return the fraction of rows predicted as a class that belong to it: float64[], or float64[k] if `average` is None.

    `average` is "macro", the mean over the classes that occur in labels or predictions; "weighted", their mean weighted by frequency in the
    labels; "micro", the fraction over all classes together; or None, one value per class, 0 for a class that was never predicted. The other
    arguments and the state are as in `confusion_matrix`; if `predict` has no class axis, the result is the precision of class 1, regardless
    of `average`. Raises ArgumentError for an invalid `average`.
    """
    with _given("precision", name, predict, label, axis) as (state, predict, label):
        right, predicted, true = _counts(state, predict, label, axis, threshold, ignore_index)
        return state.out(_average(right, predicted, (predicted, true), _require_average(average, predict, label)))


def recall(
    predict: Var,
    label: Var,
    *,
    average: str | None = "macro",
    axis: int = -1,
    threshold: float = 0.5,
    ignore_index: int = -100,
    name: str | None = None,
) -> Var:
    """Return the fraction of rows of a class that are predicted as it: float64[], or float64[k] if `average` is None.

    Arguments, state and errors are as in `precision`.
    """
    with _given("recall", name, predict, label, axis) as (state, predict, label):
        right, predicted, true = _counts(state, predict, label, axis, threshold, ignore_index)
        return state.out(_average(right, true, (predicted, true), _require_average(average, predict, label)))


def f1(
    predict: Var,
    label: Var,
    *,
    average: str | None = "macro",
    axis: int = -1,
    threshold: float = 0.5,
    ignore_index: int = -100,
    name: str | None = None,
) -> Var:
    """Return the harmonic mean of precision and recall of a class: float64[], or float64[k] if `average` is None.

    For a class it is twice the correct rows divided by the predicted plus the actual rows; averages are over the F1 of the classes.
    Arguments, state and errors are as in `precision`.
    """
    with _given("f1", name, predict, label, axis) as (state, predict, label):
        right, predicted, true = _counts(state, predict, label, axis, threshold, ignore_index)
        return state.out(_average(add(right, right), add(predicted, true), (predicted, true), _require_average(average, predict, label)))


def mean_iou(predict: Var, label: Var, *, axis: int = -1, threshold: float = 0.5, ignore_index: int = -100, name: str | None = None) -> Var:
    """Return the mean intersection over union of the classes that occur in labels or predictions: float64[]. NaN if there are none.

    For each class, it is the number of correct positions divided by the number of positions predicted or labelled as it (Everingham et al.,
    2010). For images of logits, float[n k h w] with labels int64[n h w], `axis` is 1. The other arguments and the state are as in
    `confusion_matrix`.
    """
    with _given("mean_iou", name, predict, label, axis) as (state, predict, label):
        right, predicted, true = _counts(state, predict, label, axis, threshold, ignore_index)
        union = subtract(add(predicted, true), right)
        seen = cast(greater(union, constant_like(0.0, union)), dtype=DType.FLOAT64)
        return state.out(divide(reduce_sum(ratio(right, union)), reduce_sum(seen)))


def table_of(state: State, predict: Var, label: Var, axis: int, threshold: float, ignore_index: int) -> Var:
    """Return the confusion matrix of all batches, which is the state."""
    if _is_binary(predict, label):
        classes, predicted = 2, cast(greater(predict, constant_like(threshold, predict)), dtype=DType.INT64)
    else:
        classes, predicted = require_number(predict.shape, axis, "metric", predict), argmax(predict, axis=axis)
    return state.add("counts", contingency_table(label, predicted, rows=classes, columns=classes, ignore_index=ignore_index))


@contextmanager
def _given(kind: str, name: str | None, predict: Var, label: Var, axis: int | None = None) -> Iterator[tuple[State, Var, Var]]:
    """Open the state of a metric, and validate both variables. Raises ShapeError unless there is one label for each prediction."""
    predict, label = require_type(predict, f"metric.{kind}: predict"), require_type(label, f"metric.{kind}: label")
    shape = predict.shape
    if axis is not None and shape is not None and label.shape is not None and not _is_binary(predict, label):
        require_axis(shape, axis, "predict")
        shape = tuple(size for number, size in enumerate(shape) if number != axis % len(shape))
    if not can_be_equal(shape, label.shape):
        raise ShapeError(
            f"metric.{kind}: labels and predictions do not match",
            location=here(),
            contract="labels have the shape of predict, without its class axis if it has one",
            given=[predict.describe(), label.describe()],
        )
    with measuring(kind, name, predict, label) as state:
        yield state, predict, label


def _is_binary(predict: Var, label: Var) -> bool:
    return predict.ndim == label.ndim


def _share(state: State, right: Var, label: Var, ignore_index: int) -> Var:
    """Return the fraction of labels for which `right` holds, excluding ignored ones."""
    counted = not_equal(label, constant_like(ignore_index, label))
    found = add_up(state, "right", cast(logical_and(right, counted), dtype=DType.INT64))
    count = add_up(state, "count", cast(counted, dtype=DType.INT64))
    return divide(cast(found, dtype=DType.FLOAT64), cast(count, dtype=DType.FLOAT64))


def _counts(state: State, predict: Var, label: Var, axis: int, threshold: float, ignore_index: int) -> tuple[Var, Var, Var]:
    """Return the numbers of correct, predicted and actual rows of each class: float64[k] each."""
    table = cast(table_of(state, predict, label, axis, threshold, ignore_index), dtype=DType.FLOAT64)
    return diagonal(table), reduce_sum(table, axis=0), reduce_sum(table, axis=1)


def _require_average(average: str | None, predict: Var, label: Var) -> str | None:
    """Return `average`, or "binary" if there is one number for two classes. Raises ArgumentError."""
    if average not in _AVERAGES:
        raise ArgumentError(f'average must be "macro", "micro", "weighted" or None, not {average!r:.60}', location=here())
    return "binary" if _is_binary(predict, label) else average


def _average(part: Var, whole: Var, occurrences: tuple[Var, Var], average: str | None) -> Var:
    """Return ``part / whole`` of each class, or its average; a class with a zero denominator has 0."""
    predicted, true = occurrences
    if average == "micro":
        return ratio(reduce_sum(part), reduce_sum(whole))
    each = ratio(part, whole)
    if average == "binary":
        return reshape(slice_(each, axis=0, start=1), shape=())
    if average is None:
        return each
    weight = true if average == "weighted" else cast(greater(add(predicted, true), constant_like(0.0, true)), dtype=DType.FLOAT64)
    return ratio(reduce_sum(multiply(each, weight)), reduce_sum(weight))
