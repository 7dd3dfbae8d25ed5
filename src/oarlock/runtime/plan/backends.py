"""Where a plan calls what a backend makes of its regions."""

import torch

from oarlock.ir.operation import Op
from oarlock.runtime.plan.by_signature import BySignature
from oarlock.runtime.plan.captured_region import CapturedRegion
from oarlock.runtime.plan.compiled_region import CompiledRegion
from oarlock.runtime.plan.emitter import Emitter
from oarlock.runtime.plan.regions import find_regions
from oarlock.runtime.plan.straight_line import StraightLine

__all__ = ["write_regions"]

_BACKENDS: dict[str, type[BySignature]] = {"inductor": CompiledRegion, "cuda_graphs": CapturedRegion}
_LEAST = 3  # ops: what fewer save is what the call of a region costs


def write_regions(emitter: Emitter, line: StraightLine, stop: int, device: torch.device, backend: str) -> None:
    """Write the first `stop` ops of the outermost line, its regions as calls.

    What a loop steps through, and what takes a filter that was packed ahead, stays a line: the plan says where and of what it is computed.
    """

    def is_apart(op: Op) -> bool:
        return op in emitter.packed or any(line.buffers.root(var) in line.sequences for var in op.writes)

    regions = find_regions(
        line.ops,
        line.liveness,
        emitter.catalogue,
        emitter.numbers,
        device,
        made_once=line.constants,
        is_even=line.buffers.is_even,
        wanted=[var for op in line.ops[:stop] for var in op.writes if emitter.asks_sizes_of(var)],
        apart=is_apart,
        stop=stop,
        at_least=_LEAST,
    )
    start = 0
    for region in regions:
        emitter.straight(line, start, region.start)
        emitter.region(line, region, _BACKENDS[backend](region, emitter.catalogue, device))
        start = region.stop
    emitter.straight(line, start, stop)
