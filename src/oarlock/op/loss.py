"""Classification losses and accuracy.

`passes/fusion/reductions.py` creates `cross_entropy_loss` and its gradient; programs do not need to use them.
"""

import math

import torch

from oarlock.op.elementwise import clip, divide, multiply, neg, subtract
from oarlock.op.reduction import broadcast_to_like, mean_dx
from oarlock.op.trusted_operator import operator
from oarlock.op.unary import log, log1p, number_like
from oarlock.registry import Case, GradCheck, Rejects
from oarlock.tensor.cross_entropy import EACH, count_valid, losses, reduced_losses, require_classes, write_dlogits, write_reduced_dlogits

_LN2 = math.log(2)

__all__ = [
    "accuracy",
    "cross_entropy_loss",
    "cross_entropy_loss_grad",
    "log_loss",
    "negative_log_likelihood",
    "softmax_with_cross_entropy",
    "valid_mean",
]


@operator(
    "logits: float[*b k!], label: int64[*b] -> loss: float[*b], softmax: float[*b k]",
    intermediate=("softmax",),
    checks_values=True,
    cases=[
        Case(logits=[[0.0, 0.0]], label=[1], loss=[_LN2], softmax=[[0.5, 0.5]]),
        Case(logits=[[0.0, 0.0]], label=[-100], loss=[0.0], softmax=[[0.5, 0.5]]),
        GradCheck(logits=(4, 3), label=[0, 2, -100, 1]),
        GradCheck(logits=(2, 3), label=[255, 1], ignore_index=255),
        GradCheck(logits=(3, 3), label=[0, 1, 2], ignore_index=1),
        GradCheck(logits=(3,), label=2),
        GradCheck(logits=(2, 2, 3), label=[[0, 1], [2, 0]]),
        Rejects("label 3 is not one of the classes 0 to 2", logits=(1, 3), label=[3]),
        Rejects("label -1 is not one of the classes 0 to 2", logits=(1, 3), label=[-1]),
    ],
)
def softmax_with_cross_entropy(logits, label, *, ignore_index: int = -100):
    """Cross entropy between ``softmax(logits)`` and class ids, computed stably; 0 for rows whose label is ``ignore_index``."""
    loss, _, softmax = losses(logits, label, EACH, ignore_index)
    return loss if label.dim() == 1 else loss.view(label.shape), softmax


@softmax_with_cross_entropy.gradient("logits")
def softmax_with_cross_entropy_dlogits(softmax, label, dloss, dsoftmax=None, *, ignore_index):
    """``dlogits = (softmax - onehot(label)) * dloss``; 0 for ignored rows. A gradient of the softmax is added."""
    return write_dlogits(softmax, label, dloss, dsoftmax, ignore_index)


@softmax_with_cross_entropy_dlogits.gradient("dloss")
def softmax_with_cross_entropy_dlogits_ddloss(softmax, label, ddlogits, *, ignore_index):
    """The sum over the classes of ``(softmax - onehot(label)) * ddlogits``; 0 for ignored rows."""
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
    "x: float[...b], label: int64[...b] -> y: float[]",
    linear_in=("x",),
    cases=[
        Case(x=[1.0, 8.0, 3.0], label=[0, -100, 2], y=2.0),
        Case(x=[[1.0, 8.0], [3.0, 5.0]], label=[[0, 1], [1, 1]], ignore_index=0, y=16 / 3),
        Case(x=[1.0, math.inf], label=[0, -100], y=1.0),
        Case(x=2.0, label=1, y=2.0),
        GradCheck(x=(4,), label=[0, 2, -100, 1]),
        GradCheck(x=(2, 2), label=[[0, 1], [2, 0]], ignore_index=0),
    ],
)
def valid_mean(x, label, *, ignore_index: int = -100):
    """The mean of ``x``, such as a loss per row, over positions whose label is not ``ignore_index``; NaN if there are none."""
    ignored = label == ignore_index
    total = x.masked_fill(ignored, 0.0).sum(dtype=_exact(x))
    return (total / count_valid(label, ignore_index, total)).to(x.dtype)


@valid_mean.gradient("x")
def valid_mean_dx(label, dy, *, ignore_index):
    """``dy`` divided by the number of valid positions; 0 for ignored ones."""
    each = dy / count_valid(label, ignore_index, dy.new_empty((), dtype=_exact(dy)))
    return each.to(dy.dtype).expand(label.shape).masked_fill(label == ignore_index, 0.0)


def _exact(x) -> torch.dtype:
    """Return the dtype in which sums of many elements are accumulated."""
    return x.dtype if x.dtype is torch.float64 else torch.float32


@operator(
    "logits: float[*b k!], label: int64[*b] -> loss: float[], softmax: float[*b k], valid_count: float[]",
    intermediate=("softmax", "valid_count"),
    added_later=("count_ignored",),
    checks_values=True,
    cases=[
        Case(logits=[[0.0, 0.0]] * 2, label=[1, 0], loss=2 * _LN2, softmax=[[0.5, 0.5]] * 2, valid_count=2.0),
        Case(logits=[[0.0, 0.0]] * 2, label=[1, 0], mean=True, loss=_LN2, softmax=[[0.5, 0.5]] * 2, valid_count=2.0),
        Case(logits=[[0.0, 0.0]] * 2, label=[1, -100], mean=True, loss=_LN2 / 2, softmax=[[0.5, 0.5]] * 2, valid_count=1.0),
        Case(
            logits=[[0.0, 0.0]] * 2, label=[1, -100], mean=True, count_ignored=False, loss=_LN2, softmax=[[0.5, 0.5]] * 2, valid_count=1.0
        ),
        Case(logits=[[0.0, 0.0]], label=[-100], mean=True, loss=0.0, softmax=[[0.5, 0.5]], valid_count=0.0),
        GradCheck(logits=(4, 3), label=[0, 2, -100, 1], mean=True),
        GradCheck(logits=(4, 3), label=[0, 2, -100, 1], mean=True, count_ignored=False),
        GradCheck(logits=(2, 3), label=[255, 1], ignore_index=255),
        GradCheck(logits=(3,), label=2),
        GradCheck(logits=(2, 2, 3), label=[[0, 1], [2, 0]], mean=True),
    ],
)
def cross_entropy_loss(logits, label, *, ignore_index: int = -100, mean: bool = False, count_ignored: bool = True):
    """The sum of the losses of `softmax_with_cross_entropy`, or their ``mean``, and the number of rows that are not ignored.

    The mean counts ignored rows as 0. Without ``count_ignored``, it is over the other rows only, and NaN if there are none.
    """
    loss, valid_count, softmax = reduced_losses(logits, label, ignore_index, mean, count_ignored)
    return loss, softmax, valid_count


@cross_entropy_loss.gradient_program("logits")
def cross_entropy_loss_dlogits(softmax, label, dloss, dsoftmax=None, *, ignore_index, mean, count_ignored=True):
    if mean and not count_ignored:
        each = valid_mean_dx(label, dloss, ignore_index=ignore_index)
    else:
        each = mean_dx(dloss, label, keepdim=False) if mean else broadcast_to_like(dloss, label)
    return softmax_with_cross_entropy_dlogits(softmax, label, each, dsoftmax, ignore_index=ignore_index)


@operator(
    "softmax: float[...b k!], label: int64[...b], dtotal: float[], valid_count?: float[] -> dlogits: float[...b k]",
    added_later=("count_ignored",),
    cases=[
        Case(softmax=[[0.25, 0.75]], label=[1], dtotal=2.0, valid_count=1.0, dlogits=[[0.5, -0.5]]),
        Case(softmax=[[0.25, 0.75]] * 2, label=[1, -100], dtotal=2.0, valid_count=1.0, mean=True, dlogits=[[0.25, -0.25], [0.0, 0.0]]),
        Case(
            softmax=[[0.25, 0.75]] * 2, label=[1, -100], dtotal=2.0, valid_count=1.0, mean=True, count_ignored=False,
            dlogits=[[0.5, -0.5], [0.0, 0.0]],
        ),
        Case(softmax=[[0.25, 0.75]], label=[1], dtotal=2.0, dlogits=[[0.5, -0.5]]),
        Case(softmax=[[0.25, 0.75], [0.5, 0.5]], label=[1, -100], dtotal=2.0, mean=True, dlogits=[[0.25, -0.25], [0.0, 0.0]]),
        Case(
            softmax=[[0.25, 0.75], [0.5, 0.5]], label=[1, -100], dtotal=2.0, mean=True, count_ignored=False,
            dlogits=[[0.5, -0.5], [0.0, 0.0]],
        ),
        Case(softmax=[[0.25, 0.75]], label=[-100], dtotal=2.0, mean=True, count_ignored=False, dlogits=[[0.0, 0.0]]),
        Case(softmax=[[0.25, 0.75], [0.5, 0.5]], label=[1, 0], dtotal=2.0, ignore_index=0, dlogits=[[0.5, -0.5], [0.0, 0.0]]),
        Case(softmax=[0.25, 0.75], label=0, dtotal=1.0, dlogits=[-0.75, 0.75]),
    ],
)  # fmt: skip
def cross_entropy_loss_grad(
    softmax, label, dtotal, valid_count=None, *, ignore_index: int = -100, mean: bool = False, count_ignored: bool = True
):
    """``(softmax - onehot(label)) * dtotal``, divided by the number of rows for a ``mean``; 0 for ignored rows.

    Without ``count_ignored``, it is divided by the number of rows that are not ignored. If ``valid_count`` shows that none is ignored, the
    labels are not searched for ignored ones.
    """
    return write_reduced_dlogits(softmax, label, dtotal, valid_count, ignore_index, mean, count_ignored)


@operator(
    "log_p: float[*b k!], label: int64[*b] -> loss: float[*b]",
    linear_in=("log_p",),
    checks_values=True,
    cases=[
        Case(log_p=[[-0.5, -1.0], [-2.0, -0.25]], label=[1, -100], loss=[1.0, 0.0]),
        Case(log_p=[[-0.5, -1.0], [-2.0, -0.25]], label=[1, 0], ignore_index=0, loss=[1.0, 0.0]),
        GradCheck(log_p=(4, 3), label=[0, 2, -100, 1]),
        GradCheck(log_p=(3,), label=2),
        GradCheck(log_p=(2, 2, 3), label=[[0, 1], [2, 0]], ignore_index=2),
        Rejects("label 3 is not one of the classes 0 to 2", log_p=(1, 3), label=[3]),
        Rejects("label -1 is not one of the classes 0 to 2", log_p=(1, 3), label=[-1]),
    ],
)
def negative_log_likelihood(log_p, label, *, ignore_index: int = -100):
    """``-log_p[label]``, for log probabilities and class ids; 0 for ignored rows."""
    ignored, kept = _kept(log_p.shape[-1], label, ignore_index)
    return torch.neg(log_p.gather(-1, kept.unsqueeze(-1)).squeeze(-1).masked_fill(ignored, 0.0))


def _kept(classes: int, label, ignore_index: int):
    """Return a mask of ignored labels, and the labels with 0 in their place. Raises ValueError for a label that is not a class."""
    require_classes(label, classes, ignore_index)
    ignored = label == ignore_index
    return ignored, label.masked_fill(ignored, 0)


@negative_log_likelihood.gradient("log_p", checks_values=True)
def negative_log_likelihood_dlog_p(log_p_shape, label, dloss, *, ignore_index):
    """``-dloss`` at the label, zeros elsewhere; 0 for ignored rows."""
    ignored, kept = _kept(log_p_shape[-1], label, ignore_index)
    return dloss.new_zeros(log_p_shape).scatter(-1, kept.unsqueeze(-1), -dloss.masked_fill(ignored, 0.0).unsqueeze(-1))


@operator(
    "p: float[*b], target: float[*b] -> loss: float[*b]",
    cases=[Case(p=[0.5, 0.5, 0.0, 1.0], target=[1.0, 0.25, 1.0, 1.0], loss=[_LN2, _LN2, 100.0, 0.0]), GradCheck(low=0.125, high=0.875)],
)
def log_loss(p, target):
    """Binary cross entropy of probabilities: ``-(target log(p) + (1 - target) log(1 - p))``, with logarithms of at least -100."""
    return torch.sub((target - 1) * torch.log1p(-p).clamp(min=-100.0), target * torch.log(p).clamp(min=-100.0))


@log_loss.gradient_program("p")
def log_loss_dp(p, target, dloss):
    """``dloss * (p - target) / (p (1 - p))``, with a divisor of at least 1e-12, rounded to float32 as in PyTorch."""
    spread = clip(multiply(p, subtract(number_like(1.0, p), p)), number_like(9.999999960041972e-13, p))
    return multiply(dloss, divide(subtract(p, target), spread))


@log_loss.gradient_program("target")
def log_loss_dtarget(p, dloss):
    least = number_like(-100.0, p)
    return multiply(dloss, subtract(clip(log1p(neg(p)), least), clip(log(p), least)))


@operator(
    "predict: float[*b k!], label: int64[*b] -> y: float32[]",
    added_later=("ignore_index",),
    cases=[
        Case(predict=[[0.9, 0.1], [0.2, 0.8]], label=[0, 0], y=0.5),
        Case(predict=[[0.9, 0.1], [0.2, 0.8], [0.3, 0.7]], label=[0, 0, -100], y=0.5),
        Case(predict=[[0.9, 0.1], [0.2, 0.8]], label=[0, 1], ignore_index=0, y=1.0),
        Rejects("predict has size 0, but k must be at least 1", predict=(2, 0), label=[0, 0]),
    ],
)
def accuracy(predict, label, *, ignore_index: int = -100):
    """The fraction of rows whose largest entry is at ``label``, of the rows whose label is not ignored; NaN if there are none."""
    valid = label != ignore_index
    return ((predict.argmax(-1) == label) & valid).sum(dtype=torch.float32) / valid.sum(dtype=torch.float32)


log_loss.declare_edges(
    **dict.fromkeys(
        ("zero", "one", "denormal"),
        "the target's gradient has the logarithm of the loss, at least -100; PyTorch's has no such bound",
    )
)
