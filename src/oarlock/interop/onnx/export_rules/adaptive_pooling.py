"""Adaptive pooling: windows of different lengths, axis by axis, with a membership matrix."""

from collections.abc import Sequence

from oarlock.interop.onnx.export_graph import Graph, Value
from oarlock.interop.onnx.export_rule import export
from oarlock.ir.dtype import DType


def _members(g: Graph, length: str, count: int) -> str:
    """Return which of `length` elements, int64[1], belong to which of `count` windows: bool[count, length]."""
    numbers = g.unsqueeze(g.ints(list(range(count + 1))), 1)
    begins = g("Div", g("Mul", numbers, length), g.ints([count]))
    last = g("Sub", g.ints([count]), g.ints([1]))
    ends = g("Div", g("Add", g("Mul", numbers, length), last), g.ints([count]))
    place = g.unsqueeze(g.arange(length), 0)
    after, before = g("GreaterOrEqual", place, g.slice(begins, 0, 0, count)), g("Less", place, g.slice(ends, 0, 1))
    return g("And", after, before)


def _shares(g: Graph, length: str, count: int, dtype: DType) -> str:
    """Return the weight of each element in the mean of each window: [count, length]."""
    members = g.cast(_members(g, length, count), dtype)
    return g("Div", members, g.reduce("ReduceSum", members, [1], keepdim=True))


def multiplied_along(g: Graph, x: str, matrix: str, axis: int, rank: int) -> str:
    """Multiply one axis of `x` by a matrix, [from to]."""
    perm = list(range(rank))
    perm[axis], perm[-1] = perm[-1], perm[axis]
    swapped = g("Transpose", x, perm=perm) if axis != rank - 1 else x
    product = g("MatMul", swapped, matrix)
    return g("Transpose", product, perm=perm) if axis != rank - 1 else product


def average(g: Graph, x: Value, *, size: Sequence[int]) -> str:
    y = x.name
    for axis, count in enumerate(size, start=2):
        shares = _shares(g, g.dim(x, axis), count, x.dtype)
        y = multiplied_along(g, y, g("Transpose", shares, perm=[1, 0]), axis, x.rank)
    return y


def average_dx(g: Graph, dy: Value, x: Value, *, size: Sequence[int]) -> str:
    dx = dy.name
    for axis, count in enumerate(size, start=2):
        dx = multiplied_along(g, dx, _shares(g, g.dim(x, axis), count, dy.dtype), axis, dy.rank)
    return dx


def largest(g: Graph, x: Value, *, size: Sequence[int]) -> tuple[str, str]:
    """Return the maximum of each window and its position in the image. Axes are reduced last to first, so the first maximum wins."""
    y, index, beyond = x.name, None, g.ints([1])
    least = g.scalar(float("-inf"), x.dtype)
    for axis in reversed(range(2, x.rank)):
        members = _members(g, g.dim(x, axis), size[axis - 2])
        members = g.unsqueeze(members, *range(axis), *range(axis + 2, x.rank + 1))
        inside = g("Where", members, g.unsqueeze(y, axis), least)
        y = g.reduce("ReduceMax", inside, [axis + 1])
        place = g("ArgMax", inside, axis=axis + 1, keepdims=0)
        further = g("Mul", place, beyond)
        index = further if index is None else g("Add", further, g("GatherElements", index, place, axis=axis))
        beyond = g("Mul", beyond, g.dim(x, axis))
    assert index is not None
    return y, index


for rank in (1, 2, 3):
    export(f"adaptive_average_pool{rank}d")(average)
    export(f"adaptive_average_pool{rank}d_dx")(average_dx)
    export(f"adaptive_max_pool{rank}d")(largest)
