"""Gather, scatter and merge rows by number, and elements by index tensors."""

from oarlock.interop.onnx.export_graph import END, Graph, Value
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


# Index tensors


_REDUCTIONS = {"none": None, "add": "add", "multiply": "mul", "maximum": "max", "minimum": "min"}


@export("take_along_axis")
def take_along_axis(g: Graph, x: Value, index: Value, *, axis: int) -> str:
    return g("GatherElements", x, index, axis=axis)


@export("scatter_along_axis")
def scatter_along_axis(g: Graph, x: Value, index: Value, values: Value, *, axis: int, reduction: str = "none") -> str:
    if reduction in ("maximum", "minimum"):
        g.require_opset(18, f"ScatterElements with the reduction {_REDUCTIONS[reduction]}")
    return g("ScatterElements", x, index, values, axis=axis, reduction=_REDUCTIONS[reduction])


class Places:
    """Positions along some axes: these axes are moved to the front, and each position becomes one number that counts through them."""

    def __init__(self, g: Graph, x: Value, indices: list[Value], axes: tuple[int, ...]):
        self.g, self.x = g, x
        rest = [axis for axis in range(x.rank) if axis not in axes]
        self.perm = [*axes, *rest]
        self.back = [self.perm.index(axis) for axis in range(x.rank)]
        self.rest = g("Concat", *(g.dim(x, axis) for axis in rest), axis=0) if rest else g.ints([])
        self.rank = max(each.rank for each in indices)
        front = axes[0] if axes[-1] - axes[0] < len(axes) else 0
        taken = list(range(self.rank))
        self.order = [*(self.rank + axis for axis in range(front)), *taken, *(self.rank + axis for axis in range(front, len(rest)))]
        number, self.dims = None, []
        for each, axis in zip(indices, axes, strict=True):
            size = g.dim(x, axis)
            self.dims.append(size)
            from_front = g("Where", g("Less", each, g.ints([0])), g("Add", each, size), each)
            number = from_front if number is None else g("Add", g("Mul", number, size), from_front)
        self.number: str = number  # type: ignore[assignment]
        self.shape = g("Shape", self.number) if self.rank else g.ints([])

    def in_front(self, x: Value | str) -> str:
        """Return `x` as a matrix: the indexed axes joined first, then all others joined."""
        g = self.g
        first = g("Transpose", x, perm=self.perm) if self.perm != sorted(self.perm) else x
        return g.reshape(first, g("Concat", self._product(self.dims), self.columns(), axis=0))

    def columns(self) -> str:
        """Return the number of elements per position: int64[1]."""
        return (
            self.g("ReduceProd", self.rest, self.g.ints([0]), keepdims=1)
            if self.g.opset >= 18
            else self.g("ReduceProd", self.rest, keepdims=1)
        )

    def _product(self, sizes: list[str]) -> str:
        total = sizes[0]
        for size in sizes[1:]:
            total = self.g("Mul", total, size)
        return total

    def flat(self) -> str:
        """Return the position numbers as a vector."""
        return self.g.reshape(self.number, [-1])

    def taken(self, rows: str) -> str:
        """Return gathered rows in the layout of the result of `index`."""
        g = self.g
        found = g.reshape(rows, g("Concat", self.shape, self.rest, axis=0))
        return g("Transpose", found, perm=self.order) if self.order != sorted(self.order) else found

    def rows(self, values: str) -> str:
        """Return values in the layout of `index` as matrix rows, the inverse of `taken`."""
        g = self.g
        inverse = [self.order.index(axis) for axis in range(len(self.order))]
        moved = g("Transpose", values, perm=inverse) if inverse != sorted(inverse) else values
        return g.reshape(moved, g("Concat", self._many(), self.columns(), axis=0))

    def _many(self) -> str:
        return self.g("Shape", self.flat())

    def whole(self) -> str:
        """Return the shape of the result of `index`."""
        g = self.g
        front = self.order.index(0) if self.rank else 0
        before, behind = g("Slice", self.rest, g.ints([0]), g.ints([front])), g("Slice", self.rest, g.ints([front]), g.ints([END]))
        return g("Concat", before, self.shape, behind, axis=0)

    def put(self, matrix: str, rows: str, reduction: str | None) -> str:
        """Write or add rows to a matrix from `in_front`; return it in the layout of x."""
        g = self.g
        index = g("Expand", g.unsqueeze(self.flat(), 1), g("Shape", rows))
        done = g("ScatterElements", matrix, index, rows, axis=0, reduction=reduction)
        apart = g.reshape(done, g("Concat", *self.dims, self.rest, axis=0))
        return g("Transpose", apart, perm=self.back) if self.back != sorted(self.back) else apart


@export("index")
def index(g: Graph, x: Value, indices: list[Value], *, axes: tuple[int, ...]) -> str:
    if len(axes) == 1:
        return g("Gather", x, indices[0], axis=axes[0])
    places = Places(g, x, indices, axes)
    return places.taken(g("Gather", places.in_front(x), places.flat(), axis=0))


@export("index_dx")
def index_dx(g: Graph, x: Value, indices: list[Value], dy: Value, *, axes: tuple[int, ...]) -> str:
    places = Places(g, x, indices, axes)
    zeros = places.in_front(g.filled(0, dy.dtype, g.shape(x)))
    return places.put(zeros, places.rows(dy.name), "add")


@export("index_put")
def index_put(g: Graph, x: Value, values: Value, indices: list[Value], *, axes: tuple[int, ...], accumulate: bool) -> str:
    places = Places(g, x, indices, axes)
    given = places.rows(g("Expand", values, places.whole()))
    return places.put(places.in_front(x), given, "add" if accumulate else None)
