"""Collective operators of workers, which ONNX does not have."""

from oarlock.interop.onnx.export_graph import Graph, Unsupported
from oarlock.interop.onnx.export_rule import export

__all__: list[str] = []


@export(
    *("all_gather", "all_reduce", "all_reduce_done", "all_reduce_start", "all_to_all", "broadcast"),
    *("pad_shard", "reduce_scatter", "shard", "worker_index"),
    *("gather_shares", "put_share", "reduce_to_shares", "rows_of_share", "take_share"),
    *("sync_batch_norm", "sync_batch_norm_grad"),
)
def exchanges(g: Graph, *_: object, **__: object) -> str:
    raise Unsupported("ONNX has no operators for exchanges between workers")
