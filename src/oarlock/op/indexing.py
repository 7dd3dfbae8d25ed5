"""Rows found by a condition, gathered by index, scattered back and merged; and the selection of one of several values.

Control flow is built from them: a branch runs on the rows that `gather` selects, and `merge` puts the results in order.
"""

import torch

from oarlock.errors import ShapeError
from oarlock.ir.shape_rules import may_be, require_at_most, require_axis, require_equal_numbers, require_numbered
from oarlock.ir.size import add, format_shape, sum_of
from oarlock.op.reduction import broadcast_to_like
from oarlock.op.trusted_operator import operator
from oarlock.registry import Case, GradCheck, Rejects
from oarlock.registry.value_sizes import predict_size
from oarlock.tensor.indexing import add_along, add_rows, take_along, take_rows

__all__ = ["arange_like", "gather", "merge", "nonzero", "scatter_add", "select_branch"]


@operator(
    "condition: bool[...s] -> y: int64[...t]",
    cases=[
        Case(condition=[True, False, True], y=[0, 2]),
        Case(condition=[True, False, True], value=False, y=[1]),
        Case(condition=[False, False], y=[]),
        Case(condition=[], value=False, y=[]),
        Case(condition=[[True, False], [True, True]], y=[[0, 0], [1, 0], [1, 1]]),
        Case(condition=True, y=[[]]),
    ],
)
def nonzero(condition, *, value: bool = True):
    """The indices of the rows where ``condition`` is ``value``, ascending; there may be none.

    If the condition does not have exactly one axis, a row of indices per position, one index per axis.
    """
    condition = condition if value else condition.logical_not()
    return _numbers(condition) if condition.dim() == 1 else condition.nonzero()


nonzero.infer_shape(lambda condition, *, value: ("?",) if len(condition.shape) == 1 else ("?", len(condition.shape)))


def _numbers(condition: torch.Tensor) -> torch.Tensor:
    """Return the indices of the true rows: reading and writing rows by index is faster than by a mask."""
    return condition.nonzero().view(-1)


@predict_size(nonzero, bounded=True)
def rows_count(condition, *, value):
    true = int(condition.count_nonzero())
    return true if value else condition.numel() - true


@operator(
    "like: shape[n ...d] -> y: int64[n]",
    cases=[
        Case(like=[[0.5], [0.5], [0.5]], y=[0, 1, 2]),
        Case(like=[], y=[]),
    ],
)
def arange_like(like):
    """The indices of all rows of ``like``, from 0."""
    return torch.arange(like[0])


@operator(
    "x: T[k ...d], rows: int64[*b] -> y: T",
    checks_values=True,
    added_later=("sparse",),
    cases=[
        Case(x=[[1.0, 2.0], [3.0, 4.0]], rows=[1, 0, 1], y=[[3.0, 4.0], [1.0, 2.0], [3.0, 4.0]]),
        Case(x=[1.0, 2.0, 3.0], rows=[[2, 0]], y=[[3.0, 1.0]]),
        Case(x=[True, False], rows=1, y=False),
        Case(x=[7, 8], rows=[], y=[]),
        Case(x=[], rows=[], y=[]),
        Case(x=[[1, 2, 3], [4, 5, 6]], rows=[2, 0], axis=1, y=[[3, 1], [6, 4]]),
        GradCheck(x=(3, 2), rows=[2, 0, 2]),
        GradCheck(x=(2, 3, 2), rows=[[2, 0], [1, 2]], axis=-2),
        GradCheck(x=(2,), rows=[[1, 1], [0, 1]]),
        GradCheck(x=(0, 2), rows=[]),
        Rejects("row 3 is out of range: x has 3 rows, numbered from 0", x=(3, 2), rows=[0, 3]),
        Rejects("row -1 is out of range: x has 1 row, numbered from 0", x=(1, 2), rows=[-1]),
        Rejects("1 indexes are given, but x has 0 rows", x=(0, 2), rows=[0]),
    ],
)
def gather(x, rows, *, axis: int | None = None, sparse: bool = False):
    """The rows of ``x`` at the indices ``rows``, such as an embedding lookup: ``y[i] = x[rows[i]]``. Indices may repeat.

    With ``axis``, it gathers along that axis: ``y[:, i] = x[:, rows[i]]``. An index out of range raises KernelError; negative indices are
    out of range. With ``sparse``, the optimizer receives the gradient of a parameter ``x`` as rows, provided that ``x`` is only looked up.
    """
    if axis is not None:
        return take_along(x, rows, axis)
    return take_rows(x, rows) if rows.dim() == 1 else take_rows(x, rows.flatten()).view((*rows.shape, *x.shape[1:]))


@gather.infer_shape
def taken_shape(x, rows, *, axis=None, sparse=False):
    at = require_axis(x.shape, axis or 0)
    require_numbered(rows.shape, x.shape[at], "x has 0 rows")
    return (*x.shape[:at], *rows.shape, *x.shape[at + 1 :])


gather.gradient_programs(x=lambda rows, x_shape, dy, *, axis=None: scatter_add(dy, rows, x_shape, axis=axis))


@operator(
    "values: T[...v], rows: int64[...b], like: shape[n ...d] -> y: T[n ...d]",
    checks_values=True,
    cases=[
        Case(values=[[1.0, 2.0], [3.0, 4.0]], rows=[2, 0], like=[[0.0, 0.0]] * 3, y=[[3.0, 4.0], [0.0, 0.0], [1.0, 2.0]]),
        Case(values=[[1.0, 2.0]], rows=[[1, 1]], like=[0.0, 0.0], y=[0.0, 3.0]),
        Case(values=5, rows=1, like=[0, 0], y=[0, 5]),
        Case(values=[], rows=[], like=[0, 0], y=[0, 0]),
        Case(values=[[1, 2], [3, 4]], rows=[1, 1], like=[[0, 0, 0], [0, 0, 0]], axis=1, y=[[0, 3, 0], [0, 7, 0]]),
        GradCheck(values=(3, 2), rows=[1, 0, 1], like=(2, 2)),
        GradCheck(values=(2, 1), rows=[[1], [0]], like=(3,)),
        GradCheck(values=(0, 2), rows=[], like=(2, 2)),
        GradCheck(values=(2, 2, 2, 2), rows=[[1, 0], [1, 2]], like=(2, 3, 2), axis=-2),
        GradCheck(values=(0, 2), rows=[], like=(0, 2)),
        Rejects("row 2 is out of range: like has 2 rows, numbered from 0", values=(1,), rows=[2], like=(2,)),
        Rejects("values are [2, 3], but [2] rows of [4] are [2, 4]", values=(2, 3), rows=[0, 1], like=(3, 4)),
        Rejects("values are [2], but [2] rows of [4] are [2, 4]", values=(2,), rows=[0, 1], like=(3, 4)),
    ],
)
def scatter_add(values, rows, like, *, axis: int | None = None):
    """Zeros in the shape of ``like``, with ``values[i]`` added to row ``rows[i]``: the transpose of ``gather``.

    If a row index repeats, its values are added up.
    """
    if axis is not None:
        return add_along(values, rows, like, axis)
    return add_rows(values, rows, like)


@scatter_add.infer_shape
def put_shape(values, rows, like, *, axis=None):
    at = require_axis(like.shape, axis or 0, "like")
    wanted = (*like.shape[:at], *rows.shape, *like.shape[at + 1 :])
    require_numbered(rows.shape, like.shape[at], "like has 0 rows")
    if len(values.shape) != len(wanted) or not all(map(may_be, values.shape, wanted)):
        shapes = [format_shape(shape) for shape in (values.shape, rows.shape, (*like.shape[:at], *like.shape[at + 1 :]), wanted)]
        raise ShapeError("values are {}, but {} rows of {} are {}".format(*shapes))
    return like.shape


scatter_add.gradient_programs(values=lambda rows, dy, *, axis=None: gather(dy, rows, axis=axis))


@operator(
    "condition: bool[k], yes: T[p ...d], no: T[q ...d] -> y: T[k ...d]",
    checks_values=True,
    cases=[
        Case(condition=[True, False, True], yes=[[1.0], [2.0]], no=[[3.0]], y=[[1.0], [3.0], [2.0]]),
        Case(condition=[False, True], yes=[1], no=[2], y=[2, 1]),
        Case(condition=[False, True], yes=[True], no=[False], y=[False, True]),
        Case(condition=[False, False], yes=[], no=[1.0, 2.0], y=[1.0, 2.0]),
        Case(condition=[], yes=[], no=[], y=[]),
        GradCheck(condition=[True, False, True], yes=(2, 3), no=(1, 3)),
        GradCheck(condition=[False, False], yes=(0, 3), no=(2, 3)),
        GradCheck(condition=[True], yes=(1,), no=(0,)),
        GradCheck(condition=[], yes=(0, 2), no=(0, 2)),
        Rejects("true for 2 rows and false for 1, but yes has 1 and no has 2", condition=[True, False, True], yes=(1,), no=(2,)),
        Rejects("condition has 2 elements, but yes has 1 rows and no has 2", condition=[True, False], yes=(1,), no=(2,)),
    ],
)
def merge(condition, yes, no):
    """Merge two tensors of rows by a condition: each true element takes the next row of ``yes``, each false one the next row of ``no``.

    ``merge(c, gather(x, nonzero(c)), gather(x, nonzero(c, value=False)))`` is ``x``. Raises KernelError if the numbers of rows do not match
    the condition.
    """
    of_yes, of_no = _numbers(condition), _numbers(condition.logical_not())
    true, false = len(of_yes), len(of_no)
    if (len(yes), len(no)) != (true, false):
        raise ValueError(
            f"the condition is true for {true} row{'' if true == 1 else 's'} and false for {false}, "
            f"but yes has {len(yes)} and no has {len(no)}"
        )
    y = yes.new_empty((len(condition), *yes.shape[1:]))
    return y.index_copy_(0, of_yes, yes).index_copy_(0, of_no, no)


@merge.check_shapes
def require_each(condition, yes, no):
    k, p, q = condition.shape[0], yes.shape[0], no.shape[0]
    require_equal_numbers(k, add(p, q), "condition has {} elements, but yes has {} rows and no has {}", k, p, q)


@merge.gradient("yes", checks_values=True)
def merge_dyes(condition, yes_shape, dy):
    return _chosen(condition, yes_shape, dy)


@merge.gradient("no", checks_values=True)
def merge_dno(condition, no_shape, dy):
    return _chosen(condition.logical_not(), no_shape, dy)


def _chosen(condition: torch.Tensor, shape: torch.Size, dy: torch.Tensor) -> torch.Tensor:
    """Return the rows of true elements. Raises ValueError if the shape has another number of rows."""
    rows = _numbers(condition)
    if len(rows) != shape[0]:
        raise ValueError(f"the condition selects {len(rows)} row{'' if len(rows) == 1 else 's'}, but the shape has {shape[0]}")
    return dy.index_select(0, rows)


@merge_dyes.gradient("dy")
def merge_dyes_ddy(condition, dy_shape, ddyes):
    """``ddyes`` in the rows of true elements, zeros in the others."""
    return _spread(condition, dy_shape, ddyes)


@merge_dno.gradient("dy")
def merge_dno_ddy(condition, dy_shape, ddno):
    """``ddno`` in the rows of false elements, zeros in the others."""
    return _spread(condition.logical_not(), dy_shape, ddno)


def _spread(condition: torch.Tensor, shape: torch.Size, values: torch.Tensor) -> torch.Tensor:
    return values.new_zeros(shape).index_copy_(0, _numbers(condition), values)


@operator(
    "*stacks: T[k_i ...d] -> y: T[...d]",
    checks_values=True,
    aliases=("stacks",),
    cases=[
        Case(stacks=([[1.0, 2.0]],), y=[1.0, 2.0]),
        Case(stacks=([], [3.0], []), y=3.0),
        GradCheck(stacks=[(0, 2), (1, 2), (0, 2)]),
        GradCheck(stacks=[(1,), (0,)]),
        Rejects("2 of 2 stacks have a row, but exactly one must", stacks=[(1, 2), (1, 2)]),
        Rejects("0 of 2 stacks have a row, but exactly one must", stacks=[(0, 2), (0, 2)]),
        Rejects("stack 1 has 2 rows, but each may have at most one", stacks=[(1, 2), (2, 2)]),
    ],
)
def select_branch(stacks):
    """The row of the only stack that is not empty. Every other stack has no rows."""
    ran = [stack for stack in stacks if len(stack)]
    return ran[0][0] if len(ran) == 1 == len(ran[0]) else require_one(stacks)  # raises


@select_branch.check_shapes
def require_one(stacks):
    counts = [stack.shape[0] for stack in stacks]
    for number, count in enumerate(counts):
        require_at_most(count, 1, "stack {} has {} rows, but each may have at most one", number, count)
    require_equal_numbers(sum_of(counts), 1, "{} of {} stacks have a row, but exactly one must", sum_of(counts), len(counts))


@select_branch.gradient_program("stacks")
def select_branch_dstacks(stacks_shape, dy):
    """``dy`` as the row of the stack that has one; the other stacks get no row."""
    return [broadcast_to_like(dy, like) for like in stacks_shape]
