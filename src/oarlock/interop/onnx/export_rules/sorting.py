"""Sorting, searching, unique elements, counting, and positions of true elements."""

from oarlock.interop.onnx.export_graph import Graph, Value
from oarlock.interop.onnx.export_rule import export
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
