"""The scope that a front end works in. Nothing below the front end reads it; runs are given a scope."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from oarlock.runtime.scope import Scope

__all__ = ["current_scope", "global_scope", "scope_guard"]

_global = Scope()
_current: ContextVar[Scope] = ContextVar("oarlock_scope", default=_global)


def current_scope() -> Scope:
    """The scope of the innermost `scope_guard` of this thread or task; the global one outside any."""
    return _current.get()


def global_scope() -> Scope:
    """The scope that is current where nobody said otherwise. It is one root among others."""
    return _global


@contextmanager
def scope_guard(scope: Scope) -> Iterator[Scope]:
    """Make `scope` current inside the `with` block; what was current before is again afterwards, exceptions included."""
    token = _current.set(scope)
    try:
        yield scope
    finally:
        _current.reset(token)
