"""Reductions over axes, and what accumulates along one."""

from oarlock import op

__all__ = ["CALLS", "axes_of", "dtyped"]


def axes_of(x, dim):
    """PyTorch's `dim` as ours: None or nothing is all, and a number without axes may be asked for its axis 0."""
    if dim is None or (isinstance(dim, list | tuple) and not dim):
        return None
    dims = tuple(dim) if isinstance(dim, list | tuple) else (dim,)
    if x.shape == () and all(each in (0, -1) for each in dims):
        return None
    return dims if isinstance(dim, list | tuple) else dim


def dtyped(x, dtype):
    """``x`` in the dtype that a reduction is asked to compute in."""
    return x if dtype is None else op.cast(x, dtype=dtype)


def reduction(function):
    """A reduction as PyTorch calls it."""

    def call(x, dim=None, keepdim=False, *, dtype=None):
        return function(dtyped(x, dtype), axis=axes_of(x, dim), keepdim=keepdim)

    return call


def extreme(function, place):
    """The largest or smallest element along one axis and where it stands; of all, or of two, as PyTorch has these under one name."""

    def call(x, dim=None, keepdim=False):
        if dim is None:
            return (op.amax if function is op.reduce_max else op.amin)(x)
        axis = axes_of(x, dim)
        if axis is None:
            return function(x), op.full_like(x, value=0.0, dtype="int64")
        return function(x, axis=axis, keepdim=keepdim), place(x, axis=axis, keepdim=keepdim)

    return call


def spread(function, with_mean=False):
    """Variance or standard deviation."""

    def call(x, dim=None, unbiased=None, keepdim=False, *, correction=None):
        if isinstance(dim, bool):
            dim, unbiased = None, dim
        correction = (1.0 if unbiased is not False else 0.0) if correction is None else float(correction)
        over = {"axis": axes_of(x, dim), "keepdim": keepdim}
        found = function(x, correction=correction, **over)
        return (found, op.mean(x, **over)) if with_mean else found

    return call


def place(function):
    """Where the largest or smallest element stands; of all, in the order of memory."""

    def call(x, dim=None, keepdim=False):
        axis = axes_of(x, dim)
        if axis is not None:
            return function(x, axis=axis, keepdim=keepdim)
        flat = function(op.reshape(x, shape=(-1,)), axis=0)
        return op.reshape(flat, shape=(1,) * len(x.shape)) if keepdim else flat

    return call


def vector_norm(x, ord=2, dim=None, keepdim=False, *, dtype=None):
    return op.vector_norm(dtyped(x, dtype), order=float(ord), axis=axes_of(x, dim), keepdim=keepdim)


def cumulative(function):
    def call(x, dim, *, dtype=None):
        return function(dtyped(x, dtype), axis=dim) if x.shape else op.assign(x)

    return call


CALLS = {
    "all": lambda x, dim=None, keepdim=False: op.all(op.cast(x, dtype="bool"), axis=axes_of(x, dim), keepdim=keepdim),
    "any": lambda x, dim=None, keepdim=False: op.any(op.cast(x, dtype="bool"), axis=axes_of(x, dim), keepdim=keepdim),
    "amax": reduction(op.amax),
    "amin": reduction(op.amin),
    "argmax": place(op.argmax),
    "argmin": place(op.argmin),
    "cumprod": cumulative(op.cumprod),
    "cumsum": cumulative(op.cumsum),
    "linalg.vector_norm": vector_norm,
    "logsumexp": reduction(op.logsumexp),
    "max.reduction_no_dim": extreme(op.reduce_max, op.argmax),
    "max.reduction_with_dim": extreme(op.reduce_max, op.argmax),
    "mean": reduction(op.mean),
    "min.reduction_no_dim": extreme(op.reduce_min, op.argmin),
    "min.reduction_with_dim": extreme(op.reduce_min, op.argmin),
    "prod": reduction(op.reduce_prod),
    "std": spread(op.standard_deviation),
    "std.unbiased": spread(op.standard_deviation),
    "std_mean": spread(op.standard_deviation, with_mean=True),
    "std_mean.unbiased": spread(op.standard_deviation, with_mean=True),
    "sum": reduction(op.reduce_sum),
    "var": spread(op.variance),
    "var.unbiased": spread(op.variance),
    "var_mean": spread(op.variance, with_mean=True),
    "var_mean.unbiased": spread(op.variance, with_mean=True),
}
