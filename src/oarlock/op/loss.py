"""Losses and how well a classifier did."""

import torch

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
        GradCheck(logits=(2, 2, 3), label=[[0, 1], [2, 0]]),
        Rejects("label 3 is not one of the classes 0 to 2", logits=(1, 3), label=[3]),
        Rejects("label -1 is not one of the classes 0 to 2", logits=(1, 3), label=[-1]),
        Rejects("*b is 2 in logits but 1 in label", logits=(2, 3), label=[1]),
    ],
)
def softmax_with_cross_entropy(logits, label, *, ignore_index: int = -100):
    """Cross entropy of ``softmax(logits)`` against class ids, computed stably in log space; ignored rows give 0."""
    ignored = label == ignore_index
    counted = label.masked_fill(ignored, 0)
    classes = logits.shape[-1]
    wrong = (counted < 0) | (counted >= classes)
    if wrong.any():
        raise ValueError(f"label {int(counted[wrong][0])} is not one of the classes 0 to {classes - 1}")
    log_p = torch.log_softmax(logits, dim=-1)
    picked = log_p.gather(-1, counted.unsqueeze(-1)).squeeze(-1)  # [*b]
    return torch.where(ignored, 0.0, -picked), log_p.exp()


@softmax_with_cross_entropy.gradient("logits")
def softmax_with_cross_entropy_dlogits(softmax, label, dloss, dsoftmax=None, *, ignore_index):
    """``dlogits = (softmax - onehot(label)) * dloss``; ignored rows get 0. A gradient of the softmax adds its own part."""
    ignored = label == ignore_index
    dloss = dloss.masked_fill(ignored, 0.0).unsqueeze(-1)  # [*b, 1]
    target = label.masked_fill(ignored, 0).unsqueeze(-1)
    dlogits = (softmax * dloss).scatter_add(-1, target, -dloss)
    if dsoftmax is None:
        return dlogits
    return dlogits + softmax * (dsoftmax - (dsoftmax * softmax).sum(-1, keepdim=True))


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
    return (predict.argmax(-1) == label).float().mean()
