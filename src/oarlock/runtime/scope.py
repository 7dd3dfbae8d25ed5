"""Scope: a dictionary of values with parents."""

import threading
from collections.abc import Iterator
from typing import NoReturn

import torch

from oarlock.errors import ArgumentError, ScopeError, UnsetVarError
from oarlock.ir.location import here
from oarlock.ir.var import Var
from oarlock.runtime.fork import released_by_forks
from oarlock.runtime.value import exact_numbers, to_tensor
from oarlock.runtime.variable import Variable
from oarlock.suggestions import list_names

__all__ = ["Scope", "frozen_in", "lock_of_writing"]


class Scope:
    """A tree node that stores values by name; lookups continue in the parent if a name is missing.

    Reading searches the parents, writing never does. `Scope()` creates a root; `new_scope()` creates a child, which keeps its parent alive
    and is listed in the parent's `children` in order of creation. A lock guards the names of a scope, so threads may share one; it does not
    guard the tensors. Using or copying a dropped scope raises ScopeError; a name that is not a str raises ArgumentError.
    """

    def __init__(self) -> None:
        self._begin(None, "", released_by_forks(threading.RLock()), released_by_forks(threading.RLock()))

    def _begin(self, parent: "Scope | None", name: str, lock: threading.RLock, writing: threading.RLock) -> None:
        """Initialize. The scopes of a tree share one lock for names and another for runs that overwrite values."""
        self._parent = parent
        self.name = name
        self._children: list[Scope] = []
        self.dropped = False
        self.frozen: frozenset[str] = frozenset()  # names of variables here that training must not change
        self.erased = 0  # number of erased variables; prepared steps compare it to detect erasures
        self._variables: dict[str, Variable] = {}
        self._lock = lock
        self._writing = writing

    # Children

    @property
    def parent(self) -> "Scope | None":
        """The parent scope, or None for a root."""
        self._require_alive()
        return self._parent

    @property
    def children(self) -> "list[Scope]":
        """The child scopes, in order of creation."""
        self._require_alive()
        return self._children

    def new_scope(self, name: str = "") -> "Scope":
        """Create a child. Names of children need not be unique."""
        _require_text(name, "scope")
        child = Scope.__new__(Scope)
        child._begin(self, name, self._lock, self._writing)
        with self._lock:
            self._require_alive()
            self._children.append(child)
        return child

    def find_or_create_scope(self, name: str) -> "Scope":
        """Return the first child called `name`, creating it if needed. Without a name, always create a child."""
        _require_text(name, "scope")
        with self._lock:
            found = next((child for child in self.children if child.name == name), None) if name else None
            return found or self.new_scope(name)

    def delete_scope(self, child: "Scope") -> None:
        """Drop a child of this scope. Raises ScopeError if it is not a direct child or was dropped before."""
        with self._lock:
            if not any(child is other for other in self.children):
                raise ScopeError("the scope to delete is not a child of this scope")
        child.drop()  # without the lock: drop waits for runs, which may need it

    def drop(self) -> None:
        """Release every value here and in the children, and detach from the parent. Scopes and handles raise ScopeError afterwards.

        Dropping a scope twice has no effect.
        """
        parent = self._parent
        if parent is not None:
            with parent._lock:
                parent._children = [child for child in parent._children if child is not self]
        pending = [self]
        while pending:
            scope = pending.pop()
            with scope._lock:
                scope.dropped = True  # first, so that no variable gets a new value after this point
                pending += scope._children
                variables = scope._variables
                scope._parent, scope._children, scope._variables = None, [], {}
            for variable in variables.values():
                variable._forget()

    def __del__(self) -> None:
        for variable in getattr(self, "_variables", {}).values():  # handles may outlive a scope that was never dropped
            variable._forget(alone=True)

    def __copy__(self, *_: object) -> NoReturn:
        raise ScopeError(
            "a scope cannot be copied: its variables belong to it alone",
            hint="for name in scope: other.set(name, scope[name]), where other = ol.Scope()",
        )

    __deepcopy__ = __reduce_ex__ = __copy__  # type: ignore[assignment]

    def _require_alive(self) -> None:
        if self.dropped:
            raise ScopeError("this scope was dropped")

    # Variables

    def var(self, name: str) -> Variable:
        """Return the variable `name` of this scope, creating it if needed. Parents are not searched."""
        if not isinstance(name, str):
            _refuse_name(name)
        with self._lock:
            self._require_alive()
            found = self._variables.get(name)
            return self.new_var(name) if found is None else found

    def new_var(self, name: str | None = None) -> Variable:
        """Create a variable, with a generated name if none is given. Raises ScopeError if `name` exists here."""
        with self._lock:
            self._require_alive()
            if name is None:
                number = len(self._variables)
                while f"variable_{number}" in self._variables:
                    number += 1
                name = f"variable_{number}"
            _require_text(name)
            if not name:
                raise ScopeError("a variable's name must not be empty")
            if name in self._variables:
                raise ScopeError(f'"{name}" already exists in this scope; use scope.var to find or create it')
            self._variables[name] = Variable._in_scope(self, name)
            return self._variables[name]

    def erase(self, name: str) -> None:
        """Remove the variable `name` of this scope and release its value. Handles to it raise ScopeError afterwards.

        Raises ScopeError if there is no such variable.
        """
        _require_text(name)
        with self._lock:
            self._require_alive()
            found = self._variables.pop(name, None)
            if found is None:
                raise ScopeError(f'"{name}" is not in this scope')
            self.frozen -= {name}
            self.erased += 1
        found._forget(erased=True)  # without the lock: _forget waits for runs, which may need it

    def find_var(self, name: str) -> Variable | None:
        """Return the variable `name` of this scope or the nearest parent that has one, else None. Creates nothing."""
        if not isinstance(name, str):
            _refuse_name(name)
        scope: Scope | None = self
        while scope is not None:
            if scope.dropped:
                scope._require_alive()
            found = scope._variables.get(name)
            if found is not None:
                return found
            scope = scope._parent
        return None

    def find_local_var(self, name: str) -> Variable | None:
        """Return the variable `name` of this scope, or None."""
        if not isinstance(name, str):
            _refuse_name(name)
        self._require_alive()
        return self._variables.get(name)

    # Values

    def set(self, name: str, value: object) -> None:
        """Set the variable `name` of this scope. Arrays and numbers are converted to tensors.

        Arrays and tensors keep their dtype; a program that declares a different one rejects them. Python numbers are stored as float32,
        int64 or bool, and converted to the declared dtype when a program uses them, as in a feed.
        """
        tensor = to_tensor(value)
        self.var(name).give(tensor, own=not isinstance(value, torch.Tensor), exact=exact_numbers(value, tensor))

    def get(self, name: str, default: object = None) -> object:
        """Return the value `name` of this scope or a parent, or `default` if there is none."""
        found = self.find_var(name)
        return found.value if found is not None and found.is_set else default

    def __getitem__(self, name: str) -> object:
        found = self.find_var(name)
        if found is None:
            given = [f"there are: {list_names(name, self)}"] if len(self) else []
            raise UnsetVarError(f'no variable "{name}" in this scope or a parent', given=given)
        return found.value

    def __setitem__(self, name: str, value: object) -> None:
        self.set(name, value)

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and self.find_var(name) is not None

    def __iter__(self) -> Iterator[str]:
        """Iterate over the names in this scope, in order of creation."""
        with self._lock:
            self._require_alive()
            return iter(list(self._variables))

    def __len__(self) -> int:
        self._require_alive()
        return len(self._variables)

    def __bool__(self) -> bool:
        return True  # an empty scope is still true

    def __repr__(self) -> str:
        if self.dropped:
            return f"<dropped Scope {self.name!r}>"
        return f"<Scope {self.name!r} of {len(self)} variables, {len(self.children)} children>"


def _require_text(name: object, what: str = "variable") -> None:
    if not isinstance(name, str):
        _refuse_name(name, what)


def _refuse_name(name: object, what: str = "variable") -> NoReturn:
    """Raise ArgumentError for a name that is not a str. Hot paths test for str inline to save a call."""
    raise ArgumentError(
        f"a {what}'s name must be a str, not {type(name).__name__} {name!r:.60}",
        location=here(),
        hint=f'its name is "{name.name}"' if isinstance(name, Var) else None,
    )


def frozen_in(scope: Scope) -> frozenset[str]:
    """Return the names of variables, as seen from `scope`, that training must not change."""
    found, names = scope.frozen, set[str]()
    around = scope._parent
    while around is not None:
        if around.frozen - found:
            names.update(around.frozen)
        around = around._parent
    return found | {name for name in names if _is_frozen(scope, name)} if names else found


def _is_frozen(scope: Scope, name: str) -> bool:
    """Return whether the nearest variable called `name` is frozen."""
    holder: Scope | None = scope
    while holder is not None and holder.find_local_var(name) is None:
        holder = holder._parent
    return holder is not None and name in holder.frozen


def lock_of_writing(scope: Scope) -> threading.RLock:
    """Return the lock that a run holds while it overwrites tensors of this tree of scopes: one run at a time."""
    return scope._writing
