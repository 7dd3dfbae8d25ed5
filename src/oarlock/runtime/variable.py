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
    """Whether a variable has a value."""

    DECLARED = "declared, not computed"
    SET = "set"


class _Owner(Protocol):
    dropped: bool
    frozen: frozenset[str]


class Lease:
    """A lease on cached values of some variables. While it is valid, steps use the cache instead of the scope.

    Reading or setting one of the variables ends it, after waiting for `lock`, which a run holds while it overwrites the values. `shared`
    leases may coexist, because their runs only read. `cached` holds the cached values and everything derived from them alone; None once the
    lease has ended. `running` has one entry for each run in progress that has read the cache: values that it uses are not overwritten.
    """

    __slots__ = ("__weakref__", "cached", "lock", "running", "shared")

    def __init__(self, lock: "threading.RLock", *, shared: bool = False):
        self.lock = lock
        self.shared = shared
        self.cached: list[Any] | None = None  # None if the lease is not valid
        self.running: list[None] = []  # one entry per run in progress; a list, because appending is thread-safe

    def end(self) -> None:
        self.cached = None


class Variable:
    """A named slot of a scope. It holds an int, bool, float, half, string, tensor, operator or scope, or nothing yet.

    Variables are created by scopes only, belong to one scope, and cannot be copied or pickled. A variable has no name of its own: names
    belong to the scope. A handle keeps neither its scope nor its value alive. It raises ScopeError once the scope was dropped or collected,
    or the variable was erased.

    A variable knows whether it owns its value: created by a run, or copied when it was set, and not read from outside since. A run
    overwrites only owned values in place. Reading the value ends the ownership: the next run that updates it works on a copy, which the
    variable owns.

    A half is a `numpy.float16`, an operation an `Op` (or an `Operator`).
    """

    __slots__ = ("__weakref__", "_estimated", "_exact", "_label", "_leases", "_own", "_scope", "held", "owner")

    def __init__(self, *_: object, **__: object):
        raise ScopeError("variables are created by scopes: use scope.var(name)", location=here())

    def _begin(self, scope: "Scope", label: str) -> None:
        self._label = label  # for messages
        self._scope: weakref.ref[_Owner] = weakref.ref(scope)
        self.held: object = _EMPTY  # read directly by runs with a lease; everything else uses `value`
        self._own = False  # whether the value was created here and not shared since
        self._exact: torch.Tensor | None = None  # the original Python numbers, which have no dtype of their own
        self._leases: tuple[weakref.ref[Lease], ...] = ()  # more than one only if all are shared
        self._estimated: bool | None = None  # None: not specified
        self.owner: int | str | None = None
        """The `lineage` of the program, for optimizer state; None for variables that programs may share."""

    @classmethod
    def _in_scope(cls, scope: "Scope", label: str) -> "Variable":
        """Create a variable. For `Scope` only."""
        made = cls.__new__(cls)
        made._begin(scope, label)
        return made

    def __copy__(self, *_: object) -> NoReturn:
        raise ScopeError(f'"{self._label}" belongs to its scope and cannot be copied: use scope.set(name, variable.value)')

    __deepcopy__ = __reduce_ex__ = __copy__  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"<Variable {State.DECLARED.value if self.held is _EMPTY else type(self.held).__name__}>"

    def _require_scope(self) -> None:
        scope = self._scope()
        if scope is None or scope.dropped:
            raise ScopeError(f'"{self._label}" belonged to a scope that was dropped')

    def _forget(self, *, alone: bool = False, erased: bool = False) -> None:
        """Release the value for good, because the scope is dropped or the variable is `erased`. `alone`: no run can be in progress.

        Steps that cache the value release it too, so a dropped scope takes no memory even if handles remain.
        """

        def lose(is_written: bool) -> None:
            self.held, self._own, self._exact = _EMPTY, False, None
            self.__class__ = _Erased if erased else _Gone  # type: ignore[assignment]  # makes handles raise without a check in every run

        if alone:
            lose(self._end_leases())  # without the lock: this is the garbage collector, in any thread
        else:
            self._contest(lose)

    def __getattr__(self, name: str) -> NoReturn:
        """Raise AttributeError for an unknown attribute."""
        raise AttributeError(f"a Variable has no attribute {name!r:.60}", name=name, obj=self)

    @property
    def trainable(self) -> bool:
        """Whether training may change this variable. If False, the value and its optimizer state are kept, even if the program updates it.

        Setting it makes steps that were prepared earlier raise ScopeError.
        """
        self._require_scope()
        return bool(self._estimated)

    @trainable.setter
    def trainable(self, trainable: bool) -> None:
        self._require_scope()
        self._contest(lambda _: self._estimate(trainable))  # steps with a lease check again

    estimated = trainable
    """The 2017 name of `trainable`."""

    def _estimate(self, estimated: bool) -> None:
        self._estimated = estimated
        scope = self._scope()
        if scope is not None:
            scope.frozen = scope.frozen - {self._label} if estimated else scope.frozen | {self._label}

    def expect_training(self) -> None:
        """Mark the variable as trainable unless this was set before."""
        if self._estimated is None:
            self._estimated = True

    @property
    def state(self) -> State:
        """`DECLARED` until the variable has a value, then `SET`."""
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
        """The value. Raises UnsetVarError if there is none yet."""
        scope = self._scope()
        if scope is None or scope.dropped:
            self._require_scope()
        if self.held is _EMPTY:
            raise UnsetVarError(f'"{self._label}" is declared, but has no value yet')
        value = self.held
        self._own = False  # before checking for leases: a concurrent run then sees either the shared value or we see its lease
        return self._contest(self._lend) if self._leases else value

    @value.setter
    def value(self, value: object) -> None:
        self.give(value)

    def give(self, value: object, *, own: bool = False, exact: torch.Tensor | None = None) -> None:
        """Set the value. `own=True` if it is new and nothing else refers to its memory.

        `exact` are the original Python numbers, if any; `settle` converts them to the dtype that a program declares.
        """
        self._require_scope()
        self._contest(lambda _: self.hold(value, own=own, exact=exact))

    def hold(self, value: object, *, own: bool = False, exact: torch.Tensor | None = None) -> None:
        """Set the value without ending leases, for a run that holds one or that creates the variable."""
        self._own = False
        self.held = value
        self._exact = exact
        self._own = own

    def settle(self, dtype: DType) -> object:
        """Return the value; if it was set from Python numbers and not updated since, first convert them to `dtype` if that is exact.

        So a fraction never becomes an integer, and only bools become bools. Arrays and tensors keep their dtype.
        """
        exact, value = self._exact, self.held
        if exact is None or not isinstance(value, torch.Tensor) or value.dtype is to_torch(dtype):
            return value
        settled = of_dtype(exact, dtype)
        if settled is not None and torch.allclose(exact.to(value.dtype), value, rtol=0, atol=0, equal_nan=True):
            self._contest(lambda _: self.hold(settled, own=True, exact=exact))  # another program may declare another dtype
        return self.held

    def _lend(self, is_written: bool) -> object:
        """Return the value and give up ownership; a copy if a run is overwriting it."""
        self._own = False
        return self.held.clone() if is_written and isinstance(self.held, torch.Tensor) else self.held

    def _contest(self, then: Callable[[bool], _R]) -> _R:
        """End all leases, then call `then`. Its argument is whether a run in progress that overwrites the value is our caller."""
        while True:
            leases = self._leases
            lease = next((lease for lease in (known() for known in leases) if lease is not None), None)
            if lease is not None:
                with lease.lock:  # the same lock for all leases
                    return then(self._end_leases())
            result = then(False)
            if self._leases is leases:  # otherwise a run took a lease in between, possibly before `then`
                return result

    def _end_leases(self, beside: "weakref.ref[Lease] | None" = None) -> bool:
        """End all leases except those that may coexist with `beside`. Return whether one belonged to a run in progress that overwrites the
        value.

        Values read by runs in progress count as shared.
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

    # For runs, which have checked that the scope exists and hold the writing lock

    @property
    def is_own(self) -> bool:
        """Whether the value was created here and is not shared."""
        return self._own

    def lend(self) -> None:
        """Mark the value as shared."""
        self._own = False

    def read(self, lease: "weakref.ref[Lease]", *, lent: bool = False) -> object:
        """Return the value for a run with a `lease` that does not overwrite it, and end leases that cannot coexist.

        `lent=True` if the run returns the value to its caller: then all other leases end.
        """
        if self._leases:
            self._end_leases(None if lent else lease)
        self._leases += (lease,)
        if lent:
            self._own = False
        return self.held

    def alone(self, value: torch.Tensor) -> torch.Tensor:
        """Return `value`, which was read, for a run that overwrites it: itself if the variable owns it, else a copy."""
        if self._own:
            return value
        return value.clone(memory_format=torch.preserve_format if is_channels_last(value) else torch.contiguous_format)

    def is_type(self, type: type) -> bool:
        """Return whether the value is of type int, bool, float, str, numpy.float16, torch.Tensor, Op or Scope. A bool is not an int."""
        self._require_scope()
        return _is_a(self.held, type)

    def get(self, type: type[_T]) -> _T:
        """Return the value. Raises UnsetVarError if there is none, ScopeError if it is not a `type`."""
        value = self.value
        if not _is_a(value, type):
            raise ScopeError(f'"{self._label}" is a {_name(value)}, not a {type.__name__}')
        return value  # type: ignore[return-value]

    def get_mutable(self, type: type[_T]) -> _T:
        """Return the value, creating it if there is none; memory is allocated at that point.

        A new tensor is empty, a new number 0, a new string "". Raises ScopeError if the value has another type: call `reset()` first to
        replace it.
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
        raise ScopeError(f'"{self._label}": cannot create an empty {type.__name__}; set a value first')

    def reset(self) -> None:
        """Remove the value."""
        self.give(_EMPTY)


class _Gone(Variable):
    """A handle whose scope was dropped. Every use raises ScopeError."""

    __slots__ = ()
    _end = "belonged to a scope that was dropped"

    def __repr__(self) -> str:
        return "<Variable of a dropped scope>"

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
    """A handle to an erased variable."""

    __slots__ = ()
    _end = "was erased from its scope"

    def __repr__(self) -> str:
        return "<erased Variable>"


def _is_a(value: object, type: type) -> bool:
    if type is Op:
        return isinstance(value, Op | Operator)
    return isinstance(value, type) and not (type is int and isinstance(value, bool))


def _name(value: object) -> str:
    return type(value).__name__
