"""Linear-chain conditional random fields: label sequences scored by emissions and by transitions between labels."""

import torch

from oarlock.op.composed.shape import unsqueeze
from oarlock.op.elementwise import add, multiply
from oarlock.op.reduction import reduce_sum
from oarlock.op.sequence import sequence_expand, sequence_first, sequence_last
from oarlock.op.trusted_operator import operator
from oarlock.registry import Case, GradCheck, Rejects
from oarlock.tensor.dtype import at_least_single
from oarlock.tensor.lattice import FullTransitions, Lattice, best_path, pad_rows, sums_of, tangents_of
from oarlock.tensor.sequences import require_counted, require_cut, sequences_in

__all__ = ["crf_log_partition", "crf_share_changes", "viterbi_decode"]

_LN3 = 1.0986122886681098


def _lattice(emissions, splits, transitions, start, end):
    """Return the lattice of label paths of each sequence and the positions of its elements in padded rows. Raises ValueError for bad row
    splits.
    """
    rows, lengths, cells = pad_rows(at_least_single(emissions), splits)
    start, end, transitions = (at_least_single(each) for each in (start, end, transitions))
    return Lattice(rows, lengths, start, end, FullTransitions(transitions)), cells


@operator(
    "emissions: float[t k!], splits: int64[n+1], transitions: float[k k], start: float[k], end: float[k]"
    " -> y: float[n], shares: float[t k], pairs: float[n k k]",
    intermediate=("shares", "pairs"),
    checks_values=True,
    cases=[
        Case(
            emissions=[[0.0, 0.0], [_LN3, 0.0]], splits=[0, 2, 2], transitions=[[0.0, 0.0], [0.0, 0.0]], start=[0.0, 0.0], end=[0.0, 0.0],
            y=[2.0794415416798357, 0.0], shares=[[0.5, 0.5], [0.75, 0.25]], pairs=[[[0.375, 0.125]] * 2, [[0.0, 0.0]] * 2],
        ),
        GradCheck(emissions=(5, 3), splits=[0, 3, 3, 5], transitions=(3, 3), start=(3,), end=(3,)),
        GradCheck(emissions=(2, 2), splits=[0, 1, 2], transitions=(2, 2), start=(2,), end=(2,)),
        Rejects("row splits of 3 elements must begin with 0, never decrease and end at 3, unlike [0, 2]", emissions=(3, 2), splits=[0, 2],
                transitions=(2, 2), start=(2,), end=(2,)),
    ],
)  # fmt: skip
def crf_log_partition(emissions, splits, transitions, start, end):
    """``log(sum(exp(score)))`` over all label sequences; 0 for an empty sequence (Lafferty, McCallum and Pereira, 2001).

    The score is the sum of each element's emission for its label, ``transitions[i, j]`` for each label j after i, and the start and end
    scores of the first and last label. ``shares`` is the probability of each label for each element, ``pairs`` the expected number of each
    transition.
    """
    lattice, cells = _lattice(emissions, splits, transitions, start, end)
    sums = sums_of(lattice)
    return tuple(each.to(emissions.dtype) for each in (sums.total, sums.occupancy[cells], sums.pairs))


crf_log_partition.check_shapes(lambda emissions, splits, transitions, start, end: require_cut(emissions, splits))


def _changes(emissions, splits, transitions, start, end, dshares, dpairs):
    """Return the contribution of gradients of shares and pairs to those of emissions [t k] and transitions [n k k], or None if there are
    none.
    """
    if dshares is None and dpairs is None:
        return None
    return crf_share_changes(emissions, splits, transitions, start, end, dshares, dpairs)


@crf_log_partition.gradient_program("emissions")
def crf_log_partition_demissions(emissions, splits, transitions, start, end, shares, dy, dshares=None, dpairs=None):
    return _at_elements(emissions, splits, transitions, start, end, shares, dy, dshares, dpairs)


def _at_elements(emissions, splits, transitions, start, end, shares, dy, dshares, dpairs):
    direct = multiply(shares, unsqueeze(sequence_expand(dy, splits, emissions), 1))
    changes = _changes(emissions, splits, transitions, start, end, dshares, dpairs)
    return direct if changes is None else add(direct, changes[0])


@crf_log_partition.gradient_program("transitions")
def crf_log_partition_dtransitions(emissions, splits, transitions, start, end, pairs, dy, dshares=None, dpairs=None):
    each = multiply(pairs, unsqueeze(dy, 1, 2))
    changes = _changes(emissions, splits, transitions, start, end, dshares, dpairs)
    return reduce_sum(each if changes is None else add(each, changes[1]), axis=0)


@crf_log_partition.gradient_program("start")
def crf_log_partition_dstart(emissions, splits, transitions, start, end, shares, dy, dshares=None, dpairs=None):
    """The emission gradients of the first elements, to whose emissions the start scores are added."""
    return reduce_sum(sequence_first(_at_elements(emissions, splits, transitions, start, end, shares, dy, dshares, dpairs), splits), axis=0)


@crf_log_partition.gradient_program("end")
def crf_log_partition_dend(emissions, splits, transitions, start, end, shares, dy, dshares=None, dpairs=None):
    return reduce_sum(sequence_last(_at_elements(emissions, splits, transitions, start, end, shares, dy, dshares, dpairs), splits), axis=0)


@operator(
    "emissions: float[t k!], splits: int64[n+1], transitions: float[k k], start: float[k], end: float[k],"
    " shares?: float[t k], pairs?: float[n k k] -> of_shares: float[t k], of_pairs: float[n k k]",
    checks_values=True,
    cases=[
        Case(
            emissions=[[0.0, 0.0], [0.0, 0.0]], splits=[0, 2], transitions=[[0.0, 0.0], [0.0, 0.0]], start=[0.0, 0.0], end=[0.0, 0.0],
            shares=[[1.0, 0.0], [0.0, 0.0]], of_shares=[[0.25, -0.25], [0.0, 0.0]], of_pairs=[[[0.125, 0.125], [-0.125, -0.125]]],
        ),
        Case(
            emissions=[[0.0, 0.0], [0.0, 0.0]], splits=[0, 2], transitions=[[0.0, 0.0], [0.0, 0.0]], start=[0.0, 0.0], end=[0.0, 0.0],
            pairs=[[[1.0, 0.0], [0.0, 0.0]]], of_shares=[[0.125, -0.125], [0.125, -0.125]],
            of_pairs=[[[0.1875, -0.0625], [-0.0625, -0.0625]]],
        ),
    ],
)  # fmt: skip
def crf_share_changes(emissions, splits, transitions, start, end, shares=None, pairs=None):
    """The derivative of `crf_log_partition`'s shares and pairs along a direction of the emissions and of each sequence's transitions.

    It is the Hessian, which is symmetric, times that direction: ``shares`` for the emissions, ``pairs`` for the transitions.
    """
    lattice, cells = _lattice(emissions, splits, transitions, start, end)
    moving = torch.zeros_like(lattice.emissions) if shares is None else pad_rows(at_least_single(shares), splits)[0]
    scores = None if pairs is None else FullTransitions(at_least_single(pairs))
    of_shares, of_pairs = tangents_of(lattice, moving, scores)
    return of_shares[cells].to(emissions.dtype), of_pairs.to(emissions.dtype)


@crf_share_changes.check_shapes
def require_own_pairs(emissions, splits, transitions, start, end, shares=None, pairs=None):
    require_cut(emissions, splits)
    if pairs is not None:
        require_counted("pairs", pairs.shape[0], sequences_in(splits))


@operator(
    "emissions: float[t k!], splits: int64[n+1], transitions: float[k k], start: float[k], end: float[k] -> y: int64[t], score: float[n]",
    checks_values=True,
    cases=[
        Case(
            emissions=[[1.0, 0.0], [0.0, 0.5], [2.0, 0.0]], splits=[0, 2, 2, 3], transitions=[[0.0, -1.0], [0.0, 0.0]],
            start=[0.0, 0.0], end=[0.0, 0.25], y=[0, 0, 0], score=[1.0, 0.0, 2.0],
        ),
        Case(emissions=[[0.0, 2.0], [0.0, 1.0]], splits=[0, 2], transitions=[[0.0, 0.0], [3.0, 0.0]], start=[0.0, 0.0], end=[0.0, 0.0],
             y=[1, 0], score=[5.0]),
        Rejects("row splits of 1 elements must begin with 0, never decrease and end at 1, unlike [0, 2]", emissions=(1, 2), splits=[0, 2],
                transitions=(2, 2), start=(2,), end=(2,)),
    ],
)  # fmt: skip
def viterbi_decode(emissions, splits, transitions, start, end):
    """The label sequence of the highest score for each sequence, scored as in `crf_log_partition`, and its score (Viterbi, 1967).

    Ties are resolved to the smaller label, starting from the last element.
    """
    lattice, cells = _lattice(emissions, splits, transitions, start, end)
    path, score = best_path(lattice)
    return path[cells], score.to(emissions.dtype)


viterbi_decode.check_shapes(lambda emissions, splits, transitions, start, end: require_cut(emissions, splits))

for slot in ("emissions", "transitions", "start", "end"):
    viterbi_decode.no_gradient(slot)


crf_log_partition.declare_edges(
    infinite="0 if every sequence is impossible, so that sums over sequences stay finite; PyTorch's logsumexp gives NaN"
)
