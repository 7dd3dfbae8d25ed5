"""Padding: constants as `Pad`, other modes as gathers."""

from collections.abc import Iterator, Sequence

from oarlock.interop.onnx.export_graph import Graph, Value
from oarlock.interop.onnx.export_rule import export
from oarlock.interop.onnx.export_rules.indexing import add_rows
from oarlock.ir.dtype import DType

Numbers = Sequence[int]


def _constant(g: Graph, x: Value, before: Numbers, after: Numbers, value: float) -> str:
    front = [0] * (x.rank - len(before))
    fill = g.scalar(value if x.dtype.is_floating else int(value), x.dtype)
    return g("Pad", x, g.ints([*front, *before, *front, *after]), fill)


def _places(g: Graph, x: Value, before: Numbers, after: Numbers, mode: str) -> Iterator[tuple[int, str]]:
    """Iterate over axes and the source positions of their elements, as in `tensor/images.py`."""
    zero, one = g.ints([0]), g.ints([1])
    for axis, (start, stop) in enumerate(zip(before, after, strict=True), x.rank - len(before)):
        length = g.dim(x, axis)
        places = g("Sub", g.arange(g("Add", length, g.ints([start + stop]))), g.ints([start]))
        if mode == "replicate":
            places = g("Min", g("Max", places, zero), g("Sub", length, one))
        elif mode == "circular":
            cut = g.ints([max(0, -start)])
            left = g("Max", g("Add", length, g.ints([min(start, 0) + min(stop, 0)])), one)
            places = g("Add", g("Mod", g("Sub", places, cut), left), cut)
        else:
            last = g("Sub", length, one)
            turn = g("Max", g("Mul", last, g.ints([2])), one)
            places = g("Mod", places, turn)
            places = g("Min", g("Min", places, g("Sub", turn, places)), last)
        yield axis, places


@export("pad")
def pad(g: Graph, x: Value, *, before: Numbers, after: Numbers, mode: str, value: float = 0.0) -> str:
    if mode == "constant":
        return _constant(g, x, before, after, value)
    y = x.name
    for axis, places in _places(g, x, before, after, mode):
        y = g("Gather", y, places, axis=axis)
    return y


@export("pad_dx")
def pad_dx(g: Graph, dy: Value, x: Value, *, before: Numbers, after: Numbers, mode: str) -> str:
    """Return the gradient: the sum over all copies of each element."""
    if mode == "constant":
        return _constant(g, dy, [-number for number in before], [-number for number in after], 0.0)
    dx, sizes = dy, list(dy.sizes)
    for axis, places in _places(g, x, before, after, mode):
        sizes[axis] = x.sizes[axis]
        count = Value(places, DType.INT64, (dx.sizes[axis],))
        like = Value(dx.name, dy.dtype, tuple(sizes))
        dx = Value(_added(g, dx, count, like, x, axis), dy.dtype, tuple(sizes))
    return dx.name


def _added(g: Graph, values: Value, places: Value, like: Value, x: Value, axis: int) -> str:
    """Add values by position along one axis. The result has the shape of `like`."""
    if all(isinstance(size, int) for size in like.sizes):
        return add_rows(g, values, places, like, axis)
    dims = [g.dim(x if each == axis else values, each) for each in range(values.rank)]
    beside = [-1 if each == axis else 1 for each in range(values.rank)]
    zeros = g.filled(0, values.dtype, g("Concat", *dims, axis=0))
    index = g("Expand", g.reshape(places, beside), g("Shape", values))
    return g("ScatterElements", zeros, index, values, axis=axis, reduction="add")
