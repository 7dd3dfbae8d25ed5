"""One step of an optimizer on the rows of a table that were looked up, as an op.

The gradient of a lookup is zero in every other row. It is given as the numbers of rows and a value for each: a number that stands there
several times stands for the sum of its values. A step takes time for these rows, however large the table is.

In the other rows nothing changes. That is what `sgd` does there. `momentum` and `adam` let the state of such a row decay, and
move the row by it; what stands here for them is lazy.
"""

import torch

from oarlock.ir.shape_rules import require_numbered
from oarlock.op.indexing import gather
from oarlock.op.sorting import searchsorted
from oarlock.op.trusted_operator import operator
from oarlock.registry import Case, GradCheck, Rejects
from oarlock.registry.told_size import told_size
from oarlock.tensor.memory_format import copies
from oarlock.tensor.optimizer_steps import require_rate
from oarlock.tensor.row_steps import distinct_rows, subtract_rows, update_rows_by_adam, update_rows_by_momentum
from oarlock.tensor.rows import require_rows

__all__ = ["coalesce", "sparse_adam", "sparse_momentum", "sparse_sgd"]


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
    """The ``distinct`` numbers among ``rows``, rising, and for each the sum of its ``values``."""
    distinct, sums = distinct_rows(rows, values)
    return (distinct, sums) if distinct is not rows else (rows.clone(), values.clone())


coalesce.infer_shape(lambda rows, values: [("?count",), ("?count", *values.shape[1:])])
coalesce.gradient_programs(values=lambda rows, distinct, dsums: gather(dsums, searchsorted(distinct, rows)))
told_size(coalesce)(lambda rows, values: torch.unique(rows).numel())


@operator(
    "param: float[k ...d], rows: int64[n], values: float[n ...d], learning_rate: float64[] -> next: float[k ...d]",
    cases=[
        Case(
            param=[[1.0, 2.0], [3.0, 4.0]], rows=[1, 1], values=[[10.0, 0.0], [10.0, -10.0]], learning_rate=0.1,
            next=[[1.0, 2.0], [1.0, 5.0]],
        ),
        Case(param=[1.0, 2.0, 3.0], rows=[2, 0], values=[10.0, 20.0], learning_rate=0.1, next=[-1.0, 2.0, 2.0]),
        Case(param=[1.0], rows=[], values=[], learning_rate=0.1, next=[1.0]),
        Rejects("row 2 is asked for, where param has 2 rows, numbered from 0", param=(2, 3), rows=[2], values=(1, 3), learning_rate=0.1),
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
    "param: float[k ...d], rows: int64[n], values: float[n ...d], velocity: float[k ...d], learning_rate: float64[]"
    " -> next: float[k ...d], next_velocity: float[k ...d]",
    cases=[
        Case(
            param=[[1.0], [5.0]], rows=[0, 0], values=[[1.5], [0.5]], velocity=[[4.0], [7.0]], learning_rate=0.1, mu=0.5,
            next=[[0.6], [5.0]], next_velocity=[[4.0], [7.0]],
        ),
        Case(
            param=[1.0, 5.0], rows=[0], values=[2.0], velocity=[4.0, 7.0], learning_rate=0.1, mu=0.5, nesterov=True,
            next=[0.6, 5.0], next_velocity=[4.0, 7.0],
        ),
        Rejects(
            "row -1 is asked for, where param has 2 rows, numbered from 0",
            param=(2, 3), rows=[-1], values=(1, 3), velocity=(2, 3), learning_rate=0.1,
        ),
    ],
)  # fmt: skip
def sparse_momentum(param, rows, values, velocity, learning_rate, *, mu: float = 0.9, nesterov: bool = False):
    """`momentum` on the numbered rows alone, lazily: the others keep their velocity, and stay where they are."""
    require_rate(learning_rate, param.dtype)
    require_rows(rows, param)
    param, velocity = copies([param, velocity])
    update_rows_by_momentum(param, rows, values, velocity, learning_rate, mu, nesterov)
    return param, velocity


@operator(
    "param: float[k ...d], rows: int64[n], values: float[n ...d], moment1: float[k ...d], moment2: float[k ...d], step: int64[],"
    " learning_rate: float64[] -> next: float[k ...d], next_moment1: float[k ...d], next_moment2: float[k ...d]",
    cases=[
        Case(
            param=[[1.0], [5.0]], rows=[0, 0], values=[[0.2], [0.3]], moment1=[[0.0], [7.0]], moment2=[[0.0], [8.0]], step=1,
            learning_rate=0.1, epsilon=0.0,
            next=[[0.9], [5.0]], next_moment1=[[0.05], [7.0]], next_moment2=[[0.00025], [8.0]],
        ),
        Rejects(
            "row 2 is asked for, where param has 2 rows, numbered from 0",
            param=(2, 3), rows=[2], values=(1, 3), moment1=(2, 3), moment2=(2, 3), step=1, learning_rate=0.1,
        ),
    ],
)  # fmt: skip
def sparse_adam(
    param, rows, values, moment1, moment2, step, learning_rate, *, beta1: float = 0.9, beta2: float = 0.999, epsilon: float = 1e-8
):
    """`adam` on the numbered rows alone, lazily: the others keep their moments, and stay where they are.

    So does PyTorch's SparseAdam, which adds ``epsilon`` before it corrects the second moment; here that stands where `adam` has it.
    """
    require_rate(learning_rate, param.dtype)
    require_rows(rows, param)
    param, moment1, moment2 = copies([param, moment1, moment2])
    update_rows_by_adam(param, rows, values, moment1, moment2, step, learning_rate, beta1, beta2, epsilon)
    return param, moment1, moment2


def require_numbered_rows(param, rows, values, *others, **attributes):
    """Raises ShapeError where rows of a table are numbered that has none."""
    require_numbered(rows.shape, param.shape[0], "param has 0 rows")


for update in (sparse_sgd, sparse_momentum, sparse_adam):
    update.check_shapes(require_numbered_rows)
    update.precondition(require_rate, "learning_rate", "param_dtype")
    update.precondition(require_rows, "rows", "param")
