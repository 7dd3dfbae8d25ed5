"""Where the command `oarlock` begins: until its verbs are imported there is nothing to undo, so an interrupt ends it at once.

An interrupt that Python raises as an exception may be lost in an import: libraries, and Python itself, drop some.
"""

import signal

__all__ = ["run"]


def run() -> None:
    """Import the verbs, then run the command line."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        from oarlock.cli import main

        signal.signal(signal.SIGINT, signal.default_int_handler)
    else:  # one who started it ignores interrupts, and so does it
        from oarlock.cli import main
    main.run()
