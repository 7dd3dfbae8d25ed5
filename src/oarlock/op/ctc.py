"""Connectionist temporal classification: a label sequence scored against longer predictions, summed over all alignments."""

import torch

from oarlock.ir.shape_rules import require_same
from oarlock.op.composed.shape import unsqueeze
from oarlock.op.elementwise import add, multiply, neg
from oarlock.op.sequence import sequence_expand
from oarlock.op.trusted_operator import operator
from oarlock.registry import Case, GradCheck, Rejects
from oarlock.tensor.cross_entropy import require_classes
from oarlock.tensor.dtype import at_least_single
from oarlock.tensor.lattice import IMPOSSIBLE, BandTransitions, Lattice, pad_rows, sums_of, tangents_of
from oarlock.tensor.sequences import require_cut, sequences_in

__all__ = ["ctc_loss", "ctc_occupancy_change"]

_LN2 = 0.6931471805599453


def _lattice(log_p, splits, label, label_splits, blank: int):
    """Return the lattice of alignments, with a state for each label and each surrounding blank; the class of each state; element positions;
    label counts.

    Raises ValueError for invalid row splits, and for a label that is not a class.
    """
    if not 0 <= blank < log_p.shape[-1]:
        raise ValueError(f"blank {blank} is not one of the classes 0 to {log_p.shape[-1] - 1}")
    require_classes(label, log_p.shape[-1], 0)  # the ignored index, 0, is a class
    rows, lengths, cells = pad_rows(at_least_single(log_p), splits)  # [n t k]
    labels, counts, _ = pad_rows(label, label_splits)
    require_same(len(lengths), len(counts), "splits has {} sequences, but label_splits has {}", len(lengths), len(counts))
    classes = torch.full((len(counts), 2 * labels.shape[1] + 1), blank, device=label.device)  # [n s]
    classes[:, 1::2] = labels
    skips = torch.zeros_like(classes, dtype=torch.bool)
    skips[:, 2:] = classes[:, 2:] != classes[:, :-2]
    state = torch.arange(classes.shape[1], device=label.device)
    behind = 2 * counts.unsqueeze(-1) - state  # 0 for the last blank, 1 for the last label
    start = torch.where(state < 2, 0.0, IMPOSSIBLE).to(rows.dtype)
    end = torch.where((behind == 0) | (behind == 1), 0.0, IMPOSSIBLE).to(rows.dtype)
    spread = classes.unsqueeze(1).expand(-1, rows.shape[1], -1)
    return Lattice(rows.gather(-1, spread), lengths, start, end, BandTransitions(skips, rows.dtype)), spread, cells, counts


@operator(
    "log_p: float[t k!], splits: int64[n+1], label: int64[l], label_splits: int64[m] -> loss: float[n], occupancy: float[t k]",
    intermediate=("occupancy",),
    checks_values=True,
    cases=[
        Case(
            log_p=[[-_LN2, -_LN2], [-_LN2, -_LN2], [-_LN2, -_LN2]], splits=[0, 2, 3], label=[1], label_splits=[0, 1, 1],
            loss=[0.2876820724517809, _LN2], occupancy=[[1 / 3, 2 / 3], [1 / 3, 2 / 3], [1.0, 0.0]],
        ),
        Case(log_p=[[0.0, 0.0]], splits=[0, 1, 1, 1], label=[1, 1, 1], label_splits=[0, 2, 3, 3],
             loss=[float("inf"), float("inf"), 0.0], occupancy=[[0.0, 0.0]]),
        Case(log_p=[[0.0, -1.0]], splits=[0, 1], label=[0], label_splits=[0, 1], blank=1, loss=[0.0], occupancy=[[1.0, 0.0]]),
        GradCheck(log_p=(7, 4), splits=[0, 4, 4, 7], label=[1, 1, 3], label_splits=[0, 2, 2, 3], low=-2.0, high=0.0),
        GradCheck(log_p=(5, 3), splits=[0, 5], label=[0, 1], label_splits=[0, 2], blank=2),
        Rejects("label 4 is not one of the classes 0 to 3", log_p=(3, 4), splits=[0, 3], label=[4], label_splits=[0, 1]),
        Rejects("blank 4 is not one of the classes 0 to 3", log_p=(3, 4), splits=[0, 3], label=[1], label_splits=[0, 1], blank=4),
        Rejects("splits has 1 sequences, but label_splits has 2", log_p=(3, 4), splits=[0, 3], label=[1], label_splits=[0, 1, 1]),
        Rejects("row splits of 3 elements must begin with 0, never decrease and end at 3, unlike [0, 2]", log_p=(3, 4), splits=[0, 2],
                label=[1], label_splits=[0, 1]),
    ],
)  # fmt: skip
def ctc_loss(log_p, splits, label, label_splits, *, blank: int = 0):
    """``-log`` of the probability of each label sequence, over all alignments with repetitions and blanks (Graves et al., 2006).

    ``log_p`` are log probabilities of classes, for example from `log_softmax`. If no alignment fits the labels, the loss is infinite and
    has no gradient. ``occupancy`` is the probability of each class at each step, given the labels.
    """
    lattice, classes, cells, counts = _lattice(log_p, splits, label, label_splits, blank)
    sums = sums_of(lattice)
    loss = torch.where((lattice.lengths == 0) & (counts > 0), torch.inf, -sums.total)
    shares = log_p.new_zeros((*classes.shape[:2], log_p.shape[-1]), dtype=sums.occupancy.dtype)
    return loss.to(log_p.dtype), shares.scatter_add(-1, classes, sums.occupancy)[cells].to(log_p.dtype)


@ctc_loss.infer_shape
def ctc_loss_shapes(log_p, splits, label, label_splits, *, blank=0):
    _require_aligned(log_p, splits, label, label_splits, blank)
    return (sequences_in(splits),), log_p.shape


def _require_aligned(log_p, splits, label, label_splits, blank: int) -> None:
    """Raise ShapeError or ValueError if the shapes do not fit together."""
    require_cut(log_p, splits)
    require_cut(label, label_splits)
    sequences, counted = sequences_in(splits), sequences_in(label_splits)
    require_same(sequences, counted, "splits has {} sequences, but label_splits has {}", sequences, counted)
    classes = log_p.shape[-1]
    if blank < 0 or (isinstance(classes, int) and blank >= classes):
        raise ValueError(f"blank {blank} is not one of the classes 0 to {classes - 1 if isinstance(classes, int) else classes}")


@ctc_loss.gradient_program("log_p")
def ctc_loss_dlog_p(log_p, splits, label, label_splits, occupancy, dloss, doccupancy=None, *, blank):
    """``-occupancy`` times the gradient of its sequence; a gradient of the occupancy adds its own part."""
    direct = neg(multiply(occupancy, unsqueeze(sequence_expand(dloss, splits, log_p), 1)))
    if doccupancy is None:
        return direct
    return add(direct, ctc_occupancy_change(log_p, splits, label, label_splits, doccupancy, blank=blank))


@operator(
    "log_p: float[t k!], splits: int64[n+1], label: int64[l], label_splits: int64[m], direction: float[t k] -> change: float[t k]",
    checks_values=True,
    cases=[
        Case(
            log_p=[[-_LN2, -_LN2], [-_LN2, -_LN2]], splits=[0, 2], label=[1], label_splits=[0, 1], direction=[[0.0, 1.0], [0.0, 0.0]],
            change=[[-2 / 9, 2 / 9], [1 / 9, -1 / 9]],
        ),
    ],
)  # fmt: skip
def ctc_occupancy_change(log_p, splits, label, label_splits, direction, *, blank: int = 0):
    """The derivative of `ctc_loss`'s occupancy with respect to ``log_p``, a symmetric matrix, times a direction."""
    lattice, classes, cells, _ = _lattice(log_p, splits, label, label_splits, blank)
    moving, _, _ = pad_rows(at_least_single(direction), splits)
    change, _ = tangents_of(lattice, moving.gather(-1, classes), None)
    return torch.zeros_like(moving).scatter_add(-1, classes, change)[cells].to(log_p.dtype)


ctc_occupancy_change.check_shapes(
    lambda log_p, splits, label, label_splits, direction, *, blank: _require_aligned(log_p, splits, label, label_splits, blank)
)


ctc_loss.declare_edges(infinite="0 if every alignment is impossible, as in PyTorch with zero_infinity=True; without it PyTorch gives NaN")
