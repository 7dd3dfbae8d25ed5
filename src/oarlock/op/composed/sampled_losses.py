"""Losses for many classes at low cost: against sampled classes, or along a path in a tree of classes."""

import math
from collections.abc import Callable

from oarlock.errors import ArgumentError, ShapeError
from oarlock.ir.dtype import DType
from oarlock.ir.location import here
from oarlock.ir.python_number import as_python
from oarlock.ir.rollback import undone_on_error
from oarlock.ir.var import Var
from oarlock.op.bitwise import bitwise_and, bitwise_right_shift
from oarlock.op.choice import minimum, where
from oarlock.op.comparison import equal, greater_equal
from oarlock.op.composed.shape import known_shape, unsqueeze
from oarlock.op.creation import full_like
from oarlock.op.dtype_conversion import cast
from oarlock.op.elementwise import add, divide, multiply, neg, subtract
from oarlock.op.indexing import gather
from oarlock.op.loss import softmax_with_cross_entropy
from oarlock.op.manipulation import concat
from oarlock.op.matrix import linear, matrix_transpose
from oarlock.op.randomness import random_uniform
from oarlock.op.reduction import reduce_sum
from oarlock.op.smooth_activation import log_sigmoid
from oarlock.op.told_shape import arange
from oarlock.op.unary import exp, log, log1p
from oarlock.registry.creator import require_type
from oarlock.registry.range_check import require_count
from oarlock.suggestions import did_you_mean

__all__ = ["hierarchical_softmax_loss", "log_uniform_samples", "nce_loss", "sampled_softmax_loss", "uniform_samples"]


def uniform_samples(count: int, classes: int) -> Var:
    """``count`` classes drawn uniformly from 0 to ``classes - 1``, with replacement: int64[count]."""
    return _drawn(count, classes, lambda share: multiply(share, float(classes)))


def log_uniform_samples(count: int, classes: int) -> Var:
    """``count`` classes, class k with probability ``log((k + 2) / (k + 1)) / log(classes + 1)``, drawn with replacement: int64[count].

    This is close to Zipf's law: number the classes by their frequency, the most frequent first.
    """
    return _drawn(count, classes, lambda share: subtract(exp(multiply(share, math.log(classes + 1))), 1.0))


def _drawn(count: int, classes: int, inverse: Callable[[Var], Var]) -> Var:
    count, classes = as_python(count), as_python(classes)  # type: ignore[assignment]
    for what, number in (("count", count), ("classes", classes)):
        require_count(what, number)
    share = random_uniform(shape=(count,), dtype=DType.FLOAT64)
    return minimum(cast(inverse(share), dtype=DType.INT64), classes - 1)  # rounding may reach one more


def _log_uniform(classes: Var, count: int) -> Var:
    """Return the log probabilities of classes in `log_uniform_samples`."""
    return subtract(log(log1p(divide(1.0, add(classes, 1.0)))), math.log(math.log(count + 1)))


_LOG_PROBABILITIES: dict[str, Callable[[Var, int], Var]] = {
    "log_uniform": _log_uniform,
    "uniform": lambda classes, count: full_like(classes, value=-math.log(count), dtype=classes.dtype),
}


def _scores(x: Var, weight: Var, bias: Var, label: Var, samples: Var, sampler: str) -> tuple[Var, Var]:
    """Return the logits of labels, [n], and of samples, [n s], each minus the logarithm of its expected number of samples."""
    if sampler not in _LOG_PROBABILITIES:
        raise ArgumentError(
            f"no sampler is called {sampler!r:.60}", location=here(), contract="one of " + ", ".join(_LOG_PROBABILITIES),
            hint=did_you_mean(str(sampler), _LOG_PROBABILITIES),
        )  # fmt: skip
    (classes, *_), drawn = known_shape(weight, "the weights of classes"), known_shape(samples, "samples")
    count = drawn[0] if len(drawn) == 1 else None
    if not isinstance(classes, int) or not isinstance(count, int) or not count:
        raise ShapeError(
            f"{weight.name} must have a known number of classes, and {samples.name} of samples", location=here(),
            given=[weight.describe(), samples.describe()],
        )  # fmt: skip

    def expected(ids: Var) -> Var:
        numbers = cast(ids, dtype=DType.FLOAT64 if x.dtype is DType.FLOAT64 else DType.FLOAT32)
        found = add(_LOG_PROBABILITIES[sampler](numbers, classes), math.log(count))
        return found if found.dtype is x.dtype else cast(found, dtype=x.dtype)

    of_label = add(reduce_sum(multiply(x, gather(weight, label)), axis=-1), gather(bias, label))
    of_samples = linear(x, matrix_transpose(gather(weight, samples)), gather(bias, samples))
    return subtract(of_label, expected(label)), subtract(of_samples, expected(samples))


def nce_loss(x: Var, weight: Var, bias: Var, label: Var, samples: Var, *, sampler: str = "log_uniform") -> Var:
    """Noise-contrastive estimation (Gutmann and Hyvarinen, 2010): classify the label against sampled classes. One number per row.

    float[n d], float[k d], float[k], int64[n], int64[s] -> float[n]: the binary cross entropy of ``x . weight + bias - log(s q)`` over the
    label and all samples, with ``q`` the probability of a class under the ``sampler``, "log_uniform" or "uniform". Raises ArgumentError,
    and the errors of the operators; an index that is not a class raises KernelError when the program runs.
    """
    with undone_on_error(require_type(x, "nce_loss: x").block.program):
        true, sampled = _scores(x, weight, bias, label, samples, sampler)
        return neg(add(log_sigmoid(true), reduce_sum(log_sigmoid(neg(sampled)), axis=-1)))


def sampled_softmax_loss(
    x: Var, weight: Var, bias: Var, label: Var, samples: Var, *, sampler: str = "log_uniform", remove_accidental_hits: bool = True
) -> Var:
    """Cross entropy of a softmax over only the label and the samples (Jean et al., 2015): one number per row.

    Arguments and the correction of logits are as in `nce_loss`. A sample that equals the label of a row is ignored for that row, unless
    `remove_accidental_hits` is false.
    """
    with undone_on_error(require_type(x, "sampled_softmax_loss: x").block.program):
        true, sampled = _scores(x, weight, bias, label, samples, sampler)
        if remove_accidental_hits:
            sampled = where(equal(unsqueeze(label, 1), samples), -math.inf, sampled)
        first = full_like(label, value=0.0, dtype=DType.INT64)
        return softmax_with_cross_entropy(concat([unsqueeze(true, 1), sampled], axis=1), first)


def hierarchical_softmax_loss(x: Var, weight: Var, bias: Var, label: Var) -> Var:
    """``-log`` of the probability of a label, by a sigmoid at each inner node on its path in a binary tree of k classes.

    float[n d], float[k-1 d], float[k-1], int64[n] -> float[n]. The tree is ``log2 k`` deep. Node 0 is the root; the children of node i are
    2 i + 1 and 2 i + 2; nodes from k - 1 on are the classes (Morin and Bengio, 2005). The probabilities of all classes add up to 1.
    """
    with undone_on_error(require_type(x, "hierarchical_softmax_loss: x").block.program):
        nodes = known_shape(weight, "hierarchical_softmax_loss")[0]
        if not isinstance(nodes, int) or nodes < 1:
            raise ShapeError(
                f"hierarchical_softmax_loss: {weight.name} must have a known number of rows, one fewer than classes", location=here(),
                given=[weight.describe()],
            )  # fmt: skip
        code = add(
            unsqueeze(gather(arange([], stop=(nodes + 1,)), label), 1), nodes + 1
        )  # its binary digits are the turns from the root down
        level = arange([], stop=((2 * nodes + 1).bit_length() - 1,))
        node = subtract(bitwise_right_shift(code, add(level, 1)), 1)
        passed = greater_equal(node, 0)
        own = where(passed, node, 0)
        logit = add(reduce_sum(multiply(unsqueeze(x, 1), gather(weight, own)), axis=-1), gather(bias, own))
        turn = cast(bitwise_and(bitwise_right_shift(code, level), 1), dtype=x.dtype)
        right = log_sigmoid(multiply(logit, subtract(multiply(turn, 2.0), 1.0)))
        return neg(reduce_sum(where(passed, right, 0.0), axis=-1))
