"""One way of running a program, decided once: what is needed of it, and the plan that computes that."""

import threading
from collections.abc import Collection, Mapping, Sequence
from contextlib import ExitStack

import numpy
import torch

from oarlock.errors import ScopeError, ShapeError
from oarlock.ir.operation import Op
from oarlock.ir.program import Program
from oarlock.ir.variable import Var
from oarlock.ir.walk import needed_ops
from oarlock.op.torch_dtype import from_torch, to_torch
from oarlock.passes.optimizing import optimize
from oarlock.runtime.context import Context
from oarlock.runtime.feeding import check_feed
from oarlock.runtime.interpreter import Interpreter, commit, read_var
from oarlock.runtime.interrupts import uninterrupted
from oarlock.runtime.paths import Path
from oarlock.runtime.plan import Plan
from oarlock.runtime.scope import Scope, lock_of_writing
from oarlock.runtime.scopes import Scopes
from oarlock.runtime.value import to_numpy
from oarlock.runtime.variable import Variable

__all__ = ["Prepared", "Values"]

_MAX_DEPTH = 9  # of blocks in a plan; each may take two levels of Python's twenty

Values = list[numpy.ndarray] | list[torch.Tensor]


class Prepared:
    """What a run needs of a verified program, for some fetches: with `update` its updates too, with `whole` every op.

    `plan` is what runs in place of the interpreter, after `passes`; None where these are None, where values of inner blocks are
    asked for, or where blocks nest deeper than Python's do.
    """

    def __init__(
        self,
        program: Program,
        fetched: Sequence[Path],
        interpreter: Interpreter,
        *,
        update: bool,
        whole: bool,
        passes: Collection[str] | None,
        poison: bool = False,
    ):
        self.program = program
        self.fetched = list(fetched)
        self.interpreter = interpreter
        self.tail = program.main.tail if update else []
        if whole:
            self.ops = [op for op in program.main.ops if not op.is_commit]
        else:
            owners = [path.owner for path in fetched if path.owner is not None]
            targets = [*(path.var for path in fetched), *owners, *(var for op in self.tail for var in op.reads)]
            self.ops = needed_ops(program.main.ops, targets)
        self.read = {var for op in (*self.ops, *self.tail) for var in op.reads} | {path.var for path in fetched}
        plain = not any(path.trips for path in fetched) and max(map(_depth, self.ops), default=0) <= _MAX_DEPTH
        self._accepted: dict[str, tuple[object, ...]] = {}  # what was fed last, where types tell all about it
        self.plan = self._plan(passes, update=update, poison=poison) if plain and passes is not None else None

    def _plan(self, passes: Collection[str], *, update: bool, poison: bool) -> Plan:
        """The plan of a copy of the program, which the passes rewrite."""
        copy, catalogue = self.program.clone(), self.interpreter.catalogue
        blocks = zip(copy.blocks, self.program.blocks, strict=True)
        origin = {copied: op for theirs, ours in blocks for copied, op in zip(theirs.ops, ours.ops, strict=True)}
        wanted = [copy.main.vars[path.var.name] for path in self.fetched]
        if not update:
            copy.main.keep([op for op in copy.main.ops if not op.is_commit])
        applied = optimize(copy, wanted, catalogue, passes)
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
            poison=poison,
        )

    def run(self, feed: Mapping[str, object], context: Context, *, return_numpy: bool, keep: bool = False) -> tuple[Values, Scopes | None]:
        """The values that are fetched and, where the caller keeps them, the scopes of the run. Writes the updates last."""
        tensors = self._recognize(feed) or self._check(feed, context)
        if context.scope.dropped:  # a plan may read nothing of it
            raise ScopeError("this scope was dropped")
        if self.plan is not None:
            return self._run_plan(self.plan, tensors, context, return_numpy), None
        frame = context.scope.new_scope("main")
        scopes = None
        try:
            if context.budget is not None:
                context.budget.hold(tensors.values())
            for name, tensor in tensors.items():
                frame.var(name).value = tensor
            with torch.no_grad():
                self.interpreter.run_ops(self.ops, frame, context)
                values = self._read(frame, context)
                results = [to_numpy(value) for value in values] if return_numpy else values
                self.interpreter.run_ops(self.tail, frame, context)
            scopes = Scopes(frame) if keep else None
        finally:
            if scopes is None:
                frame.drop()
        return results, scopes

    def _check(self, feed: Mapping[str, object], context: Context) -> dict[str, torch.Tensor]:
        """The tensors to start with. Raises FeedError."""
        tensors = check_feed(self.program, feed, self.read, context.place)
        plain = all(isinstance(value, torch.Tensor) and value.device == context.place.device for value in feed.values())
        if plain and feed.keys() == tensors.keys() and all(var.partitions is None for var in self.program.main.inputs):
            self._accepted = {name: _signature(value) for name, value in feed.items()}  # type: ignore[arg-type]
        return tensors

    def _recognize(self, feed: Mapping[str, object]) -> dict[str, torch.Tensor] | None:
        """The same, for tensors of the types that were fed last; None where it takes a closer look."""
        accepted = self._accepted
        if feed.keys() != accepted.keys():
            return None
        for name, value in feed.items():
            if type(value) is not torch.Tensor or value.requires_grad or _signature(value) != accepted[name]:
                return None
        return dict(feed)  # type: ignore[arg-type]

    def _run_plan(self, plan: Plan, fed: Mapping[str, torch.Tensor], context: Context, return_numpy: bool) -> Values:
        held = {var.name: self._held(var, context.scope) for var in plan.inputs if var.name not in fed}
        lock = lock_of_writing(context.scope)
        if not plan.overwritten:
            with lock:  # all of one step, whoever else trains here
                values = [fed[var.name] if var.name in fed else held[var.name].value for var in plan.inputs]
            computed = plan.run(values, context)  # type: ignore[arg-type]
            results = self._results(computed, return_numpy)
            if plan.updates:
                with lock, uninterrupted():
                    commit(zip(plan.updates, computed[len(results) :], strict=True), context.scope)
            return results
        written = {plan.inputs[number].name for number in plan.overwritten}
        following: dict[str, torch.Tensor] = {}
        with lock, ExitStack() as until_committed:
            try:
                values = [
                    fed[name] if name in fed else self._take(var, held[name], lock if name in written else None)
                    for var, name in ((var, var.name) for var in plan.inputs)
                ]
                computed = plan.run(values, context, lambda: until_committed.enter_context(uninterrupted()))  # type: ignore[arg-type]
                following = dict(zip(plan.updates, computed[len(self.fetched) :], strict=True))
            finally:
                for name in written:
                    held[name].give_back(following.get(name))
            commit(((name, value) for name, value in following.items() if name not in written), context.scope)
        return self._results(computed, return_numpy)

    def _results(self, computed: list[torch.Tensor], return_numpy: bool) -> Values:
        fetched = [path.require_tensor(value) for path, value in zip(self.fetched, computed, strict=False)]
        return [to_numpy(value) for value in fetched] if return_numpy else fetched

    def _take(self, var: Var, held: Variable, lock: "threading.RLock | None") -> torch.Tensor:
        """The value of `held`; with a lock, to write over.

        Raises ShapeError where it is not what `var` declares, for updates must not fail halfway.
        """
        value = held.get(torch.Tensor) if lock is None else held.take(lock)
        if (lock is not None and value.dtype != to_torch(var.dtype)) or tuple(value.shape) != var.shape:
            raise ShapeError(
                f'"{var.name}" holds {from_torch(value.dtype)}{list(value.shape)} in the scope, but is {var.type_text} in the program',
                location=var.location,
                given=[var.describe()],
            )
        return value

    def _held(self, var: Var, scope: Scope) -> Variable:
        """What `scope` has for a persistable variable. Raises UnsetVarError or UndefinedVarError where that holds nothing."""
        found = scope.find_var(var.name)
        if found is not None and found.is_set:
            return found
        reader = next((op for op in (*self.ops, *self.tail) if any(read.name == var.name for read in op.reads)), None)
        if reader is not None:
            read_var(var, reader, scope)
        raise AssertionError(scope[var.name])  # which raises

    def _read(self, frame: Scope, context: Context) -> list[torch.Tensor]:
        """What is fetched, read before the tail writes: a step that raises writes nothing, and values are from before it."""
        values = []
        for path in self.fetched:
            values.append(path.read(frame, context.place.device))
            if context.budget is not None and path.trips:
                context.budget.hold(values[-1:])
        return values


def _signature(tensor: torch.Tensor) -> tuple[object, ...]:
    return tensor.dtype, tensor.shape, tensor.device


def _depth(op: Op) -> int:
    return max((1 + max((_depth(inner) for inner in block.ops), default=0) for block in op.blocks), default=0)
