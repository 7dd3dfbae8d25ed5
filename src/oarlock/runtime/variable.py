"""Variable: one typed slot of a scope."""

import threading
import weakref
from collections.abc import Callable
from enum import Enum
from typing import TYPE_CHECKING, Any, NoReturn, Protocol, TypeVar

import numpy
import torch

from oarlock.errors import ScopeError, UnsetVarError
from oarlock.ir.dtype import DType
from oarlock.ir.location import here
from oarlock.ir.operation import Op
from oarlock.registry.declaration import Operator
from oarlock.runtime.value import of_dtype
from oarlock.tensor.dtype import to_torch
from oarlock.tensor.memory_format import is_channels_last

if TYPE_CHECKING:
    from oarlock.runtime.scope import Scope

__all__ = ["Lease", "State", "Variable"]

_T = TypeVar("_T")
_R = TypeVar("_R")
_EMPTY = object()


class State(Enum):
    """Whether a variable holds something yet."""

    DECLARED = "declared, not computed"
    SET = "set"


class _Owner(Protocol):
    dropped: bool
    frozen: frozenset[str]


class Lease:
    """That a run and those after it know what some variables hold. It stands until somebody asks for one of them.

    Whoever asks waits for `lock`, which is held while a run writes over the values. Leases that are `shared` stand side by side: their
    runs only read. `cached` is what these are given, the values and what was made of them alone; it ends with the lease. Who has taken it
    before is among the `running`, and what they read is not written over.
    """

    __slots__ = ("__weakref__", "cached", "lock", "running", "shared")

    def __init__(self, lock: "threading.RLock", *, shared: bool = False):
        self.lock = lock
        self.shared = shared
        self.cached: list[Any] | None = None  # None where it does not stand
        self.running: list[None] = []  # one for each run that is under way; a list, for two threads may append at once

    def end(self) -> None:
        self.cached = None


class Variable:
    """The variable under one name of one scope: it holds an int, bool, float, half, string, tensor, operator or scope, or nothing yet.

    Only a scope makes one, and it belongs to that scope alone: it is not copied, and not pickled. It has no name of its own: names
    are the scope's. A handle keeps neither its scope alive nor its value; used after the scope was dropped, or has gone, or after
    the variable was erased from it, it raises ScopeError.

    It knows whether its value is its own: made by a run, or copied when it was set, and lent to nobody since. A run writes over such
    a value, and over no other. Whoever asks for the value has it lent, for good: the next run that would write over it works on a copy,
    which is the variable's own.

    A half is a `numpy.float16`, an operation an `Op` (or an `Operator`).
    """

    __slots__ = ("__weakref__", "_estimated", "_exact", "_label", "_leases", "_own", "_scope", "held", "owner")

    def __init__(self, *_: object, **__: object):
        raise ScopeError("only a scope makes a variable: scope.var(name)", location=here())

    def _begin(self, scope: "Scope", label: str) -> None:
        self._label = label  # for messages
        self._scope: weakref.ref[_Owner] = weakref.ref(scope)
        self.held: object = _EMPTY  # for a run that has a lease on it; others ask for the value
        self._own = False  # whether the value was made here, and nobody else was given it
        self._exact: torch.Tensor | None = None  # the numbers of Python's that the value was made of, which have no dtype of their own
        self._leases: tuple[weakref.ref[Lease], ...] = ()  # more than one only where all are shared
        self._estimated: bool | None = None  # None where nobody has said
        self.owner: int | str | None = None
        """Of the state of an optimizer, the `lineage` of its program; None for what programs may share."""

    @classmethod
    def _in_scope(cls, scope: "Scope", label: str) -> "Variable":
        """For `Scope` alone."""
        made = cls.__new__(cls)
        made._begin(scope, label)
        return made

    def __copy__(self, *_: object) -> NoReturn:
        raise ScopeError(f'"{self._label}" belongs to its scope alone, and is not copied: scope.set(name, variable.value)')

    __deepcopy__ = __reduce_ex__ = __copy__  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"<Variable {State.DECLARED.value if self.held is _EMPTY else type(self.held).__name__}>"

    def _require_scope(self) -> None:
        scope = self._scope()
        if scope is None or scope.dropped:
            raise ScopeError(f'"{self._label}" belonged to a scope that was dropped')

    def _forget(self, *, alone: bool = False, erased: bool = False) -> None:
        """Let go of what it holds, for good, as its scope is dropped or it is `erased`; `alone` where nobody can be running there any more.

        A step that has kept the value lets go of it too: what a dropped scope held takes no memory, whoever has a handle.
        """

        def lose(is_written: bool) -> None:
            self.held, self._own, self._exact = _EMPTY, False, None
            self.__class__ = _Erased if erased else _Gone  # type: ignore[assignment]  # so it raises, and runs need not look

        if alone:
            lose(self._end_leases())  # without the lock: this is the collector of garbage, in whatever thread
        else:
            self._contest(lose)

    def __getattr__(self, name: str) -> NoReturn:
        """For what is not there."""
        raise AttributeError(f"a Variable has no attribute {name!r:.60}", name=name, obj=self)

    @property
    def trainable(self) -> bool:
        """Whether training may change it here. What is told not to be stays as it is, with its state, whatever its program says.

        A step that was prepared before that changed raises ScopeError.
        """
        self._require_scope()
        return bool(self._estimated)

    @trainable.setter
    def trainable(self, trainable: bool) -> None:
        self._require_scope()
        self._contest(lambda _: self._estimate(trainable))  # whoever runs on with it looks again

    estimated = trainable
    """The name of 2017 for `trainable`."""

    def _estimate(self, estimated: bool) -> None:
        self._estimated = estimated
        scope = self._scope()
        if scope is not None:
            scope.frozen = scope.frozen - {self._label} if estimated else scope.frozen | {self._label}

    def expect_training(self) -> None:
        """Let it be estimated where nobody has said."""
        if self._estimated is None:
            self._estimated = True

    @property
    def state(self) -> State:
        """`DECLARED` until it is given a value."""
        self._require_scope()
        return State.DECLARED if self.held is _EMPTY else State.SET

    @property
    def is_set(self) -> bool:
        """Whether the variable has a value. Raises ScopeError if its scope was dropped."""
        scope = self._scope()
        if scope is None or scope.dropped:
            self._require_scope()
        return self.held is not _EMPTY

    @property
    def value(self) -> object:
        """The value. Raises UnsetVarError where there is none yet."""
        scope = self._scope()
        if scope is None or scope.dropped:
            self._require_scope()
        if self.held is _EMPTY:
            raise UnsetVarError(f'"{self._label}" is declared, but has no value yet')
        value = self.held
        self._own = False  # before leases are looked for: a run that leases it meanwhile finds it lent, or we find the lease
        return self._contest(self._lend) if self._leases else value

    @value.setter
    def value(self, value: object) -> None:
        self.give(value)

    def give(self, value: object, *, own: bool = False, exact: torch.Tensor | None = None) -> None:
        """Let it hold `value`; its `own` if that was just made, and nobody else holds its memory.

        Numbers of Python's, as which it was `exact`, take the dtype that a program declares when one is found to `settle` them.
        """
        self._require_scope()
        self._contest(lambda _: self.hold(value, own=own, exact=exact))

    def hold(self, value: object, *, own: bool = False, exact: torch.Tensor | None = None) -> None:
        """Do so at once, for a run that has leased it, or one that makes the variable."""
        self._own = False
        self.held = value
        self._exact = exact
        self._own = own

    def settle(self, dtype: DType) -> object:
        """Return the value `held`, after Python's numbers that nobody has written over since have become `dtype`, where that loses nothing.

        So a fraction never becomes an integer, and only truth values are truth values. Arrays and tensors have a dtype of their own.
        """
        exact, value = self._exact, self.held
        if exact is None or not isinstance(value, torch.Tensor) or value.dtype is to_torch(dtype):
            return value
        settled = of_dtype(exact, dtype)
        if settled is not None and torch.allclose(exact.to(value.dtype), value, rtol=0, atol=0, equal_nan=True):
            self._contest(lambda _: self.hold(settled, own=True, exact=exact))  # another program may declare another dtype
        return self.held

    def _lend(self, is_written: bool) -> object:
        """The value, for somebody who asks; a copy while it is written over."""
        self._own = False
        return self.held.clone() if is_written and isinstance(self.held, torch.Tensor) else self.held

    def _contest(self, then: Callable[[bool], _R]) -> _R:
        """Do something when no run has a lease any more. It is told whether one is under way that writes the value, and has called us."""
        while True:
            leases = self._leases
            lease = next((lease for lease in (known() for known in leases) if lease is not None), None)
            if lease is not None:
                with lease.lock:  # which is that of all
                    return then(self._end_leases())
            result = then(False)
            if self._leases is leases:  # else a run has leased it meanwhile, perhaps before we did that
                return result

    def _end_leases(self, beside: "weakref.ref[Lease] | None" = None) -> bool:
        """End all leases but those that may stand `beside` one, and say whether one was that of a run under way that writes over the value.

        What runs read that are under way is lent to them.
        """
        mine = beside() if beside is not None else None
        staying, is_written = [], False
        for known in self._leases:
            lease = known()
            if lease is None or lease is mine:
                continue
            if mine is not None and mine.shared and lease.shared:
                if lease.cached is not None or lease.running:
                    staying.append(known)
            else:
                lease.end()
                if lease.running:
                    self._own = False
                    is_written = is_written or not lease.shared
        self._leases = tuple(staying)
        return is_written

    # What a run does, which has seen that the scope is there, and holds the lock of writing

    @property
    def is_own(self) -> bool:
        """Whether the value was made here, and lent to nobody."""
        return self._own

    def lend(self) -> None:
        """Note that others may hold the value from now on."""
        self._own = False

    def read(self, lease: "weakref.ref[Lease]", *, lent: bool = False) -> object:
        """Return the value `held`, for a run that has a `lease` and does not write over it; the leases that may not stand beside that end.

        Where the value is `lent` to those whom the run returns it to, all others end.
        """
        if self._leases:
            self._end_leases(None if lent else lease)
        self._leases += (lease,)
        if lent:
            self._own = False
        return self.held

    def alone(self, value: torch.Tensor) -> torch.Tensor:
        """`value`, which was read, for a run that writes over it: itself where it is the variable's own, else a copy."""
        if self._own:
            return value
        return value.clone(memory_format=torch.preserve_format if is_channels_last(value) else torch.contiguous_format)

    def is_type(self, type: type) -> bool:
        """Whether it holds a `type`: int, bool, float, str, numpy.float16, torch.Tensor, Op or Scope. A bool is no int."""
        self._require_scope()
        return _is_a(self.held, type)

    def get(self, type: type[_T]) -> _T:
        """The value, which is a `type`. Raises UnsetVarError where there is none, ScopeError for another type."""
        value = self.value
        if not _is_a(value, type):
            raise ScopeError(f'"{self._label}" holds a {_name(value)}, not a {type.__name__}')
        return value  # type: ignore[return-value]

    def get_mutable(self, type: type[_T]) -> _T:
        """Return the value, made first where there is none: this is when memory is allocated.

        A new tensor is empty, a new number 0, a new string "". Raises ScopeError where the value has another type, which is
        never replaced silently: `reset()` comes first.
        """
        self._require_scope()
        if self.held is _EMPTY:
            self.hold(self._make(type))
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


class _Gone(Variable):
    """The handle of a variable whose scope was dropped: whatever it is asked or told, it raises ScopeError."""

    __slots__ = ()
    _end = "belonged to a scope that was dropped"

    def __repr__(self) -> str:
        return "<Variable of a scope that was dropped>"

    def __getattribute__(self, name: str) -> Any:
        if not name.startswith("_") and hasattr(Variable, name):
            self._refuse()
        return super().__getattribute__(name)

    def __setattr__(self, name: str, value: object) -> None:
        if not name.startswith("_") and hasattr(Variable, name):
            self._refuse()
        super().__setattr__(name, value)

    def _refuse(self) -> NoReturn:
        raise ScopeError(f'"{self._label}" {self._end}')


class _Erased(_Gone):
    """The handle of a variable that was erased."""

    __slots__ = ()
    _end = "was erased from its scope"

    def __repr__(self) -> str:
        return "<Variable that was erased>"


def _is_a(value: object, type: type) -> bool:
    if type is Op:
        return isinstance(value, Op | Operator)
    return isinstance(value, type) and not (type is int and isinstance(value, bool))


def _name(value: object) -> str:
    return type(value).__name__
