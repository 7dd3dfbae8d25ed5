"""Flips, rolls, repetitions, windows, diagonals and padding."""

from collections.abc import Iterator, Sequence

from oarlock.interop.onnx.export_graph import END, Graph, Value
from oarlock.interop.onnx.export_rule import export
from oarlock.interop.onnx.export_rules.indexing import add_rows
from oarlock.ir.dtype import DType


@export("flip")
def flip(g: Graph, x: Value, *, axes: tuple[int, ...]) -> str:
    if not axes:
        return x.name
    ends, back = g.ints([-END] * len(axes)), g.ints([-1] * len(axes))
    return g("Slice", x, back, ends, g.ints(list(axes)), back)


@export("roll")
def roll(g: Graph, x: Value, *, shifts: tuple[int, ...], axes: tuple[int, ...]) -> str:
    y = x.name
    for shift, axis in zip(shifts, axes, strict=True):
        size = x.sizes[axis]
        if size == 0:
            continue
        cut = g("Mod", g.ints([-shift]), g("Max", g.dim(x, axis), g.ints([1])))
        y = g("Concat", g.slice(y, axis, cut), g.slice(y, axis, 0, cut), axis=axis)
    return y


@export("tile")
def tile(g: Graph, x: Value, *, repeats: tuple[int, ...]) -> str:
    whole = g.unsqueeze(x, *range(len(repeats) - x.rank))
    return g("Tile", whole, g.ints(list(repeats))) if repeats else whole


@export("tile_dx")
def tile_dx(g: Graph, x: Value, dy: Value, *, repeats: tuple[int, ...]) -> str:
    """Sum over all copies."""
    if not repeats:
        return dy.name
    sizes = [*(g.ints([1]) for _ in range(len(repeats) - x.rank)), *(g.dim(x, axis) for axis in range(x.rank))]
    pairs = [part for count, size in zip(repeats, sizes, strict=True) for part in (g.ints([count]), size)]
    summed = g.reduce("ReduceSum", g.reshape(dy, g("Concat", *pairs, axis=0)), list(range(0, 2 * len(repeats), 2)))
    return g.reshape(summed, g.shape(x))


@export("repeat_interleave")
def repeat_interleave(g: Graph, x: Value, *, repeats: int, axis: int) -> str:
    axis %= x.rank
    dims = [g.dim(x, each) for each in range(x.rank)]
    joined = g("Mul", dims[axis], g.ints([repeats]))
    repeated = g("Tile", g.unsqueeze(x, axis + 1), g.ints([repeats if each == axis + 1 else 1 for each in range(x.rank + 1)]))
    return g.reshape(repeated, g("Concat", *dims[:axis], joined, *dims[axis + 1 :], axis=0))


@export("repeat_interleave_dx")
def repeat_interleave_dx(g: Graph, x: Value, dy: Value, *, repeats: int, axis: int) -> str:
    axis %= x.rank
    dims = [g.dim(x, each) for each in range(x.rank)]
    apart = g.reshape(dy, g("Concat", *dims[: axis + 1], g.ints([repeats]), *dims[axis + 1 :], axis=0))
    return g.reduce("ReduceSum", apart, [axis + 1])


def _places(g: Graph, x: Value, axis: int, size: int, step: int) -> str:
    """Return the source positions of each window: int64[windows, size]."""
    count = g("Add", g("Div", g("Sub", g.dim(x, axis), g.ints([size])), g.ints([step])), g.ints([1]))
    first = g("Mul", g.arange(count), g.ints([step]))
    return g("Add", g.unsqueeze(first, 1), g.ints(list(range(size))))


@export("windows")
def windows(g: Graph, x: Value, *, axis: int, size: int, step: int) -> str:
    axis %= max(x.rank, 1)
    taken = g("Gather", x, _places(g, x, axis, size, step), axis=axis)  # the elements of a window follow its number
    return g("Transpose", taken, perm=[axis_ for axis_ in range(x.rank + 1) if axis_ != axis + 1] + [axis + 1])


@export("windows_dx")
def windows_dx(g: Graph, x: Value, dy: Value, *, axis: int, size: int, step: int) -> str:
    axis %= max(x.rank, 1)
    perm = list(range(x.rank))
    perm.insert(axis + 1, x.rank)
    sizes = dy.sizes
    values = Value(g("Transpose", dy, perm=perm), dy.dtype, tuple(sizes[each] for each in perm))
    places = Value(_places(g, x, axis, size, step), DType.INT64, (sizes[axis], size))
    return add_rows(g, values, places, x, axis)


def _diagonal(g: Graph, x: Value, offset: int, axes: tuple[int, ...]) -> tuple[list[int], str, str]:
    """Return the axis order that puts the two axes last, their number of positions, and the positions on the diagonal."""
    first, second = (axis % x.rank for axis in axes)
    rest = [axis for axis in range(x.rank) if axis not in (first, second)]
    columns = g.dim(x, second)
    step = g("Add", columns, g.ints([1]))
    begin = g("Sub", g.ints([max(offset, 0)]), g("Mul", columns, g.ints([min(offset, 0)])))
    length = (g.result().shape or (0,))[-1] if g.op is not None and g.op.type == "diagonal" else None
    rows = g.dim(x, first)
    if isinstance(length, int):
        count = g.ints([length])
    else:
        below, beside = g("Add", rows, g.ints([min(offset, 0)])), g("Sub", columns, g.ints([max(offset, 0)]))
        count = g("Max", g("Min", below, beside), g.ints([0]))
    places = g("Add", g("Mul", g.arange(count), step), begin)
    return [*rest, first, second], g("Mul", rows, columns), places


def _matrices(g: Graph, x: Value, order: list[int], places: str) -> str:
    """Return the shape with the two axes joined."""
    return g("Concat", *(g.dim(x, axis) for axis in order[:-2]), places, axis=0)


@export("diagonal")
def diagonal(g: Graph, x: Value, *, offset: int, axes: tuple[int, ...]) -> str:
    order, count, places = _diagonal(g, x, offset, axes)
    last = g("Transpose", x, perm=order)
    return g("Gather", g.reshape(last, _matrices(g, x, order, count)), places, axis=x.rank - 2)


@export("diagonal_dx")
def diagonal_dx(g: Graph, x: Value, dy: Value, *, offset: int, axes: tuple[int, ...]) -> str:
    order, count, places = _diagonal(g, x, offset, axes)
    zeros = g.filled(0, dy.dtype, _matrices(g, x, order, count))
    put = g("ScatterElements", zeros, g("Expand", places, g.shape(dy)), dy, axis=x.rank - 2)
    apart = g.reshape(put, g("Concat", *(g.dim(x, axis) for axis in order), axis=0))
    return g("Transpose", apart, perm=[order.index(axis) for axis in range(x.rank)])


for name, upper in (("tril", 0), ("triu", 1)):

    @export(name)
    def triangle(g: Graph, x: Value, *, diagonal: int, upper: int = upper) -> str:
        return g("Trilu", x, g.ints(max(-(2**31), min(diagonal, 2**31))), upper=upper)


# Padding


Numbers = Sequence[int]


def _constant(g: Graph, x: Value, before: Numbers, after: Numbers, value: float) -> str:
    front = [0] * (x.rank - len(before))
    fill = g.scalar(value if x.dtype.is_floating else int(value), x.dtype)
    return g("Pad", x, g.ints([*front, *before, *front, *after]), fill)


def _source_places(g: Graph, x: Value, before: Numbers, after: Numbers, mode: str) -> Iterator[tuple[int, str]]:
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
    for axis, places in _source_places(g, x, before, after, mode):
        y = g("Gather", y, places, axis=axis)
    return y


@export("pad_dx")
def pad_dx(g: Graph, dy: Value, x: Value, *, before: Numbers, after: Numbers, mode: str) -> str:
    """Return the gradient: the sum over all copies of each element."""
    if mode == "constant":
        return _constant(g, dy, [-number for number in before], [-number for number in after], 0.0)
    dx, sizes = dy, list(dy.sizes)
    for axis, places in _source_places(g, x, before, after, mode):
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
