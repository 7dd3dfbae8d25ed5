"""Executor: run a program on values."""

import threading
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, overload

import numpy
import torch

from oarlock.errors import ArgumentError
from oarlock.ir.location import here
from oarlock.ir.operation import Op
from oarlock.ir.program import Program
from oarlock.ir.variable import Var
from oarlock.ir.verify import verify_program
from oarlock.ir.walk import needed_ops
from oarlock.passes.optimizing import PASSES, optimize
from oarlock.registry.catalogue import Catalogue, standard
from oarlock.registry.checking import typecheck
from oarlock.runtime.budget import Budget, RunLimits
from oarlock.runtime.context import Context
from oarlock.runtime.feeding import check_feed
from oarlock.runtime.interpreter import Interpreter, commit, read_var
from oarlock.runtime.paths import Path, find_path
from oarlock.runtime.place import Place, one_place
from oarlock.runtime.plan import Plan
from oarlock.runtime.scope import Scope
from oarlock.runtime.scopes import Scopes
from oarlock.runtime.value import to_numpy

__all__ = ["Executor"]

_MAX_PREPARED = 64
_MAX_DEPTH = 9  # of blocks in a plan; each may take two levels of Python's twenty

_Values = list[numpy.ndarray] | list[torch.Tensor]


@dataclass(frozen=True)
class _Prepared:
    """What one way of running a program needs: decided once, reused by every run."""

    ops: list[Op]
    tail: list[Op]
    fetched: list[Path]
    read: set[Var]
    plan: Plan | None  # what runs in place of the interpreter


class Executor:
    """Runs programs at a place.

    A run verifies the program once, computes what the fetches and the updates need, nothing else, in a scope of
    its own that is dropped when the run ends, and writes persistable variables last. So a run that raises
    leaves `scope` as it was. Executors may be shared by threads. With `check`, what every op computes is compared with
    its declared type: ShapeError or DTypeError, where a kernel does not keep its signature. With `limits`, each run is
    counted, and one that goes beyond them raises LimitError: for programs that someone else wrote.

    What is run is a plan: the program after `passes`, as Python that is written once. Without passes it computes what the
    interpreter would, bit for bit; passes may round in another order, as each says. With `interpret`, `check` or `limits`, for values
    of inner blocks and where scopes are kept, it is the interpreter itself.
    """

    def __init__(
        self,
        place: Place | Sequence[Place] | None = None,
        *,
        catalogue: Catalogue = standard,
        check: bool = False,
        limits: RunLimits | None = None,
        interpret: bool = False,
        passes: Collection[str] = tuple(PASSES),
    ):
        self.place = one_place(place)
        self.limits = limits
        self.interpreter = Interpreter(catalogue, check=check)
        self.planned = not (interpret or check or limits)
        self.passes = tuple(passes)
        self._prepared: dict[tuple[object, ...], _Prepared] = {}
        self._lock = threading.Lock()

    @overload
    def run(
        self,
        program: Program,
        feed: Mapping[str, object] | None = None,
        fetch: Sequence[Var | str] = (),
        *,
        scope: Scope,
        training: bool = False,
        return_numpy: bool = True,
        keep_scopes: Literal[False] = False,
    ) -> _Values: ...

    @overload
    def run(
        self,
        program: Program,
        feed: Mapping[str, object] | None = None,
        fetch: Sequence[Var | str] = (),
        *,
        scope: Scope,
        training: bool = False,
        return_numpy: bool = True,
        keep_scopes: Literal[True],
    ) -> tuple[_Values, Scopes]: ...

    def run(
        self,
        program: Program,
        feed: Mapping[str, object] | None = None,
        fetch: Sequence[Var | str] = (),
        *,
        scope: Scope,
        training: bool = False,
        return_numpy: bool = True,
        keep_scopes: bool = False,
    ) -> _Values | tuple[_Values, Scopes]:
        """Run one step and return the values of `fetch`, in order.

        `feed` maps input names to arrays, tensors or numbers of the declared dtype and shape. `scope` holds the
        parameters, and receives their new values when the program has updates. `training` is what dropout asks.
        A fetch is a variable, its name, the label of a target, or the path of a variable of an inner block: `main/rnn_0/3/z`
        in one trip of a loop, `main/rnn_0/z` stacked over its trips, which is also what the variable itself stands for.
        A fetch of a persistable variable gives its value from before the step. Arrays are copies.

        With `keep_scopes`, every op of the program is run, needed or not, and the scopes of the run are returned too,
        `(values, scopes)`; they stay until the caller drops them.

        Raises FeedError, UndefinedVarError or UnsetVarError for what does not fit, KernelError from a kernel, ShapeError
        for a stack over trips whose sizes differ.
        """
        context = Context(scope, self.place, training)
        values, scopes = self._execute(program, feed, fetch, context, return_numpy, update=True, keep=keep_scopes)
        return values if scopes is None else (values, scopes)

    def eval(
        self,
        program: Program,
        targets: Sequence[Var | str],
        feed: Mapping[str, object] | None = None,
        *,
        scope: Scope,
        training: bool = False,
        return_numpy: bool = True,
    ) -> _Values:
        """Compute `targets` and return their values, in order: what they need is run, no update, nothing else.

        The arguments, and what is raised, are those of `run`. `scope` is not changed.
        """
        return self._execute(program, feed, targets, Context(scope, self.place, training), return_numpy, update=False, keep=False)[0]

    def _execute(
        self,
        program: Program,
        feed: Mapping[str, object] | None,
        fetch: Sequence[Var | str],
        context: Context,
        return_numpy: bool,
        *,
        update: bool,
        keep: bool,
    ) -> tuple[_Values, Scopes | None]:
        if isinstance(fetch, Var | str):
            raise ArgumentError("fetch is a list of variables or of their names", location=here(), hint="fetch=[cost]")
        prepared = self._prepare(program, tuple(fetch), update=update, whole=keep)
        tensors = check_feed(program, feed or {}, prepared.read, self.place)
        if self.limits is not None:
            context = replace(context, budget=Budget(self.limits))
        if prepared.plan is not None:
            return self._run_plan(prepared, prepared.plan, tensors, context, return_numpy), None
        frame = context.scope.new_scope("main")
        scopes = None
        try:
            if context.budget is not None:
                context.budget.hold(tensors.values())
            for name, tensor in tensors.items():
                frame.var(name).value = tensor
            with torch.no_grad():
                self.interpreter.run_ops(prepared.ops, frame, context)
                values = self._read(prepared.fetched, frame, context)
                results = [to_numpy(value) for value in values] if return_numpy else values
                self.interpreter.run_ops(prepared.tail, frame, context)
            scopes = Scopes(frame) if keep else None
        finally:
            if scopes is None:
                frame.drop()
        return results, scopes

    def _run_plan(self, prepared: _Prepared, plan: Plan, fed: Mapping[str, torch.Tensor], context: Context, return_numpy: bool) -> _Values:
        values = [fed[var.name] if var.name in fed else _held(var, prepared, context.scope) for var in plan.inputs]
        with torch.no_grad():
            computed = plan.run(values, context)
        fetched = [path.require_tensor(value) for path, value in zip(prepared.fetched, computed, strict=False)]
        results = [to_numpy(value) for value in fetched] if return_numpy else fetched
        commit(zip(plan.updates, computed[len(fetched) :], strict=True), context.scope)
        return results

    def _read(self, fetched: list[Path], frame: Scope, context: Context) -> list[torch.Tensor]:
        """What is fetched, read before the tail writes: a step that raises writes nothing, and values are from before it."""
        values = []
        for path in fetched:
            values.append(path.read(frame, self.place.device))
            if context.budget is not None and path.trips:
                context.budget.hold(values[-1:])
        return values

    def _prepare(self, program: Program, fetch: tuple[Var | str, ...], *, update: bool, whole: bool) -> _Prepared:
        fetched = [find_path(program, item) for item in fetch]
        key = (program.serial, program.revision, update, whole, *fetched)
        with self._lock:
            found = self._prepared.get(key)
            if found is None:
                verify_program(program)
                typecheck(program, self.interpreter.catalogue)
                tail = program.main.tail if update else []
                if whole:
                    ops = [op for op in program.main.ops if not op.is_commit]
                else:
                    owners = [path.owner for path in fetched if path.owner is not None]
                    ops = needed_ops(
                        program.main.ops, [*(path.var for path in fetched), *owners, *(var for op in tail for var in op.reads)]
                    )
                read = {var for op in [*ops, *tail] for var in op.reads} | {path.var for path in fetched}
                plan = self._plan(program, fetched, update=update) if self.planned and not whole else None
                found = _Prepared(ops, tail, fetched, read, plan)
                if len(self._prepared) >= _MAX_PREPARED:
                    self._prepared.pop(next(iter(self._prepared)))
                self._prepared[key] = found
        return found

    def _plan(self, program: Program, fetched: list[Path], *, update: bool) -> Plan | None:
        """The plan for a run; None where values of inner blocks are asked for, or blocks nest deeper than Python's do."""
        if any(path.trips for path in fetched) or max(map(_depth, program.main.ops), default=0) > _MAX_DEPTH:
            return None
        copy = program.clone()
        origin = {
            copied: op
            for mine, theirs in zip(copy.blocks, program.blocks, strict=True)
            for copied, op in zip(mine.ops, theirs.ops, strict=True)
        }
        if not update:
            copy.main.keep([op for op in copy.main.ops if not op.is_commit])
        wanted = [copy.main.vars[path.var.name] for path in fetched]
        applied = optimize(copy, wanted, self.interpreter.catalogue, self.passes)
        tail = copy.main.tail
        ops = [op for op in copy.main.ops if not op.is_commit]
        outputs = [*wanted, *(op.reads[0] for op in tail)]
        computed = {var for op in ops for var in op.writes}
        read = dict.fromkeys(var for var in (*(var for op in ops for var in op.reads), *outputs) if var not in computed)
        return Plan(ops, list(read), outputs, self.interpreter.catalogue, [op.writes[0].name for op in tail], origin, applied)


def _held(var: Var, prepared: _Prepared, scope: Scope) -> torch.Tensor:
    """What `scope` holds for a persistable variable. Raises UnsetVarError or UndefinedVarError where that is nothing."""
    reader = next((op for op in (*prepared.ops, *prepared.tail) if any(read.name == var.name for read in op.reads)), None)
    return scope[var.name] if reader is None else read_var(var, reader, scope)  # type: ignore[return-value]


def _depth(op: Op) -> int:
    return max((1 + max((_depth(inner) for inner in block.ops), default=0) for block in op.blocks), default=0)
