"""Collective operators: exchange tensors between the workers of a run. All workers run the same ones in the same order.

A run of one process is one worker. `runtime/workers.py` implements the exchange; the names are from MPI [1].

[1] MPI: A Message-Passing Interface Standard, version 4.0, 2021, chapter 6.
"""

import math
from collections.abc import Callable
from typing import get_args

import torch

from oarlock.errors import ArgumentError, ShapeError
from oarlock.ir.shape_rules import differ, require_axis
from oarlock.ir.size import Shape, Size, divide, format_shape, multiply
from oarlock.op.choice import where
from oarlock.op.comparison import equal
from oarlock.op.composed.arithmetic import constant_like
from oarlock.op.creation import full_like
from oarlock.op.trusted_operator import operator
from oarlock.registry import Case, GradCheck, Rejects
from oarlock.tensor.shares import Reduction, bounds_of

__all__ = [
    "all_gather",
    "all_reduce",
    "all_reduce_done",
    "all_reduce_start",
    "all_to_all",
    "broadcast",
    "pad_shard",
    "reduce_scatter",
    "require_workers",
    "shard",
    "worker_index",
]


@operator(
    "*xs: number -> *ys: number",
    effects="collective",
    on_workers="same",
    aliases=("xs",),
    cases=[
        Case(xs=([1.0, 2.0], 3.0), ys=([1.0, 2.0], 3.0)),
        Case(xs=([1, 2],), op="max", ys=([1, 2],)),
        GradCheck(xs=[(2, 3), ()]),
        Rejects('op must be "sum", "max" or "min", not "mean"', xs=[(2,)], op="mean"),
    ],
)
def all_reduce(context, xs, *, op: str = "sum"):
    """The sum of each tensor over all workers, or its elementwise maximum or minimum, bit-identical on every worker.

    Each tensor has the same shape on all workers; all tensors of one op are sent together. The gradient of a sum is the sum of the workers'
    gradients: it differentiates the total of all workers. Maximum and minimum have no gradient.
    """
    return context.workers.all_reduce(xs, op)


@all_reduce.infer_shape
def all_reduce_shapes(xs, *, op):
    if op not in get_args(Reduction):
        raise ArgumentError(f'op must be "sum", "max" or "min", not "{op}"')
    return [x.shape for x in xs]


@all_reduce.gradient_program("xs")
def all_reduce_dxs(dys, *, op):
    if op != "sum":
        raise ArgumentError(f'all_reduce(op="{op}") has no gradient')
    summed = all_reduce(dys)
    return list(summed)


@operator(
    "*xs: number -> exchange: number[k]",
    effects="collective",
    on_workers="same",
    cases=[
        Case(xs=([[1.0, 2.0]], 3.0), exchange=[1.0, 2.0, 3.0]),
        Case(xs=([1, 2],), op="max", exchange=[1, 2]),
        Rejects("there is nothing to exchange", xs=[]),
    ],
)
def all_reduce_start(context, xs, *, op: str = "sum"):
    """Start the exchange of `all_reduce`, so that a worker can compute independent work until `all_reduce_done`.

    ``exchange`` is a buffer for all elements, one tensor after another. It is not complete yet: only `all_reduce_done` may read it. A plan
    uses the pair in place of `all_reduce` (`passes/overlap_exchanges.py`).
    """
    return context.workers.start_all_reduce(xs, op)


@all_reduce_start.infer_shape
def elements_of_all(xs, *, op):
    all_reduce_shapes(xs, op=op)
    if not xs:
        raise ShapeError("there is nothing to exchange")
    return (_elements(xs),)


def _elements(tensors) -> Size:
    """Return the total number of elements of some tensors."""
    sizes = [item for tensor in tensors for item in tensor.shape]
    return sum(math.prod(tensor.shape) for tensor in tensors) if all(isinstance(item, int) for item in sizes) else "?elements"


@operator(
    "exchange: number[k], *likes: shape -> *ys: number",
    on_workers="same",
    aliases=("exchange",),
    cases=[
        Case(exchange=[1.0, 2.0, 3.0], likes=([[0.0, 0.0]], 0.0), ys=([[1.0, 2.0]], 3.0)),
        Rejects("the tensors have 2 elements, but 3 were exchanged", exchange=(3,), likes=[(2,)]),
    ],
)
def all_reduce_done(context, exchange, likes):
    """Wait for `all_reduce_start` and return its tensors, in the shapes of ``likes``."""
    context.workers.finish(exchange)
    parts = exchange.split([math.prod(shape) for shape in likes])
    return [part.view(shape) for part, shape in zip(parts, likes, strict=True)]


@all_reduce_done.infer_shape
def shapes_of_likes(exchange, likes):
    count = _elements(likes)
    if differ(exchange.shape[0], count):
        raise ShapeError(f"the tensors have {count} elements, but {exchange.shape[0]} were exchanged")
    return [like.shape for like in likes]


@operator(
    "x: T[...s], counts?: int64[w], whole?: shape[...m] -> y: T[...t]",
    effects="collective",
    on_workers="same",
    aliases=("x",),
    checks_values=True,
    added_later=("workers",),
    cases=[
        Case(x=[[1.0], [2.0]], y=[[1.0], [2.0]]),
        Case(x=[[True, False]], axis=1, counts=[2], whole=[0.0, 0.0], y=[[True, False]]),
        Case(x=[[1.0], [2.0]], workers=1, y=[[1.0], [2.0]]),
        GradCheck(x=(2, 3), axis=1),
        GradCheck(x=(2, 3), axis=1, workers=1),
        Rejects("axis 1 is not an axis of x, which has 1 dimensions", x=(2,), axis=1),
        Rejects("workers must be at least 1, or 0 if unknown, not -1", x=(2,), workers=-1),
    ],
)
def all_gather(context, x, counts=None, whole=None, *, axis: int = 0, workers: int = 0):
    """The tensors of all workers concatenated along ``axis``, in worker order, on every worker.

    Sizes along ``axis`` may differ between workers and may be 0; the other sizes are equal. ``counts`` holds the sizes along ``axis`` if
    they are known; otherwise they are exchanged first. The first size of ``whole`` is the expected size of the result along ``axis``. With
    ``workers``, the number of workers, all have equal sizes, so the size of the result is known and nothing is exchanged first.
    """
    sizes = [x.shape[axis]] * require_workers(context, workers) if workers else None if counts is None else counts.tolist()
    y = context.workers.all_gather(x, sizes, axis % x.dim())
    if whole is not None and y.shape[axis] != whole[0]:
        raise ValueError(f"all workers together have {y.shape[axis]} along axis {axis}, but whole has {whole[0]}")
    return y


def require_workers(context, workers: int) -> int:
    """Return ``workers``, the number of workers of a program. Raises ValueError if this run has another number."""
    if workers != context.workers.count:
        raise ValueError(f"the program is for {workers} worker{'' if workers == 1 else 's'}, but this run has {context.workers.count}")
    return workers


@all_gather.infer_shape
def all_gather_shape(x, counts=None, whole=None, *, axis, workers):
    return _resized(x.shape, axis, whole, workers, multiply)


@all_gather.gradient_program("x")
def all_gather_dx(x_shape, dy, counts=None, *, axis, workers=0):
    return reduce_scatter(dy, counts, x_shape if axis == 0 and not workers else None, axis=axis, workers=workers)


def _resized(shape: Shape, axis: int, like, workers: int, by: Callable[[Size, int], Size]) -> Shape:
    """Return `shape` with the size along `axis` taken from `like`, or computed from the number of workers."""
    axis = require_axis(shape, axis, "x")
    if workers < 0:
        raise ArgumentError(f"workers must be at least 1, or 0 if unknown, not {workers}")
    if like is not None and not like.shape:
        raise ShapeError("the size along the axis comes from a tensor without axes")
    size = like.shape[0] if like is not None else by(shape[axis], workers) if workers else "?all"
    return (*shape[:axis], size, *shape[axis + 1 :])


def _share_of(size: Size, workers: int) -> Size:
    share = divide(size, workers)
    if share is None:
        raise ShapeError(f"{size} is not a multiple of {workers} workers")
    return share


@operator(
    "x: number[...s], counts?: int64[w], like?: shape[...m] -> y: number[...t]",
    effects="collective",
    on_workers="own",
    aliases=("x",),
    checks_values=True,
    added_later=("workers",),
    cases=[
        Case(x=[[1.0], [2.0]], y=[[1.0], [2.0]]),
        Case(x=[[1.0, 2.0]], axis=1, counts=[2], like=[0.0, 0.0], y=[[1.0, 2.0]]),
        Case(x=[[1.0, 2.0]], axis=1, workers=1, y=[[1.0, 2.0]]),
        GradCheck(x=(2, 3)),
        GradCheck(x=(2, 3), workers=1),
        Rejects("axis 1 is not an axis of x, which has 1 dimensions", x=(2,), axis=1),
        Rejects("3 is not a multiple of 2 workers", x=(3,), workers=2),
    ],
)
def reduce_scatter(context, x, counts=None, like=None, *, axis: int = 0, workers: int = 0):
    """Sum a tensor over all workers and split the sum along ``axis``: each worker gets its part.

    ``counts`` holds the size of each worker's part, in worker order; without it the parts are equal, and the size must be a multiple of the
    number of workers. The first size of ``like`` is the expected size of this worker's part. With ``workers``, the number of workers, the
    parts are equal and their size is known.
    """
    axis = axis % x.dim()
    return _require_like(context.workers.reduce_scatter(x, _sizes(context, x.shape[axis], counts, workers), axis), axis, like)


reduce_scatter.infer_shape(lambda x, counts=None, like=None, *, axis, workers: _resized(x.shape, axis, like, workers, _share_of))


@reduce_scatter.gradient_program("x")
def reduce_scatter_dx(x_shape, dy, counts=None, *, axis, workers=0):
    return all_gather(dy, counts, x_shape if axis == 0 and not workers else None, axis=axis, workers=workers)


def _sizes(context, size: int, counts, workers: int) -> list[int]:
    """Return the size of each worker's part."""
    return _even(size, require_workers(context, workers or context.workers.count)) if counts is None else counts.tolist()


def _even(size: int, workers: int) -> list[int]:
    if size % workers:
        raise ValueError(f"{size} is not a multiple of the number of workers, {workers}: pass the size of each part as counts")
    return [size // workers] * workers


def _require_like(y: torch.Tensor, axis: int, like) -> torch.Tensor:
    if like is not None and y.shape[axis] != like[0]:
        raise ValueError(f"the part of this worker has {y.shape[axis]} along axis {axis}, but like has {like[0]}")
    return y


@operator(
    "x: T[...s], counts?: int64[w], like?: shape[...m] -> y: T[...t]",
    on_workers="own",
    aliases=("x",),
    checks_values=True,
    added_later=("workers",),
    cases=[
        Case(x=[[1.0], [2.0]], y=[[1.0], [2.0]]),
        Case(x=[[1, 2]], axis=1, counts=[2], like=[0, 0], y=[[1, 2]]),
        Case(x=[[1, 2]], axis=1, workers=1, y=[[1, 2]]),
        GradCheck(x=(2, 3), axis=1),
        GradCheck(x=(2, 3), axis=1, workers=1),
        Rejects("axis 1 is not an axis of x, which has 1 dimensions", x=(2,), axis=1),
        Rejects("3 is not a multiple of 2 workers", x=(3,), workers=2),
    ],
)
def shard(context, x, counts=None, like=None, *, axis: int = 0, workers: int = 0):
    """The part of this worker, along ``axis``, of a tensor that every worker has.

    ``counts``, ``like`` and ``workers`` are as in `reduce_scatter`.
    """
    axis = axis % x.dim()
    start, size = _part(context, x.shape[axis], counts, workers)
    return _require_like(x.narrow(axis, start, size), axis, like).contiguous()


shard.infer_shape(lambda x, counts=None, like=None, *, axis, workers: _resized(x.shape, axis, like, workers, _share_of))


@shard.gradient_program("x")
def shard_dx(x_shape, dy, counts=None, *, axis, workers=0):
    return pad_shard(dy, x_shape, counts, axis=axis)


@operator(
    "part: T[...s], whole: shape[...t], counts?: int64[w] -> y: T[...t]",
    on_workers="own",
    checks_values=True,
    cases=[
        Case(part=[[1.0], [2.0]], whole=[[0.0], [0.0]], counts=[2], y=[[1.0], [2.0]]),
        Case(part=[[1.0], [2.0]], whole=[[0.0], [0.0]], y=[[1.0], [2.0]]),
        GradCheck(part=(2, 3), whole=(2, 3), axis=1),
        Rejects("axis 1 is not an axis of part, which has 1 dimensions", part=(2,), whole=(2,), axis=1),
    ],
)
def pad_shard(context, part, whole, counts=None, *, axis: int = 0):
    """The part of this worker, with zeros in place of the other parts: summed over the workers, it is the whole tensor."""
    axis = axis % part.dim()
    start, size = _part(context, whole[axis], counts, 0)
    if part.shape[axis] != size:
        raise ValueError(f"the part has {part.shape[axis]} along axis {axis}, but this worker's part has {size}")
    y = part.new_zeros(whole)
    y.narrow(axis, start, size).copy_(part)
    return y


@pad_shard.check_shapes
def require_part(part, whole, counts=None, *, axis):
    at = require_axis(part.shape, axis, "part")
    others = [tuple(size for number, size in enumerate(shape) if number != at) for shape in (part.shape, whole.shape)]
    if len(part.shape) != len(whole.shape) or any(differ(*pair) for pair in zip(*others, strict=True)):
        raise ShapeError(f"part is {format_shape(part.shape)}, which is not a part of {format_shape(whole.shape)} along axis {axis}")


pad_shard.gradient_programs(
    part=lambda part_shape, dy, counts=None, *, axis: shard(dy, counts, part_shape if axis == 0 else None, axis=axis)
)


def _part(context, size: int, counts, workers: int) -> tuple[int, int]:
    sizes = _sizes(context, size, counts, workers)
    start, stop = bounds_of(sizes, context.workers.index)
    if sum(sizes) != size:
        raise ValueError(f"the parts add up to {sum(sizes)}, not {size}")
    return start, stop - start


@operator(
    "x: T[...s] -> y: T[...s]",
    effects="collective",
    on_workers="same",
    aliases=("x",),
    checks_values=True,
    cases=[Case(x=[1.0, 2.0], y=[1.0, 2.0]), GradCheck(x=(2,)), Rejects("root must be at least 0, not -1", x=(2,), root=-1)],
)
def broadcast(context, x, *, root: int = 0):
    """The tensor of worker ``root``, on every worker. All workers pass a tensor of the same shape."""
    if root >= context.workers.count:
        raise ValueError(f"there is no worker {root} of {context.workers.count}")
    return context.workers.broadcast(x, root)


@broadcast.check_shapes
def require_root(x, *, root):
    if root < 0:
        raise ArgumentError(f"root must be at least 0, not {root}")


@broadcast.gradient_program("x")
def broadcast_dx(dy, *, root):
    index = worker_index()
    return where(equal(index, constant_like(root, index)), all_reduce([dy])[0], full_like(dy, value=0.0, dtype=dy.dtype))


@operator(
    "x: T[n ...d] -> y: T[n ...d]",
    effects="collective",
    on_workers="own",
    aliases=("x",),
    checks_values=True,
    cases=[Case(x=[1.0, 2.0], y=[1.0, 2.0]), GradCheck(x=(2, 3))],
)
def all_to_all(context, x):
    """Exchange equal parts of the rows: worker i receives the i-th part of each worker, in order of the senders.

    ``n`` is the same on all workers, and a multiple of their number.
    """
    _even(len(x), context.workers.count)
    return context.workers.all_to_all(x)


all_to_all.gradient_programs(x=lambda dy: all_to_all(dy))


@operator(" -> y: int64[]", on_workers="own", cases=[Case(y=0)])
def worker_index(context):
    """The index of this worker, counted from 0."""
    return torch.tensor(context.workers.index, dtype=torch.int64)
