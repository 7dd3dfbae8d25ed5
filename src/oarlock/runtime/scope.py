"""Scope: values by name."""

import threading
import weakref
from collections.abc import Iterator

from oarlock.errors import ScopeError, UnsetVarError

__all__ = ["Scope", "Variable"]

_EMPTY = object()
_BY_SCOPE = object()


class Variable:
    """One slot of a scope. Only a scope makes one; it holds nothing until it is set.

    A handle does not keep its scope alive: used after the scope was dropped, it raises ScopeError.
    """

    __slots__ = ("__weakref__", "_scope", "_value", "name")

    def __init__(self, token: object, scope: "Scope", name: str):
        if token is not _BY_SCOPE:
            raise ScopeError("only a scope makes a variable: scope.var(name)")
        self.name = name
        self._scope = weakref.ref(scope)
        self._value: object = _EMPTY

    def _require_scope(self) -> None:
        scope = self._scope()
        if scope is None or scope.dropped:
            raise ScopeError(f'"{self.name}" belonged to a scope that was dropped')

    @property
    def is_set(self) -> bool:
        self._require_scope()
        return self._value is not _EMPTY

    @property
    def value(self) -> object:
        """What it holds. Raises UnsetVarError where that is nothing yet."""
        self._require_scope()
        if self._value is _EMPTY:
            raise UnsetVarError(f'"{self.name}" is declared but has no value yet')
        return self._value

    @value.setter
    def value(self, value: object) -> None:
        self._require_scope()
        self._value = value


class Scope:
    """Values by name, with a parent to ask when a name is not here.

    Reading climbs to the parents, writing never does. A child keeps its parent alive; a parent lists its
    children in the order in which they were made. The names of a scope are guarded by a lock, so threads
    may share one; the tensors in it are not.
    """

    def __init__(self) -> None:
        self.parent: Scope | None = None
        self.name = ""
        self.children: list[Scope] = []
        self.dropped = False
        self._variables: dict[str, Variable] = {}
        self._lock = threading.RLock()

    def new_scope(self, name: str = "") -> "Scope":
        """Make a child."""
        child = Scope()
        child.parent = self
        child.name = name
        with self._lock:
            self._require_alive()
            self.children.append(child)
        return child

    def drop(self) -> None:
        """Let go of every value here and in the children, and leave the parent; handles raise from now on."""
        if self.parent is not None:
            with self.parent._lock:
                self.parent.children = [child for child in self.parent.children if child is not self]
        pending = [self]
        while pending:
            scope = pending.pop()
            pending += scope.children
            scope.children = []
            scope._variables = {}
            scope.dropped = True

    def _require_alive(self) -> None:
        if self.dropped:
            raise ScopeError("this scope was dropped")

    def var(self, name: str) -> Variable:
        """The variable called `name` here; made, empty, where there is none. The parent is not asked."""
        with self._lock:
            self._require_alive()
            found = self._variables.get(name)
            if found is None:
                found = self._variables[name] = Variable(_BY_SCOPE, self, name)
            return found

    def find_var(self, name: str) -> Variable | None:
        """The variable called `name` here or in the nearest parent that has one; None where none has."""
        scope: Scope | None = self
        while scope is not None:
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

    def set(self, name: str, value: object) -> None:
        """Give the variable called `name` here a value; arrays and numbers become tensors."""
        from oarlock.runtime.value import to_tensor

        self.var(name).value = to_tensor(value)

    def get(self, name: str, default: object = None) -> object:
        """The value called `name`, here or in a parent; `default` where there is none."""
        found = self.find_var(name)
        return found.value if found is not None and found.is_set else default

    def __getitem__(self, name: str) -> object:
        found = self.find_var(name)
        if found is None:
            raise UnsetVarError(
                f'no variable "{name}" in this scope or a parent', given=[f"there are: {', '.join(self)}"] if len(self) else ()
            )
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

    def __repr__(self) -> str:
        return f"<Scope {self.name!r} of {len(self)} variables, {len(self.children)} children>"
