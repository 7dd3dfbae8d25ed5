"""Sums, means, extremes and counts over axes; cumulative sums; sorting."""

from collections.abc import Callable, Sequence

from oarlock import op
from oarlock.interop.torch.rules.arguments import (
    Number,
    as_dtype,
    as_floating,
    as_integer,
    axes_of,
    axis_of,
    nonzero_in,
    rank_of,
    refuse,
    reshaped,
    shape_of,
    squeezed,
)
from oarlock.interop.torch.rules.registry import rule
from oarlock.ir import size
from oarlock.ir.dtype import DType
from oarlock.ir.var import Var

Dims = int | Sequence[int] | None


def reduced_axes(x: Var, dim: Dims) -> int | tuple[int, ...] | None:
    """Return the axes to reduce in the format of Oarlock's operators: None for all, a number for one."""
    axes = axes_of(x, dim)
    if len(axes) == rank_of(x):
        return None if rank_of(x) != 1 else 0
    return axes[0] if len(axes) == 1 else axes


@rule("aten.sum.default", "aten.sum.dim_IntList")
def sum(self: Var, dim: Dims = None, keepdim: bool = False, dtype: object = None):
    x = as_dtype(self, dtype) if dtype is not None else as_integer(self)
    return op.reduce_sum(x, axis=reduced_axes(x, dim), keepdim=keepdim) if rank_of(x) else x


@rule("aten.mean.default", "aten.mean.dim")
def mean(self: Var, dim: Dims = None, keepdim: bool = False, dtype: object = None):
    x = as_dtype(self, dtype)
    return op.mean(x, axis=reduced_axes(x, dim), keepdim=keepdim) if rank_of(x) else x


@rule("aten.nansum.default")
def nansum(self: Var, dim: Dims = None, keepdim: bool = False, dtype: object = None):
    x = as_dtype(self, dtype)
    return op.nansum(x, axis=reduced_axes(x, dim), keepdim=keepdim) if x.dtype.is_inexact else sum(x, dim, keepdim, dtype)


@rule("aten.prod.default", "aten.prod.dim_int")
def prod(self: Var, dim: int | None = None, keepdim: bool = False, dtype: object = None):
    x = as_dtype(self, dtype) if dtype is not None else as_integer(self)
    if rank_of(x) == 0:
        return x
    x, axis = (reshaped(x, [size.product(shape_of(x))]), 0) if dim is None else (x, axis_of(x, dim))
    return op.reduce_prod(x, axis=axis, keepdim=keepdim)


@rule("aten.amax.default")
def amax(self: Var, dim: Sequence[int] = (), keepdim: bool = False):
    return extreme(self, dim, keepdim, largest=True)


@rule("aten.amin.default")
def amin(self: Var, dim: Sequence[int] = (), keepdim: bool = False):
    return extreme(self, dim, keepdim, largest=False)


@rule("aten.max.default")
def max_of_all(self: Var):
    return extreme(self, None, False, largest=True)


@rule("aten.min.default")
def min_of_all(self: Var):
    return extreme(self, None, False, largest=False)


@rule("aten.aminmax.default")
def aminmax(self: Var, dim: int | None = None, keepdim: bool = False):
    if rank_of(self) == 0 or self.dtype is DType.BOOL:
        return extreme(self, dim, keepdim, largest=False), extreme(self, dim, keepdim, largest=True)
    return op.aminmax(self, axis=reduced_axes(self, dim), keepdim=keepdim)


def extreme(x: Var, dim: Dims, keepdim: bool, *, largest: bool) -> Var:
    """Return the largest or smallest element over axes. Equal elements share the gradient, as in PyTorch's overloads without an index."""
    if rank_of(x) == 0:
        return x
    if x.dtype is DType.BOOL:
        return (op.any if largest else op.all)(x, axis=reduced_axes(x, dim), keepdim=keepdim)
    return (op.amax if largest else op.amin)(x, axis=reduced_axes(x, dim), keepdim=keepdim)


@rule("aten.max.dim")
def max_along(self: Var, dim: int, keepdim: bool = False):
    return _extreme_along(self, dim, keepdim, largest=True)


@rule("aten.min.dim")
def min_along(self: Var, dim: int, keepdim: bool = False):
    return _extreme_along(self, dim, keepdim, largest=False)


def _extreme_along(x: Var, dim: int, keepdim: bool, *, largest: bool) -> tuple[Var, Var]:
    """Return the extreme along an axis and its position. The gradient goes to that position."""
    refuse(rank_of(x) == 0, "a scalar has no axis")
    axis = axis_of(x, dim)
    numbers = as_dtype(x, DType.INT64) if x.dtype is DType.BOOL else x
    index = (op.argmax if largest else op.argmin)(numbers, axis=axis, keepdim=True)
    values = op.take_along_axis(numbers, index, axis=axis)
    values = as_dtype(values, x.dtype)
    return (values, index) if keepdim else (squeezed(values, [axis]), squeezed(index, [axis]))


@rule("aten.argmax.default")
def argmax(self: Var, dim: int | None = None, keepdim: bool = False):
    return _position_of_extreme(self, dim, keepdim, largest=True)


@rule("aten.argmin.default")
def argmin(self: Var, dim: int | None = None, keepdim: bool = False):
    return _position_of_extreme(self, dim, keepdim, largest=False)


def _position_of_extreme(x: Var, dim: int | None, keepdim: bool, *, largest: bool) -> Var:
    operator = op.argmax if largest else op.argmin
    if dim is not None and rank_of(x):
        return operator(x, axis=axis_of(x, dim), keepdim=keepdim)
    y = operator(reshaped(x, [size.product(shape_of(x))]), axis=0)
    return reshaped(y, [1] * rank_of(x)) if keepdim else y


@rule("aten.any.default", "aten.any.dim", "aten.any.dims")
def any(self: Var, dim: Dims = None, keepdim: bool = False):
    return op.any(nonzero_in(self), axis=reduced_axes(self, dim), keepdim=keepdim)


@rule("aten.all.default", "aten.all.dim", "aten.all.dims")
def all(self: Var, dim: Dims = None, keepdim: bool = False):
    return op.all(nonzero_in(self), axis=reduced_axes(self, dim), keepdim=keepdim)


@rule("aten.count_nonzero.default", "aten.count_nonzero.dim_IntList")
def count_nonzero(self: Var, dim: Dims = None):
    return op.count_nonzero(self, axis=reduced_axes(self, dim))


@rule("aten.var.default", "aten.var.dim", "aten.var.correction")
def var(self: Var, dim: Dims = None, unbiased: bool = True, correction: Number | None = None, keepdim: bool = False):
    return op.variance(self, axis=reduced_axes(self, dim), keepdim=keepdim, correction=_correction(unbiased, correction))


@rule("aten.std.default", "aten.std.dim", "aten.std.correction")
def std(self: Var, dim: Dims = None, unbiased: bool = True, correction: Number | None = None, keepdim: bool = False):
    return op.standard_deviation(self, axis=reduced_axes(self, dim), keepdim=keepdim, correction=_correction(unbiased, correction))


@rule("aten.var_mean.default", "aten.var_mean.dim", "aten.var_mean.correction")
def var_mean(self: Var, dim: Dims = None, unbiased: bool = True, correction: Number | None = None, keepdim: bool = False):
    return var(self, dim, unbiased, correction, keepdim), mean(self, dim, keepdim)


@rule("aten.std_mean.default", "aten.std_mean.dim", "aten.std_mean.correction")
def std_mean(self: Var, dim: Dims = None, unbiased: bool = True, correction: Number | None = None, keepdim: bool = False):
    return std(self, dim, unbiased, correction, keepdim), mean(self, dim, keepdim)


def _correction(unbiased: bool, correction: Number | None) -> float:
    return float(unbiased) if correction is None else float(correction)


@rule("aten.logsumexp.default", "aten.special_logsumexp.default")
def logsumexp(self: Var, dim: Dims, keepdim: bool = False):
    x = as_floating(self)
    return op.logsumexp(x, axis=reduced_axes(x, dim), keepdim=keepdim) if rank_of(x) else x


@rule("aten.linalg_vector_norm.default", "aten.norm.ScalarOpt_dim", "aten.norm.Scalar", "aten.norm.ScalarOpt_dim_dtype")
def vector_norm(self: Var, ord: Number = 2, p: Number | None = None, dim: Dims = None, keepdim: bool = False, dtype: object = None):
    """Return the vector norm of order `ord` or `p`. If all elements are zero, the gradient is zero, as in PyTorch."""
    x = as_dtype(self, dtype)
    return op.vector_norm(x, order=float(ord if p is None else p), axis=reduced_axes(x, dim), keepdim=keepdim)


@rule("aten.cumsum.default")
def cumsum(self: Var, dim: int, dtype: object = None):
    x = as_dtype(self, dtype) if dtype is not None else as_integer(self)
    return op.cumsum(x, axis=axis_of(x, dim)) if rank_of(x) else x


@rule("aten.cumprod.default")
def cumprod(self: Var, dim: int, dtype: object = None):
    x = as_dtype(self, dtype) if dtype is not None else as_integer(self)
    return op.cumprod(x, axis=axis_of(x, dim)) if rank_of(x) else x


@rule("aten.logcumsumexp.default")
def logcumsumexp(self: Var, dim: int):
    return op.logcumsumexp(self, axis=axis_of(self, dim)) if rank_of(self) else self


@rule("aten.diff.default")
def diff(self: Var, n: int = 1, dim: int = -1, prepend: Var | None = None, append: Var | None = None):
    return op.diff(self, n=n, axis=axis_of(self, dim), prepend=prepend, append=append)


@rule("aten.sort.default", "aten.sort.stable")
def sort(self: Var, dim: int = -1, descending: bool = False, stable: bool | None = False):
    refuse(rank_of(self) == 0, "a scalar has no axis")
    return tuple(op.sort(self, axis=axis_of(self, dim), descending=descending))


@rule("aten.argsort.default", "aten.argsort.stable")
def argsort(self: Var, dim: int = -1, descending: bool = False, stable: bool = False):
    refuse(rank_of(self) == 0, "a scalar has no axis")
    return op.argsort(self, axis=axis_of(self, dim), descending=descending)


@rule("aten.msort.default")
def msort(self: Var):
    return sort(self, 0)[0]


@rule("aten.topk.default")
def topk(self: Var, k: int, dim: int = -1, largest: bool = True, sorted: bool = True):
    refuse(not isinstance(k, int), f"k is {k}, which is only known at run time")
    return op.top_k_along(self, k, axis=axis_of(self, dim), largest=largest)


@rule("aten.kthvalue.default")
def kthvalue(self: Var, k: int, dim: int = -1, keepdim: bool = False):
    refuse(rank_of(self) == 0, "a scalar has no axis")
    return tuple(op.kthvalue(self, k=k, axis=axis_of(self, dim), keepdim=keepdim))


@rule("aten.median.default")
def median_of_all(self: Var):
    return op.median(self)[0]


@rule("aten.nanmedian.default")
def nanmedian_of_all(self: Var):
    return op.nanmedian(self)[0]


def _selection_rule(name: str) -> Callable[..., tuple[Var, ...]]:
    def apply(self: Var, dim: int = -1, keepdim: bool = False) -> tuple[Var, ...]:
        refuse(rank_of(self) == 0, "a scalar has no axis")
        return tuple(getattr(op, name)(self, axis=axis_of(self, dim), keepdim=keepdim))

    return apply


def _cumulative_rule(name: str) -> Callable[[Var, int], tuple[Var, ...]]:
    def apply(self: Var, dim: int) -> tuple[Var, ...]:
        refuse(rank_of(self) == 0, "a scalar has no axis")
        return tuple(getattr(op, name)(self, axis=axis_of(self, dim)))

    return apply


for _overload, _operator in (("median.dim", "median"), ("nanmedian.dim", "nanmedian"), ("mode.default", "mode")):
    rule(f"aten.{_overload}")(_selection_rule(_operator))
for _operator in ("cummax", "cummin"):
    rule(f"aten.{_operator}.default")(_cumulative_rule(_operator))
