"""The current scope of the front end. Lower layers do not read it: runs get an explicit scope."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from oarlock.runtime.scope import Scope

__all__ = ["current_scope", "global_scope", "scope_guard"]

_global = Scope()
_current: ContextVar[Scope] = ContextVar("oarlock_scope", default=_global)


def current_scope() -> Scope:
    """Return the scope of the innermost `scope_guard` of this thread or task, or the global scope outside any."""
    return _current.get()


def global_scope() -> Scope:
    """Return the default scope of the front end, an ordinary root scope."""
    return _global


@contextmanager
def scope_guard(scope: Scope) -> Iterator[Scope]:
    """Make `scope` current inside the `with` block, and restore the previous one afterwards, also after an exception."""
    token = _current.set(scope)
    try:
        yield scope
    finally:
        _current.reset(token)
