"""Indexing, masking and sorting."""

from database_judge import Unmapped

import oarlock as ol
from oarlock import op

__all__ = ["CALLS"]


def places(index):
    """Return indices as int64."""
    return index if str(index.dtype) in ("int64", "bool") else op.cast(index, dtype="int64")


def gather(x, dim, index, *, sparse_grad=False):
    if not x.shape:
        found = op.take_along_axis(op.reshape(x, shape=(1,)), op.reshape(places(index), shape=(-1,)), axis=dim)
        return op.reshape(found, shape=index.shape)
    return op.take_along_axis(x, places(index), axis=dim)


def narrow(x, dim, start, length):
    if isinstance(start, ol.Var):
        return op.index_select(x, op.arange([], stop=(length,)) + start, axis=dim)
    return op.narrow(x, axis=dim, start=(start,), length=(length,))


_REDUCTIONS = {"add": "add", "multiply": "multiply", "sum": "add", "prod": "multiply", "amax": "maximum", "amin": "minimum", None: "none"}


def scatter(x, dim, index, src, *, reduce=None):
    if not isinstance(src, ol.Var):
        src = op.full_like(index, value=src, dtype=x.dtype)
    if not x.shape:
        row = scatter(op.reshape(x, shape=(1,)), dim, op.reshape(index, shape=(-1,)), op.reshape(src, shape=(-1,)), reduce=reduce)
        return op.reshape(row, shape=())
    return op.scatter_along_axis(x, places(index), src, axis=dim, reduction=_REDUCTIONS[reduce])


def of_rows(x, function):
    """Apply a function that needs an axis; a scalar becomes a vector of one element."""
    if x.shape:
        return function(x)
    return tuple(op.reshape(each, shape=()) for each in function(op.reshape(x, shape=(1,))))


def repeat_interleave(x, repeats, dim=None, *, output_size=None):
    if dim is None:
        x, dim = op.reshape(x, shape=(-1,)), 0
    if isinstance(repeats, ol.Var):
        raise Unmapped("repetitions that depend on values")
    return op.repeat_interleave(x, repeats=repeats, axis=dim)


def searchsorted(sorted, x, *, out_int32=False, right=False, side="left", sorter=None):
    right = right or side == "right"
    if sorter is not None:
        sorted = op.take_along_axis(sorted, sorter, axis=-1)
    number = not isinstance(x, ol.Var) or not x.shape
    rows = x if isinstance(x, ol.Var) else op.full(shape=(1,), value=float(x), dtype=sorted.dtype)
    flat = op.reshape(rows, shape=(-1,)) if len(sorted.shape) == 1 else rows
    found = op.searchsorted(sorted, flat, right=right)
    found = op.reshape(found, shape=() if number else rows.shape)
    return op.cast(found, dtype="int32") if out_int32 else found


def nonzero(x, as_tuple=False):
    found = op.argwhere(op.cast(x, dtype="bool"))
    if as_tuple and not x.shape:
        raise Unmapped("an axis of a number")
    return [found[:, axis] for axis in range(len(x.shape))] if as_tuple else found


def sort(x, dim=-1, descending=False, stable=False):
    return of_rows(x, lambda row: op.sort(row, axis=dim, descending=descending))


def getitem(x, key):
    return x[key]


def topk(x, k, dim=-1, largest=True, sorted=True):
    return of_rows(x, lambda row: op.top_k(row, k=k, axis=dim, largest=largest))


def along(function):
    """A function of an axis and indices along it, in PyTorch's order. A scalar has one index."""

    def call(x, dim, index, values, **keywords):
        index = places(index)
        if not x.shape:
            shaped = op.reshape(values, shape=(1,)) if isinstance(values, ol.Var) and function is not op.index_fill else values
            return op.reshape(function(op.reshape(x, shape=(1,)), index, shaped, axis=dim, **keywords), shape=())
        return function(x, index, values, axis=dim, **keywords)

    return call


def index_select(x, dim, index):
    if not x.shape:
        return op.reshape(op.index_select(op.reshape(x, shape=(1,)), places(index), axis=dim), shape=())
    return op.index_select(x, places(index), axis=dim)


def scatter_reduce(x, dim, index, src, reduce, *, include_self=True):
    if not x.shape:
        rows = [op.reshape(each, shape=(-1,)) for each in (x, places(index), src)]
        return op.reshape(op.scatter_reduce(*rows, axis=dim, reduction=reduce, include_self=include_self), shape=())
    return op.scatter_reduce(x, places(index), src, axis=dim, reduction=reduce, include_self=include_self)


def index_put(x, indices, values, accumulate=False):
    axes = tuple(range(len(indices)))
    indices = [op.nonzero(index) if str(index.dtype) == "bool" else places(index) for index in indices]
    return op.index_put(x, values, indices, axes=axes, accumulate=accumulate)


def slice_(x, dim=0, start=None, end=None, step=1):
    return x[(slice(None),) * (dim % len(x.shape)) + (slice(start, end, step),)]


def take_along_dim(x, index, dim=None):
    if dim is None:
        return op.take_along_axis(op.reshape(x, shape=(-1,)), op.reshape(index, shape=(-1,)), axis=0)
    x, index = (op.swapaxes(each, dim, -1) for each in (x, index))
    front = tuple(max(sizes) for sizes in zip(x.shape[:-1], index.shape[:-1], strict=True))
    x, index = (op.broadcast_to(each, shape=(*front, each.shape[-1])) for each in (x, index))
    return op.swapaxes(op.take_along_axis(x, index, axis=-1), dim, -1)


CALLS = {
    "fill": lambda x, value: (
        op.full_like(x, value=float(value), dtype=x.dtype) if not isinstance(value, ol.Var) else op.broadcast_to(value, [x], shape=x.shape)
    ),
    "index_add": lambda x, dim, index, source, *, alpha=1: along(op.index_add)(x, dim, index, source, alpha=float(alpha)),
    "index_copy": along(op.index_copy),
    "index_fill": along(op.index_fill),
    "index_put": index_put,
    "index_select": index_select,
    "masked_fill": op.masked_fill,
    "masked_scatter": op.masked_scatter,
    "masked_select": op.masked_select,
    "narrow_copy": narrow,
    "nonzero": nonzero,
    "put": lambda x, index, source, accumulate=False: op.put(x, places(index), source, accumulate=accumulate),
    "select_scatter": lambda x, src, dim, index: op.select_scatter(x, src, axis=dim, index=index),
    "slice": slice_,
    "slice_scatter": lambda x, src, dim=0, start=None, end=None, step=1: op.slice_scatter(
        x, src, axis=dim, start=start, stop=end, step=step
    ),
    "take": lambda x, index: op.take(x, places(index)),
    "take_along_dim": take_along_dim,
    **{f"scatter_reduce.{each}": scatter_reduce for each in ("sum", "prod", "mean", "amax", "amin")},
    **{
        f"index_reduce.{each}": lambda x, dim, index, source, reduce, *, include_self=True: along(op.index_reduce)(
            x, dim, index, source, reduction=reduce, include_self=include_self
        )
        for each in ("prod", "mean", "amax", "amin")
    },
    "__getitem__": getitem,
    "argsort": lambda x, dim=-1, descending=False, stable=False: sort(x, dim, descending)[1],
    "argwhere": lambda x: op.argwhere(op.cast(x, dtype="bool")),
    "gather": gather,
    "bincount": lambda x, weights=None, minlength=0: op.bincount(x, least=minlength),
    "bucketize": lambda x, edges, *, out_int32=False, right=False: searchsorted(edges, x, out_int32=out_int32, right=right),
    "msort": lambda x: op.sort(x, axis=0)[0],
    "repeat_interleave": repeat_interleave,
    "searchsorted": searchsorted,
    "narrow": narrow,
    "scatter": scatter,
    "scatter_add": lambda x, dim, index, src: scatter(x, dim, index, src, reduce="add"),
    "select": lambda x, dim, index: x[(slice(None),) * (dim % len(x.shape)) + (index,)],
    "sort": sort,
    "topk": topk,
}
