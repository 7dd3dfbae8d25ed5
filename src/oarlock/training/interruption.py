"""Ctrl-C while a run trains: the step that runs is finished, or cut short soon, and what was trained so far is returned."""

import signal
import threading
from types import FrameType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from oarlock.training.trainer import TrainingResult

__all__ = ["Interrupted", "Stopping"]

_AGAIN = 0.25  # seconds


class Interrupted(KeyboardInterrupt):
    """A run was interrupted from the keyboard; its `result` is as after the last step that was finished.

        try:
            result = ol.train(cost, data, epochs=100)
        except KeyboardInterrupt as interrupt:
            result = interrupt.result

    `ol.save_model(result, path)` saves it, and `ol.train(result, data)` goes on with it.
    """

    def __init__(self, result: "TrainingResult"):
        super().__init__(f"interrupted after {result.steps} steps; what was trained is this exception's `result`")
        self.result = result


class Stopping:
    """SIGINT inside a `with` block: it sets `asked`, and is raised as KeyboardInterrupt if the block goes on for `patience` seconds.

    Without patience it is raised at once. An exception that a signal raises may be lost: Python prints and forgets those raised in
    finalizers, and libraries drop some. So none is raised in a `__del__`, and it is raised again, four times a second, until the block has
    ended; a block that ends by itself raises it then. Where this is not the main thread, or the program has a handler of its own, all
    stays as it is.
    """

    def __init__(self, patience: float = 1.0):
        self.asked = False
        self.patience = patience
        self._before: list[tuple[int, object]] = []
        self._reminds = False

    def check(self) -> None:
        """Raise KeyboardInterrupt where it was asked for."""
        if self.asked:
            raise KeyboardInterrupt

    def __enter__(self) -> "Stopping":
        if threading.current_thread() is threading.main_thread() and _is_free(signal.SIGINT, signal.default_int_handler):
            if hasattr(signal, "setitimer") and _is_free(signal.SIGALRM, signal.SIG_DFL) and not any(signal.getitimer(signal.ITIMER_REAL)):
                self._take(signal.SIGALRM, self._remind)
                self._reminds = True
            self._take(signal.SIGINT, self._ask)
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        patience, self.patience = self.patience, float("inf")  # from here on nothing is raised by the handlers
        if self._reminds:
            signal.setitimer(signal.ITIMER_REAL, 0)
        for number, handler in reversed(self._before):
            signal.signal(number, handler)  # type: ignore[arg-type]
        self.patience = patience
        if self.asked and kind is None:
            raise KeyboardInterrupt

    def _take(self, number: int, handler: object) -> None:
        self._before.append((number, signal.getsignal(number)))
        signal.signal(number, handler)  # type: ignore[arg-type]

    def _ask(self, number: int, frame: FrameType | None) -> None:
        first, self.asked = not self.asked, True
        if first and self._reminds:
            signal.setitimer(signal.ITIMER_REAL, max(self.patience, _AGAIN), _AGAIN)
        if self.patience == float("inf") or (first and self.patience) or (self._reminds and _is_in_finalizer(frame)):
            return
        raise KeyboardInterrupt

    def _remind(self, number: int, frame: FrameType | None) -> None:
        signal.raise_signal(signal.SIGINT)  # which waits where updates are written (`runtime/interrupts.py`)


def _is_free(number: int, default: object) -> bool:
    """Whether a signal has its default handler, or one of ours around this."""
    handler = signal.getsignal(number)
    return handler is default or isinstance(getattr(handler, "__self__", None), Stopping)


def _is_in_finalizer(frame: FrameType | None) -> bool:
    """Whether a `__del__` runs, where Python would print what is raised, and forget it."""
    while frame is not None:
        if frame.f_code.co_name == "__del__":
            return True
        frame = frame.f_back
    return False
