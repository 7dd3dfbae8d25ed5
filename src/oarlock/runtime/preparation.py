"""Preparation of a run: the ops that are needed, and the plan that computes them."""

from collections.abc import Collection, Mapping, Sequence
from typing import TypeGuard

import numpy
import torch

from oarlock.errors import ScopeError
from oarlock.ir.operation import Op, Role
from oarlock.ir.program import Program
from oarlock.ir.size import solve_shapes
from oarlock.ir.traversal import needed_ops
from oarlock.passes.pipeline import optimize
from oarlock.passes.places import places_named, write_moves
from oarlock.registry.collective import exchanged
from oarlock.registry.size_check import SizeCheck, fed_sizes, find_size_checks
from oarlock.runtime import recording
from oarlock.runtime.context import Context
from oarlock.runtime.feed import check_feed
from oarlock.runtime.interpreter import Interpreter
from oarlock.runtime.ownership import require_not_elsewhere
from oarlock.runtime.paths import Path
from oarlock.runtime.place import Place, device_of, is_meta, place_with
from oarlock.runtime.plan import Plan
from oarlock.runtime.recording import slice_of
from oarlock.runtime.run_at_places import run_at_places
from oarlock.runtime.scope import Scope, frozen_in, lock_of_writing
from oarlock.runtime.scopes import Scopes
from oarlock.runtime.tensor_guard import TensorGuard
from oarlock.runtime.value import is_dense, to_numpy
from oarlock.runtime.value_check import require_declared

__all__ = ["Prepared", "Values"]

_MOST_FITTING = 1024  # remembered shapes of inputs
_MAX_DEPTH = 9  # nesting of blocks in a plan; each may use two of Python's twenty levels

Values = list[numpy.ndarray] | list[torch.Tensor]
_Accepted = tuple[tuple[str, ...], TensorGuard]


class Prepared:
    """A verified program, prepared for some fetches; with `update` also for updates, with `measure` for metrics, with `whole` for every op.

    Variables that are `frozen` are not updated, nor is their optimizer state. `plan` is the plan to run, after `passes`. It is None, so
    that the interpreter runs, if `passes` is None, if values of nested blocks are fetched, or if blocks are nested too deeply for Python.
    """

    def __init__(
        self,
        program: Program,
        fetched: Sequence[Path],
        interpreter: Interpreter,
        *,
        update: bool,
        measure: bool,
        frozen: Collection[str] = (),
        whole: bool,
        passes: Collection[str] | None,
        places: Sequence[Place],
        poison: bool | int = False,
        backend: str | None = None,
    ):
        for number in places_named(program, interpreter.catalogue) if len(places) > 1 else ():
            place_with(number, places)
        self.program = program
        self.fetched = list(fetched)
        self.interpreter = interpreter
        self.update = update
        self.measure = measure
        self.frozen = frozenset(frozen)
        self.tail = [op for op in program.main.tail if self._commits(op)]
        if whole:
            self.ops = [op for op in program.main.ops if not op.is_commit]
        else:
            owners = [path.owner for path in fetched if path.owner is not None]
            targets = [*(path.var for path in fetched), *owners, *exchanged(program.main.ops, interpreter.catalogue)]
            targets += (var for op in self.tail for var in op.reads)
            self.ops = needed_ops(program.main.ops, targets)
        self.read = {var for op in (*self.ops, *self.tail) for var in op.reads} | {path.var for path in fetched}
        self.stored = [var for var in program.persistables() if var in self.read]
        plain = not any(path.trips for path in fetched) and max(map(_depth, self.ops), default=0) <= _MAX_DEPTH
        self._fed_sizes = fed_sizes(program, self.read)
        checks = find_size_checks([*self.ops, *self.tail], interpreter.catalogue).values()
        self._fed_checks = [
            check for check in checks if check.follows_from(self._fed_sizes)
        ]  # checks of sizes that depend on the inputs only
        self._fitting: set[tuple[Sequence[int], ...]] = set()  # input shapes that passed these checks
        # The last two feeds whose types are sufficient to accept them: the last batch of an epoch may be smaller.
        self._accepted: tuple[_Accepted, ...] = ()
        self.plan = self._plan(passes, places, poison=poison, backend=backend) if plain and passes is not None else None

    def _value_checks(self, ops: Sequence[Op]) -> dict[Op, SizeCheck]:
        """Return the size checks of `ops` that depend on values. `ops` belong to a copy of the program with the same input sizes."""
        checks = find_size_checks(ops, self.interpreter.catalogue)
        return {op: check for op, check in checks.items() if not check.follows_from(self._fed_sizes)}

    @property
    def writes(self) -> bool:
        """Whether a run may write to its scope."""
        return self.update or bool(self.tail)

    def require_as_prepared(self, scope: Scope) -> None:
        """Check that the same variables of `scope` are frozen as during preparation. Raises ScopeError."""
        differs = frozen_in(scope) ^ self.frozen if self.update else None
        if differs:
            raise ScopeError(
                f"trainable was changed for {', '.join(sorted(differs))} after this step was prepared",
                hint="prepare the step again",
            )

    def _commits(self, op: Op) -> bool:
        """Return whether a commit is executed: it writes no frozen variable or its state. The state of `w` is named like `w@MOMENT1`."""
        if op.role is Role.MEASURE:
            return self.measure
        return self.update and op.writes[0].name.partition("@")[0] not in self.frozen

    def _plan(self, passes: Collection[str], places: Sequence[Place], *, poison: bool | int, backend: str | None) -> Plan:
        """Return the plan of a copy of the program, rewritten by the passes."""
        copy, catalogue = self.program.clone(), self.interpreter.catalogue
        blocks = zip(copy.blocks, self.program.blocks, strict=True)
        origin = {copied: op for theirs, ours in blocks for copied, op in zip(theirs.ops, ours.ops, strict=True)}
        wanted = [copy.main.vars[path.var.name] for path in self.fetched]
        if len(self.tail) < len(copy.main.tail):
            copy.main.keep([op for op in copy.main.ops if not op.is_commit or self._commits(op)])
        applied = optimize(copy, [*wanted, *exchanged(copy.main.ops, catalogue)], catalogue, passes)
        found = write_moves(copy, catalogue) if len(places) > 1 else {}
        tail = copy.main.tail
        ops = [op for op in copy.main.ops if not op.is_commit]
        outputs = [*wanted, *(op.reads[0] for op in tail)]
        computed = {var for op in ops for var in op.writes}
        read = dict.fromkeys(var for var in (*(var for op in ops for var in op.reads), *outputs) if var not in computed)
        return Plan(
            copy.main,
            ops,
            list(read),
            outputs,
            catalogue,
            [op.writes[0].name for op in tail],
            [path.require_tensor for path in self.fetched],
            origin,
            applied,
            devices=[device_of(place) for place in places],
            places={op: place for op, place in found.items() if place},
            size_checks=self._value_checks(ops),
            fed_checks=[str(check) for check in self._fed_checks],
            poison=poison,
            backend=backend,
        )

    def prepare_feed(self, feed: Mapping[str, object], context: Context) -> Mapping[str, torch.Tensor]:
        """Return the input tensors of a run, at their places. Raises FeedError, and ScopeError."""
        if context.scope.dropped:  # checked here, because a plan may read nothing from it
            raise ScopeError("this scope was dropped")
        if self.recognizes(feed):
            tensors = feed
        elif recording.recorder is None:
            tensors = self._check(feed, context)
        else:
            with slice_of("feed", "check and convert the feed"):
                tensors = self._check(feed, context)
        if not context.place.is_cpu or len(context.places) > 1 or torch.cuda.is_initialized():
            self._bring(context)
        return tensors

    def interpret(
        self, feed: Mapping[str, object], context: Context, *, return_numpy: bool, keep: bool = False
    ) -> tuple[Values, Scopes | None]:
        """Run the program by the interpreter; return the fetched values and, with `keep`, the scopes. Updates are written last.

        Raises ShapeError or DTypeError, before anything runs, if a persistable variable does not match its declaration.
        """
        recorder = recording.recorder
        begun = None if recorder is None else recorder.begin_step()
        self.require_as_prepared(context.scope)
        tensors = self.prepare_feed(feed, context)
        self._require_stored(context)
        frame = context.scope.new_scope("main")
        scopes = None
        try:
            if context.budget is not None:
                context.budget.hold(tensors.values())
            for name, tensor in tensors.items():
                frame.var(name).value = tensor
            with torch.no_grad():
                run_at_places(self.interpreter, self.ops, frame, context)
                values = self._read(frame, context)
                results = [to_numpy(value) for value in values] if return_numpy else values
                self.interpreter.run_ops(self.tail, frame, context)
            scopes = Scopes(frame) if keep else None
        finally:
            if scopes is None:
                frame.drop()
        if recorder is not None and begun is not None:
            recorder.end_step(begun, bool(context.training))
        return results, scopes

    def _require_stored(self, context: Context) -> None:
        """Check values in the scope against declarations and ownership. Missing values are reported by the op that reads them."""
        at_meta = is_meta(context.place)
        if self.writes:
            require_not_elsewhere(self.program, context.scope, self.stored)
        for var in self.stored:
            found = context.scope.find_var(var.name)
            if found is not None and found.is_set:
                require_declared(var, found.settle(var.dtype), at_meta=at_meta)

    def _bring(self, context: Context) -> None:
        """Move the persistable variables that are read to their places, permanently: a value is at one place at a time.

        Values that are not dense are left alone; reading them raises an error with their name.
        """
        devices = [device_of(place_with(var.place, context.places)) for var in self.stored]
        with lock_of_writing(context.scope):
            for var, device in zip(self.stored, devices, strict=True):
                found = context.scope.find_var(var.name)
                value = found.held if found is not None and found.is_set else None
                if found is not None and isinstance(value, torch.Tensor) and value.device != device and is_dense(value, False):
                    found.value = value.to(device)

    def _check(self, feed: Mapping[str, object], context: Context) -> dict[str, torch.Tensor]:
        """Return the input tensors. Raises FeedError, and ShapeError if an op does not support their sizes."""
        tensors = check_feed(self.program, feed, self.read, context.place, context.scope)
        if self._fed_checks:
            self._check_sizes(tensors)
        device = device_of(context.place)
        plain = all(isinstance(value, torch.Tensor) and value.device == device for value in feed.values())
        if plain and feed.keys() == tensors.keys() and all(var.row_splits_of is None for var in self.program.main.inputs):
            self._accepted = ((tuple(feed), TensorGuard([tensors[name] for name in feed])), *self._accepted[:1])
        return tensors

    def _check_sizes(self, tensors: Mapping[str, torch.Tensor]) -> None:
        """Check the input sizes against the ops. Raises ShapeError. Valid sizes are remembered."""
        shapes = tuple(tensor.shape for tensor in tensors.values())
        if shapes in self._fitting:
            return
        sizes = solve_shapes((self.program.main.vars[name].shape or () for name in tensors), shapes)
        for check in self._fed_checks:
            check(*check.evaluate(sizes))
        if len(self._fitting) >= _MOST_FITTING:
            self._fitting = set()
        self._fitting.add(shapes)

    def recognizes(self, feed: Mapping[str, object]) -> TypeGuard[Mapping[str, torch.Tensor]]:
        """Return whether the feed consists of tensors of recently accepted types, in the same order. If not, it needs a complete check."""
        accepted = self._accepted
        if not accepted or tuple(feed) != accepted[0][0]:
            return False
        try:
            for value in feed.values():
                if value.is_nested:  # type: ignore[attr-defined]  # type: ignore[attr-defined]  # reading the size of a nested tensor crashes the process
                    return False
        except AttributeError:  # not a tensor
            return False
        if accepted[0][1](*feed.values()):
            return True
        if len(accepted) == 1 or accepted[1][0] != accepted[0][0] or not accepted[1][1](*feed.values()):
            return False
        self._accepted = accepted[::-1]
        return True

    def _read(self, frame: Scope, context: Context) -> list[torch.Tensor]:
        """Return the fetched values, read before commits: a step that raises writes nothing, and fetches are from before the step."""
        values = []
        for path in self.fetched:
            values.append(path.read(frame, device_of(context.place)))
            if context.budget is not None and path.trips:
                context.budget.hold(values[-1:])
        return values


def _depth(op: Op) -> int:
    return max((1 + max((_depth(inner) for inner in block.ops), default=0) for block in op.blocks), default=0)
