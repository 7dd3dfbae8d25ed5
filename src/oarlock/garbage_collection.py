"""Pausing garbage collection while many long-lived objects are created."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["collection_paused"]


@contextmanager
def collection_paused() -> Iterator[None]:
    """Pause cyclic garbage collection in this context.

    Modules, operators and plans are hundreds of thousands of long-lived objects. While they are created, the collector would repeatedly
    traverse all objects of the process, including those of PyTorch, and find nothing: half of the import time of Oarlock.
    """
    if not gc.isenabled():  # disabled by the caller, or already paused
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
