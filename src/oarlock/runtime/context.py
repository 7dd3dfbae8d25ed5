"""Context: what one run is, and what a kernel may ask of it."""

from dataclasses import dataclass, field
from typing import Protocol

import torch

from oarlock.ir.block import Block
from oarlock.ir.names import COUNTER
from oarlock.ir.operation import Op
from oarlock.ir.size import evaluate
from oarlock.ir.variable import Var
from oarlock.op.torch_dtype import to_torch
from oarlock.runtime import random
from oarlock.runtime.budget import Budget
from oarlock.runtime.place import CPUPlace, Place
from oarlock.runtime.scope import Scope

__all__ = ["Context", "KernelContext"]


@dataclass(frozen=True)
class Context:
    """The environment of a run: a scope, a place, whether this is training, and what it may use.

    Whether dropout drops is a property of the run, not of the program.
    """

    scope: Scope
    place: Place = field(default_factory=CPUPlace)
    training: bool = False
    budget: Budget | None = field(default=None, repr=False)


class _BlockRunner(Protocol):
    def __call__(self, block: Block, scope: Scope, context: Context, trips: tuple[str, ...]) -> None: ...


class KernelContext:
    """The run, as the kernel of one op sees it."""

    def __init__(self, op: Op, scope: Scope, context: Context, run: _BlockRunner, trips: tuple[str, ...] = ("main",)):
        self.op = op
        self.training = context.training
        self._scope = scope
        self._context = context
        self._run = run
        self._trips = trips
        self._loop: Scope | None = None
        self._trip_count = 0

    def uniform(self, shape: tuple[int, ...], random_id: int) -> torch.Tensor:
        """Numbers in [0, 1), float64 of `shape`, that follow from the program's seed, the op, the step and the trip."""
        step = self._scope.get(COUNTER, torch.tensor(0))
        key = random.key_of(self.op.block.program.seed, "op", random_id, int(step), *self._trips)  # type: ignore[call-overload]
        return random.uniform(tuple(shape), key, device=self._context.place.device)

    def run_block(self, block: Block, values: list[torch.Tensor], *, trip: int) -> list[torch.Tensor]:
        """Run a block of this op on `values`, its inputs, in a scope of its own; return its outputs."""
        self._trip_count += 1
        if self._context.budget is not None:
            self._context.budget.trip(self.op, self._trip_count)
        if self._loop is None:
            self._loop = self._scope.new_scope(block.name.partition(".")[0])
        scope = self._loop.new_scope(str(trip))
        for var, value in zip(block.inputs, values, strict=True):
            scope.var(var.name).value = value
        self._run(block, scope, self._context, (scope.name, self._loop.name, *self._trips))
        return [scope[var.name] for var in block.outputs]  # type: ignore[misc]

    def zeros(self, var: Var, *, leading: tuple[int, ...] = ()) -> torch.Tensor:
        """Zeros of the declared type of `var`, after `leading` sizes. Sizes that no value tells count as 0."""
        sizes = self._sizes()
        shape = [evaluate(size, sizes) or 0 for size in var.shape or ()]
        return torch.zeros((*leading, *shape), dtype=to_torch(var.dtype), device=self._context.place.device)

    def _sizes(self) -> dict[str, int]:
        """What the symbols in the types of the op's inputs stand for in this run."""
        sizes: dict[str, int] = {}
        for var in self.op.reads:
            value = self._scope[var.name]
            for declared, actual in zip(var.shape or (), value.shape, strict=False):  # type: ignore[attr-defined]
                if isinstance(declared, str):
                    sizes[declared] = actual
        return sizes
