"""Updates of the rows of a table that were looked up, as ops.

The gradient of a lookup is zero in all other rows, so it is given as row indices and values; values of a repeated index are summed. The
time of an update depends on the number of these rows, not on the size of the table; other rows are unchanged. For `sgd` this is the exact
update. For other optimizers it is lazy: they gather the rows of their state, update them, and write them back.
"""

import torch

from oarlock.ir.shape_rules import require_numbered
from oarlock.op.indexing import gather
from oarlock.op.sorting import searchsorted
from oarlock.op.trusted_operator import operator
from oarlock.registry import Case, GradCheck, Rejects
from oarlock.registry.value_sizes import predict_size
from oarlock.tensor.indexing import require_rows
from oarlock.tensor.memory_format import copies
from oarlock.tensor.optimizer_steps import distinct_rows, replace_rows, require_rate, subtract_rows

__all__ = ["coalesce", "put_rows", "sparse_sgd"]


@operator(
    "rows: int64[n], values: T[n ...d] -> distinct: int64[?], sums: T",
    cases=[
        Case(rows=[2, 0, 2], values=[[1.0, 2.0], [3.0, 4.0], [10.0, 20.0]], distinct=[0, 2], sums=[[3.0, 4.0], [11.0, 22.0]]),
        Case(rows=[1, 3], values=[5, 6], distinct=[1, 3], sums=[5, 6]),
        Case(rows=[], values=[], distinct=[], sums=[]),
        GradCheck(rows=[2, 0, 2], values=(3, 2)),
        GradCheck(rows=[1, 4], values=(2,)),
    ],
)
def coalesce(rows, values):
    """The ``distinct`` indices in ``rows``, ascending, and the sum of the ``values`` of each."""
    distinct, sums = distinct_rows(rows, values)
    return (distinct, sums) if distinct is not rows else (rows.clone(), values.clone())


coalesce.infer_shape(lambda rows, values: [("?count",), ("?count", *values.shape[1:])])
coalesce.gradient_programs(values=lambda rows, distinct, dsums: gather(dsums, searchsorted(distinct, rows)))
predict_size(coalesce)(lambda rows, values: torch.unique(rows).numel())


@operator(
    "param: float[k ...d], rows: int64[n], values: float[n ...d], learning_rate: float64[] -> next: float[k ...d]",
    cases=[
        Case(
            param=[[1.0, 2.0], [3.0, 4.0]], rows=[1, 1], values=[[10.0, 0.0], [10.0, -10.0]], learning_rate=0.1,
            next=[[1.0, 2.0], [1.0, 5.0]],
        ),
        Case(param=[1.0, 2.0, 3.0], rows=[2, 0], values=[10.0, 20.0], learning_rate=0.1, next=[-1.0, 2.0, 2.0]),
        Case(param=[1.0], rows=[], values=[], learning_rate=0.1, next=[1.0]),
        Rejects("row 2 is out of range: param has 2 rows, numbered from 0", param=(2, 3), rows=[2], values=(1, 3), learning_rate=0.1),
    ],
)  # fmt: skip
def sparse_sgd(param, rows, values, learning_rate):
    """`sgd` with the gradient ``scatter_add(values, rows, param)``: ``next[rows[i]] = param[rows[i]] - learning_rate * values[i]``."""
    require_rate(learning_rate, param.dtype)
    require_rows(rows, param)
    (param,) = copies([param])
    subtract_rows(param, rows, values, learning_rate)
    return param


@operator(
    "param: T[k ...d], rows: int64[n], values: T[n ...d] -> next: T[k ...d]",
    cases=[
        Case(param=[[1.0, 2.0], [3.0, 4.0]], rows=[1], values=[[5.0, 6.0]], next=[[1.0, 2.0], [5.0, 6.0]]),
        Case(param=[1, 2, 3], rows=[2, 0], values=[4, 5], next=[5, 2, 4]),
        Case(param=[1.0], rows=[], values=[], next=[1.0]),
        Case(param=[[1.0] * 4, [2.0] * 4, [3.0] * 4], rows=[2, 0], values=[[4.0] * 4, [5.0] * 4], next=[[5.0] * 4, [2.0] * 4, [4.0] * 4]),
        Rejects("row -1 is out of range: param has 2 rows, numbered from 0", param=(2, 3), rows=[-1], values=(1, 3)),
    ],
)
def put_rows(param, rows, values):
    """``param`` with ``values`` written to the distinct rows ``rows``: ``next[rows[i]] = values[i]``. Other rows are unchanged."""
    require_rows(rows, param)
    (param,) = copies([param])
    replace_rows(param, rows, values)
    return param


def require_numbered_rows(param, rows, values, learning_rate=None):
    """Raise ShapeError if rows are given for a table without rows."""
    require_numbered(rows.shape, param.shape[0], "param has 0 rows")


sparse_sgd.precondition(require_rate, "learning_rate", "param_dtype")
for update in (sparse_sgd, put_rows):
    update.check_shapes(require_numbered_rows)
    update.precondition(require_rows, "rows", "param")
