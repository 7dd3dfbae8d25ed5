"""The default place of the parameters that layers declare."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from oarlock.registry.range_check import require_count

__all__ = ["at_place", "current_place", "require_place"]

_current: ContextVar[int] = ContextVar("oarlock_place", default=0)


@contextmanager
def at_place(number: int) -> Iterator[None]:
    """Make place `number` the default for parameters and layer state declared in this context; outside it, that is 0.

    Places are numbered in the order in which they are given to a run. An op that reads a parameter is computed at the parameter's place;
    see docs/guides/places.md. `with` statements nest, and each thread has its own default. Raises ArgumentError unless `number` is an
    integer from 0.

        with ol.at_place(1):
            x = ol.layer.fc(x, 4096, act="relu")
        executor = ol.Executor([ol.CPUPlace(), ol.CPUPlace()])  # or GPUs: ol.GPUPlace(0), ol.GPUPlace(1)
    """
    before = _current.set(require_place(number))
    try:
        yield
    finally:
        _current.reset(before)


def current_place() -> int:
    """Return the number of the default place of parameters."""
    return _current.get()


def require_place(number: object) -> int:
    """Return `number` if it is a valid place number. Raises ArgumentError."""
    return require_count("the number of a place", number, least=0, most=2**31 - 1)
