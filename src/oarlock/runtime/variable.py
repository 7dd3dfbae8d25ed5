"""Variable: one typed slot of a scope."""

import sys
import threading
import weakref
from enum import Enum
from typing import TYPE_CHECKING, Protocol, TypeVar

import numpy
import torch

from oarlock.errors import ScopeError, UnsetVarError
from oarlock.ir.operation import Op
from oarlock.registry.declaration import Operator

if TYPE_CHECKING:
    from oarlock.runtime.scope import Scope

__all__ = ["State", "Variable"]

_BY_US = 3  # references to a tensor that nobody else holds, as `Variable.take` counts them

_T = TypeVar("_T")
_EMPTY = object()
_BY_SCOPE = object()


class State(Enum):
    """Whether a variable holds something yet."""

    DECLARED = "declared, not computed"
    SET = "set"


class _Owner(Protocol):
    dropped: bool


class Variable:
    """What one name of one scope stands for: an int, bool, float, half, string, tensor, operator or scope, or nothing yet.

    Only a scope makes one, and it belongs to that scope alone. It has no name of its own: names are the scope's. A
    handle does not keep its scope alive; used after the scope was dropped, it raises ScopeError.

    A half is a `numpy.float16`, an operation an `Op` (or an `Operator`).
    """

    __slots__ = ("__weakref__", "_label", "_of_run", "_scope", "_taken", "_value", "estimated")

    def __init__(self, token: object, scope: "Scope", label: str):
        if token is not _BY_SCOPE:
            raise ScopeError("only a scope makes a variable: scope.var(name)")
        self._label = label  # for messages
        self._scope: weakref.ref[_Owner] = weakref.ref(scope)
        self._value: object = _EMPTY
        self._of_run = False  # whether a run made the value: then nobody holds its memory but those to whom it was handed out
        self._taken: threading.RLock | None = None  # held by the run that is about to write over the value
        self.estimated = False
        """Whether training may change it: what a program calls `trainable`."""

    @classmethod
    def in_scope(cls, scope: "Scope", label: str) -> "Variable":
        """For `Scope` alone."""
        return cls(_BY_SCOPE, scope, label)

    def __repr__(self) -> str:
        return f"<Variable {State.DECLARED.value if self._value is _EMPTY else type(self._value).__name__}>"

    def _require_scope(self) -> None:
        scope = self._scope()
        if scope is None or scope.dropped:
            raise ScopeError(f'"{self._label}" belonged to a scope that was dropped')

    @property
    def state(self) -> State:
        """`DECLARED` until it is given a value."""
        self._require_scope()
        return State.DECLARED if self._value is _EMPTY else State.SET

    @property
    def is_set(self) -> bool:
        scope = self._scope()
        if scope is None or scope.dropped:
            self._require_scope()
        return self._value is not _EMPTY

    @property
    def value(self) -> object:
        """What it holds. Raises UnsetVarError where that is nothing yet."""
        scope = self._scope()
        if scope is None or scope.dropped:
            self._require_scope()
        if self._value is _EMPTY:
            raise UnsetVarError(f'"{self._label}" is declared, but has no value yet')
        value = self._value  # held before anything is asked, so that a run sees that it is, or we see that the run has taken it
        taken = self._taken
        if taken is None:
            return value
        with taken:
            return self._value

    @value.setter
    def value(self, value: object) -> None:
        self._require_scope()
        self._value = value
        self._of_run = False

    # What a run does, which has seen that the scope is there, holds the lock of writing, and may write over memory that nobody else holds

    @property
    def held(self) -> object:
        """What it holds; where that is nothing yet, something that is no tensor."""
        return self._value

    def take(self, lock: "threading.RLock") -> object:
        """What it `held`, for a run that writes over it: a tensor itself where nobody else holds its memory, else a copy.

        Until `give_back`, whoever asks for the value waits for `lock`, which the run holds.
        """
        self._taken = lock
        value = self._value
        if not isinstance(value, torch.Tensor):
            return value
        alone = (
            self._of_run and sys.getrefcount(value) == _BY_US and torch._C._storage_Use_Count(value.untyped_storage()._cdata) == _BY_US - 1
        )  # type: ignore[attr-defined]
        return value if alone else value.clone(memory_format=torch.contiguous_format)

    def give_back(self, value: torch.Tensor | None) -> None:
        """Hold what a run has made; what it held before, where that is None."""
        if value is not None:
            self._value = value
            self._of_run = True
        self._taken = None

    def is_type(self, type: type) -> bool:
        """Whether it holds a `type`: int, bool, float, str, numpy.float16, torch.Tensor, Op or Scope. A bool is no int."""
        self._require_scope()
        return _is_a(self._value, type)

    def get(self, type: type[_T]) -> _T:
        """What it holds, which is a `type`. Raises UnsetVarError where it holds nothing, ScopeError for another type."""
        value = self.value
        if not _is_a(value, type):
            raise ScopeError(f'"{self._label}" holds a {_name(value)}, not a {type.__name__}')
        return value  # type: ignore[return-value]

    def get_mutable(self, type: type[_T]) -> _T:
        """What it holds, made first where it holds nothing: this is when memory is allocated.

        A new tensor is empty, a new number 0, a new string "". Raises ScopeError where it holds another type, which is
        never replaced silently: `reset()` comes first.
        """
        self._require_scope()
        if self._value is _EMPTY:
            self._value = self._make(type)
        return self.get(type)

    def _make(self, type: type) -> object:
        if type is torch.Tensor:
            return torch.empty(0)
        if type in (int, bool, float, str, numpy.float16):
            return type()
        if hasattr(type, "new_scope"):
            return self._scope().new_scope()  # type: ignore[union-attr]
        raise ScopeError(f'"{self._label}": there is no empty {type.__name__} to begin with; set a value')

    def reset(self) -> None:
        """Hold nothing again."""
        self._require_scope()
        self._value = _EMPTY


def _is_a(value: object, type: type) -> bool:
    if type is Op:
        return isinstance(value, Op | Operator)
    return isinstance(value, type) and not (type is int and isinstance(value, bool))


def _name(value: object) -> str:
    return type(value).__name__
