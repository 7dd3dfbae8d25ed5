"""Reductions over axes, and accumulations along one."""

from database_judge import Unmapped

from oarlock import op

__all__ = ["CALLS", "axes_of", "dtyped"]


def axes_of(x, dim):
    """Convert PyTorch's `dim`: None or an empty tuple means all axes, and axis 0 of a scalar is accepted."""
    if dim is None or (isinstance(dim, list | tuple) and not dim):
        return None
    dims = tuple(dim) if isinstance(dim, list | tuple) else (dim,)
    if x.shape == () and all(each in (0, -1) for each in dims):
        return None
    return dims if isinstance(dim, list | tuple) else dim


def dtyped(x, dtype):
    """Return ``x`` in the requested dtype of a reduction."""
    return x if x is None or dtype is None else op.cast(x, dtype=dtype)


def reduction(function):
    """A reduction with PyTorch's arguments."""

    def call(x, dim=None, keepdim=False, *, dtype=None):
        return function(dtyped(x, dtype), axis=axes_of(x, dim), keepdim=keepdim)

    return call


def extreme(function, place):
    """The extreme element along an axis and its index, the extreme of all, or of two variables: one name in PyTorch."""

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
    """The index of the extreme element along an axis, or of all in memory order."""

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


def cumulative_extreme(function):
    def call(x, dim):
        return function(x, axis=dim) if x.shape else (op.assign(x), op.full(shape=(), value=0.0, dtype="int64"))

    return call


def areas(function):
    def call(y, x=None, *, dx=1.0, dim=-1):
        return function(y, x, dx=float(dx), axis=dim)

    return call


def picked(function):
    """An order statistic and its index; for all elements, PyTorch returns no index."""

    def call(x, *numbers, dim=None, keepdim=False):
        numbers = list(numbers)
        given = {"k": numbers.pop(0)} if function is op.kthvalue else {}
        dim = numbers.pop(0) if numbers else -1 if dim is None and function in (op.kthvalue, op.mode) else dim
        keepdim = numbers.pop(0) if numbers else keepdim
        if dim is None:
            return function(x)[0]
        if x.shape:
            return function(x, axis=dim, keepdim=keepdim, **given)
        values, places = function(op.reshape(x, shape=(1,)), axis=dim, **given)
        return values, places

    return call


def quantile(function):
    def call(x, q, dim=None, keepdim=False, *, interpolation="linear"):
        return function(x, q, axis=axes_of(x, dim), keepdim=keepdim, interpolation=interpolation)

    return call


def norm(x, p="fro", dim=None, keepdim=False, dtype=None):
    if p == "nuc":
        raise Unmapped("singular values")
    return vector_norm(x, 2 if p in ("fro", None) else p, dim, keepdim, dtype=dtype)


CALLS = {
    "norm": norm,
    "norm.fro": norm,
    "norm.inf": norm,
    "norm.nuc": norm,
    "aminmax": lambda x, *, dim=None, keepdim=False: op.aminmax(x, axis=axes_of(x, dim), keepdim=keepdim),
    "corrcoef": op.corrcoef,
    "count_nonzero": lambda x, dim=None: op.count_nonzero(x, axis=axes_of(x, dim)),
    "cov": lambda x, *, correction=1, fweights=None, aweights=None: op.cov(
        x, correction=float(correction), weights=dtyped(aweights, x.dtype), frequencies=fweights
    ),
    "cummax": cumulative_extreme(op.cummax),
    "cummin": cumulative_extreme(op.cummin),
    "cumulative_trapezoid": areas(op.cumulative_trapezoid),
    "diff": lambda x, n=1, dim=-1, prepend=None, append=None: op.diff(x, n=n, axis=dim, prepend=prepend, append=append),
    "dist": lambda x, y, p=2: op.vector_norm(op.subtract(x, y), order=float(p)),
    "kthvalue": picked(op.kthvalue),
    "logcumsumexp": cumulative(op.logcumsumexp),
    "median": picked(op.median),
    "mode": picked(op.mode),
    "nanmean": reduction(op.nanmean),
    "nanmedian": picked(op.nanmedian),
    "nanquantile": quantile(op.nanquantile),
    "nansum": reduction(op.nansum),
    "quantile": quantile(op.quantile),
    "trapezoid": areas(op.trapezoid),
    "trapz": areas(op.trapezoid),
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
