"""A command in its own process group, read with a deadline and always killed as a whole. Linux only.

The command is untrusted: it may answer nothing, answer endlessly, or leave processes behind that hold its pipe open.
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
_LOOK = 0.05  # seconds between checks for a stop request, and for the end of the command while another process holds its pipe


class ProcessGroup:
    """A command that runs for at most `seconds`. Leaving the `with` block kills all processes of its group.

    When `stops()` becomes true, the group is sent SIGINT, as by Ctrl-C, and has at most `patience` more seconds. Reading and waiting raise
    TimeoutError at the deadline.
    """

    def __init__(
        self, command: Sequence[str], environment: Mapping[str, str], *, seconds: float, stops: Callable[[], bool], patience: float
    ):
        self._end = time.monotonic() + seconds
        self._stops = stops
        self._patience = patience
        self._is_stopping = False
        self._buffer = bytearray()
        self._child = subprocess.Popen(  # noqa: S603  this interpreter, without a shell
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=environment,
            start_new_session=True,  # it cannot use the terminal, and only the parent forwards Ctrl-C
        )
        assert self._child.stdout is not None
        self._pipe = self._child.stdout
        os.set_blocking(self._pipe.fileno(), False)

    def __enter__(self) -> "ProcessGroup":
        return self

    def __exit__(self, *raised: object) -> None:
        # Until the process is reaped, its PID and group ID cannot be reused.
        for end in (lambda: os.killpg(self._child.pid, signal.SIGKILL), self._child.kill):
            with contextlib.suppress(ProcessLookupError, PermissionError):
                end()
        self._child.wait()
        self._pipe.close()

    def read_line(self, most: int) -> bytes:
        """Read the next line of output, without the line end. Raises ValueError after `most` bytes, EOFError if the output ends first."""
        while b"\n" not in self._buffer:
            if len(self._buffer) > most:
                raise ValueError("the line is too long")
            self._fill(most + 1 - len(self._buffer))
        line, _, rest = self._buffer.partition(b"\n")
        self._buffer = rest
        return bytes(line)

    def read(self, count: int) -> bytes:
        """Read `count` bytes of output. Raises EOFError if the output ends first."""
        while len(self._buffer) < count:
            self._fill(count - len(self._buffer))
        with memoryview(self._buffer) as held:
            found = bytes(held[:count])
        del self._buffer[:count]
        return found

    def wait(self) -> int:
        """Wait for the command, discarding further output. Return its exit status, or minus the signal that ended it."""
        while not self._has_ended():
            self._seconds_left()
            time.sleep(_LOOK / 10)
        found = os.waitid(os.P_PID, self._child.pid, os.WEXITED | os.WNOWAIT)
        assert found is not None
        return found.si_status if found.si_code == os.CLD_EXITED else -found.si_status

    def _fill(self, most: int) -> None:
        """Wait for output and buffer up to `most` bytes. Raises EOFError at its end."""
        with selectors.DefaultSelector() as selector:
            selector.register(self._pipe, selectors.EVENT_READ)
            while True:
                ended = self._has_ended()  # checked before `select`, so that its last output is in the pipe
                left = self._seconds_left()
                if selector.select(0 if ended else min(left, _LOOK)):
                    break
                if ended:  # only another process still holds the pipe
                    raise EOFError
        data = os.read(self._pipe.fileno(), min(most, _CHUNK))
        if not data:
            raise EOFError
        self._buffer += data

    def _seconds_left(self) -> float:
        """Return the time left; on a stop request, interrupt the command first. Raises TimeoutError if there is none."""
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
