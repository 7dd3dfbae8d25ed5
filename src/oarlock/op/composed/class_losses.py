"""Losses of classifiers as in PyTorch: class weights, ignored labels, label smoothing, classes along any axis."""

from oarlock.errors import ArgumentError, ShapeError
from oarlock.ir.location import here
from oarlock.ir.python_number import as_python
from oarlock.ir.rollback import undone_on_error
from oarlock.ir.shape_rules import require_axis
from oarlock.ir.var import Var
from oarlock.op.activation import log_softmax
from oarlock.op.choice import where
from oarlock.op.comparison import not_equal
from oarlock.op.composed.arithmetic import constant_like
from oarlock.op.composed.loss_reduction import reduced, require_one_shape, require_reduction
from oarlock.op.elementwise import add, divide, multiply, neg
from oarlock.op.indexing import gather
from oarlock.op.loss import negative_log_likelihood, softmax_with_cross_entropy, valid_mean
from oarlock.op.manipulation import match_last_axis, transpose
from oarlock.op.reduction import mean, reduce_sum
from oarlock.registry.creator import require_type

__all__ = ["cross_entropy", "nll_loss", "rows_of_classes"]


def nll_loss(
    log_p: Var, label: Var, weight: Var | None = None, *, ignore_index: int = -100, reduction: str = "mean", axis: int | None = None
) -> Var:
    """`negative_log_likelihood` with classes along ``axis`` (default: axis 1, or the only one).

    Each row is weighted by the ``weight``, float[k], of its class; ignored rows do not count, in a mean either. Raises ArgumentError for an
    unknown reduction, and the errors of the operators.
    """
    require_reduction(reduction)
    with undone_on_error(require_type(log_p, "nll_loss: log_p").block.program):
        rows = rows_of_classes(log_p, axis)
        weight = _require_each_class("nll_loss", rows, weight)
        return _reduced(negative_log_likelihood(rows, label, ignore_index=ignore_index), label, weight, ignore_index, reduction)


def cross_entropy(
    logits: Var,
    target: Var,
    weight: Var | None = None,
    *,
    ignore_index: int = -100,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
    axis: int | None = None,
) -> Var:
    """Cross entropy between logits and class ids, or a float target with a probability for each class.

    It is the `nll_loss` of the `log_softmax`; a float target has no ignored rows. ``label_smoothing`` is the part of the target that is
    spread evenly over all classes (Szegedy et al., 2016). Raises the errors of `nll_loss`.
    """
    require_reduction(reduction)
    share = as_python(label_smoothing)
    if not isinstance(share, int | float) or not 0.0 <= share <= 1.0:
        raise ArgumentError(f"cross_entropy: label_smoothing must be from 0 to 1, not {label_smoothing!r:.60}", location=here())
    with undone_on_error(require_type(logits, "cross_entropy: logits").block.program):
        rows = rows_of_classes(logits, axis)
        weight = _require_each_class("cross_entropy", rows, weight)
        if require_type(target, "cross_entropy: target").dtype.is_floating:
            target = require_one_shape("cross_entropy", logits, target)
            return _of_probabilities(rows, rows_of_classes(target, axis), weight, label_smoothing, reduction)
        if label_smoothing == 0.0:
            loss = softmax_with_cross_entropy(rows, target, ignore_index=ignore_index)
            return _reduced(loss, target, weight, ignore_index, reduction)
        log_p = log_softmax(rows)
        even = where(_kept(target, ignore_index), _even(log_p, weight), constant_like(0.0, rows))
        loss = negative_log_likelihood(log_p, target, ignore_index=ignore_index)
        return _reduced(loss, target, weight, ignore_index, reduction, even=even, share=label_smoothing)


def rows_of_classes(x: Var, axis: int | None) -> Var:
    """Return ``x`` with the axis of classes last. Raises ShapeError."""
    if axis == -1:
        return x
    if x.shape is None:
        raise ShapeError(f'the shape of "{x.name}" is unknown, so its axis of classes is, too', location=here(), given=[x.describe()])
    rank = len(x.shape)
    at = require_axis(x.shape, min(1, rank - 1) if axis is None else axis)
    return x if at == rank - 1 else transpose(x, axes=(*(each for each in range(rank) if each != at), at))


def _require_each_class(what: str, rows: Var, weight: Var | None) -> Var | None:
    """Return the weights, which must be one per class; unknown sizes are compared when the program runs.

    Raises ShapeError if they are known to differ, ArgumentError if `weight` is not a variable.
    """
    if weight is None or (shape := require_type(weight, f"{what}: weight").shape) is None:
        return weight
    count = (rows.shape or (None,))[-1]
    if len(shape) != 1 or (isinstance(count, int) and isinstance(shape[0], int) and shape[0] != count):
        raise ShapeError(
            f"{what}: weight is {weight.type_text}, but must have one number for each of {count} classes",
            location=here(),
            given=[rows.describe(), weight.describe()],
        )
    return weight if shape[0] == count else match_last_axis(weight, rows)


def _kept(label: Var, ignore_index: int) -> Var:
    return not_equal(label, constant_like(ignore_index, label))


def _even(log_p: Var, weight: Var | None) -> Var:
    """Return the loss of a uniform target, weighted by class."""
    return neg(mean(log_p if weight is None else multiply(log_p, weight), axis=-1))


def _mixed(loss: Var, even: Var, share: float) -> Var:
    return add(multiply(loss, constant_like(1.0 - share, loss)), multiply(even, constant_like(share, loss)))


def _of_probabilities(rows: Var, target: Var, weight: Var | None, share: float, reduction: str) -> Var:
    log_p = log_softmax(rows)
    weighed = log_p if weight is None else multiply(log_p, weight)
    loss = neg(reduce_sum(multiply(weighed, target), axis=-1))
    if share:
        loss = _mixed(loss, _even(log_p, weight), share)
    return reduced(loss, reduction)


def _reduced(
    loss: Var, label: Var, weight: Var | None, ignore_index: int, reduction: str, *, even: Var | None = None, share: float = 0.0
) -> Var:
    """Return the losses weighted by class, mixed with ``even``, and reduced; a mean is divided by the weights that count."""
    weights = None
    if weight is not None:
        kept = _kept(label, ignore_index)
        chosen = gather(weight, where(kept, label, constant_like(0, label)))
        weights = where(kept, chosen, constant_like(0.0, chosen))
        loss = multiply(loss, weights)
    if weights is not None and reduction == "mean":  # parts are divided separately, so that 0 by 0 is NaN as in PyTorch
        count = reduce_sum(weights)
        cost = divide(reduce_sum(loss), count)
        return cost if even is None else _mixed(cost, divide(reduce_sum(even), count), share)
    if even is not None:
        loss = _mixed(loss, even, share)
    if reduction == "mean":
        return valid_mean(loss, label, ignore_index=ignore_index)
    return reduce_sum(loss) if reduction == "sum" else loss
