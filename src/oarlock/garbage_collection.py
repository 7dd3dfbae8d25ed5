"""Garbage collection, paused while much is made that stays."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["collection_paused"]


@contextmanager
def collection_paused() -> Iterator[None]:
    """Look for no cycles of garbage meanwhile.

    Modules, operators and plans are hundreds of thousands of objects that stay. While they are made, Python would look through all that the
    process holds again and again, PyTorch's modules among it, and find nothing: half of the time that an import of Oarlock takes.
    """
    if not gc.isenabled():  # by the caller, or paused already
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
