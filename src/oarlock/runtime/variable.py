"""Variable: one typed slot of a scope."""

import sys
import threading
import weakref
from collections.abc import Callable
from enum import Enum
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

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

    Whoever asks waits for `lock`, which is held while a run writes over the values. Claims that are `shared` stand side by side: their
    runs only read. `kept` is what these are given, the values and what was made of them alone; it ends with the claim. Who has taken it
    before holds values that nobody writes over.
    """

    __slots__ = ("__weakref__", "kept", "lock", "shared")

    def __init__(self, lock: "threading.RLock", *, shared: bool = False):
        self.lock = lock
        self.shared = shared
        self.kept: list[Any] | None = None  # None where it does not stand

    def end(self) -> None:
        self.kept = None


class Variable:
    """What one name of one scope stands for: an int, bool, float, half, string, tensor, operator or scope, or nothing yet.

    Only a scope makes one, and it belongs to that scope alone. It has no name of its own: names are the scope's. A
    handle does not keep its scope alive; used after the scope was dropped, it raises ScopeError.

    A half is a `numpy.float16`, an operation an `Op` (or an `Operator`).
    """

    __slots__ = ("__weakref__", "_claims", "_label", "_ours", "_scope", "estimated", "held")

    def __init__(self, token: object, scope: "Scope", label: str):
        if token is not _BY_SCOPE:
            raise ScopeError("only a scope makes a variable: scope.var(name)")
        self._label = label  # for messages
        self._scope: weakref.ref[_Owner] = weakref.ref(scope)
        self.held: object = _EMPTY  # for a run that has a claim on it; others ask for the value
        self._ours = False  # whether we made the value: then nobody holds its memory but those to whom it was handed out
        self._claims: tuple[weakref.ref[Claim], ...] = ()  # more than one only where all are shared
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
        return self._contest(lambda: self.held) if self._claims else value

    @value.setter
    def value(self, value: object) -> None:
        self.give(value)

    def give(self, value: object, *, ours: bool = False) -> None:
        """Let it hold `value`; `ours` if it was just made, and nobody else holds its memory."""
        self._require_scope()
        self._contest(lambda: self._hold(value, ours=ours))

    def _hold(self, value: object, *, ours: bool = False) -> None:
        self._ours = False
        self.held = value
        self._ours = ours

    def _contest(self, then: Callable[[], _R]) -> _R:
        """Do something when no run has a claim any more."""
        while True:
            claims = self._claims
            claim = next((claim for claim in (known() for known in claims) if claim is not None), None)
            if claim is not None:
                with claim.lock:  # which is that of all
                    self._end_claims()
                    return then()
            result = then()
            if self._claims is claims:  # else a run has claimed it meanwhile, perhaps before we did that
                return result

    def _end_claims(self, beside: "weakref.ref[Claim] | None" = None) -> None:
        """End all claims but those that may stand `beside` one."""
        mine = beside() if beside is not None else None
        staying = []
        for known in self._claims:
            claim = known()
            if claim is not None and claim is not mine:
                if mine is not None and mine.shared and claim.shared:
                    if claim.kept is not None:
                        staying.append(known)
                else:
                    claim.end()
        self._claims = tuple(staying)

    # What a run does, which has seen that the scope is there, and holds the lock of writing

    def read(self, claim: "weakref.ref[Claim] | None" = None) -> object:
        """What is `held`, for a run that does not write over it, and may have a `claim`; those that may not stand beside it end."""
        if self._claims:
            self._end_claims(claim)
        if claim is not None:
            self._claims += (claim,)
        return self.held

    def is_unknown(self) -> bool:
        """Whether nobody holds the memory of what is `held`, a tensor, but runs with a shared claim on it."""
        value = self.held
        if not self._ours or not isinstance(value, torch.Tensor):
            return False
        keeping = sum(claim is not None and claim.kept is not None for claim in (known() for known in self._claims))
        return sys.getrefcount(value) == _BY_US + keeping and _uses_of_memory(value) == _BY_US - 1

    def take(self, claim: "weakref.ref[Claim]") -> object:
        """What is `held`, for a run that writes over it: a tensor itself where nobody else holds its memory, else a copy."""
        value = self.read(claim)
        if not isinstance(value, torch.Tensor):
            return value
        alone = self._ours and sys.getrefcount(value) == _BY_US and _uses_of_memory(value) == _BY_US - 1
        return value if alone else value.clone(memory_format=torch.contiguous_format)

    def follow(self, value: torch.Tensor, ours: bool) -> None:
        """Hold what a run has made, which claims it; `ours` if it may have written over that."""
        self._ours = False
        self.held = value
        self._ours = ours

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
            self._hold(self._make(type))
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
        self.give(_EMPTY)


def _uses_of_memory(value: torch.Tensor) -> int:
    return torch._C._storage_Use_Count(value.untyped_storage()._cdata)  # type: ignore[attr-defined]


def _is_a(value: object, type: type) -> bool:
    if type is Op:
        return isinstance(value, Op | Operator)
    return isinstance(value, type) and not (type is int and isinstance(value, bool))


def _name(value: object) -> str:
    return type(value).__name__
