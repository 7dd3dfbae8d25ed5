"""Losses and how well a classifier did."""

import torch

from oarlock.op.activation import softmax_slope
from oarlock.registry import Case, GradCheck, Rejects, operator

__all__ = ["accuracy", "softmax_with_cross_entropy"]


@operator(
    "logits: float[*b k], label: int64[*b] -> loss: float[*b], softmax: float[*b k]",
    intermediate=("softmax",),
    may_fail=True,
    cases=[
        Case(logits=[[0.0, 0.0]], label=[1], loss=[0.6931471805599453], softmax=[[0.5, 0.5]]),
        Case(logits=[[0.0, 0.0]], label=[-100], loss=[0.0], softmax=[[0.5, 0.5]]),
        GradCheck(logits=(4, 3), label=[0, 2, -100, 1]),
        GradCheck(logits=(2, 3), label=[255, 1], ignore_index=255),
        GradCheck(logits=(3, 3), label=[0, 1, 2], ignore_index=1),
        GradCheck(logits=(3,), label=2),
        GradCheck(logits=(2, 2, 3), label=[[0, 1], [2, 0]]),
        Rejects("label 3 is not one of the classes 0 to 2", logits=(1, 3), label=[3]),
        Rejects("label -1 is not one of the classes 0 to 2", logits=(1, 3), label=[-1]),
        Rejects("*b is 2 in logits but 1 in label", logits=(2, 3), label=[1]),
    ],
)
def softmax_with_cross_entropy(logits, label, *, ignore_index: int = -100):
    """Cross entropy of ``softmax(logits)`` against class ids, computed stably in log space; ignored rows give 0."""
    if not label.is_cpu:  # elsewhere a label that is no class ends the process
        _require_classes(label, logits.shape[-1], ignore_index)
    log_p = torch.log_softmax(logits, dim=-1)
    flat = label.dim() == 1
    rows, labels = (log_p, label) if flat else (log_p.reshape(label.numel(), log_p.shape[-1]), label.reshape(-1))
    try:
        loss = torch.nn.functional.nll_loss(rows, labels, ignore_index=ignore_index, reduction="none")
    except IndexError:
        _require_classes(label, logits.shape[-1], ignore_index)
        raise
    return loss if flat else loss.view(label.shape), log_p.exp_()


def _require_classes(label: torch.Tensor, classes: int, ignore_index: int) -> None:
    """Raises ValueError where a label is neither a class nor ignored."""
    wrong = ((label < 0) | (label >= classes)) & (label != ignore_index)
    if wrong.any():
        raise ValueError(f"label {int(label[wrong][0])} is not one of the classes 0 to {classes - 1}")


@softmax_with_cross_entropy.gradient("logits")
def softmax_with_cross_entropy_dlogits(softmax, label, dloss, dsoftmax=None, *, ignore_index):
    """``dlogits = (softmax - onehot(label)) * dloss``; ignored rows get 0. A gradient of the softmax adds its own part."""
    return _dlogits(softmax, label, dloss, dsoftmax, ignore_index, None)


@softmax_with_cross_entropy_dlogits.in_place("softmax")
def softmax_with_cross_entropy_dlogits_in_place(softmax, label, dloss, dsoftmax=None, *, ignore_index):
    return _dlogits(softmax, label, dloss, dsoftmax, ignore_index, softmax)


@softmax_with_cross_entropy_dlogits.into
def softmax_with_cross_entropy_dlogits_into(softmax, label, dloss, dsoftmax=None, *, out, ignore_index):
    return _dlogits(softmax, label, dloss, dsoftmax, ignore_index, out)


def _dlogits(softmax, label, dloss, dsoftmax, ignore_index: int, out):
    """In ``out``, or in fresh memory where it is None."""
    beside = None if dsoftmax is None else softmax_slope(softmax, dsoftmax)
    label, dloss = label.unsqueeze(-1), dloss.unsqueeze(-1)  # [*b, 1]
    if _some_ignored(softmax, label, ignore_index):
        ignored = label == ignore_index
        label, dloss = label.masked_fill(ignored, 0), dloss.masked_fill(ignored, 0.0)
    dlogits = torch.mul(softmax, dloss, out=out).scatter_add_(-1, label, -dloss)
    return dlogits if beside is None else dlogits.add_(beside)


def _some_ignored(softmax, label, ignore_index: int) -> bool:
    """Whether a row may be ignored. On a CPU, PyTorch refuses a label that is no class: looking up costs less than comparing."""
    if not softmax.is_cpu or 0 <= ignore_index < softmax.shape[-1]:
        return True
    try:
        softmax.gather(-1, label)
    except RuntimeError:
        return True
    return False


@softmax_with_cross_entropy_dlogits.gradient("dloss")
def softmax_with_cross_entropy_dlogits_ddloss(softmax, label, ddlogits, *, ignore_index):
    """The sum over the classes of ``(softmax - onehot(label)) * ddlogits``; ignored rows get 0."""
    ignored = label == ignore_index
    picked = ddlogits.gather(-1, label.masked_fill(ignored, 0).unsqueeze(-1)).squeeze(-1)  # [*b]
    return ((softmax * ddlogits).sum(-1) - picked).masked_fill(ignored, 0.0)


@softmax_with_cross_entropy_dlogits.gradient("softmax")
def softmax_with_cross_entropy_dlogits_dsoftmax(softmax, label, dloss, ddlogits, dsoftmax=None, *, ignore_index):
    direct = ddlogits * dloss.masked_fill(label == ignore_index, 0.0).unsqueeze(-1)
    if dsoftmax is None:
        return direct
    along_dsoftmax = (dsoftmax * softmax).sum(-1, keepdim=True)
    along_ddlogits = (ddlogits * softmax).sum(-1, keepdim=True)
    return direct + ddlogits * (dsoftmax - along_dsoftmax) - dsoftmax * along_ddlogits


@softmax_with_cross_entropy_dlogits.gradient("dsoftmax")
def softmax_with_cross_entropy_dlogits_ddsoftmax(softmax, ddlogits):
    return softmax * (ddlogits - (ddlogits * softmax).sum(-1, keepdim=True))


@operator(
    "predict: float[*b k], label: int64[*b] -> y: float32[]",
    cases=[Case(predict=[[0.9, 0.1], [0.2, 0.8]], label=[0, 0], y=0.5)],
)
def accuracy(predict, label):
    """The share of rows whose largest entry is at ``label``: 0 to 1, NaN for no rows."""
    return (predict.argmax(-1) == label).mean(dtype=torch.float32)
