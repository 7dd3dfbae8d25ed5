"""Step: a prepared run on the variables of one scope, as a function of the feed."""

import weakref
from abc import ABC, abstractmethod
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any, NoReturn, TypeGuard

import torch

from oarlock.errors import ScopeError
from oarlock.ir.names import DRAWS
from oarlock.ir.var import Var
from oarlock.runtime import recording
from oarlock.runtime.budget import Budget, RunLimits
from oarlock.runtime.context import Context, draws_done
from oarlock.runtime.interpreter import commit, read_var
from oarlock.runtime.interrupts import Interrupts, uninterrupted
from oarlock.runtime.ownership import belongs_to, require_not_elsewhere
from oarlock.runtime.place import device_of, is_meta
from oarlock.runtime.plan import Plan, PlanInput
from oarlock.runtime.preparation import Prepared, Values
from oarlock.runtime.scope import lock_of_writing
from oarlock.runtime.value import is_dense, to_numpy
from oarlock.runtime.value_check import require_declared
from oarlock.runtime.variable import Lease, Variable

__all__ = ["Step", "interpreted_step", "planned_step"]

_Source = tuple[PlanInput, Variable | None]


class Step(ABC):
    """A prepared step of a program on the variables of one scope, as returned by `Executor.prepare`.

        step = executor.prepare(program, [cost], scope=scope)
        for batch in batches:
            (cost,) = step(batch)

    Call it with the feed, a dict of arrays or tensors by name. It returns the values of the fetches in order and writes updates to the
    scope. It runs the program as it was when prepared; prepare again after a change. Threads may call it concurrently; updates are
    serialized. A step keeps its scope alive. It raises the same as `Executor.run`, and then leaves the scope unchanged.
    """

    __slots__ = ()

    @abstractmethod
    def __call__(self, feed: Mapping[str, object]) -> Values:
        """Run one step on `feed`; return the values of the fetches, as NumPy arrays or, if prepared so, tensors."""


def planned_step(plan: Plan, prepared: Prepared, context: Context, *, return_numpy: bool, once: bool = False) -> Step:
    """Return the step that runs `plan` in the scope of `context`. `once` optimizes for a single call."""
    return (_Update if plan.overwrites else _Planned)(plan, prepared, context, return_numpy, once)


def interpreted_step(prepared: Prepared, context: Context, limits: RunLimits | None, *, return_numpy: bool) -> Step:
    """Return the step that uses the interpreter, with fresh `limits` for each run."""
    return _Interpreted(prepared, context, limits, return_numpy)


class _Interpreted(Step):
    """A step that uses the interpreter."""

    __slots__ = ("_context", "_limits", "_prepared", "_return_numpy")

    def __init__(self, prepared: Prepared, context: Context, limits: RunLimits | None, return_numpy: bool):
        self._prepared = prepared
        self._context = context
        self._limits = limits
        self._return_numpy = return_numpy

    def __call__(self, feed: Mapping[str, object]) -> Values:
        context = self._context if self._limits is None else replace(self._context, budget=Budget(self._limits))
        return self._prepared.interpret(feed, context, return_numpy=self._return_numpy)[0]


class _Planned(Step):
    """A step by a plan that overwrites nothing.

    Between calls it remembers the variables of the scope itself, which stay the same until one is erased; variables of parents are looked
    up each time, because a closer one may have been created. While its lease is valid, it uses cached values and precomputed results, and
    checks only the feed.
    """

    __slots__ = (
        "_at_meta",
        "_committed",
        "_context",
        "_erased",
        "_fed",
        "_fetched",
        "_lasts",
        "_lease",
        "_leased",
        "_lent",
        "_lock",
        "_once",
        "_plan",
        "_prepared",
        "_return_numpy",
        "_run",
        "_scope",
        "_sources",
    )  # fmt: skip

    def __init__(self, plan: Plan, prepared: Prepared, context: Context, return_numpy: bool, once: bool):
        self._plan = plan
        self._prepared = prepared
        self._run = plan.bind(context)
        self._context = context
        self._scope = context.scope
        self._at_meta = is_meta(context.place)
        self._return_numpy = return_numpy
        self._once = once
        self._fetched = len(prepared.fetched)
        self._lock = lock_of_writing(context.scope)
        self._sources: list[_Source] = []
        self._lasts = False  # whether the same variables are used in the next call
        self._erased = 0  # `erased` of the scope when these variables were found
        self._committed = plan.committed
        self._fed = [(number, given.var.name) for number, given in enumerate(plan.inputs) if not given.var.persistable]
        self._lent = plan.lent.numbers(returns=not return_numpy)
        self._lease = Lease(self._lock, shared=not plan.overwrites)
        self._leased = weakref.ref(self._lease)  # variables refer to the lease weakly, so they do not keep finished steps alive

    def __call__(self, feed: Mapping[str, object]) -> Values:
        recorder = recording.recorder
        begun = None if recorder is None else recorder.begin_step()
        lease = self._lease
        if lease.cached is not None and not self._scope.dropped and self._prepared.recognizes(feed):
            fed = feed
        else:
            fed = self._prepared.prepare_feed(feed, self._context)
        lease.running.append(None)  # before the values are read: while this run is in progress, they are not overwritten
        try:
            cached = lease.cached or self._read()
            values = cached.copy()
            for number, name in self._fed:
                values[number] = fed[name]
            computed = self._run(values)
            if self._committed:
                with self._lock, uninterrupted():
                    self._commit(computed)
            returned = self._return(computed)
        except BaseException:
            self._lend_all()  # the traceback may refer to them
            raise
        finally:
            lease.running.pop()
        if recorder is not None and begun is not None:
            recorder.end_step(begun, bool(self._context.training))
        return returned

    def _lend_all(self) -> None:
        """Mark every variable that was read as shared, and end the lease."""
        self._lease.end()
        for _, variable in self._sources:
            if variable is not None:
                with suppress(ScopeError):  # erased in the meantime; the current exception is more important
                    variable.lend()

    def _return(self, computed: list[torch.Tensor]) -> Values:
        fetched = computed[: self._fetched]
        return [to_numpy(value) for value in fetched] if self._return_numpy else fetched

    def _read(self) -> list[Any]:
        """Return the plan's inputs, consistent with concurrent training steps, and the precomputed values.

        They are cached if the next call uses the same variables, the run shares none of them, and none used in precomputed results is
        shared, since its holder may overwrite it. Raises UnsetVarError, ShapeError and DTypeError, before anything is computed.
        """
        plan, lease = self._plan, self._lease
        with self._lock:
            if lease.cached is not None:  # another thread was faster
                return lease.cached
            sources = self._find()
            for number, (given, variable) in enumerate(sources):
                if variable is not None and not self._is_declared(variable.read(self._leased, lent=number in self._lent), given):
                    self._settle(given, variable)
                    if number in self._lent:
                        variable.lend()
            precomputed_inputs = [sources[number] for number in plan.precomputed_inputs]
            lasts = self._lasts and not self._lent and all(variable.is_own for _, variable in precomputed_inputs if variable)
            values: list[Any] = [variable and variable.held for _, variable in sources]
            if lasts:
                lease.cached = values = [*values, *plan.precompute(values, for_many=not self._once)]
        return values if lasts else [*values, *plan.precompute(values, for_many=False)]

    def _commit(self, computed: list[torch.Tensor]) -> None:
        commit([(name, computed[number]) for name, number in self._committed], self._scope)

    def _find(self) -> list[_Source]:
        """Return the source of each plan input: a variable, or None for the feed. Raises UnsetVarError."""
        self._prepared.require_as_prepared(self._scope)
        scope = self._scope
        if not self._lasts or self._erased != scope.erased:
            inputs, self._erased = self._plan.inputs, scope.erased
            self._sources = [(given, self._variable(given.var) if given.var.persistable else None) for given in inputs]
            self._lasts = all(variable is None or scope.find_local_var(given.var.name) is variable for given, variable in self._sources)
        return self._sources

    def _variable(self, var: Var) -> Variable:
        found = self._scope.find_var(var.name)
        if found is None or not found.is_set:
            if var.name == DRAWS:
                start = torch.tensor(draws_done(self._scope), device=device_of(self._context.place))
                found = found or self._scope.var(DRAWS)
                found.give(start, own=True)
                return found
            self._miss(var)
        if found.owner is not None and self._prepared.writes and not belongs_to(self._prepared.program, found):
            require_not_elsewhere(self._prepared.program, self._scope, self._prepared.stored)
        return found

    def _settle(self, given: PlanInput, variable: Variable) -> torch.Tensor:
        """Convert Python numbers to the declared dtype and return the value. Raises ShapeError or DTypeError if it does not match."""
        if not variable.is_set:
            self._miss(given.var)
        require_declared(given.var, variable.settle(given.var.dtype), at_meta=self._at_meta)
        return require_declared(given.var, variable.read(self._leased), at_meta=self._at_meta)

    def _is_declared(self, value: object, given: PlanInput) -> TypeGuard[torch.Tensor]:
        return (
            isinstance(value, torch.Tensor)
            and is_dense(value, self._at_meta)  # first, because a nested tensor may have no shape
            and value.shape == given.var.shape
            and value.dtype is given.dtype
        )

    def _miss(self, var: Var) -> NoReturn:
        """Raise UnsetVarError for `var`, from the op that reads it if there is one."""
        prepared, scope = self._prepared, self._scope
        reader = next((op for op in (*prepared.ops, *prepared.tail) if any(read.name == var.name for read in op.reads)), None)
        if reader is not None:
            read_var(var, reader, scope)
        raise AssertionError(scope[var.name])  # scope[...] raises


class _Update(_Planned):
    """A step by a plan that computes new values in the memory of the old ones.

    It avoids function calls: after large kernels, its code is no longer in the CPU cache, and each call costs a microsecond.
    """

    __slots__ = ("_updated",)

    def __init__(self, plan: Plan, prepared: Prepared, context: Context, return_numpy: bool, once: bool):
        super().__init__(plan, prepared, context, return_numpy, once)
        inputs = {given.var.name for given in plan.inputs}
        self._committed = [(name, number) for name, number in plan.committed if name not in inputs]
        self._updated: list[
            tuple[int, Variable, int, bool]
        ] = []  # input index, variable, output index, whether the output reuses the input's memory

    def __call__(self, feed: Mapping[str, object]) -> Values:
        recorder = recording.recorder
        begun = None if recorder is None else recorder.begin_step()
        lease, interrupts = self._lease, Interrupts()
        with self._lock:
            if lease.cached is not None and not self._scope.dropped and self._prepared.recognizes(feed):
                fed = feed
            else:
                fed = self._prepared.prepare_feed(feed, self._context)
            lease.running.append(None)
            try:
                if lease.cached is None:
                    values = self._take(fed)
                else:
                    values = lease.cached.copy()
                    for number, name in self._fed:
                        values[number] = fed[name]
                try:
                    computed = self._run(values, interrupts.begin)
                    cached = lease.cached
                    for number, variable, following, is_over in self._updated:
                        value = computed[following]
                        if variable.held is not value:
                            variable.hold(value, own=is_over)
                            if cached is not None:
                                cached[number] = value
                    for number in self._lent:
                        self._sources[number][1].lend()  # type: ignore[union-attr]
                    if self._committed:
                        self._commit(computed)
                finally:
                    interrupts.end()
            except BaseException:
                self._lend_all()  # the traceback may refer to them
                raise
            finally:
                lease.running.pop()
        returned = self._return(computed)
        if recorder is not None and begun is not None:
            recorder.end_step(begun, bool(self._context.training))
        return returned

    def _take(self, fed: Mapping[str, torch.Tensor]) -> list[torch.Tensor]:
        """Return the plan's inputs after ending all other leases; values to be overwritten are owned by their variables.

        Raises UnsetVarError, ShapeError and DTypeError before anything is overwritten, because updates must not fail halfway.
        """
        leased, values = self._leased, []
        for given, variable in self._find():
            if variable is None:
                values.append(fed[given.var.name])
                continue
            held = variable.read(leased)
            value = held if self._is_declared(held, given) else self._settle(given, variable)
            values.append(variable.alone(value) if given.is_over else value)
        if self._lasts and not self._lent:
            self._lease.cached = [variable and value for (_, variable), value in zip(self._sources, values, strict=True)]
        self._updated = [
            (number, variable, given.following, given.is_over)
            for number, (given, variable) in enumerate(self._sources)
            if variable is not None and given.following is not None
        ]
        return values
