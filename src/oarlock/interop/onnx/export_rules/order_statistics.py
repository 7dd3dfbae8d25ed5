"""Order statistics and cumulative extremes, which ONNX does not have."""

from oarlock.interop.onnx.export_graph import Graph, Unsupported, Value
from oarlock.interop.onnx.export_rule import export


@export("kthvalue", "median", "nanmedian", "mode")
def order_statistics(g: Graph, *_: Value, **__: object) -> str:
    raise Unsupported("ONNX does not define which of several equal elements is selected")


@export("cummax", "cummin", "logcumsumexp")
def cumulative(g: Graph, *_: Value, **__: object) -> str:
    raise Unsupported("ONNX has no operator for cumulative maxima, minima and logsumexp")
