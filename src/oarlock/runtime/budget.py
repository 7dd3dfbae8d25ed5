"""How much one run may do, for programs from strangers; counted as it runs."""

import math
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import torch

from oarlock.errors import LimitError
from oarlock.ir.dtype import DType
from oarlock.ir.operation import Op
from oarlock.ir.size import evaluate
from oarlock.registry.declaration import Operator
from oarlock.registry.signature import TensorType
from oarlock.registry.size_check import infer_from_numbers
from oarlock.registry.told_attributes import shapes_of
from oarlock.registry.told_size import find_told_size
from oarlock.tensor.dtype import from_torch
from oarlock.tensor.stacks import Stack, leaves

__all__ = ["Budget", "RunLimits", "bytes_of"]


@dataclass(frozen=True)
class RunLimits:
    """The resources that one run may use; `Executor(limits=RunLimits())`.

    `trips` limits the iterations of one loop, `ops` the ops executed, `live_bytes` the bytes of values, `seconds` the time on the clock. A
    run keeps what it computes until it ends, so every value counts, including the fed ones. The outputs of an op are counted before its
    kernel runs: by shapes and, where these do not tell, by values. The stacks of a `while` are counted iteration by iteration. The memory
    that a kernel allocates for itself is not counted, and no kernel is interrupted.
    """

    trips: int = 1_000_000
    ops: int = 10_000_000
    live_bytes: int = 4 * 2**30
    seconds: float = 60.0


class Budget:
    """The rest of the limits of one run. Raises LimitError; a run that raises changes no scope."""

    def __init__(self, limits: RunLimits):
        self.limits = limits
        self.ops = 0
        self.live_bytes = 0
        self.deadline = time.monotonic() + limits.seconds

    def hold(self, values: Iterable[Stack], op: Op | None = None) -> None:
        """Count values that now exist: fed, or computed by an op."""
        self.live_bytes += bytes_of(values)
        self.require_bytes(0, op)

    def before(
        self,
        op: Op,
        operator: Operator,
        given: Mapping[str, Sequence[Stack]],
        attributes: Mapping[str, object],
    ) -> None:
        """Count an execution, and refuse one that is known to make too much of the values `given`, slot by slot."""
        self.ops += 1
        if self.ops > self.limits.ops:
            raise self._refused(op, f"more than {self.limits.ops:,} ops in one run", "ops")
        if time.monotonic() > self.deadline:
            raise self._refused(op, f"more than {self.limits.seconds:g} seconds in one run", "seconds")
        self.require_bytes(_expected_bytes(op, operator, given, attributes), op)

    def trip(self, op: Op, count: int) -> None:
        """Refuse the trip number `count` of a loop."""
        if count > self.limits.trips:
            raise self._refused(op, f"more than {self.limits.trips:,} trips of one loop", "trips")

    def require_bytes(self, more: int, op: Op | None) -> None:
        """Refuse an op, or what is fed, that takes so many bytes more."""
        if self.live_bytes + more > self.limits.live_bytes:
            what = f"{self.live_bytes + more:,} live bytes, where {self.limits.live_bytes:,} are allowed"
            raise self._refused(op, what, "live_bytes")

    def _refused(self, op: Op | None, what: str, name: str) -> LimitError:
        where = "what is fed" if op is None else f"{op.block.path}, op {op.block.ops.index(op)} ({op.type})"
        location, type = (None, None) if op is None else (op.location, op.type)
        return LimitError(f"{where}: {what}", location=location, hint=f"limits=RunLimits({name}=...)", op=type)


def bytes_of(values: Iterable[Stack]) -> int:
    """How much memory values take, the tensors of uneven stacks one by one."""
    return sum(tensor.numel() * tensor.itemsize for value in values for tensor in leaves(value))


def _expected_bytes(op: Op, operator: Operator, given: Mapping[str, Sequence[Stack]], attributes: Mapping[str, object]) -> int:
    """The bytes of the outputs of `op`: by the sizes of the inputs and, where only values tell a size, by those."""
    told = find_told_size(operator)
    unknown = None if told is None else told(*operator.arguments(given), **attributes)
    return sum(math.prod(_told(shape, unknown)) * dtype.itemsize for dtype, shape in _expected(op, operator, given, attributes))


def _told(shape: Iterable[int | None], unknown: int | None) -> list[int]:
    """The sizes, of which one that is not known is `unknown`, or where nobody tells that either, is left out."""
    sizes = (unknown if size is None else size for size in shape)
    return [size for size in sizes if size is not None]


def _expected(
    op: Op, operator: Operator, given: Mapping[str, Sequence[Stack]], attributes: Mapping[str, object]
) -> list[tuple[DType, list[int | None]]]:
    """The types of the outputs: what follows from the inputs or, for an op with blocks, what it declares; None for a size not known yet."""
    if op.blocks:
        sizes: dict[str, int] = {}
        for slot, vars in op.inputs.items():
            for var, value in zip(vars, given.get(slot, ()), strict=False):
                if isinstance(value, torch.Tensor):
                    sizes |= {size: actual for size, actual in zip(var.shape or (), value.shape, strict=False) if isinstance(size, str)}
        return [(var.dtype, [evaluate(size, sizes) for size in var.shape or ()]) for var in op.writes]
    types = {slot: [TensorType(_dtype(value), tuple(value.shape)) for value in values] for slot, values in given.items()}  # type: ignore
    shapes = [getattr(value, "shape", ()) for values in given.values() for value in values]
    inferred = infer_from_numbers(operator, types, attributes, shapes_of(op, operator), shapes)
    found = [(type.dtype, type.shape or ()) for types in inferred.values() for type in types]
    return [(dtype, [size if isinstance(size, int) else None for size in shape]) for dtype, shape in found]


def _dtype(value: torch.Tensor) -> DType:
    dtype = from_torch(value.dtype)
    assert dtype is not None, "no scope holds a tensor of another dtype"
    return dtype
