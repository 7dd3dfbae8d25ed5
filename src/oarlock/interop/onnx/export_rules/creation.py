"""Constant tensors, ranges, and element counts."""

from oarlock.interop.onnx.export_graph import Graph, Value
from oarlock.interop.onnx.export_rule import export
from oarlock.ir.dtype import DType
from oarlock.ir.size import Size


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
