"""Sorting, searching, unique elements, counting; largest elements and their positions."""

from oarlock.interop.onnx.export_graph import Graph, Value
from oarlock.interop.onnx.export_rule import export
from oarlock.interop.onnx.export_rules.reduction import axes_of
from oarlock.ir.dtype import DType

_SORTED_BY_RUNTIMES = (DType.FLOAT16, DType.FLOAT32, DType.FLOAT64, DType.INT32, DType.INT64)


@export("sort")
def sort(g: Graph, x: Value, *, axis: int, descending: bool) -> tuple[str, str]:
    """Sort by TopK, which keeps equal elements in order."""
    given = x.name if x.dtype in _SORTED_BY_RUNTIMES else g.cast(x, DType.INT64)
    if x.rank == 0:
        return x.name, g.ints(0)
    values, indices = g("TopK", given, g.dim(x, axis), outputs=2, axis=axis, largest=int(descending), sorted=1)
    return values if given == x.name else g.cast(values, x.dtype), indices


@export("searchsorted")
def searchsorted(g: Graph, sorted: Value, x: Value, *, right: bool) -> str:
    """Count the elements of a sorted row that are less than each element of x, or not greater."""
    before = g("LessOrEqual" if right else "Less", g.unsqueeze(sorted, sorted.rank - 1), g.unsqueeze(x, x.rank))
    return g.reduce("ReduceSum", g.cast(before, DType.INT64), [x.rank])


@export("unique")
def unique(g: Graph, x: Value) -> tuple[str, str, str]:
    wide = x.dtype.is_integer and x.dtype is not DType.INT64
    values, _, inverse, counts = g("Unique", g.cast(x, DType.INT64) if wide else x, outputs=4, sorted=1)
    return g.cast(values, x.dtype) if wide else values, g.reshape(inverse, g.shape(x)), counts


@export("bincount")
def bincount(g: Graph, x: Value, *, least: int) -> str:
    flat = g.reshape(x, [-1])
    largest = g.reduce("ReduceMax", g("Concat", flat, g.ints([max(0, least) - 1]), axis=0), None)
    zeros = g.filled(0, DType.INT64, g.unsqueeze(g("Add", largest, g.ints(1)), 0))
    return g("ScatterElements", zeros, flat, g("Expand", g.ints([1]), g("Shape", flat)), axis=0, reduction="add")


@export("argwhere")
def argwhere(g: Graph, condition: Value) -> str:
    if condition.rank:
        return g("Transpose", g("NonZero", condition), perm=[1, 0])
    count = g.cast(condition, DType.INT64)
    return g.filled(0, DType.INT64, g("Concat", g.unsqueeze(count, 0), g.ints([0]), axis=0))


# Largest and smallest elements


@export("argmax")
def argmax(g: Graph, x: Value, *, axis: int = -1, keepdim: bool = False) -> str:
    return g("ArgMax", x, axis=axis, keepdims=int(keepdim))


@export("argmin")
def argmin(g: Graph, x: Value, *, axis: int = -1, keepdim: bool = False) -> str:
    return g("ArgMin", x, axis=axis, keepdims=int(keepdim))


for name, reduction, place in (("reduce_max", "ReduceMax", "ArgMax"), ("reduce_min", "ReduceMin", "ArgMin")):

    @export(name)
    def extreme(
        g: Graph, x: Value, *, axis: int | None = None, keepdim: bool = False, reduction: str = reduction, place: str = place
    ) -> tuple[str, str]:
        """Return the largest or smallest element, and its position along the axis or among all elements."""
        y = g.reduce(reduction, x, axes_of(axis, x.rank), keepdim=keepdim)
        if axis is not None:
            return y, g(place, x, axis=axis, keepdims=int(keepdim))
        index = g(place, g.reshape(x, [-1]), axis=0, keepdims=0)
        return y, g.reshape(index, [1] * x.rank if keepdim else [])


@export("reduce_max_dx")
def reduce_max_dx(g: Graph, index: Value, dy: Value, x: Value, *, axis: int | None = None, keepdim: bool) -> str:
    """Return zeros with `dy` at the positions of the largest elements."""
    if axis is None:
        zeros = g.filled(0, dy.dtype, g.unsqueeze(g.count(x.sizes), 0))
        put = g("ScatterElements", zeros, g.reshape(index, [1]), g.reshape(dy, [1]), axis=0)
        return g.reshape(put, g.shape(x))
    at, values = (item.name if keepdim else g.unsqueeze(item, axis) for item in (index, dy))
    return g("ScatterElements", g.filled(0, dy.dtype, g.shape(x)), at, values, axis=axis)


@export("reduce_max_dx_ddy")
def reduce_max_dx_ddy(g: Graph, index: Value, ddx: Value, *, axis: int | None = None, keepdim: bool) -> str:
    if axis is None:
        return g("Gather", g.reshape(ddx, [-1]), index)
    if keepdim:
        return g("GatherElements", ddx, index, axis=axis)
    return g.squeeze(g("GatherElements", ddx, g.unsqueeze(index, axis), axis=axis), axis)


@export("top_k")
def top_k(g: Graph, x: Value, *, k: int, axis: int = -1, largest: bool = True) -> tuple[str, str]:
    return g("TopK", x, g.ints([k]), outputs=2, axis=axis, largest=int(largest), sorted=1)


@export("top_k_dx")
def top_k_dx(g: Graph, indices: Value, dvalues: Value, x: Value, *, axis: int = -1) -> str:
    return g("ScatterElements", g.filled(0, dvalues.dtype, g.shape(x)), indices, dvalues, axis=axis)


@export("top_k_dx_ddvalues")
def top_k_dx_ddvalues(g: Graph, indices: Value, dvalues: Value, ddx: Value, *, axis: int = -1) -> str:
    return g("GatherElements", ddx, indices, axis=axis)


@export("one_hot")
def one_hot(g: Graph, ids: Value, *, depth: int) -> str:
    return g.cast(g("Equal", g.unsqueeze(ids, -1), g.ints(list(range(depth)))), DType.FLOAT32)
