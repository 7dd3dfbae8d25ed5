"""Losses that the export does not decompose. `reduction` is 0 for none, 1 for the mean, 2 for the sum."""

from oarlock import op
from oarlock.interop.torch.rules.arguments import (
    Number,
    as_integer,
    rank_of,
    reshaped,
    shape_of,
)
from oarlock.interop.torch.rules.registry import rule
from oarlock.ir.var import Var

_REDUCTIONS = ("none", "mean", "sum")


@rule("aten.mse_loss.default", promote=("self", "target"))
def mse_loss(self: Var, target: Var, reduction: int = 1):
    return op.mse_loss(self, target, reduction=_REDUCTIONS[reduction])


@rule("aten.l1_loss.default", promote=("self", "target"))
def l1_loss(self: Var, target: Var, reduction: int = 1):
    return op.l1_loss(self, target, reduction=_REDUCTIONS[reduction])


@rule("aten.smooth_l1_loss.default", promote=("self", "target"))
def smooth_l1_loss(self: Var, target: Var, reduction: int = 1, beta: float = 1.0):
    return op.smooth_l1_loss(self, target, beta=beta, reduction=_REDUCTIONS[reduction])


@rule("aten.huber_loss.default", promote=("self", "target"))
def huber_loss(self: Var, target: Var, reduction: int = 1, delta: float = 1.0):
    return op.huber_loss(self, target, delta=delta, reduction=_REDUCTIONS[reduction])


@rule("aten.soft_margin_loss.default")
def soft_margin_loss(self: Var, target: Var, reduction: int = 1):
    return op.soft_margin_loss(self, target, reduction=_REDUCTIONS[reduction])


@rule("aten.kl_div.default")
def kl_div(self: Var, target: Var, reduction: int = 1, log_target: bool = False):
    return op.kl_div(self, target, log_target=log_target, reduction=_REDUCTIONS[reduction])


@rule("aten.binary_cross_entropy.default")
def binary_cross_entropy(self: Var, target: Var, weight: Var | None = None, reduction: int = 1):
    return op.binary_cross_entropy(self, target, weight, reduction=_REDUCTIONS[reduction])


@rule("aten.binary_cross_entropy_with_logits.default", promote=("self", "target"))
def binary_cross_entropy_with_logits(self: Var, target: Var, weight: Var | None = None, pos_weight: Var | None = None, reduction: int = 1):
    return op.binary_cross_entropy_with_logits(self, target, weight, pos_weight, reduction=_REDUCTIONS[reduction])


@rule("aten.nll_loss.default", "aten.nll_loss2d.default", "aten.nll_loss_nd.default")
def nll_loss(self: Var, target: Var, weight: Var | None = None, reduction: int = 1, ignore_index: int = -100):
    return op.nll_loss(self, as_integer(target), weight, ignore_index=ignore_index, reduction=_REDUCTIONS[reduction])


@rule("aten.nll_loss_forward.default", "aten.nll_loss2d_forward.default")
def nll_loss_forward(self: Var, target: Var, weight: Var | None, reduction: int, ignore_index: int):
    """Return the loss. The second result, the total weight, is only used by PyTorch's own gradient."""
    return nll_loss(self, target, weight, reduction, ignore_index), None


@rule("aten.cross_entropy_loss.default")
def cross_entropy_loss(
    self: Var, target: Var, weight: Var | None = None, reduction: int = 1, ignore_index: int = -100, label_smoothing: float = 0.0
):
    return op.cross_entropy(
        self,
        as_integer(target),
        weight,
        ignore_index=ignore_index,
        label_smoothing=label_smoothing,
        reduction=_REDUCTIONS[reduction],
    )


@rule("aten.cosine_similarity.default", promote=("x1", "x2"))
def cosine_similarity(x1: Var, x2: Var, dim: int = 1, eps: float = 1e-8):
    rank = max(rank_of(x1), rank_of(x2))
    x1, x2 = (reshaped(x, [*([1] * (rank - rank_of(x))), *shape_of(x)]) for x in (x1, x2))
    return op.cosine_similarity(x1, x2, axis=dim % rank, epsilon=eps)


@rule("aten.pairwise_distance.default")
def pairwise_distance(x1: Var, x2: Var, p: Number = 2, eps: float = 1e-6, keepdim: bool = False):
    return op.pairwise_distance(x1, x2, order=float(p), epsilon=eps, keepdim=keepdim)


@rule("aten.margin_ranking_loss.default")
def margin_ranking_loss(input1: Var, input2: Var, target: Var, margin: float = 0.0, reduction: int = 1):
    return op.margin_ranking_loss(input1, input2, target, margin=margin, reduction=_REDUCTIONS[reduction])


@rule("aten.hinge_embedding_loss.default")
def hinge_embedding_loss(self: Var, target: Var, margin: float = 1.0, reduction: int = 1):
    return op.hinge_embedding_loss(self, target, margin=margin, reduction=_REDUCTIONS[reduction])


@rule("aten.poisson_nll_loss.default")
def poisson_nll_loss(input: Var, target: Var, log_input: bool, full: bool, eps: float, reduction: int):
    how = _REDUCTIONS[reduction]
    return op.poisson_nll_loss(input, target, log_input=log_input, full=full, epsilon=eps, reduction=how)


@rule("aten.cosine_embedding_loss.default")
def cosine_embedding_loss(input1: Var, input2: Var, target: Var, margin: float = 0.0, reduction: int = 1):
    return op.cosine_embedding_loss(input1, input2, target, margin=margin, reduction=_REDUCTIONS[reduction])
