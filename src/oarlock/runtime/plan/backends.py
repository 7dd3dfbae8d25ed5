"""Where a plan calls what a backend makes of its sections."""

import torch

from oarlock.ir.operation import Op
from oarlock.runtime.plan.by_signature import BySignature
from oarlock.runtime.plan.captured import CapturedSection
from oarlock.runtime.plan.compiled import CompiledSection
from oarlock.runtime.plan.emitter import Emitter
from oarlock.runtime.plan.line import Line
from oarlock.runtime.plan.sections import find_sections

__all__ = ["write_sections"]

_BACKENDS: dict[str, type[BySignature]] = {"inductor": CompiledSection, "cuda_graphs": CapturedSection}
_LEAST = 3  # ops: what fewer save is what the call of a section costs


def write_sections(emitter: Emitter, line: Line, stop: int, device: torch.device, backend: str) -> None:
    """Write the first `stop` ops of the outermost line, its sections as calls.

    What a loop steps through, and what takes a filter that was packed ahead, stays a line: the plan says where and of what it is computed.
    """

    def is_apart(op: Op) -> bool:
        return op in emitter.packed or any(line.placement.root(var) in line.sequences for var in op.writes)

    sections = find_sections(
        line.ops,
        line.liveness,
        emitter.catalogue,
        emitter.numbers,
        device,
        made_once=line.constants,
        is_even=line.placement.is_even,
        wanted=[var for op in line.ops[:stop] for var in op.writes if emitter.asks_sizes_of(var)],
        apart=is_apart,
        stop=stop,
        at_least=_LEAST,
    )
    start = 0
    for section in sections:
        emitter.straight(line, start, section.start)
        emitter.section(line, section, _BACKENDS[backend](section, emitter.catalogue, device))
        start = section.stop
    emitter.straight(line, start, stop)
