"""Join, split, pad and unpad sequences."""

from oarlock.interop.onnx.export_graph import Graph, Value
from oarlock.interop.onnx.export_rule import export
from oarlock.interop.onnx.export_rules.sequence import lengths_of, owners
from oarlock.ir.dtype import DType


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
