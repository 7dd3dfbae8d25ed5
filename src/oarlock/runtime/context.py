"""Context: the environment of a run, and the interface of kernels to it."""

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Protocol

import torch

from oarlock.errors import ArgumentError, ScopeError
from oarlock.ir.block import Block
from oarlock.ir.location import here
from oarlock.ir.names import COUNTER, DRAWS, forward_name
from oarlock.ir.operation import Op
from oarlock.ir.size import Size, evaluate, names_in, solve_shape
from oarlock.ir.var import Var
from oarlock.runtime import random
from oarlock.runtime.budget import Budget, bytes_of
from oarlock.runtime.place import CPUPlace, Place, device_of, place_with, places_in
from oarlock.runtime.scope import Scope
from oarlock.runtime.workers import Workers, current_workers
from oarlock.tensor.dtype import to_torch
from oarlock.tensor.stacks import Stack, brought

__all__ = ["Context", "KernelContext", "draws_done", "name_of_scope"]


@dataclass(frozen=True)
class Context:
    """The environment of a run: a scope, places, the training flag, and limits.

    Whether dropout drops and updates are made depends on the run, not the program; None means to train if the program has updates. With
    several places, `places` lists them by the indexes that parameters use, and the first holds the feed; `place` is where the current ops
    run. Raises ArgumentError for an invalid or unavailable place, an invalid scope or `training`, and ScopeError for a dropped scope.
    """

    scope: Scope
    place: Place = field(default_factory=CPUPlace)
    training: bool | None = None
    budget: Budget | None = field(default=None, repr=False)
    workers: Workers = field(default_factory=current_workers, repr=False)
    places: tuple[Place, ...] = ()

    def __post_init__(self) -> None:
        if not isinstance(self.scope, Scope):
            raise ArgumentError(
                f"scope must be a Scope, not {self.scope!r:.60}",
                location=here(),
                contract="Context(scope, place, training)",
                hint="use ol.Scope()",
            )
        if self.scope.dropped:
            raise ScopeError("this scope was dropped", location=here())
        if self.place not in self.places:  # otherwise the places were validated before
            places = places_in(self.place)
            object.__setattr__(self, "place", places[0])
            object.__setattr__(self, "places", places)
        if not isinstance(self.training, bool | None):
            raise ArgumentError(f"training must be True, False or None, not {self.training!r:.60}", location=here())

    def at(self, number: int) -> "Context":
        """Return the context for ops that run at place `number`. Raises ArgumentError if there is none."""
        return self if len(self.places) == 1 else replace(self, place=place_with(number, self.places))

    def brought(self, value: Any, number: int | None = None) -> Any:
        """Return a tensor or uneven stack, moved to place `number` (default: the current place). With one place, return it unchanged."""
        return value if len(self.places) == 1 else brought(value, device_of(self.place if number is None else self.places[number]))

    def create_scope(self, name: str = "") -> Scope:
        """Return the first child `name` of the run's scope, creating it if needed. Without a name, always create a child."""
        return self.scope.find_or_create_scope(name)


def name_of_scope(block: Block, *, in_loop: bool) -> str:
    """Return the name of the scope that an op creates for `block`: that of the block or, `in_loop`, that of the loop."""
    return block.name.partition(".")[0] if in_loop else block.name


def draws_done(scope: Scope) -> int:
    """Return how many runs have drawn random numbers in `scope`. If the counter is on a GPU, this waits for the device.

    Older programs without the counter used the step count instead, and still do.
    """
    found = scope.find_var(DRAWS) or scope.find_var(COUNTER)
    return int(found.held) if found is not None and found.is_set else 0  # type: ignore[call-overload]  # read without ending ownership


class _BlockRunner(Protocol):
    def __call__(self, block: Block, scope: Scope, context: Context, trips: tuple[str, ...]) -> None: ...


class KernelContext:
    """The interface between a run and the kernel of one op."""

    def __init__(
        self,
        op: Op,
        scope: Scope,
        context: Context,
        run: _BlockRunner | None,
        trips: tuple[str, ...] = ("main",),
        count_draws: Callable[[], int] | None = None,
    ):
        self.op = op
        self.training = bool(context.training)
        self.workers = context.workers
        self._scope = scope
        self._context = context
        self._run = run
        self._trips = trips
        self._count_draws = count_draws or partial(draws_done, context.scope)  # the block that draws may be another one when this is called
        self._loop: Scope | None = None
        self._trip_count = 0
        self._to_stack = 0

    def device(self, place: int) -> torch.device:
        """Return the device of place `place`. Raises ArgumentError if there is none."""
        return device_of(place_with(place, self._context.places))

    def uniform(self, shape: tuple[int, ...], random_id: int, *, start: int = 0) -> torch.Tensor:
        """Return random numbers in [0, 1), float64 of `shape`, determined by the program's seed, the op, the draw count and the loop
        iteration.

        `start` skips that many elements of the sequence.
        """
        key = random.key_of(self.op.block.program.seed, "op", random_id, self._count_draws(), *map(forward_name, self._trips))
        return random.uniform(tuple(shape), key, start=start, device=device_of(self._context.place))

    def run_block(self, block: Block, values: list[torch.Tensor], *, trip: int | None = None) -> list[torch.Tensor]:
        """Run a block of this op with `values` as inputs, in a scope of its own; return its outputs.

        Iteration `trip` of a loop gets a scope inside that of the loop: `rnn_0/3`. A block that runs once gets a scope with the block's
        name: `if_else_0.true`.
        """
        self._trip_count += 1
        if self._context.budget is not None:
            self._context.budget.trip(self.op, self._trip_count)
        assert self._run is not None, "plans run blocks themselves"
        scope, trips = self._enter(block, trip)
        for var, value in zip(block.inputs, values, strict=True):
            scope.var(var.name).value = value
        self._run(block, scope, self._context, trips)
        return [scope[var.name] for var in block.outputs]  # type: ignore[misc]

    def will_stack(self, values: Sequence[Stack]) -> None:
        """Count the values that a loop of unknown length will stack when it ends, one more iteration. Raises LimitError if there are too
        many.
        """
        if self._context.budget is not None:
            self._to_stack += bytes_of(values)
            self._context.budget.require_bytes(self._to_stack, self.op)

    def _enter(self, block: Block, trip: int | None) -> tuple[Scope, tuple[str, ...]]:
        if trip is None:
            return self._renew(name_of_scope(block, in_loop=False)), (block.name, *self._trips)
        if self._loop is None:
            self._loop = self._renew(name_of_scope(block, in_loop=True))
        return self._loop.new_scope(str(trip)), (str(trip), self._loop.name, *self._trips)

    def _renew(self, name: str) -> Scope:
        """Return a new child scope, dropping the one from an earlier run of this op."""
        for child in self._scope.children:
            if child.name == name:
                child.drop()
        return self._scope.new_scope(name)

    def leave(self, vars: Sequence[Var], values: Sequence[object]) -> None:
        """Store the carried values of a loop in the loop's scope, under the names used by the iterations. No-op if there were no
        iterations.
        """
        if self._loop is not None:
            for var, value in zip(vars, values, strict=True):
                self._loop.var(var.name).value = value

    def zeros(self, var: Var, *, leading: tuple[int, ...] = ()) -> torch.Tensor:
        """Return zeros with the declared type of `var`, with `leading` sizes prepended. Unknown symbols count as 0."""
        shape = [self._size(size) for size in var.shape or ()]
        return torch.zeros((*leading, *shape), dtype=to_torch(var.dtype), device=device_of(self._context.place))

    def _size(self, size: Size) -> int:
        """Return the value of a size in this run, from the op's inputs or else from other visible variables."""
        around = (var for block in self.op.block.enclosing() for var in block.vars.values())
        sizes: dict[str, int] = {}
        number = evaluate(size, sizes)
        for var in itertools.chain(self.op.reads, around):
            if number is not None:
                break
            found = self._scope.find_var(var.name)
            value = found.value if found is not None and found.is_set else None
            if isinstance(value, torch.Tensor):
                sizes |= solve_shape(var.shape or (), value.shape)
                number = evaluate(size, sizes)
        return max(evaluate(size, {**dict.fromkeys(names_in(size), 0), **sizes}) or 0, 0)
