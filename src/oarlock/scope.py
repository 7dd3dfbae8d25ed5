"""`ol.scope`: the seeds' spellings for the current scope. Python has no `scope.global()`, for `global` is a keyword."""

from oarlock.runtime.current import current_scope as current
from oarlock.runtime.current import global_scope
from oarlock.runtime.current import scope_guard as guard

__all__ = ["current", "global_scope", "guard"]
