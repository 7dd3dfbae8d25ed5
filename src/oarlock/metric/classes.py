"""How well classes are told: shares of rows, and what tables of the classes told and the true ones say. Their definitions are those of
scikit-learn, as are their values where a denominator is 0: precision, recall and F1 are 0, and a share of no rows is NaN.
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
from oarlock.metric.state import State, may_be_alike, measuring, ratio
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
    """The share of labels at which `predict` is largest: float[...s k ...t], int64[...s ...t] -> float64[].

    `axis` of `predict` is that of the classes. Labels that are `ignore_index` are not counted. NaN where none is.
    State `<name>.right`, `<name>.count` int64[].
    """
    with _given("accuracy", name, predict, label, axis) as (state, predict, label):
        return state.out(_share(state, equal(argmax(predict, axis=axis), label), label, ignore_index))


def top_k_accuracy(predict: Var, label: Var, k: int, *, ignore_index: int = -100, name: str | None = None) -> Var:
    """The share of labels that are among the `k` largest entries of their row: float[*b c], int64[*b] -> float64[]. Else as `accuracy`."""
    require_count("metric.top_k_accuracy: k", k)
    with _given("top_k_accuracy", name, predict, label, -1) as (state, predict, label):
        _, indices = top_k(predict, k=k)
        found = any_(equal(indices, unsqueeze(label, -1)), axis=-1)
        return state.out(_share(state, found, label, ignore_index))


def binary_accuracy(predict: Var, label: Var, *, threshold: float = 0.5, ignore_index: int = -100, name: str | None = None) -> Var:
    """The share of labels, 0 or 1, that are 1 where `predict` is above `threshold`, and else 0: float[...s], int64[...s] -> float64[].

    Otherwise as `accuracy`.
    """
    with _given("binary_accuracy", name, predict, label) as (state, predict, label):
        told = cast(greater(predict, constant_like(threshold, predict)), dtype=DType.INT64)
        return state.out(_share(state, equal(told, label), label, ignore_index))


def confusion_matrix(
    predict: Var, label: Var, *, axis: int = -1, threshold: float = 0.5, ignore_index: int = -100, name: str | None = None
) -> Var:
    """How often each true class, a row, was told to be each class, a column: int64[k k].

    `predict` has a score for each class along its `axis`, float[...s k ...t] beside labels int64[...s ...t]; or as many elements as labels,
    float[...s], of which those above `threshold` say 1 and others 0. Labels that are `ignore_index` are not counted; one that is no class
    makes the run raise KernelError. State `<name>.counts` int64[k k].
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
    """Of the rows told to be of a class, the share that is: float64[], or float64[k] where `average` is None.

    `average` is "macro", the mean over the classes that are there or were told; "weighted", that mean by how often each is there; "micro",
    the share over all classes together; None for each class alone, 0 where it was never told. What else is given, and the state, are those
    of `confusion_matrix`; where `predict` has no axis of classes, it is the precision of class 1, whatever `average`.
    Raises ArgumentError for another average.
    """
    with _given("precision", name, predict, label, axis) as (state, predict, label):
        right, told, true = _counts(state, predict, label, axis, threshold, ignore_index)
        return state.out(_averaged(right, told, (told, true), _require_average(average, predict, label)))


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
    """Of the rows of a class, the share that is told to be: float64[], or float64[k] where `average` is None. Otherwise as `precision`."""
    with _given("recall", name, predict, label, axis) as (state, predict, label):
        right, told, true = _counts(state, predict, label, axis, threshold, ignore_index)
        return state.out(_averaged(right, true, (told, true), _require_average(average, predict, label)))


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
    """The harmonic mean of the precision and the recall of a class: float64[], or float64[k] where `average` is None. Else as `precision`.

    It is twice the rows told right by those told to be of the class and those of the class. The mean is that of F1 of each class.
    """
    with _given("f1", name, predict, label, axis) as (state, predict, label):
        right, told, true = _counts(state, predict, label, axis, threshold, ignore_index)
        return state.out(_averaged(add(right, right), add(told, true), (told, true), _require_average(average, predict, label)))


def mean_iou(predict: Var, label: Var, *, axis: int = -1, threshold: float = 0.5, ignore_index: int = -100, name: str | None = None) -> Var:
    """The mean, over the classes that are there or were told, of intersection over union: float64[]. NaN where there are none.

    Of a class, the places told right by those told or true (Everingham et al., 2010). For images of logits, float[n k h w] beside labels
    int64[n h w], `axis` is 1. What else is given, and the state, are those of `confusion_matrix`.
    """
    with _given("mean_iou", name, predict, label, axis) as (state, predict, label):
        right, told, true = _counts(state, predict, label, axis, threshold, ignore_index)
        union = subtract(add(told, true), right)
        seen = cast(greater(union, constant_like(0.0, union)), dtype=DType.FLOAT64)
        return state.out(divide(reduce_sum(ratio(right, union)), reduce_sum(seen)))


def table_of(state: State, predict: Var, label: Var, axis: int, threshold: float, ignore_index: int) -> Var:
    """The confusion matrix of all batches, which is the state."""
    if _is_binary(predict, label):
        classes, told = 2, cast(greater(predict, constant_like(threshold, predict)), dtype=DType.INT64)
    else:
        classes, told = require_number(predict.shape, axis, "metric", predict), argmax(predict, axis=axis)
    return state.add("counts", contingency_table(label, told, rows=classes, columns=classes, ignore_index=ignore_index))


@contextmanager
def _given(kind: str, name: str | None, predict: Var, label: Var, axis: int | None = None) -> Iterator[tuple[State, Var, Var]]:
    """The state, and both variables. Raises ShapeError where they do not fit: labels are as many as what is told of them."""
    predict, label = require_type(predict, f"metric.{kind}: predict"), require_type(label, f"metric.{kind}: label")
    shape = predict.shape
    if axis is not None and shape is not None and label.shape is not None and not _is_binary(predict, label):
        require_axis(shape, axis, "predict")
        shape = tuple(size for number, size in enumerate(shape) if number != axis % len(shape))
    if not may_be_alike(shape, label.shape):
        raise ShapeError(
            f"metric.{kind}: there is not one label for each thing that is told",
            location=here(),
            contract="labels have the shape of predict, with its axis of classes left out where it has one",
            given=[predict.describe(), label.describe()],
        )
    with measuring(kind, name, predict, label) as state:
        yield state, predict, label


def _is_binary(predict: Var, label: Var) -> bool:
    return predict.ndim == label.ndim


def _share(state: State, right: Var, label: Var, ignore_index: int) -> Var:
    """The share of the labels that are not ignored for which `right` holds."""
    counted = not_equal(label, constant_like(ignore_index, label))
    found = add_up(state, "right", cast(logical_and(right, counted), dtype=DType.INT64))
    count = add_up(state, "count", cast(counted, dtype=DType.INT64))
    return divide(cast(found, dtype=DType.FLOAT64), cast(count, dtype=DType.FLOAT64))


def _counts(state: State, predict: Var, label: Var, axis: int, threshold: float, ignore_index: int) -> tuple[Var, Var, Var]:
    """How many rows of each class were told right, how many told to be of it, how many are: float64[k] each."""
    table = cast(table_of(state, predict, label, axis, threshold, ignore_index), dtype=DType.FLOAT64)
    return diagonal(table), reduce_sum(table, axis=0), reduce_sum(table, axis=1)


def _require_average(average: str | None, predict: Var, label: Var) -> str | None:
    """`average`, or "binary" where two classes have one number. Raises ArgumentError."""
    if average not in _AVERAGES:
        raise ArgumentError(f'average is "macro", "micro", "weighted" or None, not {average!r:.60}', location=here())
    return "binary" if _is_binary(predict, label) else average


def _averaged(part: Var, whole: Var, told_and_true: tuple[Var, Var], average: str | None) -> Var:
    """``part / whole`` of each class, or a mean of these; a class with nothing to divide by has 0."""
    told, true = told_and_true
    if average == "micro":
        return ratio(reduce_sum(part), reduce_sum(whole))
    each = ratio(part, whole)
    if average == "binary":
        return reshape(slice_(each, axis=0, start=1), shape=())
    if average is None:
        return each
    weight = true if average == "weighted" else cast(greater(add(told, true), constant_like(0.0, true)), dtype=DType.FLOAT64)
    return ratio(reduce_sum(multiply(each, weight)), reduce_sum(weight))
