"""Numbers of rows of a table that workers have in equal shares, as numbers of rows of the share of one of them."""

import torch

from oarlock.errors import ArgumentError, ShapeError
from oarlock.op.trusted_operator import operator
from oarlock.registry import Case, Rejects

__all__ = ["rows_of_share"]


@operator(
    "rows: int64[*b], share: shape[k ...d] -> local: int64[*b], here: bool[*b]",
    checks_values=True,
    cases=[
        Case(rows=[2, 0], share=[[0.0]] * 3, workers=1, local=[2, 0], here=[True, True]),
        Case(rows=[[1], [0]], share=[0.0, 0.0], workers=1, local=[[1], [0]], here=[[True], [True]]),
        Case(rows=[], share=[0.0], workers=1, local=[], here=[]),
        Rejects("row 3 is asked for, where 1 worker has 3 rows, numbered from 0", rows=[0, 3], share=(3, 2), workers=1),
        Rejects("row -1 is asked for, where 1 worker has 3 rows, numbered from 0", rows=[-1], share=(3,), workers=1),
        Rejects("workers is a number from 1 on, not 0", rows=[0], share=(3,), workers=0),
        Rejects("a share of 0 rows has none that is asked for", rows=[0], share=(0, 2), workers=1),
    ],
)
def rows_of_share(context, rows, share, *, workers: int):
    """Which row of this worker's share each number means, and whether it is in that share: 0 and false where another worker has it.

    The table has as many rows as the shares of all ``workers``, each of which has ``k`` of them, in their order. A number that is no row's
    fails.
    """
    if workers != context.workers.count:
        raise ValueError(f"this is for {workers} workers, and there are {context.workers.count}")
    count = share[0]
    if rows.numel():
        least, most = (int(each) for each in rows.aminmax())
        if least < 0 or most >= count * workers:
            wrong = least if least < 0 else most
            raise ValueError(f"row {wrong} is asked for, where {_have(workers, count)}, numbered from 0")
    local = rows - context.workers.index * count
    here = (local >= 0) & (local < count)
    return torch.where(here, local, 0), here


def _have(workers: int, count: int) -> str:
    return f"{workers} worker{'s have' if workers > 1 else ' has'} {count * workers} row{'s' * (count * workers != 1)}"


@rows_of_share.check_shapes
def require_share(rows, share, *, workers):
    if workers < 1:
        raise ArgumentError(f"workers is a number from 1 on, not {workers}")
    if share.shape[0] == 0 and 0 not in rows.shape:
        raise ShapeError("a share of 0 rows has none that is asked for")
