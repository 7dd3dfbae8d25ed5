"""Regions that must not be left half done: an interrupt from the keyboard waits until they are over."""

import _signal  # pyright: ignore[reportMissingImports]  # `signal` without the enumerations around it, which cost ten times the call
from types import FrameType

__all__ = ["Interrupts", "uninterrupted"]

_SIGINT = int(_signal.SIGINT)


class Interrupts:
    """Those from the keyboard, which wait from `begin` to `end`; there may be no `begin`.

    Only the main thread is interrupted by signals, so only there is anything to hold back. A handler of another
    signal that raises does cut short what is between.
    """

    _handler = None
    _noted = False

    def begin(self) -> None:
        """Hold SIGINT back from now on."""
        handler = _signal.getsignal(_SIGINT)
        if handler is None:
            return
        try:
            _signal.signal(_SIGINT, self._note)
        except ValueError:  # not the main thread
            return
        self._handler = handler

    def _note(self, number: int, frame: FrameType | None) -> None:
        self._noted = True

    def end(self) -> None:
        """Deliver what came meanwhile."""
        if self._handler is not None:
            _signal.signal(_SIGINT, self._handler)
            if self._noted:
                _signal.raise_signal(_SIGINT)


class uninterrupted(Interrupts):  # noqa: N801 - it reads as a word: `with uninterrupted():`
    """A region that SIGINT does not cut short; the signal is delivered when the region ends."""

    def __enter__(self) -> None:
        self.begin()

    def __exit__(self, *raised: object) -> None:
        self.end()
