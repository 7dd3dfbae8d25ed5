"""Tied names: what a module calls a tensor besides the name of its variable, as a program keeps it in `@ALIASES`."""

import json

from oarlock.errors import FormatError
from oarlock.ir.names import ALIASES
from oarlock.ir.program import Program
from oarlock.runtime.scope import Scope

__all__ = ["find_tied_names"]


def find_tied_names(program: Program | None, scope: Scope) -> dict[str, str]:
    """Other names of variables, and the variables, as the scope holds them or the program declares them; none where neither does.

    Raises FormatError for a table that is none.
    """
    if (found := scope.find_var(ALIASES)) is not None and found.is_set:
        try:
            data = bytes(scope[ALIASES].tolist())  # type: ignore[attr-defined]
        except (AttributeError, TypeError, ValueError):
            data = b""
    else:
        var = None if program is None else program.main.find_var(ALIASES)
        if var is None or var.initializer is None:
            return {}
        data = var.initializer.attributes.get("data", b"")
    try:
        read = json.loads(data)  # type: ignore[arg-type]
    except (TypeError, ValueError, RecursionError):
        read = None
    if not isinstance(read, dict) or not all(isinstance(item, str) for item in read.values()):
        raise FormatError(f"{ALIASES} does not say what parameters are called besides")
    return read
