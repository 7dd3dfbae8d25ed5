"""Scope: values by name."""

import threading
from collections.abc import Iterator

import torch

from oarlock.errors import ScopeError, UnsetVarError
from oarlock.runtime.value import exact_numbers, to_tensor
from oarlock.runtime.variable import Variable

__all__ = ["Scope", "frozen_in", "lock_of_writing"]


class Scope:
    """Values by name, with a parent to ask when a name is not here.

    Reading climbs to the parents, writing never does. A scope has no operators and no device, and computes
    nothing. `Scope()` is a root; `new_scope()` makes a child, which keeps its parent alive and is listed by it in
    the order of creation. The names of a scope are guarded by a lock, so threads may share one; the tensors in it
    are not.
    """

    def __init__(self) -> None:
        self.parent: Scope | None = None
        self.name = ""
        self.children: list[Scope] = []
        self.dropped = False
        self.frozen: frozenset[str] = frozenset()  # the names here of what is not to be estimated
        self._variables: dict[str, Variable] = {}
        self._lock = threading.RLock()
        self._writing = threading.RLock()

    # Children

    def new_scope(self, name: str = "") -> "Scope":
        """Make a child, whatever children there are."""
        child = Scope()
        child.parent = self
        child.name = name
        with self._lock:
            self._require_alive()
            self.children.append(child)
        return child

    def find_or_create_scope(self, name: str) -> "Scope":
        """The first child called `name`, made where there is none; without a name, always a new one."""
        with self._lock:
            found = next((child for child in self.children if child.name == name), None) if name else None
            return found or self.new_scope(name)

    def delete_scope(self, child: "Scope") -> None:
        """Drop a child of this scope. Raises ScopeError where it is not one: unknown, dropped already, or a grandchild."""
        with self._lock:
            if not any(child is other for other in self.children):
                raise ScopeError("that is not a child of this scope")
            child.drop()

    def drop(self) -> None:
        """Let go of every value here and in the children, and leave the parent; handles raise from now on."""
        if self.parent is not None:
            with self.parent._lock:
                self.parent.children = [child for child in self.parent.children if child is not self]
        pending = [self]
        while pending:
            scope = pending.pop()
            pending += scope.children
            variables = scope._variables
            scope.dropped = True  # first: from here on nobody can give a variable another value
            scope.children, scope._variables = [], {}
            for variable in variables.values():
                variable._forget(alone=False)

    def __del__(self) -> None:
        for variable in getattr(self, "_variables", {}).values():  # handles may outlive what nobody dropped, too
            variable._forget(alone=True)

    def _require_alive(self) -> None:
        if self.dropped:
            raise ScopeError("this scope was dropped")

    # Variables

    def var(self, name: str) -> Variable:
        """The variable called `name` here, made where there is none. The parent is not asked."""
        with self._lock:
            self._require_alive()
            found = self._variables.get(name)
            return self.new_var(name) if found is None else found

    def new_var(self, name: str | None = None) -> Variable:
        """Make a variable here, under a name of its own where none is given. Raises ScopeError where `name` is taken here."""
        with self._lock:
            self._require_alive()
            if name is None:
                number = len(self._variables)
                while f"variable_{number}" in self._variables:
                    number += 1
                name = f"variable_{number}"
            if not name:
                raise ScopeError("a variable's name is not empty")
            if name in self._variables:
                raise ScopeError(f'"{name}" is in this scope already; scope.var finds or makes it')
            self._variables[name] = Variable._in_scope(self, name)
            return self._variables[name]

    def erase(self, name: str) -> None:
        """Let go of the variable called `name` here, and of its value. Raises ScopeError where there is none."""
        with self._lock:
            found = self._variables.get(name)
            if found is None:
                raise ScopeError(f'"{name}" is not in this scope')
            found.reset()
            del self._variables[name]

    def find_var(self, name: str) -> Variable | None:
        """The variable called `name` here or in the nearest parent that has one; None where none has. Makes nothing."""
        scope: Scope | None = self
        while scope is not None:
            if scope.dropped:
                scope._require_alive()
            found = scope._variables.get(name)
            if found is not None:
                return found
            scope = scope.parent
        return None

    def find_local_var(self, name: str) -> Variable | None:
        """The variable called `name` here; None where there is none."""
        self._require_alive()
        return self._variables.get(name)

    # Values

    def set(self, name: str, value: object) -> None:
        """Give the variable called `name` here a value; arrays and numbers become tensors.

        Arrays and tensors keep their dtype, and a program that declares another refuses them. Python's numbers have none of their own: they
        take the one that is declared, as a feed's do, and are float32, int64 or bool until a program is met.
        """
        tensor = to_tensor(value)
        self.var(name).give(tensor, own=not isinstance(value, torch.Tensor), exact=exact_numbers(value, tensor))

    def get(self, name: str, default: object = None) -> object:
        """The value called `name`, here or in a parent; `default` where there is none."""
        found = self.find_var(name)
        return found.value if found is not None and found.is_set else default

    def __getitem__(self, name: str) -> object:
        found = self.find_var(name)
        if found is None:
            given = [f"there are: {', '.join(self)}"] if len(self) else []
            raise UnsetVarError(f'no variable "{name}" in this scope or a parent', given=given)
        return found.value

    def __setitem__(self, name: str, value: object) -> None:
        self.set(name, value)

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and self.find_var(name) is not None

    def __iter__(self) -> Iterator[str]:
        """The names here, in the order in which they were made."""
        with self._lock:
            return iter(list(self._variables))

    def __len__(self) -> int:
        return len(self._variables)

    def __bool__(self) -> bool:
        return True  # an empty scope is a scope

    def __repr__(self) -> str:
        return f"<Scope {self.name!r} of {len(self)} variables, {len(self.children)} children>"


def frozen_in(scope: Scope) -> frozenset[str]:
    """The names under which `scope` finds what training may not change."""
    found, names = scope.frozen, set[str]()
    around = scope.parent
    while around is not None:
        if around.frozen - found:
            names.update(around.frozen)
        around = around.parent
    return found | {name for name in names if _is_frozen(scope, name)} if names else found


def _is_frozen(scope: Scope, name: str) -> bool:
    """Whether the nearest variable called `name` is one that training may not change."""
    holder: Scope | None = scope
    while holder is not None and holder.find_local_var(name) is None:
        holder = holder.parent
    return holder is not None and name in holder.frozen


def lock_of_writing(scope: Scope) -> threading.RLock:
    """Held by a run that writes over tensors of a scope, its parents and all their children: one run at a time."""
    while scope.parent is not None:
        scope = scope.parent
    return scope._writing
