"""Data sources of many kinds, as rows and batches for programs."""

import importlib

from oarlock.registry.checked_call import checked
from oarlock.suggestions import no_attribute

_HOMES = {
    "Columns": "selection",
    "ImageFolder": "image_folder",
    "Source": "source",
    "Stream": "source",
    "Table": "table",
    "read": "recognition",
}

__all__ = ["Columns", "ImageFolder", "Source", "Stream", "Table", "read"]


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise no_attribute(__name__, name, __all__)
    value = checked(getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name), methods=True)
    globals()[name] = value
    return value
