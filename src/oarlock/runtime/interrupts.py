"""Uninterruptible regions: SIGINT is delayed until they end."""

import _signal  # pyright: ignore[reportMissingImports]  # `signal` without the enumerations around it, which cost ten times the call
from types import FrameType

__all__ = ["Interrupts", "uninterrupted"]

_SIGINT = int(_signal.SIGINT)


class Interrupts:
    """Delays SIGINT between `begin` and `end`; calling `end` without `begin` is allowed.

    Only the main thread receives signals, so other threads do nothing. A raising handler of another signal still interrupts the region.
    """

    _handler = None
    _noted = False

    def begin(self) -> None:
        """Start delaying SIGINT."""
        handler = _signal.getsignal(_SIGINT)
        if handler is None:
            return
        try:
            _signal.signal(_SIGINT, self._note)
        except ValueError:  # not in the main thread
            return
        self._handler = handler

    def _note(self, number: int, frame: FrameType | None) -> None:
        self._noted = True

    def end(self) -> None:
        """Stop delaying, and deliver a delayed SIGINT."""
        if self._handler is not None:
            _signal.signal(_SIGINT, self._handler)
            if self._noted:
                _signal.raise_signal(_SIGINT)


class uninterrupted(Interrupts):  # noqa: N801 - reads as a word: `with uninterrupted():`
    """A context in which SIGINT is delayed; it is delivered on exit."""

    def __enter__(self) -> None:
        self.begin()

    def __exit__(self, *raised: object) -> None:
        self.end()
