"""`ol.scope`: the seeds' spellings for the current scope.

Python cannot write `ol.scope.global()`, for `global` is a keyword: it is `ol.scope.global_()`, `ol.scope.global_scope()` or, to the letter,
`getattr(ol.scope, "global")()`.
"""

from oarlock.runtime.current_scope import current_scope as current
from oarlock.runtime.current_scope import global_scope
from oarlock.runtime.current_scope import global_scope as global_
from oarlock.runtime.current_scope import scope_guard as guard
from oarlock.suggestions import no_attribute

__all__ = ["current", "global_", "global_scope", "guard"]

globals()["global"] = global_scope


def __getattr__(name: str) -> object:
    raise no_attribute(__name__, name, __all__)
