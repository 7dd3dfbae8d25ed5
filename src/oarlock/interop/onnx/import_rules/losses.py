"""Classification losses, with classes along axis 1."""

from oarlock import op
from oarlock.interop.onnx.import_rules.forms import constant, squeezed, unsqueezed
from oarlock.interop.onnx.rule import Unsupported, rule
from oarlock.ir.dtype import DType
from oarlock.ir.var import Var


@rule("NegativeLogLikelihoodLoss")
def negative_log_likelihood(x, target, weight=None, *, ignore_index=None, reduction="mean"):
    return _loss(x, target, weight, ignore_index, reduction)


@rule("SoftmaxCrossEntropyLoss")
def softmax_cross_entropy(x, target, weight=None, *, ignore_index=None, reduction="mean", outputs):
    log = op.log_softmax(x, axis=1)
    return [_loss(log, target, weight, ignore_index, reduction), log][:outputs]


def _loss(log: Var, target: Var, weight: Var | None, ignored: int | None, reduction: str) -> Var:
    """Return the weighted losses, their sum, or their sum divided by the sum of weights. Ignored labels have weight 0."""
    if reduction not in ("none", "sum", "mean"):
        raise Unsupported(f"the reduction {reduction!r:.40} is not supported")
    target = target if target.dtype is DType.INT64 else op.cast(target, dtype=DType.INT64)
    valid = None if ignored is None else op.not_equal(target, constant(ignored, target))
    target = target if valid is None else op.where(valid, target, constant(0, target))
    loss = op.neg(squeezed(op.take_along_axis(log, unsqueezed(target, [1]), axis=1), [1]))
    share = None if weight is None else op.gather(weight, target)
    if valid is not None:
        share = op.cast(valid, dtype=log.dtype) if share is None else op.where(valid, share, constant(0.0, share))
    loss = loss if share is None else op.where(op.equal(share, constant(0.0, share)), constant(0.0, loss), op.multiply(loss, share))
    if reduction == "none":
        return loss
    if reduction == "mean" and share is None:
        return op.mean(loss)
    return op.reduce_sum(loss) if reduction == "sum" else op.divide(op.reduce_sum(loss), op.reduce_sum(share))  # type: ignore[arg-type]
