"""Resource limits of one run, for untrusted programs, counted while it runs."""

import math
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import torch

from oarlock.errors import LimitError
from oarlock.ir.dtype import DType
from oarlock.ir.operation import Op
from oarlock.ir.size import evaluate
from oarlock.registry.attributes import declared_shapes
from oarlock.registry.declaration import Operator
from oarlock.registry.signature import TensorType
from oarlock.registry.size_check import infer_from_numbers
from oarlock.registry.value_sizes import find_size_prediction
from oarlock.tensor.dtype import from_torch
from oarlock.tensor.stacks import Stack, leaves

__all__ = ["Budget", "RunLimits", "bytes_of"]


@dataclass(frozen=True)
class RunLimits:
    """The resource limits of one run; pass them as `Executor(limits=RunLimits())`.

    `trips` limits the iterations of one loop, `ops` the ops executed, `live_bytes` the bytes of values, `seconds` the elapsed time. A run
    keeps its values until it ends, so every value counts, including the feed. The outputs of an op are counted before its kernel runs, from
    shapes or, if these are not enough, from values. The stacks of a `while` are counted per iteration. Temporary memory of kernels is not
    counted, and no kernel is interrupted.
    """

    trips: int = 1_000_000
    ops: int = 10_000_000
    live_bytes: int = 4 * 2**30
    seconds: float = 60.0


class Budget:
    """The remaining limits of one run. Exceeding them raises LimitError and changes no scope."""

    def __init__(self, limits: RunLimits):
        self.limits = limits
        self.ops = 0
        self.live_bytes = 0
        self.deadline = time.monotonic() + limits.seconds

    def hold(self, values: Iterable[Stack], op: Op | None = None) -> None:
        """Count new values: fed, or computed by an op."""
        self.live_bytes += bytes_of(values)
        self.require_bytes(0, op)

    def before(
        self,
        op: Op,
        operator: Operator,
        given: Mapping[str, Sequence[Stack]],
        attributes: Mapping[str, object],
    ) -> None:
        """Count an op, and refuse it if its outputs for the values `given`, by slot, would be too large."""
        self.ops += 1
        if self.ops > self.limits.ops:
            raise self._refused(op, f"more than {self.limits.ops:,} ops in one run", "ops")
        if time.monotonic() > self.deadline:
            raise self._refused(op, f"more than {self.limits.seconds:g} seconds in one run", "seconds")
        self.require_bytes(_expected_bytes(op, operator, given, attributes), op)

    def trip(self, op: Op, count: int) -> None:
        """Refuse iteration `count` of a loop if it exceeds the limit."""
        if count > self.limits.trips:
            raise self._refused(op, f"more than {self.limits.trips:,} iterations of one loop", "trips")

    def require_bytes(self, more: int, op: Op | None) -> None:
        """Refuse an op or a feed that needs `more` bytes if that exceeds the limit."""
        if self.live_bytes + more > self.limits.live_bytes:
            what = f"{self.live_bytes + more:,} live bytes, but the limit is {self.limits.live_bytes:,}"
            raise self._refused(op, what, "live_bytes")

    def _refused(self, op: Op | None, what: str, name: str) -> LimitError:
        where = "the feed" if op is None else f"{op.block.path}, op {op.block.ops.index(op)} ({op.type})"
        location, type = (None, None) if op is None else (op.location, op.type)
        return LimitError(f"{where}: {what}", location=location, hint=f"limits=RunLimits({name}=...)", op=type)


def bytes_of(values: Iterable[Stack]) -> int:
    """Return the total size of values in bytes, including the tensors of uneven stacks."""
    return sum(tensor.numel() * tensor.itemsize for value in values for tensor in leaves(value))


def _expected_bytes(op: Op, operator: Operator, given: Mapping[str, Sequence[Stack]], attributes: Mapping[str, object]) -> int:
    """Return the size of an op's outputs in bytes, from the input shapes or, if needed, the input values."""
    predict = find_size_prediction(operator)
    unknown = None if predict is None else predict(*operator.arguments(given), **attributes)
    return sum(math.prod(_fill_unknown(shape, unknown)) * dtype.itemsize for dtype, shape in _expected(op, operator, given, attributes))


def _fill_unknown(shape: Iterable[int | None], unknown: int | None) -> list[int]:
    """Replace the unknown size by `unknown`; drop it if that is unknown too."""
    sizes = (unknown if size is None else size for size in shape)
    return [size for size in sizes if size is not None]


def _expected(
    op: Op, operator: Operator, given: Mapping[str, Sequence[Stack]], attributes: Mapping[str, object]
) -> list[tuple[DType, list[int | None]]]:
    """Return the output types of an op: inferred from the inputs or, for an op with blocks, as declared. Unknown sizes are None."""
    if op.blocks:
        sizes: dict[str, int] = {}
        for slot, vars in op.inputs.items():
            for var, value in zip(vars, given.get(slot, ()), strict=False):
                if isinstance(value, torch.Tensor):
                    sizes |= {size: actual for size, actual in zip(var.shape or (), value.shape, strict=False) if isinstance(size, str)}
        return [(var.dtype, [evaluate(size, sizes) for size in var.shape or ()]) for var in op.writes]
    types = {slot: [TensorType(_dtype(value), tuple(value.shape)) for value in values] for slot, values in given.items()}  # type: ignore
    shapes = [getattr(value, "shape", ()) for values in given.values() for value in values]
    inferred = infer_from_numbers(operator, types, attributes, declared_shapes(op, operator), shapes)
    found = [(type.dtype, type.shape or ()) for types in inferred.values() for type in types]
    return [(dtype, [size if isinstance(size, int) else None for size in shape]) for dtype, shape in found]


def _dtype(value: torch.Tensor) -> DType:
    dtype = from_torch(value.dtype)
    assert dtype is not None, "no scope holds a tensor of another dtype"
    return dtype
