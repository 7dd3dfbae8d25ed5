"""Reductions, cumulative sums, sorting, softmax and triangles."""

from collections.abc import Callable

from oarlock import op
from oarlock.interop.onnx.import_rules.forms import axes_of, axis_of, axis_or_axes, constant, moved, rank_of, reshaped, shape_of
from oarlock.interop.onnx.rule import Unsupported, rule
from oarlock.ir.dtype import DType
from oarlock.ir.size import Size
from oarlock.ir.var import Var

_EMPTY = {
    "Sum": 0.0,
    "SumSquare": 0.0,
    "L1": 0.0,
    "L2": 0.0,
    "Prod": 1.0,
    "LogSum": -float("inf"),
    "LogSumExp": -float("inf"),
    "Mean": float("nan"),
}


def _extreme(largest: bool) -> Callable[[Var, tuple[int, ...], bool], Var]:
    def reduce(x: Var, axes: tuple[int, ...], keepdim: bool) -> Var:
        if x.dtype is DType.BOOL:
            return (op.any if largest else op.all)(x, axis=axis_or_axes(axes), keepdim=keepdim)
        function = op.reduce_max if largest else op.reduce_min
        for axis in sorted(axes, reverse=True):
            x = function(x, axis=axis, keepdim=keepdim)
        return x

    return reduce


def _product(x: Var, axes: tuple[int, ...], keepdim: bool) -> Var:
    for axis in sorted(axes, reverse=True):
        x = op.reduce_prod(x, axis=axis, keepdim=keepdim)
    return x


def _sum(x: Var, axes: tuple[int, ...], keepdim: bool) -> Var:
    return op.reduce_sum(x, axis=axis_or_axes(axes), keepdim=keepdim)


_BEFORE: dict[str, Callable[[Var], Var]] = {
    "L1": lambda x: op.abs(x),
    "L2": lambda x: op.multiply(x, x),
    "SumSquare": lambda x: op.multiply(x, x),
}
_OVER: dict[str, Callable[[Var, tuple[int, ...], bool], Var]] = {
    "LogSumExp": lambda x, axes, keepdim: op.logsumexp(x, axis=axis_or_axes(axes), keepdim=keepdim),
    "Max": _extreme(True),
    "Mean": lambda x, axes, keepdim: op.mean(x, axis=axis_or_axes(axes), keepdim=keepdim),
    "Min": _extreme(False),
    "Prod": _product,
}
_AFTER: dict[str, Callable[[Var], Var]] = {"L2": lambda x: op.sqrt(x), "LogSum": lambda x: op.log(x)}


def _declare(kind: str) -> None:
    def reduce(x: Var, axes: tuple[int, ...] | None, keepdims: int, noop: int) -> Var:
        if not axes and noop:
            return (
                op.assign(x)
                if kind not in ("L1", "L2", "SumSquare", "LogSum")
                else _AFTER.get(kind, op.assign)(_BEFORE.get(kind, op.assign)(x))
            )
        shape = shape_of(x)
        chosen = axes or tuple(range(len(shape)))
        if not chosen:
            chosen = ()
        left: list[Size] = [1 if axis in chosen else size for axis, size in enumerate(shape) if axis not in chosen or keepdims]
        if any(shape[axis] == 0 for axis in chosen):
            return _reduce_empty(kind, x, left)
        whole = x.dtype
        if kind in ("Mean", "L2", "LogSum", "LogSumExp") and not whole.is_floating:
            x = op.cast(x, dtype=DType.FLOAT64)
        result = _BEFORE.get(kind, op.assign)(x)
        if chosen:
            result = _OVER.get(kind, _sum)(result, chosen, bool(keepdims))
        result = _AFTER.get(kind, op.assign)(result)
        return result if result.dtype is whole else op.cast(result, dtype=whole)

    # Axes are an input since opset 18, for ReduceSum since 13.
    since = 13 if kind == "Sum" else 18

    @rule(f"Reduce{kind}", since=since, known=("axes",))
    def by_input(x, axes=None, *, keepdims=1, noop_with_empty_axes=0):
        return reduce(x, None if axes is None else axes_of(axes, rank_of(x)), keepdims, noop_with_empty_axes)

    @rule(f"Reduce{kind}", until=since)
    def by_attribute(x, *, axes=None, keepdims=1):
        return reduce(x, None if axes is None else axes_of(axes, rank_of(x)), keepdims, 0)


for _kind in ("L1", "L2", "LogSum", "LogSumExp", "Max", "Mean", "Min", "Prod", "Sum", "SumSquare"):
    _declare(_kind)


def _reduce_empty(kind: str, x: Var, left: list[Size]) -> Var:
    """Return the reduction of no elements, in the remaining shape."""
    number = _EMPTY.get(kind)
    if number is None:
        bits = 8 * x.dtype.itemsize
        least = 0.0 if x.dtype in (DType.BOOL, DType.UINT8) else -(2.0 ** (bits - 1))
        most = {DType.BOOL: 1.0, DType.UINT8: 255.0}.get(x.dtype, 2.0 ** (bits - 1) - 1)
        lowest, highest = (-float("inf"), float("inf")) if x.dtype.is_floating else (least, most)
        number = lowest if kind == "Max" else highest
    if not all(isinstance(size, int) for size in left):
        raise Unsupported(f"it reduces an empty axis to the shape {left}, which is not constant")
    return op.full(shape=tuple(left), value=number, dtype=x.dtype)


@rule("ArgMax")
def argmax(x, *, axis=0, keepdims=1, select_last_index=0):
    return _position_of_extreme(op.argmax, x, axis, keepdims, select_last_index)


@rule("ArgMin")
def argmin(x, *, axis=0, keepdims=1, select_last_index=0):
    return _position_of_extreme(op.argmin, x, axis, keepdims, select_last_index)


def _position_of_extreme(function: Callable[..., Var], x: Var, axis: int, keepdims: int, last: int) -> Var:
    axis = axis_of(axis, rank_of(x))
    if not last:
        return function(x, axis=axis, keepdim=bool(keepdims))
    place = function(op.flip(x, axes=(axis,)), axis=axis, keepdim=bool(keepdims))
    return op.subtract(op.subtract(op.size(x, axis=axis), constant(1, DType.INT64)), place)


@rule("CumSum", known=("axis",))
def cumulative_sum(x, axis, *, exclusive=0, reverse=0):
    return op.cumsum(x, axis=axis_of(axis.item(), rank_of(x)), exclusive=bool(exclusive), reverse=bool(reverse))


@rule("CumProd", known=("axis",))
def cumulative_product(x, axis, *, exclusive=0, reverse=0):
    return op.cumprod(x, axis=axis_of(axis.item(), rank_of(x)), exclusive=bool(exclusive), reverse=bool(reverse))


@rule("TopK", since=10, known=("k",))
def top_k(x, k, *, axis=-1, largest=1, sorted=1):
    count = k.item()
    if not isinstance(count, int):
        raise Unsupported(f"its k is {count}, which is not constant", hint="pass sizes={...} to fix symbolic sizes")
    axis = axis_of(axis, rank_of(x))
    values, places = op.sort(x, axis=axis, descending=bool(largest))
    return [op.slice(item, axis=axis, start=0, stop=count, clip=False) for item in (values, places)]


@rule("Softmax", since=13)
def softmax(x, *, axis=-1):
    return op.softmax(x, axis=axis_of(axis, rank_of(x)))


@rule("LogSoftmax", since=13)
def log_softmax(x, *, axis=-1):
    return op.log_softmax(x, axis=axis_of(axis, rank_of(x)))


@rule("Hardmax", since=13)
def hardmax(x, *, axis=-1):
    axis = axis_of(axis, rank_of(x))
    depth = shape_of(x)[axis]
    if not isinstance(depth, int):
        raise Unsupported(f"the size {depth} of its axis is not constant", hint="pass sizes={...} to fix symbolic sizes")
    marked = op.one_hot(op.argmax(x, axis=axis), depth=depth)
    return moved(marked if x.dtype is DType.FLOAT32 else op.cast(marked, dtype=x.dtype), -1, axis)


@rule("Trilu", either=("k",))
def triangle(x, k=None, *, upper=1):
    if isinstance(k, Var):
        rows, columns = (op.arange_like(moved(x, axis, 0)) for axis in (-2, -1))
        places = op.subtract(columns, reshaped(rows, (shape_of(x)[-2], 1)))
        kept = op.greater_equal(places, k) if upper else op.less_equal(places, k)
        return op.where(kept, x, constant(0.0, x))
    diagonal = 0 if k is None else k.item()
    return (op.triu if upper else op.tril)(x, diagonal=diagonal)
