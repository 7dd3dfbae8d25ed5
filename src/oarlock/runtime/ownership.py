"""Whose the state of an optimizer or a metric is that lies in a scope: learning rates, moments, counts belong to one program."""

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
    """The persistable variables of `program` that are its alone: what metrics count; what updates read, or write and nothing else reads.

    Parameters, and what forward ops read or keep, may be shared; so may what no op touches, such as a buffer of an imported module.
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
    """Raise ScopeError where `scope` holds, under a name of `states`, what belongs to another program.

    To a run that is `new`, what nobody is known to own belongs to another one too.
    """

    def belongs_elsewhere(name: str) -> bool:
        found = scope.find_local_var(name)
        return found is not None and found.is_set and not belongs_to(program, found, new=new)

    names = {var.name for var in states}
    if any(map(belongs_elsewhere, names)):
        _refuse([name for name in scope if belongs_elsewhere(name) and (name in names or scope.var(name).owner is not None)])


def belongs_to(program: Program, variable: Variable, *, new: bool = False) -> bool:
    """Whether `variable` is state of `program`, or of no program that is known. To a run that is `new`, that is another's too."""
    owner = variable.owner
    return owner == program.lineage or (owner is None and not new)


def require_not_elsewhere(program: Program, scope: Scope, vars: Iterable[Var]) -> None:
    """Raise ScopeError where what a run of `program` finds from `scope` of `vars` is state of another program."""
    found = {var.name: scope.find_var(var.name) for var in vars}
    held = [name for name, variable in found.items() if variable is not None and not belongs_to(program, variable)]
    if held:
        _refuse(held)


def _refuse(held: list[str]) -> NoReturn:
    raise ScopeError(
        f"the scope holds the state of another program: {', '.join(held[:8])}{', ...' if len(held) > 8 else ''}",
        location=here(),
        contract="what an optimizer or a metric keeps belongs to one program: its learning rate, its steps, its moments, its counts",
        hint="ol.init(program, scope.new_scope()) keeps the state of this program apart, and trains the same parameters; "
        "ol.train(result) goes on with a run that is there",
    )


def own(program: Program, scope: Scope, states: Iterable[Var]) -> None:
    """Let what `scope` itself holds of `states` belong to `program`."""
    for var in states:
        found = scope.find_local_var(var.name)
        if found is not None:
            found.owner = program.lineage
