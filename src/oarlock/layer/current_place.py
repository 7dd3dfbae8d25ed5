"""The place at which layers declare their parameters, where these say nothing of it."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from oarlock.registry.range_check import require_count

__all__ = ["at_place", "current_place", "require_place"]

_current: ContextVar[int] = ContextVar("oarlock_place", default=0)


@contextmanager
def at_place(number: int) -> Iterator[None]:
    """Let parameters, and what layers keep beside them, lie at place `number` of those that a run is given; outside, that is 0.

    What reads a parameter is computed where it lies, as docs/guides/places.md says. `with` statements nest, and threads have each their
    own. Raises ArgumentError for what is no number from 0.

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
    """The number of the place at which a parameter that says nothing of it lies."""
    return _current.get()


def require_place(number: object) -> int:
    """`number`, where it is that of a place. Raises ArgumentError."""
    return require_count("the number of a place", number, least=0, most=2**31 - 1)
