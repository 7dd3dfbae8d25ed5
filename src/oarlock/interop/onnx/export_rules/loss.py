"""Cross entropy with class ids, its gradients, and accuracy."""

from oarlock.interop.onnx.export_graph import Graph, Value
from oarlock.interop.onnx.export_rule import export
from oarlock.interop.onnx.export_rules.activation import softmax_gradient
from oarlock.interop.onnx.export_rules.functions import log1p
from oarlock.interop.onnx.export_rules.reduction import count_over
from oarlock.ir.dtype import DType


def _losses(g: Graph, logits: Value, label: Value, ignore_index: int) -> tuple[str, str, str]:
    """Return the loss of each row, the softmax, and which rows are ignored."""
    log_p = g("LogSoftmax", logits, axis=-1)
    loss, ignored = _at_label(g, Value(log_p, logits.dtype, logits.shape), label, ignore_index)
    return loss, g("Exp", log_p), ignored


def _at_label(g: Graph, log_p: Value, label: Value, ignore_index: int) -> tuple[str, str]:
    """Return ``-log_p[label]``, 0 for ignored rows, and which rows are ignored."""
    ignored = g("Equal", label, g.ints(ignore_index))
    classes = g.unsqueeze(g("Where", ignored, g.ints(0), label), -1)
    picked = g.squeeze(g("GatherElements", log_p, classes, axis=-1), -1)
    return g("Where", ignored, g.scalar(0, log_p.dtype), g("Neg", picked)), ignored


@export("softmax_with_cross_entropy")
def softmax_with_cross_entropy(g: Graph, logits: Value, label: Value, *, ignore_index: int) -> tuple[str, str]:
    loss, softmax, _ = _losses(g, logits, label, ignore_index)
    return loss, softmax


def _dlogits(g: Graph, softmax: Value, label: Value, dloss: str, ignore_index: int) -> str:
    """Return ``(softmax - onehot(label)) * dloss``, 0 for ignored rows; `dloss` broadcasts to [*b, 1]."""
    at = g("Equal", g.unsqueeze(label, -1), g.arange(g.dim(softmax, -1)))
    difference = g("Sub", softmax, g.cast(at, softmax.dtype))
    ignored = g.unsqueeze(g("Equal", label, g.ints(ignore_index)), -1)
    return g("Mul", difference, g("Where", ignored, g.scalar(0, softmax.dtype), dloss))


@export("softmax_with_cross_entropy_dlogits")
def softmax_with_cross_entropy_dlogits(
    g: Graph, softmax: Value, label: Value, dloss: Value, dsoftmax: Value | None = None, *, ignore_index: int
) -> str:
    dlogits = _dlogits(g, softmax, label, g.unsqueeze(dloss, -1), ignore_index)
    return dlogits if dsoftmax is None else g("Add", dlogits, softmax_gradient(g, softmax, dsoftmax))


@export("softmax_with_cross_entropy_dlogits_ddloss")
def softmax_with_cross_entropy_dlogits_ddloss(g: Graph, softmax: Value, label: Value, ddlogits: Value, *, ignore_index: int) -> str:
    ignored = g("Equal", label, g.ints(ignore_index))
    classes = g.unsqueeze(g("Where", ignored, g.ints(0), label), -1)
    picked = g.squeeze(g("GatherElements", ddlogits, classes, axis=-1), -1)
    along = g.reduce("ReduceSum", g("Mul", softmax, ddlogits), [-1])
    return g("Where", ignored, g.scalar(0, softmax.dtype), g("Sub", along, picked))


@export("softmax_with_cross_entropy_dlogits_dsoftmax")
def softmax_with_cross_entropy_dlogits_dsoftmax(
    g: Graph, softmax: Value, label: Value, dloss: Value, ddlogits: Value, dsoftmax: Value | None = None, *, ignore_index: int
) -> str:
    ignored = g("Equal", label, g.ints(ignore_index))
    each = g.unsqueeze(g("Where", ignored, g.scalar(0, softmax.dtype), dloss), -1)
    direct = g("Mul", ddlogits, each)
    if dsoftmax is None:
        return direct
    along_dsoftmax = g.reduce("ReduceSum", g("Mul", dsoftmax, softmax), [-1], keepdim=True)
    along_ddlogits = g.reduce("ReduceSum", g("Mul", ddlogits, softmax), [-1], keepdim=True)
    beside = g("Sub", g("Mul", ddlogits, g("Sub", dsoftmax, along_dsoftmax)), g("Mul", dsoftmax, along_ddlogits))
    return g("Add", direct, beside)


@export("softmax_with_cross_entropy_dlogits_ddsoftmax")
def softmax_with_cross_entropy_dlogits_ddsoftmax(g: Graph, softmax: Value, ddlogits: Value) -> str:
    return softmax_gradient(g, softmax, ddlogits)


@export("valid_mean")
def valid_mean(g: Graph, x: Value, label: Value, *, ignore_index: int) -> str:
    ignored = g("Equal", label, g.ints(ignore_index))
    total = g.reduce("ReduceSum", g("Where", ignored, g.scalar(0, x.dtype), x), None)
    return g("Div", total, _valid_count(g, ignored, x.dtype))


@export("valid_mean_dx")
def valid_mean_dx(g: Graph, label: Value, dy: Value, *, ignore_index: int) -> str:
    ignored = g("Equal", label, g.ints(ignore_index))
    return g("Where", ignored, g.scalar(0, dy.dtype), g("Div", dy, _valid_count(g, ignored, dy.dtype)))


def _valid_count(g: Graph, ignored: str, dtype: DType) -> str:
    return g.reduce("ReduceSum", g.cast(g("Not", ignored), dtype), None)


@export("cross_entropy_loss")
def cross_entropy_loss(
    g: Graph, logits: Value, label: Value, *, ignore_index: int, mean: bool, count_ignored: bool = True
) -> tuple[str, str, str]:
    loss, softmax, ignored = _losses(g, logits, label, ignore_index)
    valid_count = _valid_count(g, ignored, logits.dtype)
    reduced = g.reduce("ReduceMean" if mean and count_ignored else "ReduceSum", loss, None)
    return g("Div", reduced, valid_count) if mean and not count_ignored else reduced, softmax, valid_count


@export("cross_entropy_loss_grad")
def cross_entropy_loss_grad(
    g: Graph,
    softmax: Value,
    label: Value,
    dtotal: Value,
    valid_count: Value | None = None,
    *,
    ignore_index: int,
    mean: bool,
    count_ignored: bool = True,
) -> str:
    if not mean:
        return _dlogits(g, softmax, label, dtotal.name, ignore_index)
    if count_ignored:
        count = count_over(g, Value(label.name, dtotal.dtype, label.shape), None)
    else:
        count = _valid_count(g, g("Equal", label, g.ints(ignore_index)), dtotal.dtype)
    return _dlogits(g, softmax, label, g("Div", dtotal, count), ignore_index)


@export("negative_log_likelihood")
def negative_log_likelihood(g: Graph, log_p: Value, label: Value, *, ignore_index: int) -> str:
    return _at_label(g, log_p, label, ignore_index)[0]


@export("negative_log_likelihood_dlog_p")
def negative_log_likelihood_dlog_p(g: Graph, log_p: Value, label: Value, dloss: Value, *, ignore_index: int) -> str:
    """Return ``-dloss`` at the label and zeros elsewhere; 0 for ignored rows."""
    ignored = g("Equal", label, g.ints(ignore_index))
    classes = g.unsqueeze(g("Where", ignored, g.ints(0), label), -1)
    each = g.unsqueeze(g("Where", ignored, g.scalar(0, dloss.dtype), g("Neg", dloss)), -1)
    return g("ScatterElements", g.filled(0, dloss.dtype, g.shape(log_p)), classes, each, axis=-1)


@export("log_loss")
def log_loss(g: Graph, p: Value, target: Value) -> str:
    """Return ``-(target log(p) + (1 - target) log(1 - p))``, with logarithms clipped to at least -100."""
    one, least = g.scalar(1, p.dtype), g.scalar(-100, p.dtype)
    right, wrong = (g("Max", found, least) for found in (g("Log", p), log1p(g, Value(g("Neg", p), p.dtype, p.shape))))
    return g("Sub", g("Mul", g("Sub", target, one), wrong), g("Mul", target, right))


@export("accuracy")
def accuracy(g: Graph, predict: Value, label: Value, *, ignore_index: int = -100) -> str:
    ignored = g("Equal", label, g.ints(ignore_index))
    right = g("And", g("Equal", g("ArgMax", predict, axis=-1, keepdims=0), label), g("Not", ignored))
    return g("Div", g.reduce("ReduceSum", g.cast(right, DType.FLOAT32), None), _valid_count(g, ignored, DType.FLOAT32))
