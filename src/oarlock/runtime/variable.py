"""Variable: one typed slot of a scope."""

import sys
import threading
import weakref
from collections.abc import Callable
from enum import Enum
from typing import TYPE_CHECKING, Protocol, TypeVar

import numpy
import torch

from oarlock.errors import ScopeError, UnsetVarError
from oarlock.ir.operation import Op
from oarlock.registry.declaration import Operator

if TYPE_CHECKING:
    from oarlock.runtime.scope import Scope

__all__ = ["Claim", "State", "Variable"]

_BY_US = 3  # references to a tensor that nobody else holds, as `Variable.take` counts them

_T = TypeVar("_T")
_R = TypeVar("_R")
_EMPTY = object()
_BY_SCOPE = object()


class State(Enum):
    """Whether a variable holds something yet."""

    DECLARED = "declared, not computed"
    SET = "set"


class _Owner(Protocol):
    dropped: bool


class Claim:
    """That nobody but a run and those after it holds what some variables hold. It stands until somebody asks for one of them.

    Whoever asks waits for `lock`, which is held while a run writes over the values.
    """

    __slots__ = ("__weakref__", "lock", "stands")

    def __init__(self, lock: "threading.RLock"):
        self.lock = lock
        self.stands = False


class Variable:
    """What one name of one scope stands for: an int, bool, float, half, string, tensor, operator or scope, or nothing yet.

    Only a scope makes one, and it belongs to that scope alone. It has no name of its own: names are the scope's. A
    handle does not keep its scope alive; used after the scope was dropped, it raises ScopeError.

    A half is a `numpy.float16`, an operation an `Op` (or an `Operator`).
    """

    __slots__ = ("__weakref__", "_claim", "_label", "_of_run", "_scope", "estimated", "held")

    def __init__(self, token: object, scope: "Scope", label: str):
        if token is not _BY_SCOPE:
            raise ScopeError("only a scope makes a variable: scope.var(name)")
        self._label = label  # for messages
        self._scope: weakref.ref[_Owner] = weakref.ref(scope)
        self.held: object = _EMPTY  # for a run that has a claim on it; others ask for the value
        self._of_run = False  # whether a run made the value: then nobody holds its memory but those to whom it was handed out
        self._claim: weakref.ref[Claim] | None = None
        self.estimated = False
        """Whether training may change it: what a program calls `trainable`."""

    @classmethod
    def in_scope(cls, scope: "Scope", label: str) -> "Variable":
        """For `Scope` alone."""
        return cls(_BY_SCOPE, scope, label)

    def __repr__(self) -> str:
        return f"<Variable {State.DECLARED.value if self.held is _EMPTY else type(self.held).__name__}>"

    def _require_scope(self) -> None:
        scope = self._scope()
        if scope is None or scope.dropped:
            raise ScopeError(f'"{self._label}" belonged to a scope that was dropped')

    @property
    def state(self) -> State:
        """`DECLARED` until it is given a value."""
        self._require_scope()
        return State.DECLARED if self.held is _EMPTY else State.SET

    @property
    def is_set(self) -> bool:
        scope = self._scope()
        if scope is None or scope.dropped:
            self._require_scope()
        return self.held is not _EMPTY

    @property
    def value(self) -> object:
        """What it holds. Raises UnsetVarError where that is nothing yet."""
        scope = self._scope()
        if scope is None or scope.dropped:
            self._require_scope()
        if self.held is _EMPTY:
            raise UnsetVarError(f'"{self._label}" is declared, but has no value yet')
        value = self.held  # held before anything is asked, so that a run sees that it is, or we see that the run has claimed it
        return value if self._claim is None else self._contest(lambda: self.held)

    @value.setter
    def value(self, value: object) -> None:
        self._require_scope()
        if self._claim is None:
            self._hold(value)
        else:
            self._contest(lambda: self._hold(value))

    def _hold(self, value: object) -> None:
        self.held = value
        self._of_run = False

    def _contest(self, then: Callable[[], _R]) -> _R:
        """Do something when no run has a claim any more."""
        claim = self._claim() if self._claim is not None else None
        if claim is None:
            return then()
        with claim.lock:
            self._end_claim()
            return then()

    def _end_claim(self) -> None:
        claim = self._claim() if self._claim is not None else None
        if claim is not None:
            claim.stands = False
        self._claim = None

    # What a run does, which has seen that the scope is there, and holds the lock of writing

    def read(self, claim: "weakref.ref[Claim] | None" = None) -> object:
        """What is `held`, for a run that does not write over it, and may have a `claim`; any other ends."""
        if self._claim is not None:
            self._end_claim()
        self._claim = claim
        return self.held

    def take(self, claim: "weakref.ref[Claim]") -> object:
        """What is `held`, for a run that writes over it: a tensor itself where nobody else holds its memory, else a copy."""
        value = self.read(claim)
        if not isinstance(value, torch.Tensor):
            return value
        alone = (
            self._of_run and sys.getrefcount(value) == _BY_US and torch._C._storage_Use_Count(value.untyped_storage()._cdata) == _BY_US - 1
        )  # type: ignore[attr-defined]
        return value if alone else value.clone(memory_format=torch.contiguous_format)

    def follow(self, value: torch.Tensor) -> None:
        """Hold what a run has made."""
        self.held = value
        self._of_run = True

    def is_type(self, type: type) -> bool:
        """Whether it holds a `type`: int, bool, float, str, numpy.float16, torch.Tensor, Op or Scope. A bool is no int."""
        self._require_scope()
        return _is_a(self.held, type)

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
        if self.held is _EMPTY:
            self.held = self._make(type)
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
        self._contest(lambda: self._hold(_EMPTY))


def _is_a(value: object, type: type) -> bool:
    if type is Op:
        return isinstance(value, Op | Operator)
    return isinstance(value, type) and not (type is int and isinstance(value, bool))


def _name(value: object) -> str:
    return type(value).__name__
