"""Ownership of state in a scope: learning rates, moments and counts belong to one program."""

from collections.abc import Iterable
from typing import NoReturn

from oarlock.errors import ScopeError
from oarlock.ir.location import here
from oarlock.ir.operation import Role
from oarlock.ir.program import Program
from oarlock.ir.traversal import walk
from oarlock.ir.var import Var
from oarlock.runtime.scope import Scope
from oarlock.runtime.variable import Variable

__all__ = ["belongs_to", "own", "require_not_elsewhere", "require_own", "states_of"]


def states_of(program: Program) -> list[Var]:
    """Return the persistable variables that belong to `program` alone: metric counts, and variables used only by updates.

    Parameters, variables that forward ops read or keep, and unused ones, such as buffers of imported modules, may be shared.
    """
    read: set[Var] = set()
    by_updates: set[Var] = set()
    kept: set[Var] = set()
    written: set[Var] = set()
    for op in walk(program.main):
        if op.is_commit:
            (kept if op.role is Role.FORWARD else by_updates if op.role is Role.MEASURE else written).update(op.writes)
        else:
            (by_updates if op.role is Role.UPDATE else read).update(op.reads)
    alone = by_updates | (written - read)
    return [var for var in program.persistables() if not var.parameter and var not in kept and var in alone]


def require_own(program: Program, scope: Scope, states: Iterable[Var], *, new: bool = False) -> None:
    """Check that the variables `states` in `scope` do not belong to another program. Raises ScopeError.

    A `new` run rejects variables without a known owner too.
    """

    def belongs_elsewhere(name: str) -> bool:
        found = scope.find_local_var(name)
        return found is not None and found.is_set and not belongs_to(program, found, new=new)

    names = {var.name for var in states}
    if any(map(belongs_elsewhere, names)):
        _refuse([name for name in scope if belongs_elsewhere(name) and (name in names or scope.var(name).owner is not None)])


def belongs_to(program: Program, variable: Variable, *, new: bool = False) -> bool:
    """Return whether `variable` belongs to `program`, or has no known owner. A `new` run owns no variable without a known owner."""
    owner = variable.owner
    return owner == program.lineage or (owner is None and not new)


def require_not_elsewhere(program: Program, scope: Scope, vars: Iterable[Var]) -> None:
    """Check that the variables found from `scope` are not state of another program. Raises ScopeError."""
    found = {var.name: scope.find_var(var.name) for var in vars}
    held = [name for name, variable in found.items() if variable is not None and not belongs_to(program, variable)]
    if held:
        _refuse(held)


def _refuse(held: list[str]) -> NoReturn:
    raise ScopeError(
        f"the scope holds the state of another program: {', '.join(held[:8])}{', ...' if len(held) > 8 else ''}",
        location=here(),
        contract="the state of optimizers and metrics (learning rate, steps, moments, counts) belongs to one program",
        hint="use ol.init(program, scope.new_scope()) to train the same parameters with separate state, "
        "or ol.train(result) to continue an existing run",
    )


def own(program: Program, scope: Scope, states: Iterable[Var]) -> None:
    """Make `program` the owner of the variables `states` that `scope` itself holds."""
    for var in states:
        found = scope.find_local_var(var.name)
        if found is not None:
            found.owner = program.lineage
