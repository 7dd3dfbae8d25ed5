"""Scope: values by name."""

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
    """Values by name, with a parent to ask when a name is not here.

    Reading climbs to the parents, writing never does. A scope has no operators and no device, and computes
    nothing. `Scope()` is a root; `new_scope()` makes a child, which keeps its parent alive and is listed by it in
    the order of creation. The names of a scope are guarded by a lock, so threads may share one; the tensors in it
    are not. Once dropped it raises ScopeError, and so does copying it; a name that is no text raises ArgumentError.
    """

    def __init__(self) -> None:
        self._begin(None, "", released_by_forks(threading.RLock()), released_by_forks(threading.RLock()))

    def _begin(self, parent: "Scope | None", name: str, lock: threading.RLock, writing: threading.RLock) -> None:
        """A tree of scopes has one lock for its names, and another for runs that write over what it holds."""
        self._parent = parent
        self.name = name
        self._children: list[Scope] = []
        self.dropped = False
        self.frozen: frozenset[str] = frozenset()  # the names here of what is not to be estimated
        self.erased = 0  # how many variables were: a step that remembers some looks again
        self._variables: dict[str, Variable] = {}
        self._lock = lock
        self._writing = writing

    # Children

    @property
    def parent(self) -> "Scope | None":
        """The scope in which this one was made; None for a root."""
        self._require_alive()
        return self._parent

    @property
    def children(self) -> "list[Scope]":
        """The scopes that were made in this one, in that order."""
        self._require_alive()
        return self._children

    def new_scope(self, name: str = "") -> "Scope":
        """Make a child, whatever children there are."""
        _require_text(name, "scope")
        child = Scope.__new__(Scope)
        child._begin(self, name, self._lock, self._writing)
        with self._lock:
            self._require_alive()
            self._children.append(child)
        return child

    def find_or_create_scope(self, name: str) -> "Scope":
        """The first child called `name`, made where there is none; without a name, always a new one."""
        _require_text(name, "scope")
        with self._lock:
            found = next((child for child in self.children if child.name == name), None) if name else None
            return found or self.new_scope(name)

    def delete_scope(self, child: "Scope") -> None:
        """Drop a child of this scope. Raises ScopeError where it is not one: unknown, dropped already, or a grandchild."""
        with self._lock:
            if not any(child is other for other in self.children):
                raise ScopeError("that is not a child of this scope")
        child.drop()  # without the lock: a run that it waits for may ask for it

    def drop(self) -> None:
        """Let go of every value here and in the children, and leave the parent; scopes and handles raise from now on.

        Dropped once more, a scope stays dropped.
        """
        parent = self._parent
        if parent is not None:
            with parent._lock:
                parent._children = [child for child in parent._children if child is not self]
        pending = [self]
        while pending:
            scope = pending.pop()
            with scope._lock:
                scope.dropped = True  # first: from here on nobody can give a variable another value
                pending += scope._children
                variables = scope._variables
                scope._parent, scope._children, scope._variables = None, [], {}
            for variable in variables.values():
                variable._forget()

    def __del__(self) -> None:
        for variable in getattr(self, "_variables", {}).values():  # handles may outlive what nobody dropped, too
            variable._forget(alone=True)

    def __copy__(self, *_: object) -> NoReturn:
        raise ScopeError(
            "a scope is not copied: its variables belong to it alone",
            hint="for name in scope: other.set(name, scope[name]), where other = ol.Scope()",
        )

    __deepcopy__ = __reduce_ex__ = __copy__  # type: ignore[assignment]

    def _require_alive(self) -> None:
        if self.dropped:
            raise ScopeError("this scope was dropped")

    # Variables

    def var(self, name: str) -> Variable:
        """The variable called `name` here, made where there is none. The parent is not asked."""
        if not isinstance(name, str):
            _refuse_name(name)
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
            _require_text(name)
            if not name:
                raise ScopeError("a variable's name is not empty")
            if name in self._variables:
                raise ScopeError(f'"{name}" is in this scope already; scope.var finds or makes it')
            self._variables[name] = Variable._in_scope(self, name)
            return self._variables[name]

    def erase(self, name: str) -> None:
        """Let go of the variable called `name` here, and of its value; handles to it raise from now on.

        Raises ScopeError where there is none.
        """
        _require_text(name)
        with self._lock:
            self._require_alive()
            found = self._variables.pop(name, None)
            if found is None:
                raise ScopeError(f'"{name}" is not in this scope')
            self.frozen -= {name}
            self.erased += 1
        found._forget(erased=True)  # without the lock: a run that it waits for may ask for it

    def find_var(self, name: str) -> Variable | None:
        """The variable called `name` here or in the nearest parent that has one; None where none has. Makes nothing."""
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
        """The variable called `name` here; None where there is none."""
        if not isinstance(name, str):
            _refuse_name(name)
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
            given = [f"there are: {list_names(name, self)}"] if len(self) else []
            raise UnsetVarError(f'no variable "{name}" in this scope or a parent', given=given)
        return found.value

    def __setitem__(self, name: str, value: object) -> None:
        self.set(name, value)

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and self.find_var(name) is not None

    def __iter__(self) -> Iterator[str]:
        """The names here, in the order in which they were made."""
        with self._lock:
            self._require_alive()
            return iter(list(self._variables))

    def __len__(self) -> int:
        self._require_alive()
        return len(self._variables)

    def __bool__(self) -> bool:
        return True  # an empty scope is a scope

    def __repr__(self) -> str:
        if self.dropped:
            return f"<Scope {self.name!r} that was dropped>"
        return f"<Scope {self.name!r} of {len(self)} variables, {len(self.children)} children>"


def _require_text(name: object, what: str = "variable") -> None:
    if not isinstance(name, str):
        _refuse_name(name, what)


def _refuse_name(name: object, what: str = "variable") -> NoReturn:
    """Raise ArgumentError for a name that is no text. Who is in a hurry asks for that first, which costs less than a call."""
    raise ArgumentError(
        f"a {what}'s name is text, not {type(name).__name__} {name!r:.60}",
        location=here(),
        hint=f'its name is "{name.name}"' if isinstance(name, Var) else None,
    )


def frozen_in(scope: Scope) -> frozenset[str]:
    """The names under which `scope` finds what training may not change."""
    found, names = scope.frozen, set[str]()
    around = scope._parent
    while around is not None:
        if around.frozen - found:
            names.update(around.frozen)
        around = around._parent
    return found | {name for name in names if _is_frozen(scope, name)} if names else found


def _is_frozen(scope: Scope, name: str) -> bool:
    """Whether the nearest variable called `name` is one that training may not change."""
    holder: Scope | None = scope
    while holder is not None and holder.find_local_var(name) is None:
        holder = holder._parent
    return holder is not None and name in holder.frozen


def lock_of_writing(scope: Scope) -> threading.RLock:
    """Held by a run that writes over tensors of a scope, its parents and all their children: one run at a time."""
    return scope._writing
