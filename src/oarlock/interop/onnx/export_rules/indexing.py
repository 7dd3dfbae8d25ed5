"""Gather, scatter and merge rows by number."""

from oarlock.interop.onnx.export_graph import Graph, Value
from oarlock.interop.onnx.export_rule import export
from oarlock.ir.dtype import DType

__all__ = ["add_rows", "numbers_of"]


def numbers_of(g: Graph, condition: Value | str) -> str:
    """Return the numbers of the rows where the condition, bool[n], is true."""
    return g.reshape(g("NonZero", condition), [-1])


@export("nonzero")
def nonzero(g: Graph, condition: Value, *, value: bool = True) -> str:
    """Return the positions of true elements; for more than one dimension, a row for each position."""
    wanted = condition if value else g("Not", condition)
    if condition.rank == 1:
        return numbers_of(g, wanted)
    if condition.rank == 0:  # a scalar gives one row without numbers
        count = g.cast(wanted, DType.INT64)
        return g.filled(0, DType.INT64, g("Concat", g.unsqueeze(count, 0), g.ints([0]), axis=0))
    return g("Transpose", g("NonZero", wanted), perm=[1, 0])


@export("gather")
def gather(g: Graph, x: Value, rows: Value, *, axis: int = 0, sparse: bool = False) -> str:
    return g("Gather", x, rows, axis=axis)


def add_rows(g: Graph, values: Value, rows: Value, like: Value, axis: int = 0) -> str:
    """Add each value to its row of a zero tensor of the shape of `like`."""
    axis %= max(like.rank, 1)
    zeros = g.filled(0, values.dtype, g.shape(like))
    flat = g.reshape(rows, [-1])
    beside = [1] * like.rank
    beside[axis] = -1
    front, back = [g.dim(like, each) for each in range(axis)], [g.dim(like, each) for each in range(axis + 1, like.rank)]
    sizes = [*front, g.unsqueeze(g.count(rows.sizes), 0), *back]
    whole = sizes[0] if len(sizes) == 1 else g("Concat", *sizes, axis=0)
    index = g("Expand", g.reshape(flat, beside), whole)
    return g("ScatterElements", zeros, index, g.reshape(values, whole), axis=axis, reduction="add")


@export("scatter_add")
def scatter_add(g: Graph, values: Value, rows: Value, like: Value, *, axis: int = 0) -> str:
    return add_rows(g, values, rows, like, axis)


@export("merge")
def merge(g: Graph, condition: Value, yes: Value, no: Value) -> str:
    """Merge rows: row ``i`` is the next unused row of its kind."""
    true = g.cast(condition, DType.INT64)
    before = g("CumSum", true, g.ints(0), exclusive=1)
    after = g("Sub", g.arange(g.dim(condition, 0)), before)
    at = g("Where", condition, before, g("Add", after, g.dim(yes, 0)))
    return g("Gather", g("Concat", yes, no, axis=0), at, axis=0)


@export("merge_dyes")
def merge_dyes(g: Graph, condition: Value, yes: Value, dy: Value) -> str:
    return g("Gather", dy, numbers_of(g, condition), axis=0)


@export("merge_dno")
def merge_dno(g: Graph, condition: Value, no: Value, dy: Value) -> str:
    return g("Gather", dy, numbers_of(g, g("Not", condition)), axis=0)


def _put(g: Graph, condition: Value | str, values: Value, like: Value) -> str:
    """Return zeros with the values in the rows where the condition is true."""
    rows = g.unsqueeze(numbers_of(g, condition), 1)
    return g("ScatterND", g.filled(0, values.dtype, g.shape(like)), rows, values)


@export("merge_dyes_ddy")
def merge_dyes_ddy(g: Graph, condition: Value, dy: Value, ddyes: Value) -> str:
    return _put(g, condition, ddyes, dy)


@export("merge_dno_ddy")
def merge_dno_ddy(g: Graph, condition: Value, dy: Value, ddno: Value) -> str:
    return _put(g, g("Not", condition), ddno, dy)
