"""Views, broadcasts, slices and ranges with symbolic sizes."""

from oarlock.interop.onnx.export_graph import Graph, Value
from oarlock.interop.onnx.export_rule import export
from oarlock.interop.onnx.export_rules.manipulation import in_shape, put_along
from oarlock.ir.dtype import DType
from oarlock.ir.size import Size

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
