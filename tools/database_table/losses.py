"""Losses and distances."""

from database_judge import Unmapped

from database_table.reductions import axes_of
from oarlock import op

__all__ = ["CALLS"]


def reduction_of(reduction, size_average=None, reduce=None):
    """The reduction that PyTorch's older arguments say."""
    if size_average is None and reduce is None:
        return reduction
    if reduce is False:
        return "none"
    return "sum" if size_average is False else "mean"


def paired(function, **names):
    """A loss of a prediction and a target, whose other arguments have other names."""

    def call(x, y, *others, size_average=None, reduce=None, reduction="mean", **keywords):
        given = {names.get(key, key): value for key, value in keywords.items()}
        return function(x, y, *others, reduction=reduction_of(reduction, size_average, reduce), **given)

    return call


def huber_loss(x, y, reduction="mean", delta=1.0, weight=None):
    if weight is not None:
        raise Unmapped("weights of elements")
    return op.huber_loss(x, y, delta=float(delta), reduction=reduction)


def smooth_l1_loss(x, y, *, reduction="mean", beta=1.0):
    return op.smooth_l1_loss(x, y, beta=float(beta), reduction=reduction)


def mse_loss(x, y, *, reduction="mean", weight=None, size_average=None, reduce=None):
    if weight is not None:
        raise Unmapped("weights of elements")
    return op.mse_loss(x, y, reduction=reduction)


def gaussian_nll_loss(x, target, var, *, full=False, eps=1e-6, reduction="mean"):
    variance = var if not isinstance(var, float) else op.full(shape=(1,), value=var, dtype=x.dtype)
    return op.gaussian_nll_loss(x, target, variance, full=full, epsilon=eps, reduction=reduction)


def binary_with_logits(x, target, weight=None, *, pos_weight=None, reduction="mean", size_average=None, reduce=None):
    return op.binary_cross_entropy_with_logits(x, target, weight, pos_weight, reduction=reduction_of(reduction, size_average, reduce))


def multi_margin_loss(x, label, *, p=1, margin=1.0, weight=None, reduction="mean", size_average=None, reduce=None):
    return op.multi_margin_loss(x, label, weight, order=p, margin=float(margin), reduction=reduction)


def triplet(anchor, positive, negative, *, margin=1.0, p=2.0, eps=1e-6, swap=False, reduction="mean"):
    return op.triplet_margin_loss(anchor, positive, negative, margin=margin, order=float(p), epsilon=eps, swap=swap, reduction=reduction)


def triplet_by(anchor, positive, negative, *, distance_function=None, margin=1.0, swap=False, reduction="mean"):
    if distance_function is not None:
        raise Unmapped("a function of tensors")
    return op.triplet_margin_with_distance_loss(anchor, positive, negative, margin=margin, swap=swap, reduction=reduction)


def normalize(x, p=2.0, dim=1, eps=1e-12):
    return op.normalize(x, order=float(p), axis=axes_of(x, dim), epsilon=eps)


CALLS = {
    "nn.functional.binary_cross_entropy": paired(op.binary_cross_entropy),
    "nn.functional.binary_cross_entropy_with_logits": binary_with_logits,
    "nn.functional.cosine_embedding_loss": paired(op.cosine_embedding_loss),
    "nn.functional.cosine_similarity": lambda x, y, dim=1, eps=1e-8: op.cosine_similarity(x, y, axis=dim, epsilon=eps),
    "nn.functional.cross_entropy": paired(op.cross_entropy),
    "nn.functional.gaussian_nll_loss": gaussian_nll_loss,
    "nn.functional.hinge_embedding_loss": paired(op.hinge_embedding_loss),
    "nn.functional.huber_loss": huber_loss,
    "nn.functional.kl_div": paired(op.kl_div),
    "nn.functional.l1_loss": paired(op.l1_loss),
    "nn.functional.margin_ranking_loss": paired(op.margin_ranking_loss),
    "nn.functional.mse_loss": mse_loss,
    "nn.functional.multi_margin_loss": multi_margin_loss,
    "nn.functional.multilabel_margin_loss": paired(op.multilabel_margin_loss),
    "nn.functional.multilabel_soft_margin_loss": paired(op.multilabel_soft_margin_loss),
    "nn.functional.nll_loss": paired(op.nll_loss),
    "nn.functional.normalize": normalize,
    "nn.functional.pairwise_distance": lambda x, y, p=2.0, eps=1e-6, keepdim=False: op.pairwise_distance(
        x, y, order=float(p), epsilon=eps, keepdim=keepdim
    ),
    "nn.functional.poisson_nll_loss": paired(op.poisson_nll_loss, eps="epsilon"),
    "nn.functional.smooth_l1_loss": smooth_l1_loss,
    "nn.functional.soft_margin_loss": paired(op.soft_margin_loss),
    "nn.functional.triplet_margin_loss": triplet,
    "nn.functional.triplet_margin_with_distance_loss": triplet_by,
}
