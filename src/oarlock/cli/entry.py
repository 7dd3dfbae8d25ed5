"""The entry point of the command `oarlock`. Until its verb is imported, an interrupt ends the process immediately.

An interrupt raised as an exception can get lost in an import: some libraries, and Python itself, suppress it.
"""

import contextlib
import signal
import threading
from collections.abc import Iterator

__all__ = ["interrupts_end_at_once", "run"]


@contextlib.contextmanager
def interrupts_end_at_once() -> Iterator[None]:
    """Make SIGINT end the process immediately in this context, unless it is ignored or has a custom handler."""
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
    """Run the command line; the verb is imported on demand."""
    with interrupts_end_at_once():
        from oarlock.cli import main
    main.run()
