"""Operators with which each worker keeps an equal share of a tensor's elements, such as optimizer state [1].

The elements are in the order of `reshape`, split into consecutive shares; the last ones are padded with zeros. So every share of a tensor
has the size k = ceil(elements / workers), for any shape, and several tensors can be sent in one exchange.

[1] Rajbhandari et al., 2020, "ZeRO: Memory Optimizations Toward Training Trillion Parameter Models".
"""

import torch

from oarlock.errors import ArgumentError, ShapeError
from oarlock.ir.shape_rules import differ
from oarlock.ir.size import Shape, Size, add, floor_divide, format_shape, product
from oarlock.op.collective import require_workers
from oarlock.op.trusted_operator import operator
from oarlock.registry import Case, GradCheck, Rejects
from oarlock.tensor.shares import join_shares, share_of, split_shares

__all__ = ["gather_shares", "put_share", "reduce_to_shares", "rows_of_share", "take_share"]


@operator(
    "x: T[...s] -> y: T[k]",
    on_workers="own",
    checks_values=True,
    cases=[
        Case(x=[[1.0], [2.0]], y=[1.0, 2.0]),
        Case(x=3, y=[3]),
        GradCheck(x=(2, 3)),
        Rejects("workers must be at least 1, not 0", x=(2,), workers=0),
    ],
)
def take_share(context, x, *, workers: int = 1):
    """The share of this worker in the elements of ``x``, which all ``workers`` have."""
    require_workers(context, workers)
    return share_of(x, workers, context.workers.index)


@take_share.infer_shape
def take_share_shape(x, *, workers):
    return (_size(x.shape, workers),)


def _size(shape: Shape, workers: int) -> Size:
    if workers < 1:
        raise ArgumentError(f"workers must be at least 1, not {workers}")
    return floor_divide(add(product(shape), workers - 1), workers)


@operator(
    "share: T[k], whole: shape[...s] -> y: T[...s]",
    on_workers="own",
    checks_values=True,
    cases=[
        Case(share=[1.0, 2.0], whole=[[0.0], [0.0]], y=[[1.0], [2.0]]),
        GradCheck(share=(6,), whole=(2, 3)),
        Rejects("a share of [2] among 1 has 2 elements, but this one is [3]", share=(3,), whole=(2,)),
    ],
)
def put_share(context, share, whole, *, workers: int = 1):
    """The share of this worker, with zeros in place of the others: summed over the workers, it is the whole tensor."""
    require_workers(context, workers)
    shares = share.new_zeros(workers, len(share))
    shares[context.workers.index] = share
    return join_shares(shares, whole)


@put_share.check_shapes
def require_share(share, whole, *, workers):
    _require_size(share.shape, whole.shape, workers)


def _require_size(share: Shape, whole: Shape, workers: int) -> None:
    size = _size(whole, workers)
    if differ(share[0], size):
        raise ShapeError(f"a share of {format_shape(whole)} among {workers} has {size} elements, but this one is {format_shape(share)}")


take_share.gradient_programs(x=lambda x_shape, dy, *, workers: put_share(dy, x_shape, workers=workers))
put_share.gradient_programs(share=lambda dy, *, workers: take_share(dy, workers=workers))


@operator(
    "*xs: number -> *ys: number",
    effects="collective",
    on_workers="own",
    checks_values=True,
    cases=[
        Case(xs=([[1.0], [2.0]], 3.0), ys=([1.0, 2.0], [3.0])),
        GradCheck(xs=[(2, 3), ()]),
        Rejects("workers must be at least 1, not 0", xs=[(2,)], workers=0),
    ],
)
def reduce_to_shares(context, xs, *, workers: int = 1):
    """The share of this worker in the sum of each tensor over all workers. All tensors of one op are sent together."""
    require_workers(context, workers)
    if not xs:
        return []
    laid = [split_shares(x, workers) for x in xs]
    own = context.workers.reduce_scatter(laid[0] if len(laid) == 1 else torch.cat(laid, 1), [1] * workers, 0)[0]
    return [part.clone() for part in own.split([each.shape[1] for each in laid])]


@reduce_to_shares.infer_shape
def reduce_to_shares_shapes(xs, *, workers):
    return [None if x.shape is None else (_size(x.shape, workers),) for x in xs]


@operator(
    "*shares: T[k_i], *wholes: shape -> *ys: T",
    effects="collective",
    on_workers="same",
    checks_values=True,
    cases=[
        Case(shares=([1.0, 2.0], [3.0]), wholes=([[0.0], [0.0]], 0.0), ys=([[1.0], [2.0]], 3.0)),
        GradCheck(shares=[(6,), (1,)], wholes=[(2, 3), ()]),
        Rejects("there are 1 shares, but 2 wholes", shares=[(2,)], wholes=[(2,), (2,)]),
        Rejects("a share of [2] among 1 has 2 elements, but this one is [3]", shares=[(3,)], wholes=[(2,)]),
    ],
)
def gather_shares(context, shares, wholes, *, workers: int = 1):
    """The whole tensors, on every worker, from the shares of all workers. All tensors of one op are sent together."""
    require_workers(context, workers)
    if not shares:
        return []
    sent = shares[0] if len(shares) == 1 else torch.cat(list(shares))
    gathered = context.workers.all_gather(sent.view(1, -1), [1] * workers, 0)
    parts = gathered.split([len(share) for share in shares], 1)
    return [join_shares(part, whole) for part, whole in zip(parts, wholes, strict=True)]


@gather_shares.infer_shape
def gather_shares_shapes(shares, wholes, *, workers):
    if len(shares) != len(wholes):
        raise ShapeError(f"there are {len(shares)} shares, but {len(wholes)} wholes")
    for share, whole in zip(shares, wholes, strict=True):
        if share.shape is not None and whole.shape is not None:
            _require_size(share.shape, whole.shape, workers)
    return [whole.shape for whole in wholes]


@reduce_to_shares.gradient_program("xs")
def reduce_to_shares_dxs(xs_shape, dys, *, workers):
    whole = gather_shares(dys, xs_shape, workers=workers)
    return list(whole)


@gather_shares.gradient_program("shares")
def gather_shares_dshares(dys, *, workers):
    shares = reduce_to_shares(dys, workers=workers)
    return list(shares)


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
    require_workers(context, workers)
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
def require_rows_of_share(rows, share, *, workers):
    if workers < 1:
        raise ArgumentError(f"workers must be at least 1, not {workers}")
    if share.shape[0] == 0 and 0 not in rows.shape:
        raise ShapeError("rows are looked up in a share of 0 rows")
