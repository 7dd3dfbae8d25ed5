"""Lazy imports of the libraries of the extra `serve`."""

import importlib
from types import ModuleType

from oarlock.errors import ArgumentError

__all__ = ["require_extra"]


def require_extra(name: str) -> ModuleType:
    """Import the module `name`. Raises ArgumentError if it is not installed."""
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name != name.partition(".")[0]:
            raise
        raise ArgumentError(f"a server needs {error.name}, which is not installed", hint='pip install "oarlock[serve]"') from None
