"""Step: one plan on the variables of one scope, as a function of what is fed."""

from collections.abc import Mapping
from typing import NoReturn

import torch

from oarlock.errors import ShapeError
from oarlock.ir.variable import Var
from oarlock.op.torch_dtype import from_torch
from oarlock.runtime.context import Context
from oarlock.runtime.interpreter import commit, read_var
from oarlock.runtime.interrupts import uninterrupted
from oarlock.runtime.plan import Given, Plan
from oarlock.runtime.prepared import Prepared, Values
from oarlock.runtime.scope import lock_of_writing
from oarlock.runtime.value import to_numpy
from oarlock.runtime.variable import Variable

__all__ = ["Step"]

_Source = tuple[Given, Variable | None]


class Step:
    """A run by the plan of `prepared` in the scope of `context`: called with what is fed, it returns what is fetched.

    Between calls it remembers the variables that the scope itself has, which are the same until it is dropped; those of its parents
    are looked for each time, since a variable of that name may have come nearer.
    """

    __slots__ = ("_context", "_lock", "_plan", "_prepared", "_return_numpy", "_sources")

    def __init__(self, prepared: Prepared, plan: Plan, context: Context, return_numpy: bool):
        self._prepared = prepared
        self._plan = plan
        self._context = context
        self._return_numpy = return_numpy
        self._lock = lock_of_writing(context.scope)
        self._sources: list[_Source] | None = None

    def __call__(self, feed: Mapping[str, object]) -> Values:
        fed = self._prepared.given(feed, self._context)
        computed = self._overwrite(fed) if self._plan.overwrites else self._compute(fed)
        fetched = computed[: len(self._prepared.fetched)]
        return [to_numpy(value) for value in fetched] if self._return_numpy else fetched

    def _compute(self, fed: Mapping[str, torch.Tensor]) -> list[torch.Tensor]:
        """The outputs of a plan that writes over nothing."""
        plan, values = self._plan, []
        with self._lock:  # all of one step, whoever else trains here
            for given, variable in self._sources or self._find():
                value = fed[given.var.name] if variable is None else variable.held
                if not isinstance(value, torch.Tensor):
                    self._refuse(given.var, variable)
                values.append(value)
        computed = plan.run(values, self._context)
        if plan.committed:
            with self._lock, uninterrupted():
                self._commit(computed)
        return computed

    def _overwrite(self, fed: Mapping[str, torch.Tensor]) -> list[torch.Tensor]:
        """The same, of a plan that computes next values in the memory of those before them."""
        plan, lock = self._plan, self._lock
        values: list[torch.Tensor] = []
        taken: list[tuple[Variable, int]] = []
        computed: list[torch.Tensor] = []
        with lock, uninterrupted(at_once=False) as updates:
            try:
                for given, variable in self._sources or self._find():
                    if variable is None:
                        values.append(fed[given.var.name])
                        continue
                    var, dtype, following = given
                    if following is None:
                        value = variable.held
                    else:
                        taken.append((variable, following))
                        value = variable.take(lock)
                    # before anything is written over: updates must not fail halfway
                    if not isinstance(value, torch.Tensor) or value.shape != var.shape or value.dtype is not dtype is not None:
                        self._refuse(var, variable)
                    values.append(value)
                computed = plan.run(values, self._context, updates.begin)
            finally:
                for variable, following in taken:
                    variable.give_back(computed[following] if computed else None)
            if plan.committed:
                self._commit(computed)
        return computed

    def _commit(self, computed: list[torch.Tensor]) -> None:
        commit([(name, computed[number]) for name, number in self._plan.committed], self._context.scope)

    def _find(self) -> list[_Source]:
        """Whence each input of the plan comes: a variable, or None for what is fed. Raises UnsetVarError."""
        scope, inputs = self._context.scope, self._plan.inputs
        sources = [(given, self._variable(given.var) if given.var.persistable else None) for given in inputs]
        if all(variable is None or scope.find_local_var(given.var.name) is variable for given, variable in sources):
            self._sources = sources
        return sources

    def _variable(self, var: Var) -> Variable:
        found = self._context.scope.find_var(var.name)
        if found is None or not found.is_set:
            self._miss(var)
        return found

    def _refuse(self, var: Var, variable: Variable | None) -> NoReturn:
        """Raise what there is to say of a variable that holds nothing, or not what `var` declares."""
        if variable is None or not variable.is_set:
            self._miss(var)
        value = variable.held
        held = f"{from_torch(value.dtype)}{list(value.shape)}" if isinstance(value, torch.Tensor) else f"a {type(value).__name__}"
        raise ShapeError(
            f'"{var.name}" holds {held} in the scope, but is {var.type_text} in the program', location=var.location, given=[var.describe()]
        )

    def _miss(self, var: Var) -> NoReturn:
        """Raise UnsetVarError of the op that reads `var`, or where it is only fetched, of itself."""
        prepared, scope = self._prepared, self._context.scope
        reader = next((op for op in (*prepared.ops, *prepared.tail) if any(read.name == var.name for read in op.reads)), None)
        if reader is not None:
            read_var(var, reader, scope)
        raise AssertionError(scope[var.name])  # which raises
