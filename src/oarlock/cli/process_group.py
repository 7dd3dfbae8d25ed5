"""A command in a process group of its own, which is read with a deadline and ended whole. Linux alone.

What it runs may be a stranger's by now: it may answer nothing, answer for ever, or leave processes behind that hold its pipe.
"""

import contextlib
import os
import selectors
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence

__all__ = ["ProcessGroup"]

_CHUNK = 2**20
_LOOK = 0.05  # seconds: how soon it is seen that the command is to stop, or that it ended while something else holds its pipe


class ProcessGroup:
    """A command that runs until `seconds` have passed, or until the `with` block ends; then no process of its group is left.

    Once `stops` says so, its group is sent SIGINT, as by Ctrl-C, and the command has `patience` seconds left, but no more than it had.
    Reading and waiting raise TimeoutError once the seconds are over.
    """

    def __init__(
        self, command: Sequence[str], environment: Mapping[str, str], *, seconds: float, stops: Callable[[], bool], patience: float
    ):
        self._end = time.monotonic() + seconds
        self._stops = stops
        self._patience = patience
        self._is_stopping = False
        self._buffer = bytearray()
        self._child = subprocess.Popen(  # noqa: S603  this interpreter, and no shell
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=environment,
            start_new_session=True,  # it may not take the terminal, and Ctrl-C reaches it by way of us alone
        )
        assert self._child.stdout is not None
        self._pipe = self._child.stdout
        os.set_blocking(self._pipe.fileno(), False)

    def __enter__(self) -> "ProcessGroup":
        return self

    def __exit__(self, *raised: object) -> None:
        # As long as nobody has waited for the command, its number is its own, and so is that of its group.
        for end in (lambda: os.killpg(self._child.pid, signal.SIGKILL), self._child.kill):
            with contextlib.suppress(ProcessLookupError, PermissionError):
                end()
        self._child.wait()
        self._pipe.close()

    def read_line(self, most: int) -> bytes:
        """Read its output up to the end of a line, without it. Raises ValueError for more than `most` bytes, EOFError for no end."""
        while b"\n" not in self._buffer:
            if len(self._buffer) > most:
                raise ValueError("this line does not end")
            self._fill(most + 1 - len(self._buffer))
        line, _, rest = self._buffer.partition(b"\n")
        self._buffer = rest
        return bytes(line)

    def read(self, count: int) -> bytes:
        """As many bytes of what it writes next. Raises EOFError where it writes fewer."""
        while len(self._buffer) < count:
            self._fill(count - len(self._buffer))
        with memoryview(self._buffer) as held:
            found = bytes(held[:count])
        del self._buffer[:count]
        return found

    def wait(self) -> int:
        """How it ended: its status, or minus the signal. Nothing that it writes is read any more."""
        while not self._has_ended():
            self._seconds_left()
            time.sleep(_LOOK / 10)
        found = os.waitid(os.P_PID, self._child.pid, os.WEXITED | os.WNOWAIT)
        assert found is not None
        return found.si_status if found.si_code == os.CLD_EXITED else -found.si_status

    def _fill(self, most: int) -> None:
        """Wait for something, and take it. Raises EOFError where nothing is to come."""
        with selectors.DefaultSelector() as selector:
            selector.register(self._pipe, selectors.EVENT_READ)
            while True:
                ended = self._has_ended()  # asked for first: what it wrote before is in the pipe by then
                left = self._seconds_left()
                if selector.select(0 if ended else min(left, _LOOK)):
                    break
                if ended:  # another process holds the pipe, which is none of the command
                    raise EOFError
        data = os.read(self._pipe.fileno(), min(most, _CHUNK))
        if not data:
            raise EOFError
        self._buffer += data

    def _seconds_left(self) -> float:
        """The time it has, once it was asked to stop where it is to stop. Raises TimeoutError where there is none."""
        if not self._is_stopping and self._stops():
            self._is_stopping = True
            self._end = min(self._end, time.monotonic() + self._patience)
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self._child.pid, signal.SIGINT)
        left = self._end - time.monotonic()
        if left <= 0:
            raise TimeoutError
        return left

    def _has_ended(self) -> bool:
        return os.waitid(os.P_PID, self._child.pid, os.WEXITED | os.WNOWAIT | os.WNOHANG) is not None
