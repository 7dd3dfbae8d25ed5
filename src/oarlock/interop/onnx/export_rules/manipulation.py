"""Constant tensors and ranges; reshaping, transposing, joining, splitting and slicing."""

import math

from oarlock.interop.onnx.export_graph import END, Graph, Value
from oarlock.interop.onnx.export_rule import export
from oarlock.ir.dtype import DType
from oarlock.ir.size import Size

__all__ = ["in_shape", "put_along"]

export("match_shape", "match_last_axis")(lambda g, x, like: g("Identity", x))
export("reshape_like")(lambda g, x, like: g.reshape(x, g.shape(like)))
export("transpose")(lambda g, x, *, axes: g("Transpose", x, perm=list(axes)) if axes else x)
export("concat")(lambda g, xs, *, axis: g("Concat", *xs, axis=axis))


def in_shape(g: Graph, x: Value | str, shape: tuple[Size, ...]) -> str:
    """Reshape `x`. One symbolic size is inferred from the number of elements; several are computed from other values."""
    symbols = [size for size in shape if isinstance(size, str)]
    if not symbols:
        return g.reshape(x, list(shape))  # type: ignore[arg-type]
    if len(symbols) == 1 and 0 not in shape:
        return g.reshape(x, [-1 if isinstance(size, str) else size for size in shape])
    return g.reshape(x, g.dims(shape))


@export("reshape")
def reshape(g: Graph, x: Value, *, shape: Value | tuple[Size, ...]) -> str:
    if isinstance(shape, Value):
        return g("Reshape", x, shape)
    given = g.result().shape
    return in_shape(g, x, shape if given is None else given)


@export("flatten")
def flatten(g: Graph, x: Value, *, start: int) -> str:
    given = g.result().shape
    rest = x.sizes[start:]
    if given is not None and sum(isinstance(size, str) for size in given) <= 1:
        return in_shape(g, x, given)
    if all(isinstance(size, int) and size for size in rest):
        return g("Reshape", x, g.ints([0] * start + [math.prod(rest)]))  # type: ignore[arg-type]  # 0: the size of x
    return g("Reshape", x, g.ints([0] * start + [-1]))


@export("split_like")
def split_like(g: Graph, x: Value, like: list[Value], *, axis: int) -> list[str]:
    if len(like) == 1:
        return [g("Identity", x)]
    sizes = [size for item in like if isinstance(size := item.sizes[axis], int)]
    parts = g.ints(sizes) if len(sizes) == len(like) else g("Concat", *(g.dim(item, axis) for item in like), axis=0)
    return list(g("Split", x, parts, outputs=len(like), axis=axis))


@export("split")
def split(g: Graph, x: Value, *, sections: int, axis: int) -> list[str]:
    size = x.sizes[axis]
    if sections == 1:
        return [g("Identity", x)]
    if isinstance(size, int):
        return list(g("Split", x, g.ints([size // sections] * sections), outputs=sections, axis=axis))
    if g.opset >= 18:
        return list(g("Split", x, outputs=sections, axis=axis, num_outputs=sections))
    part = g("Div", g.dim(x, axis), g.ints([sections]))
    return list(g("Split", x, g("Expand", part, g.ints([sections])), outputs=sections, axis=axis))


@export("slice")
def slice_(g: Graph, x: Value, *, axis: int = 0, start: int = 0, stop: int | None = None, step: int = 1, clip: bool = False) -> str:
    """Slice an axis. ONNX always clips: bounds beyond the axis, which raise in Oarlock without `clip`, give a shorter result."""
    return g.slice(x, axis, start, END if stop is None else stop, step)


@export("slice_dx")
def slice_dx(
    g: Graph, x: Value, dy: Value, *, axis: int = 0, start: int = 0, stop: int | None = None, step: int = 1, clip: bool = False
) -> str:
    """Return zeros with `dy` scattered to the positions of the slice."""
    places = g.slice(g.arange(g.dim(x, axis)), 0, start, END if stop is None else stop, step)
    return put_along(g, dy, places, x, axis)


def put_along(g: Graph, dy: Value, places: str, like: Value, axis: int) -> str:
    """Return zeros in the shape of `like`, with `dy` at these positions along an axis."""
    axis %= like.rank
    beside = [1] * like.rank
    beside[axis] = -1
    index = g("Expand", g.reshape(places, beside), g.shape(dy))
    return g("ScatterElements", g.filled(0, dy.dtype, g.shape(like)), index, dy, axis=axis)


@export("stack")
def stack(g: Graph, xs: list[Value], *, axis: int) -> str:
    return g("Concat", *(g.unsqueeze(x, axis) for x in xs), axis=axis)


@export("select_branch")
def select_branch(g: Graph, stacks: list[Value]) -> str:
    joined = stacks[0].name if len(stacks) == 1 else g("Concat", *stacks, axis=0)
    return g.squeeze(joined, 0)


# Constant tensors and ranges


@export("full")
def full(g: Graph, *, shape: Value | tuple[Size, ...], value: Value | float, dtype: DType) -> str:
    sizes = shape.name if isinstance(shape, Value) else g.dims(shape)
    if isinstance(value, Value):
        return g("Expand", g.reshape(g.cast(value, dtype), []), sizes)
    return g.filled(value if dtype.is_floating else int(value), dtype, sizes)


@export("full_like")
def full_like(g: Graph, like: Value, *, value: float, dtype: DType) -> str:
    return g.filled(value if dtype.is_floating else int(value), dtype, g.shape(like))


@export("full_batch_size_like")
def full_batch_size_like(g: Graph, like: Value, *, axis: int, shape: tuple[int, ...], value: float, dtype: DType) -> str:
    sizes = g("Concat", g.dim(like, axis), g.ints(list(shape)), axis=0)
    return g.filled(value if dtype.is_floating else int(value), dtype, sizes)


@export("numel")
def numel(g: Graph, like: Value, *, dtype: DType) -> str:
    return g.cast(g("Size", like), dtype) if dtype is not DType.INT64 else g("Size", like)


@export("arange_like")
def arange_like(g: Graph, like: Value) -> str:
    return g.arange(g.dim(like, 0))


# Shapes with symbolic sizes


Sizes = tuple[Size, ...]


@export("view")
def view(g: Graph, x: Value, like: list[Value], *, shape: Sizes) -> str:
    given = g.result().shape
    return in_shape(g, x, shape if given is None else given)


@export("broadcast_to")
def broadcast_to(g: Graph, x: Value, like: list[Value], *, shape: Value | Sizes) -> str:
    if isinstance(shape, Value):
        own = g("Equal", shape, g.ints([-1]))  # -1 keeps the size of x; Expand does so for 1
        return g("Expand", x, g("Where", own, g.ints([1]), shape))
    return g("Expand", x, g.dims(g.result().shape or ()))


@export("narrow")
def narrow(g: Graph, x: Value, like: list[Value], *, length: Sizes, axis: int, start: Sizes = (0,)) -> str:
    first = g.size(start[0])
    return g.slice(x, axis, first, g("Add", first, g.size(length[0])))


@export("narrow_dx")
def narrow_dx(g: Graph, x: Value, like: list[Value], dy: Value, *, length: Sizes, axis: int, start: Sizes = (0,)) -> str:
    places = g("Add", g.arange(g.size(length[0])), g.size(start[0]))
    return put_along(g, dy, places, x, axis)


@export("size")
def size(g: Graph, like: Value, *, axis: int = 0) -> str:
    return g("Squeeze", g.dim(like, axis))


@export("arange")
def arange(
    g: Graph, like: list[Value], *, stop: Value | Sizes, start: Value | Sizes = (0,), step: int = 1, dtype: DType = DType.INT64
) -> str:
    first, last = (g("Squeeze", item if isinstance(item, Value) else g.size(item[0])) for item in (start, stop))
    return g.cast(Value(g("Range", first, last, g.ints(step)), DType.INT64, None), dtype)
