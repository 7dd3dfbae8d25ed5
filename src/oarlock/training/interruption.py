"""Ctrl-C during training: the current step is finished or soon interrupted, and the training so far is returned."""

import signal
import threading
from types import FrameType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from oarlock.training.trainer import TrainingResult

__all__ = ["Interrupted", "Stopping"]

_AGAIN = 0.25  # seconds


class Interrupted(KeyboardInterrupt):
    """An interrupt (Ctrl-C) during training. Its `result` is the state after the last finished step.

        try:
            result = ol.train(cost, data, epochs=100)
        except KeyboardInterrupt as interrupt:
            result = interrupt.result

    `ol.save_model(result, path)` saves it, and `ol.train(result, data)` continues it.
    """

    def __init__(self, result: "TrainingResult"):
        super().__init__(f"interrupted after {result.steps} steps; the training so far is the `result` of this exception")
        self.result = result


class Stopping:
    """Deferred SIGINT in a `with` block: it sets `asked`, and raises KeyboardInterrupt if the block runs for another `patience` seconds.

    With a patience of 0 it raises immediately. An exception raised by a signal handler can get lost: Python prints and ignores exceptions
    in finalizers, and some libraries suppress them. So none is raised in a `__del__`, and it is raised again four times a second until the
    block ends; a block that ends normally raises it then. Outside the main thread, or with a custom SIGINT handler, nothing changes.
    """

    def __init__(self, patience: float = 1.0):
        self.asked = False
        self.patience = patience
        self._before: list[tuple[int, object]] = []
        self._reminds = False

    def check(self) -> None:
        """Raise KeyboardInterrupt after a SIGINT."""
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
        patience, self.patience = self.patience, float("inf")  # the handlers raise nothing from here on
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
        signal.raise_signal(signal.SIGINT)  # deferred while updates are written (`runtime/interrupts.py`)


def _is_free(number: int, default: object) -> bool:
    """Return whether a signal has its default handler, or the handler of an enclosing `Stopping`."""
    handler = signal.getsignal(number)
    return handler is default or isinstance(getattr(handler, "__self__", None), Stopping)


def _is_in_finalizer(frame: FrameType | None) -> bool:
    """Return whether a `__del__` is running, where Python would print and ignore an exception."""
    while frame is not None:
        if frame.f_code.co_name == "__del__":
            return True
        frame = frame.f_back
    return False
