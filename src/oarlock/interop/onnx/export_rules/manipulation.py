"""Reshape, transpose, join and split tensors."""

import math

from oarlock.interop.onnx.export_graph import END, Graph, Value
from oarlock.interop.onnx.export_rule import export
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
