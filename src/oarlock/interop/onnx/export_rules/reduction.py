"""Reductions, broadcasting to a shape and summing back, and cumulative sums and products."""

from collections.abc import Callable, Sequence

from oarlock.interop.onnx.export_graph import Graph, Value
from oarlock.interop.onnx.export_rule import export

__all__ = ["axes_of", "spread", "sum_to"]

Axes = int | Sequence[int] | None


def axes_of(axis: Axes, rank: int) -> list[int] | None:
    """Return the axes of an attribute counted from the front; None for all axes."""
    if axis is None:
        return None
    return [item % rank if rank else item for item in ([axis] if isinstance(axis, int) else axis)]


def sum_to(g: Graph, x: Value, like: Value) -> str:
    """Sum `x` to the shape of `like`, which broadcasts to the shape of `x`."""
    if x.shape is None or like.shape is None or not _has_known_axes(x, like):
        return _sum_to_at_run_time(g, x, like)
    missing = x.rank - like.rank
    axes = [*range(missing), *(missing + axis for axis, size in enumerate(like.sizes) if size == 1 and x.sizes[missing + axis] != 1)]
    summed = g.reduce("ReduceSum", x, axes, keepdim=True)
    return g.squeeze(summed, *range(missing))


def _has_known_axes(x: Value, like: Value) -> bool:
    """Return whether the axes to sum over are known: those where only `like` has size 1."""
    beside = x.sizes[x.rank - like.rank :]
    return all(theirs in (1, ours) for ours, theirs in zip(beside, like.sizes, strict=True))


def _sum_to_at_run_time(g: Graph, x: Value, like: Value) -> str:
    """Sum to a shape with symbolic sizes: the axes are determined at run time."""
    here, there = g.shape(x), g.shape(like)
    missing = g("Sub", g("Shape", here), g("Shape", there))
    whole = g("Concat", g("Expand", g.ints([1]), missing), there, axis=0)
    axes = g("Squeeze", g("NonZero", g("Not", g("Equal", here, whole))), g.ints([0]))
    return g.reshape(g("ReduceSum", x, axes, keepdims=1, noop_with_empty_axes=1), there)


def spread(g: Graph, x: str, axis: Axes, keepdim: bool, like: Value) -> str:
    """Broadcast the value of a reduction to the elements it was computed from."""
    axes = axes_of(axis, like.rank)
    if axes is not None and not keepdim:
        x = g.unsqueeze(x, *sorted(axes))
    return g("Expand", x, g.shape(like))


def count_over(g: Graph, like: Value, axis: Axes) -> str:
    """Return the number of elements per reduced value, in the dtype of `like`."""
    axes = axes_of(axis, like.rank)
    sizes = like.sizes if axes is None else tuple(like.sizes[item] for item in axes)
    numbers = [size for size in sizes if isinstance(size, int)]
    if len(numbers) == len(sizes):
        total = 1
        for number in numbers:
            total *= number
        return g.scalar(float(total), like.dtype)
    dims = [g.dim(like, item) for item in (range(like.rank) if axes is None else axes)]
    return g.cast(g("ReduceProd", g("Concat", *dims, axis=0), keepdims=0), like.dtype)


@export("sum_to_shape")
def sum_to_shape(g: Graph, x: Value, like: Value) -> str:
    return sum_to(g, x, like)


export("broadcast_to_like")(lambda g, x, like: g("Expand", x, g.shape(like)))


@export("reduce_sum")
def reduce_sum(g: Graph, x: Value, *, axis: Axes = None, keepdim: bool = False) -> str:
    return g.reduce("ReduceSum", x, axes_of(axis, x.rank), keepdim=keepdim)


@export("reduce_sum_dx")
def reduce_sum_dx(g: Graph, dy: Value, x: Value, *, axis: Axes = None, keepdim: bool) -> str:
    return spread(g, dy.name, axis, keepdim, x)


@export("mean")
def mean(g: Graph, x: Value, *, axis: Axes = None, keepdim: bool = False) -> str:
    return g.reduce("ReduceMean", x, axes_of(axis, x.rank), keepdim=keepdim)


@export("mean_dx")
def mean_dx(g: Graph, dy: Value, x: Value, *, axis: Axes = None, keepdim: bool) -> str:
    return spread(g, g("Div", dy, count_over(g, Value(x.name, dy.dtype, x.shape), axis)), axis, keepdim, x)


for ours, theirs in {"amax": "ReduceMax", "amin": "ReduceMin", "reduce_prod": "ReduceProd", "logsumexp": "ReduceLogSumExp"}.items():

    @export(ours)
    def reduction(g: Graph, x: Value, *, axis: Axes = None, keepdim: bool = False, theirs: str = theirs) -> str:
        return g.reduce(theirs, x, axes_of(axis, x.rank), keepdim=keepdim)


# Variance


def _subtract_mean(g: Graph, x: Value, axis: Axes) -> str:
    return g("Sub", x, g.reduce("ReduceMean", x, axes_of(axis, x.rank), keepdim=True))


def _divisor(g: Graph, x: Value, axis: Axes, correction: float) -> str:
    """Return the divisor of a variance, at least 0."""
    left = g("Sub", count_over(g, x, axis), g.scalar(correction, x.dtype))
    return g("Max", left, g.scalar(0, x.dtype))


def _make_broadcastable(g: Graph, dy: Value, x: Value, axis: Axes, keepdim: bool) -> str:
    """Reshape the value of a reduction to broadcast with `x`."""
    axes = axes_of(axis, x.rank)
    return dy.name if axes is None or keepdim else g.unsqueeze(dy, *sorted(axes))


@export("variance")
def variance(g: Graph, x: Value, *, axis: Axes = None, keepdim: bool = False, correction: float = 1.0) -> str:
    centred = _subtract_mean(g, x, axis)
    squares = g.reduce("ReduceSum", g("Mul", centred, centred), axes_of(axis, x.rank), keepdim=keepdim)
    return g("Div", squares, _divisor(g, x, axis, correction))


@export("variance_dx")
def variance_dx(g: Graph, x: Value, dy: Value, *, axis: Axes = None, keepdim: bool, correction: float) -> str:
    weight = g("Div", g.scalar(2, x.dtype), _divisor(g, x, axis, correction))
    return g("Mul", g("Mul", _make_broadcastable(g, dy, x, axis, keepdim), _subtract_mean(g, x, axis)), weight)


@export("variance_dx_ddy")
def variance_dx_ddy(g: Graph, x: Value, ddx: Value, dy: Value, *, axis: Axes = None, keepdim: bool, correction: float) -> str:
    along = g.reduce("ReduceSum", g("Mul", ddx, _subtract_mean(g, x, axis)), axes_of(axis, x.rank), keepdim=keepdim)
    return g("Mul", along, g("Div", g.scalar(2, x.dtype), _divisor(g, x, axis, correction)))


@export("variance_dx_dx")
def variance_dx_dx(g: Graph, dy: Value, ddx: Value, *, axis: Axes = None, keepdim: bool, correction: float) -> str:
    weight = g("Div", g.scalar(2, ddx.dtype), _divisor(g, ddx, axis, correction))
    return g("Mul", g("Mul", _make_broadcastable(g, dy, ddx, axis, keepdim), _subtract_mean(g, ddx, axis)), weight)


# Cumulative sums and products


Step = Callable[[Graph, Sequence[str], Sequence[str]], tuple[Sequence[str], str]]


@export("cumsum")
def cumsum(g: Graph, x: Value, *, axis: int, exclusive: bool, reverse: bool) -> str:
    return g("CumSum", x, g.ints(axis), exclusive=int(exclusive), reverse=int(reverse))


def _scan_along(g: Graph, xs: Sequence[Value], axis: int, first: Sequence[float], step: Step, *, reverse: bool) -> str:
    """Return the results of `step` at each position along an axis. Its state starts as `first`; its inputs are `xs` at the position."""
    like = xs[0]
    if 0 in like.sizes:  # ONNX Runtime's Scan would divide by zero
        return g.filled(0, like.dtype, g.shape(like))
    axis %= like.rank
    inner = g.block()
    inner.op = g.op
    sizes = like.sizes[:axis] + like.sizes[axis + 1 :]
    dims = [g.dim(like, each) for each in range(like.rank) if each != axis]
    whole = g("Concat", *dims, axis=0) if dims else g.ints([])
    for stem in (*("carried" for _ in first), *("item" for _ in xs)):
        inner.inputs.append(Value(inner.fresh(f"{g.result().name}/{stem}"), like.dtype, sizes))
    names = [value.name for value in inner.inputs]
    following, given = step(inner, names[: len(first)], names[len(first) :])
    inner.outputs = [Value(inner("Identity", name), like.dtype, sizes) for name in (*following, given)]
    results = [g.fresh(f"{g.result().name}/Scan") for _ in (*first, given)]
    g.append(
        "Scan",
        [*(g.filled(value, like.dtype, whole) for value in first), *xs],
        results,
        {
            "body": inner,
            "num_scan_inputs": len(xs),
            "scan_input_axes": [axis] * len(xs),
            "scan_output_axes": [axis],
            "scan_input_directions": [int(reverse)] * len(xs),
            "scan_output_directions": [int(reverse)],
        },
    )
    return results[-1]


@export("cumprod")
def cumprod(g: Graph, x: Value, *, axis: int, exclusive: bool, reverse: bool) -> str:
    def step(inner: Graph, carried: Sequence[str], items: Sequence[str]) -> tuple[Sequence[str], str]:
        product = inner("Mul", carried[0], items[0])
        return [product], carried[0] if exclusive else product

    return _scan_along(g, [x], axis, [1.0], step, reverse=reverse)


def _gradient_of_later(g: Graph, x: Value, dy: Value, axis: int, exclusive: bool, reverse: bool) -> str:
    """Return, for each position, the gradient of the product of later elements: ``s[i] = dy[i] + x[i+1] s[i+1]``, computed backwards."""

    def step(inner: Graph, carried: Sequence[str], items: Sequence[str]) -> tuple[Sequence[str], str]:
        before = carried[0]  # x[i+1] s[i+1]; with `exclusive` plus dy[i+1]
        here = before if exclusive else inner("Add", items[1], before)
        through = inner("Mul", items[0], before if exclusive else here)
        return [inner("Add", items[1], through) if exclusive else through], here

    return _scan_along(g, [x, dy], axis, [0.0], step, reverse=not reverse)


@export("cumprod_dx")
def cumprod_dx(g: Graph, x: Value, dy: Value, *, axis: int, exclusive: bool, reverse: bool) -> str:
    """Multiply the product of earlier elements by the gradient from later ones."""
    in_front = cumprod(g, x, axis=axis, exclusive=True, reverse=reverse)
    return g("Mul", in_front, _gradient_of_later(g, x, dy, axis, exclusive, reverse))


@export("cumprod_dx_ddy")
def cumprod_dx_ddy(g: Graph, x: Value, ddx: Value, *, axis: int, exclusive: bool, reverse: bool) -> str:
    """Return the change of the products when x changes by `ddx`."""

    def step(inner: Graph, carried: Sequence[str], items: Sequence[str]) -> tuple[Sequence[str], str]:
        product, change = carried
        after = inner("Add", inner("Mul", change, items[0]), inner("Mul", product, items[1]))
        return [inner("Mul", product, items[0]), after], change if exclusive else after

    return _scan_along(g, [x, ddx], axis, [1.0, 0.0], step, reverse=reverse)


@export("cumprod_dx_dx")
def cumprod_dx_dx(g: Graph, x: Value, dy: Value, ddx: Value, *, axis: int, exclusive: bool, reverse: bool) -> str:
    """Return the change of that gradient when x changes by `ddx`, through both of its factors."""
    in_front = cumprod(g, x, axis=axis, exclusive=True, reverse=reverse)
    change = cumprod_dx_ddy(g, x, ddx, axis=axis, exclusive=True, reverse=reverse)

    def step(inner: Graph, carried: Sequence[str], items: Sequence[str]) -> tuple[Sequence[str], str]:
        before, moved = carried
        here, moving = (before, moved) if exclusive else (inner("Add", items[1], before), moved)
        through = inner("Mul", items[0], here)
        through_moving = inner("Add", inner("Mul", items[2], here), inner("Mul", items[0], moving))
        return [inner("Add", items[1], through) if exclusive else through, through_moving], moving

    behind = _scan_along(g, [x, dy, ddx], axis, [0.0, 0.0], step, reverse=not reverse)
    return g("Add", g("Mul", change, _gradient_of_later(g, x, dy, axis, exclusive, reverse)), g("Mul", in_front, behind))
