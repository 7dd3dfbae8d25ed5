"""Model files. Names are imported on first use, so that files can be read and replaced without PyTorch."""

import importlib
from typing import TYPE_CHECKING

from oarlock.garbage_collection import collection_paused
from oarlock.suggestions import no_attribute

if TYPE_CHECKING:
    from oarlock.io.model import Model, infer, load_model, save_model

__all__ = ["Model", "infer", "load_model", "save_model"]


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise no_attribute(__name__, name, __all__)
    with collection_paused():
        module = importlib.import_module("oarlock.io.model")
    globals()[name] = value = getattr(module, name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
