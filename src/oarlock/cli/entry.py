"""Where the command `oarlock` begins: until its verb is imported there is nothing to undo, so an interrupt ends it at once.

An interrupt that Python raises as an exception may be lost in an import: libraries, and Python itself, drop some.
"""

import contextlib
import signal
import threading
from collections.abc import Iterator

__all__ = ["interrupts_end_at_once", "run"]


@contextlib.contextmanager
def interrupts_end_at_once() -> Iterator[None]:
    """In this context an interrupt ends the process, unless who started it ignores interrupts, or the program has a handler of its own."""
    alone = threading.current_thread() is threading.main_thread() and signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if not alone:
        yield
        return
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def run() -> None:
    """Run the command line, which imports a verb when it is asked for."""
    with interrupts_end_at_once():
        from oarlock.cli import main
    main.run()
