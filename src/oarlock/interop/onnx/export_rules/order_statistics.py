"""The smallest elements in their order, and those up to each place, along an axis."""

from oarlock.interop.onnx.export_graph import Graph, Unsupported, Value
from oarlock.interop.onnx.export_rule import export


@export("kthvalue", "median", "nanmedian", "mode")
def order_statistics(g: Graph, *_: Value, **__: object) -> str:
    raise Unsupported("ONNX does not say which of equal elements is the one in the middle")


@export("cummax", "cummin", "logcumsumexp")
def cumulative(g: Graph, *_: Value, **__: object) -> str:
    raise Unsupported("ONNX has no operator for the largest, the smallest and the sum of powers up to each place")
