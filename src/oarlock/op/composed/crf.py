"""The loss of a linear-chain conditional random field."""

from oarlock.ir.rollback import undone_on_error
from oarlock.ir.var import Var
from oarlock.op.choice import where
from oarlock.op.comparison import equal, greater
from oarlock.op.composed.shape import known_shape
from oarlock.op.crf import crf_log_partition
from oarlock.op.elementwise import add, multiply, subtract
from oarlock.op.indexing import arange_like, gather
from oarlock.op.loss import negative_log_likelihood
from oarlock.op.manipulation import reshape, slice_
from oarlock.op.rearrangement import roll
from oarlock.op.sequence import sequence_expand, sequence_first, sequence_last, sequence_lengths, sequence_sum
from oarlock.op.told_shape import size
from oarlock.registry.creator import require_type

__all__ = ["crf_loss"]

_NO_LABEL = -(2**63)  # so that no label is ignored


def crf_loss(emissions: Var, splits: Var, label: Var, transitions: Var, start: Var, end: Var) -> Var:
    """The negative log likelihood of labels, `crf_log_partition` minus their score: one number per sequence, 0 for an empty one.

    float[t k], int64[n+1], int64[t], float[k k], float[k], float[k] -> float[n]. Raises the errors of the operators; a label that is not a
    class raises KernelError when the program runs.
    """
    with undone_on_error(require_type(emissions, "crf_loss: emissions").block.program):
        total = crf_log_partition(emissions, splits, transitions, start, end)
        count = size(transitions, axis=-1)
        known_shape(transitions, "crf_loss")
        before = roll(label, shifts=(1,), axes=(0,))  # wrong for the first element of a sequence, which is masked below
        pair = gather(reshape(transitions, shape=(-1,)), add(multiply(before, count), label))
        first = equal(arange_like(label), sequence_expand(slice_(splits, stop=-1), splits, label))
        emitted = negative_log_likelihood(emissions, label, ignore_index=_NO_LABEL)
        scores = sequence_sum(subtract(where(first, 0.0, pair), emitted), splits)
        there = greater(sequence_lengths(splits), 0)
        ends = add(gather(start, sequence_first(label, splits)), gather(end, sequence_last(label, splits)))
        return subtract(total, add(scores, where(there, ends, 0.0)))
