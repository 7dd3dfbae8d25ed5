"""Losses beside the function of PyTorch that each is, or beside its formula where PyTorch has none."""

from collections.abc import Callable

import torch
from op.pytorch_twins import Twin
from torch.nn import functional as F

import oarlock as ol

__all__ = ["LOSSES"]

op = ol.op


def _loss(name: str, theirs: Callable[..., torch.Tensor], *inputs: object, still: int = 0, orders: int = 2, low=-2.0, high=2.0,
          **attributes: object) -> list[Twin]:  # fmt: skip
    """A loss of ours beside one of PyTorch that takes `reduction`, each for itself, summed and averaged."""
    called = getattr(op, name.partition(" ")[0])
    return [
        Twin(
            f"{name} {reduction}",
            lambda *values, r=reduction: called(*values, reduction=r, **attributes),
            lambda *values, r=reduction: theirs(*values, reduction=r),
            inputs,
            low,
            high,
            orders=orders,
            still=still,
        )
        for reduction in ("none", "sum", "mean")
    ]


def _formula(formula: Callable[..., torch.Tensor]) -> Callable[..., torch.Tensor]:
    """A loss by its formula, with the reductions of PyTorch."""
    reductions = {"none": lambda loss: loss, "sum": torch.sum, "mean": torch.mean}
    return lambda *values, reduction: reductions[reduction](formula(*values))


def _sigmoid_focal(x, target, alpha, gamma):
    p = torch.sigmoid(x)
    right = p * target + (1 - p) * (1 - target)
    share = 1.0 if alpha is None else alpha * target + (1 - alpha) * (1 - target)
    return share * (1 - right) ** gamma * F.binary_cross_entropy_with_logits(x, target, reduction="none")


def _focal(x, label, weight, *, reduction):
    p = torch.softmax(x, -1).gather(-1, label.clamp(min=0)[:, None])[:, 0]
    weights = weight[label.clamp(min=0)] * (label >= 0)
    loss = -weights * (1 - p) ** 2.0 * p.log()
    return loss if reduction == "none" else loss.sum() if reduction == "sum" else loss.sum() / weights.sum()


def _dice(p, target):
    return 1 - (2 * (p * target).sum((1, 2)) + 0.5) / (p.sum((1, 2)) + target.sum((1, 2)) + 0.5)


def _iou(p, target):
    both = (p * target).sum(1)
    return 1 - (both + 1) / (p.sum(1) + target.sum(1) - both + 1)


_SIGNS = [[1.0, -1.0, 1.0, 1.0]] * 3
_ROWS, _LABELS, _OF_CLASS = (4, 3), [0, 2, 1, 1], [0.5, 2.0, 1.5]
_MASK = [[0.0, 1.0, 1.0], [1.0, 0.0, 0.0]]
_TRIPLET = ((4, 3), (4, 3), (4, 3))

LOSSES = [
    *_loss("hinge_loss", _formula(lambda x, y: torch.relu(1 - x * y)), (3, 4), _SIGNS, still=1),
    *_loss("squared_hinge_loss", _formula(lambda x, y: torch.relu(1 - x * y) ** 2), (3, 4), _SIGNS, still=1),
    *_loss("soft_margin_loss", F.soft_margin_loss, (3, 4), _SIGNS, still=1),
    *_loss("hinge_embedding_loss", lambda x, y, reduction: F.hinge_embedding_loss(x, y, 0.7, reduction=reduction), (3, 4), _SIGNS, still=1,
           margin=0.7),
    *_loss("margin_ranking_loss", lambda x, y, t, reduction: F.margin_ranking_loss(x, y, t, 0.3, reduction=reduction), (3, 4), (3, 4),
           _SIGNS, still=1, margin=0.3),
    *_loss("cosine_embedding_loss", lambda x, y, t, reduction: F.cosine_embedding_loss(x, y, t, 0.1, reduction=reduction), (4, 3), (4, 3),
           [1, -1, -1, 1], margin=0.1),
    *_loss("cosine_embedding_loss of two", F.cosine_embedding_loss, (3,), (3,), 1),
    *_loss("triplet_margin_loss", F.triplet_margin_loss, *_TRIPLET),
    *_loss("triplet_margin_loss swapped", lambda *x, reduction: F.triplet_margin_loss(*x, 2.0, 3, 1e-6, True, reduction=reduction),
           *_TRIPLET, margin=2.0, order=3.0, swap=True),
    *_loss("triplet_margin_with_distance_loss", lambda *x, reduction: F.triplet_margin_with_distance_loss(
        *x, distance_function=lambda a, b: 1 - F.cosine_similarity(a, b), reduction=reduction), *_TRIPLET,
        distance=lambda a, b: op.subtract(1.0, op.cosine_similarity(a, b))),
    *_loss("multi_margin_loss", lambda x, y, w, reduction: F.multi_margin_loss(x, y, 1, 0.8, w, reduction=reduction), _ROWS, _LABELS,
           _OF_CLASS, still=1, orders=1, margin=0.8),
    *_loss("multi_margin_loss squared", lambda x, y, reduction: F.multi_margin_loss(x, y, 2, reduction=reduction), _ROWS, _LABELS, orders=1,
           order=2),
    *_loss("multi_margin_loss of one", F.multi_margin_loss, (3,), 1, orders=1),
    *_loss("multilabel_margin_loss", F.multilabel_margin_loss, (3, 4), [[3, 0, -1, 1], [-1, 2, 2, 2], [0, 1, 2, 3]], orders=1),
    *_loss("multilabel_soft_margin_loss", lambda x, y, w, reduction: F.multilabel_soft_margin_loss(x, y, w, reduction=reduction), (2, 3),
           _MASK, _OF_CLASS, still=2),
    *_loss("poisson_nll_loss", F.poisson_nll_loss, (3, 4), (3, 4)),
    *_loss("poisson_nll_loss in full", lambda x, y, reduction: F.poisson_nll_loss(x, y, False, True, reduction=reduction), (3, 4),
           [[0.0, 1.0, 2.0, 7.0]] * 3, low=0.2, still=1, log_input=False, full=True),
    *_loss("gaussian_nll_loss", F.gaussian_nll_loss, (3, 4), (3, 4), (3, 1), low=0.2),
    *_loss("gaussian_nll_loss in full", lambda x, y, v, reduction: F.gaussian_nll_loss(x, y, v, full=True, eps=0.5, reduction=reduction),
           (3, 4), (3, 4), [0.25, 2.0, 1.0], orders=1, full=True, epsilon=0.5),
    *_loss("sigmoid_focal_loss", _formula(lambda x, y: _sigmoid_focal(x, y, 0.25, 2.0)), (2, 3), _MASK, still=1),
    *_loss("sigmoid_focal_loss evenly", _formula(lambda x, y: _sigmoid_focal(x, y, None, 1.5)), (2, 3), _MASK, still=1, alpha=None,
           gamma=1.5),
    *_loss("focal_loss", _focal, (4, 3), [0, 2, -100, 1], _OF_CLASS, still=1),
    *_loss("dice_loss", _formula(_dice), (2, 3, 2), (2, 3, 2), low=0.1, high=0.9, smooth=0.5),
    *_loss("iou_loss", _formula(_iou), (2, 3), _MASK, still=1, low=0.1, high=0.9, axis=1),
    Twin("cross_entropy of layers", lambda x, y, w: ol.layer.cross_entropy(x, y, w, ignore_index=1, label_smoothing=0.1),
         lambda x, y, w: F.cross_entropy(x.mT, y, w, ignore_index=1, label_smoothing=0.1), ((2, 2, 3), [[0, 2], [1, 0]], [0.5, 2.0, 1.5]),
         still=1),
    Twin("cross_entropy of layers of probabilities", ol.layer.cross_entropy, F.cross_entropy, ((4, 3), (4, 3)), orders=1, low=0.1),
    Twin("cosine_similarity", op.cosine_similarity, F.cosine_similarity, ((3, 4, 2), (3, 4, 1))),
    Twin("cosine_similarity of one vector", op.cosine_similarity, F.cosine_similarity, ((3, 1, 2), (3, 4, 1))),
    Twin("pairwise_distance", lambda x, y: op.pairwise_distance(x, y, order=3.0, keepdim=True),
         lambda x, y: F.pairwise_distance(x, y, 3.0, keepdim=True), ((3, 4), (3, 4))),
]  # fmt: skip
"""Twins of floats: values and gradients are compared."""
