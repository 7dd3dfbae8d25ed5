"""Sequences with row splits: sums, means, maxima, ends and softmax; joining, splitting and padding."""

from oarlock.interop.onnx.export_graph import Graph, Value
from oarlock.interop.onnx.export_rule import export
from oarlock.ir.dtype import DType

__all__ = ["lengths_of", "owners"]


def lengths_of(g: Graph, splits: Value | str) -> str:
    """Return the length of each sequence: int64[n]."""
    return g("Sub", g.slice(splits, 0, 1), g.slice(splits, 0, 0, -1))


def owners(g: Graph, splits: Value | str, count: str) -> str:
    """Return the sequence number of each of `count` elements, int64[1]: the number of sequences that end before it."""
    more = g("Add", count, g.ints([1]))
    ends = g.slice(splits, 0, 1)
    ones = g("Expand", g.ints([1]), g("Shape", ends))
    ended = g("ScatterElements", g.filled(0, DType.INT64, more), ends, ones, axis=0, reduction="add")
    return g.slice(g("CumSum", ended, g.ints(0)), 0, 0, count)


def sequences(g: Graph, splits: Value) -> str:
    """Return the number of sequences: int64[1]."""
    return g("Sub", g.dim(splits, 0), g.ints([1]))


def beside(g: Graph, values: str, x: Value) -> str:
    """Reshape one number per row to broadcast with `x`."""
    return g.unsqueeze(values, *range(1, x.rank)) if x.rank > 1 else values


def _like_rows(g: Graph, count: str, x: Value) -> str:
    """Return the shape of `count` rows like the rows of `x`."""
    return g("Concat", count, *(g.dim(x, axis) for axis in range(1, x.rank)), axis=0)


def sum_each(g: Graph, x: Value | str, like: Value, own: str, count: str) -> str:
    """Sum the rows of each sequence; `x` has the type of `like`."""
    index = g("Expand", beside(g, own, like), g.shape(like))
    return g("ScatterElements", g.filled(0, like.dtype, _like_rows(g, count, like)), index, x, axis=0, reduction="add")


@export("sequence_lengths")
def sequence_lengths(g: Graph, splits: Value) -> str:
    return lengths_of(g, splits)


@export("sequence_sum")
def sequence_sum(g: Graph, x: Value, splits: Value) -> str:
    return sum_each(g, x, x, owners(g, splits, g.dim(x, 0)), sequences(g, splits))


@export("sequence_expand")
def sequence_expand(g: Graph, x: Value, splits: Value, like: Value) -> str:
    return g("Gather", x, owners(g, splits, g.dim(like, 0)), axis=0)


def _divisors(g: Graph, splits: Value, x: Value) -> str:
    at_least = g("Max", lengths_of(g, splits), g.ints([1]))
    return beside(g, g.cast(at_least, x.dtype), x)


@export("sequence_mean")
def sequence_mean(g: Graph, x: Value, splits: Value) -> str:
    return g("Div", sequence_sum(g, x, splits), _divisors(g, splits, x))


@export("sequence_mean_dx")
def sequence_mean_dx(g: Graph, splits: Value, dy: Value, x: Value) -> str:
    return g("Gather", g("Div", dy, _divisors(g, splits, dy)), owners(g, splits, g.dim(x, 0)), axis=0)


# One element per sequence


def _gather_rows(g: Graph, x: Value, at: str) -> str:
    """Gather elements of `x` at the row numbers `at`; -1 gives 0, read from an appended row of zeros."""
    more = g("Concat", x, g.filled(0, x.dtype, _like_rows(g, g.ints([1]), x)), axis=0)
    return g("GatherElements", more, at, axis=0)


def _scatter_rows(g: Graph, values: Value, at: str, like: Value) -> str:
    """Scatter values to their row numbers in zeros of the shape of `like`, the inverse of `_taken`."""
    count = g.dim(like, 0)
    rows = g("Add", count, g.ints([1]))
    last = g("Where", g("Less", at, g.ints(0)), count, at)
    put = g("ScatterElements", g.filled(0, values.dtype, _like_rows(g, rows, like)), last, values, axis=0, reduction="add")
    return g.slice(put, 0, 0, count)


def _end_rows(g: Graph, splits: Value, like: Value, *, last: bool) -> str:
    """Return the row number of the last or first element of each sequence, -1 for an empty one, for each position in a row."""
    at = g("Sub", g.slice(splits, 0, 1), g.ints([1])) if last else g.slice(splits, 0, 0, -1)
    at = g("Where", g("Equal", lengths_of(g, splits), g.ints([0])), g.ints([-1]), at)
    return g("Expand", beside(g, at, like), _like_rows(g, g("Shape", at), like))


for name, last in (("sequence_first", False), ("sequence_last", True)):

    @export(name)
    def sequence_end(g: Graph, x: Value, splits: Value, *, last: bool = last) -> str:
        return _gather_rows(g, x, _end_rows(g, splits, x, last=last))

    @export(f"{name}_dx")
    def sequence_end_dx(g: Graph, splits: Value, dy: Value, x: Value, *, last: bool = last) -> str:
        return _scatter_rows(g, dy, _end_rows(g, splits, x, last=last), x)


def _largest(g: Graph, x: Value, own: str, splits: Value) -> str:
    """Return the largest element of each sequence; for an empty one, the smallest number of the dtype."""
    g.require_opset(18, "ScatterElements with the reduction max")
    least = float("-inf") if x.dtype.is_floating else -(2 ** (8 * x.dtype.itemsize - 1))
    start = g.filled(least, x.dtype, _like_rows(g, sequences(g, splits), x))
    index = g("Expand", beside(g, own, x), g.shape(x))
    return g("ScatterElements", start, index, x, axis=0, reduction="max")


@export("sequence_max")
def sequence_max(g: Graph, x: Value, splits: Value) -> tuple[str, str]:
    count = g.dim(x, 0)
    own = owners(g, splits, count)
    index = g("Expand", beside(g, own, x), g.shape(x))
    is_top = g("Equal", x, g("Gather", _largest(g, x, own, splits), own, axis=0))
    number = g("Where", is_top, beside(g, g.arange(count), x), count)
    start = g("Expand", count, _like_rows(g, sequences(g, splits), x))
    at = g("ScatterElements", start, index, g("Expand", number, g.shape(x)), axis=0, reduction="min")
    at = g("Where", g("Equal", at, count), g.ints([-1]), at)
    return _gather_rows(g, x, at), at


@export("sequence_max_dx")
def sequence_max_dx(g: Graph, at: Value, dy: Value, x: Value) -> str:
    return _scatter_rows(g, dy, at.name, x)


@export("sequence_max_dx_ddy")
def sequence_max_dx_ddy(g: Graph, at: Value, ddx: Value) -> str:
    return _gather_rows(g, ddx, at.name)


@export("sequence_softmax")
def sequence_softmax(g: Graph, x: Value, splits: Value) -> str:
    own = owners(g, splits, g.dim(x, 0))
    weights = g("Exp", g("Sub", x, g("Gather", _largest(g, x, own, splits), own, axis=0)))
    return g("Div", weights, g("Gather", sum_each(g, weights, x, own, sequences(g, splits)), own, axis=0))


@export("sequence_softmax_dx")
def sequence_softmax_dx(g: Graph, y: Value, dy: Value, splits: Value) -> str:
    own = owners(g, splits, g.dim(y, 0))
    along = sum_each(g, g("Mul", dy, y), y, own, sequences(g, splits))
    return g("Mul", y, g("Sub", dy, g("Gather", along, own, axis=0)))


# Layout


def _places(g: Graph, splits: list[Value], counts: list[str]) -> list[str]:
    """Return the position of each element of each part after joining the i-th sequences of all parts."""
    offset = g.slice(_total(g, splits), 0, 0, -1)
    places = []
    for cut, count in zip(splits, counts, strict=True):
        own = owners(g, cut, count)
        places.append(g("Add", g.arange(count), g("Gather", g("Sub", offset, g.slice(cut, 0, 0, -1)), own, axis=0)))
        offset = g("Add", offset, lengths_of(g, cut))
    return places


def _total(g: Graph, splits: list[Value]) -> str:
    total = splits[0].name
    for cut in splits[1:]:
        total = g("Add", total, cut)
    return total


@export("sequence_concat")
def sequence_concat(g: Graph, xs: list[Value], splits: list[Value]) -> tuple[str, str]:
    places = _places(g, splits, [g.dim(x, 0) for x in xs])
    rows = g.unsqueeze(g("Concat", *places, axis=0), 1)
    joined = g("Concat", *xs, axis=0)
    return g("ScatterND", joined, rows, joined), g("Identity", _total(g, splits))


@export("sequence_split")
def sequence_split(g: Graph, y: Value, splits: list[Value], like: list[Value]) -> list[str]:
    return [g("Gather", y, place, axis=0) for place in _places(g, splits, [g.dim(item, 0) for item in like])]


@export("sequence_split_dy")
def sequence_split_dy(g: Graph, splits: list[Value], dxs: list[Value], y: Value) -> str:
    return sequence_concat(g, dxs, splits)[0]


def _cells(g: Graph, splits: Value, count: str) -> str:
    """Return row and column of each element in padded rows: int64[t, 2]."""
    own = owners(g, splits, count)
    column = g("Sub", g.arange(count), g("Gather", g.slice(splits, 0, 0, -1), own, axis=0))
    return g("Concat", g.unsqueeze(own, 1), g.unsqueeze(column, 1), axis=1)


@export("sequence_pad")
def sequence_pad(g: Graph, x: Value, splits: Value, *, fill: float) -> str:
    longest = g.reduce("ReduceMax", g("Concat", lengths_of(g, splits), g.ints([0]), axis=0), None)
    rows = g("Sub", g.dim(splits, 0), g.ints([1]))
    shape = g("Concat", rows, g.unsqueeze(longest, 0), *(g.dim(x, axis) for axis in range(1, x.rank)), axis=0)
    empty = g.filled(fill if x.dtype.is_floating else int(fill), x.dtype, shape)
    return g("ScatterND", empty, _cells(g, splits, g.dim(x, 0)), x)


@export("sequence_unpad")
def sequence_unpad(g: Graph, padded: Value, splits: Value, like: Value) -> str:
    return g("GatherND", padded, _cells(g, splits, g.dim(like, 0)))


@export("sequence_unpad_dpadded")
def sequence_unpad_dpadded(g: Graph, splits: Value, dy: Value, padded: Value) -> str:
    return g("ScatterND", g.filled(0, dy.dtype, g.shape(padded)), _cells(g, splits, g.dim(dy, 0)), dy)


@export("sequence_elements")
def sequence_elements(g: Graph, splits: Value, rows: Value, like: Value) -> tuple[str, str]:
    lengths = g("Gather", lengths_of(g, splits), rows, axis=0)
    own_splits = g("Concat", g.ints([0]), g("CumSum", lengths, g.ints(0)), axis=0)
    total = g.slice(own_splits, 0, -1)
    own = owners(g, own_splits, total)
    first = g("Sub", g("Gather", g.slice(splits, 0, 0, -1), rows, axis=0), g.slice(own_splits, 0, 0, -1))
    return g("Add", g.arange(total), g("Gather", first, own, axis=0)), own_splits


@export("sequence_splits")
def sequence_splits(g: Graph, splits: Value, elements: Value) -> str:
    """Return the number of remaining elements before each split."""
    before = g("Less", g.unsqueeze(elements, 0), g.unsqueeze(splits, 1))
    return g.reduce("ReduceSum", g.cast(before, DType.INT64), [1])
