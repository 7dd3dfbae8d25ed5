"""Row indices of a table that is stored in equal shares on the workers, as row indices of one worker's share."""

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
        Rejects("row 3 is out of range: 1 worker has 3 rows", rows=[0, 3], share=(3, 2), workers=1),
        Rejects("row -1 is out of range: 1 worker has 3 rows", rows=[-1], share=(3,), workers=1),
        Rejects("workers must be at least 1, not 0", rows=[0], share=(3,), workers=0),
        Rejects("rows are looked up in a share of 0 rows", rows=[0], share=(0, 2), workers=1),
    ],
)
def rows_of_share(context, rows, share, *, workers: int):
    """The index of each row in this worker's share, and whether it is there; 0 and false if another worker has it.

    The table consists of the shares of all ``workers``, of ``k`` rows each, in their order. A row out of range raises KernelError.
    """
    if workers != context.workers.count:
        raise ValueError(f"the program is for {workers} workers, but this run has {context.workers.count}")
    count = share[0]
    if rows.numel():
        least, most = (int(each) for each in rows.aminmax())
        if least < 0 or most >= count * workers:
            wrong = least if least < 0 else most
            raise ValueError(f"row {wrong} is out of range: {_have(workers, count)}")
    local = rows - context.workers.index * count
    here = (local >= 0) & (local < count)
    return torch.where(here, local, 0), here


def _have(workers: int, count: int) -> str:
    return f"{workers} worker{'s have' if workers > 1 else ' has'} {count * workers} row{'s' * (count * workers != 1)}"


@rows_of_share.check_shapes
def require_share(rows, share, *, workers):
    if workers < 1:
        raise ArgumentError(f"workers must be at least 1, not {workers}")
    if share.shape[0] == 0 and 0 not in rows.shape:
        raise ShapeError("rows are looked up in a share of 0 rows")
