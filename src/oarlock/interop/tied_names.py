"""Tied names: other names that a module has for a variable, stored by programs in `@ALIASES`."""

import json

from oarlock.errors import FormatError
from oarlock.ir.names import ALIASES
from oarlock.ir.program import Program
from oarlock.runtime.scope import Scope

__all__ = ["find_tied_names"]


def find_tied_names(program: Program | None, scope: Scope) -> dict[str, str]:
    """Return other names of variables, mapped to the variables. They are read from the scope or, failing that, the program.

    Raises FormatError for an invalid table.
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
        raise FormatError(f"{ALIASES} is not a valid table of tied names")
    return read
