"""Variable-length sequences: their concatenated elements, ``[t ...d]``, and row splits, ``int64[n+1]``.

The operators reduce each sequence to its sum, mean, largest, first or last element, or normalize it by a softmax. ``op/sequence_layout.py``
has operators that only move elements. Row splits begin with 0, never decrease, and end at ``t``; others raise KernelError.
"""

import torch

from oarlock.op.elementwise import multiply, subtract
from oarlock.op.trusted_operator import operator
from oarlock.registry import Case, GradCheck, Rejects
from oarlock.tensor.sequences import divisors, ends_of, owners, put_at, require_counted, require_cut, sequences_in, sum_each, take_at

__all__ = [
    "require_cut",
    "sequence_expand",
    "sequence_first",
    "sequence_last",
    "sequence_lengths",
    "sequence_max",
    "sequence_mean",
    "sequence_softmax",
    "sequence_sum",
    "sequences_in",
]


@operator("splits: int64[n+1] -> y: int64[n]", cases=[Case(splits=[0, 2, 2, 3], y=[2, 0, 1]), Case(splits=[0], y=[])])
def sequence_lengths(splits):
    """The number of elements of each sequence."""
    return splits.diff()


# One element of each sequence


@operator(
    "x: number[t ...d], splits: int64[n+1] -> y: number[n ...d]",
    checks_values=True,
    cases=[
        Case(x=[[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]], splits=[0, 2, 2, 3], y=[[4.0, 6.0], [0.0, 0.0], [5.0, 6.0]]),
        Case(x=[1, 2, 3], splits=[0, 3], y=[6]),
        Case(x=[], splits=[0, 0], y=[0.0]),
        Case(x=[], splits=[0], y=[]),
        Rejects("row splits of 2 elements must begin with 0, never decrease and end at 2, unlike [0, 3]", x=(2,), splits=[0, 3]),
        Rejects("x has 2 elements, but splits has 0 sequences", x=(2,), splits=[0]),
    ],
)
def sequence_sum(x, splits):
    """The sum of each sequence; 0 for an empty one."""
    return sum_each(x, owners(splits, len(x)), len(splits) - 1)


sequence_sum.gradient_programs(x=lambda x_shape, splits, dy: sequence_expand(dy, splits, x_shape))


@operator(
    "x: T[m ...d], splits: int64[k], like: shape[t ...e] -> y: T[t ...d]",
    checks_values=True,
    cases=[
        Case(x=[[1.0], [2.0], [3.0]], splits=[0, 2, 2, 3], like=[0.0, 0.0, 0.0], y=[[1.0], [1.0], [3.0]]),
        Case(x=[True, False], splits=[0, 1, 3], like=[[0], [0], [0]], y=[True, False, False]),
        Case(x=[], splits=[0], like=[], y=[]),
        GradCheck(x=(3, 2), splits=[0, 1, 1, 4], like=(4, 1)),
        GradCheck(x=(1, 2), splits=[0, 3], like=(3,)),
        GradCheck(x=(1,), splits=[0, 0], like=(0,)),
        Rejects("x has 2 rows, but splits has 3 sequences", x=(2,), splits=[0, 1, 2, 3], like=(3,)),
    ],
)
def sequence_expand(x, splits, like):
    """Row i of ``x`` for every element of sequence i; ``like`` has a row per element. The transpose of ``sequence_sum``."""
    require_counted("x", len(x), len(splits) - 1)
    return x.index_select(0, owners(splits, like[0]))


@sequence_expand.infer_shape
def sequence_expand_shape(x, splits, like):
    require_cut(like, splits)
    require_counted("x", x.shape[0], sequences_in(splits))
    return (like.shape[0], *x.shape[1:])


sequence_expand.gradient_programs(x=lambda splits, dy: sequence_sum(dy, splits))


@operator(
    "x: float[t ...d], splits: int64[n+1] -> y: float[n ...d]",
    linear_in=("x",),
    checks_values=True,
    cases=[
        Case(x=[[1.0, 2.0], [3.0, 5.0], [5.0, 6.0]], splits=[0, 2, 2, 3], y=[[2.0, 3.5], [0.0, 0.0], [5.0, 6.0]]),
        Case(x=[], splits=[0, 0], y=[0.0]),
        Case(x=[], splits=[0], y=[]),
    ],
)
def sequence_mean(x, splits):
    """The mean of each sequence; 0 for an empty one."""
    own = owners(splits, len(x))
    return sum_each(x, own, len(splits) - 1) / divisors(splits, x)


@sequence_mean.gradient("x")
def sequence_mean_dx(splits, dy, x_shape):
    return (dy / divisors(splits, dy)).index_select(0, owners(splits, x_shape[0]))


@operator(
    "x: real[t ...d], splits: int64[n+1] -> y: real[n ...d], at: int64[n ...d]",
    intermediate=("at",),
    checks_values=True,
    cases=[
        Case(x=[[1.0, -2.0], [3.0, -4.0], [3.0, -6.0]], splits=[0, 3, 3], y=[[3.0, -2.0], [0.0, 0.0]], at=[[1, 0], [-1, -1]]),
        Case(x=[2, 7, 7], splits=[0, 3], y=[7], at=[1]),
        Case(x=[float("-inf"), float("-inf")], splits=[0, 2], y=[float("-inf")], at=[0]),
        Case(x=[], splits=[0, 0], y=[0.0], at=[-1]),
        Case(x=[], splits=[0], y=[], at=[]),
    ],
)
def sequence_max(x, splits):
    """The largest value of each sequence; 0 for an empty one. The gradient goes to ``at``, the first on ties, -1 for none."""
    own = owners(splits, len(x)).reshape(-1, *[1] * (x.ndim - 1)).expand_as(x)
    shape = (len(splits) - 1, *x.shape[1:])
    top = x.new_zeros(shape).scatter_reduce(0, own, x.detach(), "amax", include_self=False)
    number = torch.arange(len(x), device=x.device).reshape(-1, *[1] * (x.ndim - 1)).expand_as(x)
    number = number.masked_fill((x != top.gather(0, own)) & ~x.isnan(), len(x))
    at = own.new_full(shape, len(x)).scatter_reduce(0, own, number, "amin")
    at = at.masked_fill(at == len(x), -1)
    return take_at(x, at), at


@sequence_max.gradient("x")
def sequence_max_dx(at, dy, x_shape):
    return put_at(dy, at, x_shape)


@sequence_max_dx.gradient("dy")
def sequence_max_dx_ddy(at, ddx):
    return take_at(ddx, at)


@operator(
    "x: T[t ...d], splits: int64[n+1] -> y: T[n ...d]",
    linear_in=("x",),
    checks_values=True,
    cases=[
        Case(x=[[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]], splits=[0, 2, 2, 3], y=[[1.0, 2.0], [0.0, 0.0], [5.0, 6.0]]),
        Case(x=[True, False], splits=[0, 2], y=[True]),
        Case(x=[], splits=[0, 0], y=[0.0]),
        Case(x=[], splits=[0], y=[]),
    ],
)
def sequence_first(x, splits):
    """The first element of each sequence; zeros for an empty one."""
    return take_at(x, ends_of(splits, x.shape, last=False))


@sequence_first.gradient("x")
def sequence_first_dx(splits, dy, x_shape):
    return put_at(dy, ends_of(splits, x_shape, last=False), x_shape)


@operator(
    "x: T[t ...d], splits: int64[n+1] -> y: T[n ...d]",
    linear_in=("x",),
    checks_values=True,
    cases=[
        Case(x=[[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]], splits=[0, 2, 2, 3], y=[[3.0, 4.0], [0.0, 0.0], [5.0, 6.0]]),
        Case(x=[True, False], splits=[0, 2], y=[False]),
        Case(x=[], splits=[0, 0], y=[0.0]),
        Case(x=[], splits=[0], y=[]),
    ],
)
def sequence_last(x, splits):
    """The last element of each sequence; zeros for an empty one."""
    return take_at(x, ends_of(splits, x.shape, last=True))


@sequence_last.gradient("x")
def sequence_last_dx(splits, dy, x_shape):
    return put_at(dy, ends_of(splits, x_shape, last=True), x_shape)


# Normalization of each sequence


@operator(
    "x: float[t ...d], splits: int64[n+1] -> y: float[t ...d]",
    checks_values=True,
    cases=[
        Case(x=[0.0, 1.0986122886681098, 5.0], splits=[0, 2, 2, 3], y=[0.25, 0.75, 1.0]),
        Case(x=[[1000.0, 0.0], [1000.0, -1000.0]], splits=[0, 2], y=[[0.5, 1.0], [0.5, 0.0]]),
        Case(x=[], splits=[0, 0], y=[]),
    ],
)
def sequence_softmax(x, splits):
    """The softmax of each sequence: ``exp(x)`` divided by its sum over the sequence, computed stably."""
    own = owners(splits, len(x))
    shape = (len(splits) - 1, *x.shape[1:])
    index = own.reshape(-1, *[1] * (x.ndim - 1)).expand_as(x)
    top = x.new_zeros(shape).scatter_reduce(0, index, x.detach(), "amax", include_self=False)
    weights = (x - top.index_select(0, own)).exp()
    return weights / sum_each(weights, own, shape[0]).index_select(0, own)


@sequence_softmax.gradient("x")
def sequence_softmax_dx(y, dy, splits):
    """``dx = y * (dy - sum(dy * y))``, the sum over the sequence."""
    own = owners(splits, len(y))
    return y * (dy - sum_each(dy * y, own, len(splits) - 1).index_select(0, own))


sequence_softmax_dx.gradient_programs(dy=lambda y, ddx, splits: sequence_softmax_dx(y, ddx, splits))


@sequence_softmax_dx.gradient_program("y")
def sequence_softmax_dx_dy(y, dy, ddx, splits):
    along_dy = sequence_expand(sequence_sum(multiply(dy, y), splits), splits, y)
    along_ddx = sequence_expand(sequence_sum(multiply(ddx, y), splits), splits, y)
    return subtract(multiply(ddx, subtract(dy, along_dy)), multiply(dy, along_ddx))


for reduction in (sequence_sum, sequence_mean, sequence_max, sequence_first, sequence_last, sequence_softmax):
    reduction.check_shapes(require_cut)
