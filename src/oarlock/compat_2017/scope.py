"""`ol.scope`: the 2017 names for the current scope.

`global` is a Python keyword, so `ol.scope.global()` is written `ol.scope.global_()`, `ol.scope.global_scope()` or `getattr(ol.scope,
"global")()`.
"""

from oarlock.registry.checked_call import publish
from oarlock.runtime.current_scope import current_scope as current
from oarlock.runtime.current_scope import global_scope
from oarlock.runtime.current_scope import global_scope as global_
from oarlock.runtime.current_scope import scope_guard as guard

__all__ = ["current", "global_", "global_scope", "guard"]

globals()["global"] = global_scope

publish(__name__)
