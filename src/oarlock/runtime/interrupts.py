"""What must not be left half done: an interrupt from the keyboard waits until it is over."""

import _signal  # pyright: ignore[reportMissingImports]  # `signal` without the enumerations around it, which cost ten times the call
from types import FrameType

__all__ = ["uninterrupted"]

_SIGINT = int(_signal.SIGINT)


class uninterrupted:  # noqa: N801 - it reads as a word: `with uninterrupted():`
    """What runs inside is not cut short by SIGINT, which is delivered when it ends; not `at_once`, from `begin` on.

    Only the main thread is interrupted by signals, so only there is anything to hold back. A handler of another
    signal that raises does cut it short.
    """

    __slots__ = ("_at_once", "_handler", "_noted")

    def __init__(self, *, at_once: bool = True):
        self._at_once = at_once
        self._noted = False
        self._handler = None

    def __enter__(self) -> "uninterrupted":
        if self._at_once:
            self.begin()
        return self

    def begin(self) -> None:
        """Hold interrupts back from now on."""
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

    def __exit__(self, *raised: object) -> None:
        if self._handler is not None:
            _signal.signal(_SIGINT, self._handler)
            if self._noted:
                _signal.raise_signal(_SIGINT)
