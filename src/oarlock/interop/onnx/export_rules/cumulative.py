"""Cumulative sums and products along an axis; products as `Scan`, as ONNX has no operator for them."""

from collections.abc import Callable, Sequence

from oarlock.interop.onnx.export_graph import Graph, Value
from oarlock.interop.onnx.export_rule import export

Step = Callable[[Graph, Sequence[str], Sequence[str]], tuple[Sequence[str], str]]


@export("cumsum")
def cumsum(g: Graph, x: Value, *, axis: int, exclusive: bool, reverse: bool) -> str:
    return g("CumSum", x, g.ints(axis), exclusive=int(exclusive), reverse=int(reverse))


def _along(g: Graph, xs: Sequence[Value], axis: int, first: Sequence[float], step: Step, *, reverse: bool) -> str:
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

    return _along(g, [x], axis, [1.0], step, reverse=reverse)


def _behind(g: Graph, x: Value, dy: Value, axis: int, exclusive: bool, reverse: bool) -> str:
    """Return, for each position, the gradient of the product of later elements: ``s[i] = dy[i] + x[i+1] s[i+1]``, computed backwards."""

    def step(inner: Graph, carried: Sequence[str], items: Sequence[str]) -> tuple[Sequence[str], str]:
        before = carried[0]  # x[i+1] s[i+1]; with `exclusive` plus dy[i+1]
        here = before if exclusive else inner("Add", items[1], before)
        through = inner("Mul", items[0], before if exclusive else here)
        return [inner("Add", items[1], through) if exclusive else through], here

    return _along(g, [x, dy], axis, [0.0], step, reverse=not reverse)


@export("cumprod_dx")
def cumprod_dx(g: Graph, x: Value, dy: Value, *, axis: int, exclusive: bool, reverse: bool) -> str:
    """Multiply the product of earlier elements by the gradient from later ones."""
    in_front = cumprod(g, x, axis=axis, exclusive=True, reverse=reverse)
    return g("Mul", in_front, _behind(g, x, dy, axis, exclusive, reverse))


@export("cumprod_dx_ddy")
def cumprod_dx_ddy(g: Graph, x: Value, ddx: Value, *, axis: int, exclusive: bool, reverse: bool) -> str:
    """Return the change of the products when x changes by `ddx`."""

    def step(inner: Graph, carried: Sequence[str], items: Sequence[str]) -> tuple[Sequence[str], str]:
        product, change = carried
        after = inner("Add", inner("Mul", change, items[0]), inner("Mul", product, items[1]))
        return [inner("Mul", product, items[0]), after], change if exclusive else after

    return _along(g, [x, ddx], axis, [1.0, 0.0], step, reverse=reverse)


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

    behind = _along(g, [x, dy, ddx], axis, [0.0, 0.0], step, reverse=not reverse)
    return g("Add", g("Mul", change, _behind(g, x, dy, axis, exclusive, reverse)), g("Mul", in_front, behind))
