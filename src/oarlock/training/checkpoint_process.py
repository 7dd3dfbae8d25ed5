"""The process that writes the checkpoints of a run in the background, or a thread if no process can be started.

Unlike a process, a thread takes the interpreter lock from training after each system call. The process receives one request at a time, as
a message of three numbers; the request and the files are in shared memory.
"""

import contextlib
import json
import mmap
import os
import select
import socket
import subprocess
import sys
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import oarlock.training.checkpoint_writing as checkpoint_writing  # `from` would trigger the package's `__getattr__`
from oarlock.training.checkpoint_writing import ANSWER, LARGEST, MESSAGE, READY, answer_request

__all__ = ["CheckpointWriter"]

PROGRAM = os.path.abspath(checkpoint_writing.__file__)  # the script that the process runs
CAN_START = hasattr(os, "memfd_create") and not getattr(sys, "frozen", False)  # a frozen application would start itself again
_LOOKS = 200  # milliseconds between checks that the process is alive: a fork of this process may hold its end of the channel
ENDED = "the process that writes it ended"


class CheckpointWriter:
    """A background writer of one checkpoint at a time. The process holds a lock on the file `lock`.

    `reserve` returns the memory for the files of a checkpoint, `begin` starts writing it, `wait` returns the answer. After a `fork()`, the
    child starts over: it uses neither the memory nor the process of its parent.
    """

    def __init__(self, lock: Path):
        self._lock = os.path.abspath(lock)
        self._forget()
        self._uses_process = CAN_START

    def _forget(self) -> None:
        self._owner = os.getpid()
        self._memory: mmap.mmap | None = None
        self._descriptor = -1  # of the shared memory
        self._process: subprocess.Popen[bytes] | None = None
        self._channel: socket.socket | None = None
        self._is_ready = False
        self._thread: ThreadPoolExecutor | None = None
        self._request: tuple[int, int] | None = None  # the current request
        self._by_thread: Future[dict[str, object]] | None = None

    def reserve(self, size: int, spare: int) -> mmap.mmap:
        """Return memory of at least `size` bytes: the same object if it is large enough, otherwise a new one with `spare` extra bytes.

        Nothing may be being written. Raises OSError if there is no memory.
        """
        if self._owner != os.getpid():
            self._leave()
        if self._memory is None or len(self._memory) < size:
            size = -(-(size + spare) // mmap.PAGESIZE) * mmap.PAGESIZE
            self._memory = None
            if self._uses_process and self._descriptor < 0:
                try:
                    self._descriptor = os.memfd_create("oarlock checkpoint")
                except OSError:  # not permitted
                    self._uses_process = False
            if self._uses_process:
                os.ftruncate(self._descriptor, size)
                self._memory = mmap.mmap(self._descriptor, size)
            else:
                self._memory = mmap.mmap(-1, size)
        return self._memory

    def begin(self, at: int, size: int) -> None:
        """Start writing a checkpoint. The request is JSON: `size` bytes at offset `at` of the memory."""
        assert self._memory is not None
        assert self._request is None
        self._request = at, size
        try:
            if self._uses_process and not any(self._ask() for _ in range(2)):  # an idle process may have been killed
                self._uses_process = False
            if not self._uses_process:
                self._write_by_thread()
        except BaseException:  # an interrupt: the request may or may not have been sent
            self._request = self._by_thread = None
            self._end(kill=True)
            raise

    def wait(self) -> dict[str, Any] | None:
        """Wait for the answer to the request: empty, or the error under `reason` or `missing`. Returns None if there is no request."""
        if self._request is None or self._owner != os.getpid():
            return None
        try:
            return self._by_thread.result() if self._by_thread is not None else self._receive()
        except BaseException:  # an interrupt: the answer may or may not have been received
            self._end()
            raise
        finally:
            self._request = self._by_thread = None

    def close(self) -> None:
        """End the process after it has written the checkpoint. An interrupt kills it immediately and leaves unfinished files."""
        if self._owner != os.getpid():
            self._leave()
            return
        if self._thread is not None:
            self._thread.shutdown()
        self._end()
        if self._descriptor >= 0:
            os.close(self._descriptor)
        self._forget()

    def _ask(self) -> bool:
        """Send the request to the process, started on demand. Return whether it was sent."""
        assert self._memory is not None
        assert self._request is not None
        try:
            if self._process is None:
                self._start()
            assert self._channel is not None
            self._channel.send(MESSAGE.pack(len(self._memory), *self._request), socket.MSG_NOSIGNAL)
        except (OSError, ValueError, subprocess.SubprocessError):
            self._end(kill=True)
            return False
        return True

    def _start(self) -> None:
        self._is_ready = False
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._channel = ours
        command = [sys.executable, "-I", "-S", PROGRAM, str(self._descriptor), self._lock, str(os.getpid())]
        with theirs:
            # In a new session, so that Ctrl-C does not reach it.
            self._process = subprocess.Popen(  # noqa: S603  this interpreter, without a shell
                command,
                stdin=theirs.fileno(),
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                pass_fds=(self._descriptor,),
                cwd=os.sep,
                start_new_session=True,
            )

    def _receive(self) -> dict[str, object]:
        """Return the answer of the process. If the process could not start, write this and all further checkpoints in a thread."""
        assert self._channel is not None
        assert self._process is not None
        while True:
            message = b""
            with contextlib.suppress(ConnectionResetError):
                try:
                    message = self._channel.recv(LARGEST, socket.MSG_DONTWAIT)  # usually available: steps have been run since
                except BlockingIOError:
                    if _is_ready(self._channel) or self._process.poll() is None:
                        continue
            if message == READY:
                self._is_ready = True
            elif message:
                fault: dict[str, object] = json.loads(message[ANSWER.size :]) if len(message) > ANSWER.size else {}
                return fault | {"taken": ANSWER.unpack_from(message)}
            else:
                break
        self._end(kill=True)
        if self._is_ready:
            return {"reason": ENDED, "ended": True}
        self._uses_process = False
        return self._write_by_thread().result()

    def _write_by_thread(self) -> "Future[dict[str, object]]":
        assert self._memory is not None
        assert self._request is not None
        self._thread = self._thread or ThreadPoolExecutor(1, thread_name_prefix="oarlock checkpoint")
        self._by_thread = self._thread.submit(_answer_request, self._memory, *self._request)
        return self._by_thread

    def _end(self, *, kill: bool = False) -> None:
        """Close the channel, and wait until the process has ended."""
        process, channel = self._process, self._channel
        self._process = self._channel = None
        if channel is not None:
            with contextlib.suppress(OSError):
                channel.shutdown(socket.SHUT_RDWR)  # also for forks that hold it
            channel.close()
        if process is not None:
            try:
                if kill:
                    process.kill()
                process.wait()
            except BaseException:
                process.kill()
                process.wait()
                raise

    def _leave(self) -> None:
        """Release the resources of the parent in a child of `fork()`."""
        if self._channel is not None:
            self._channel.close()
        if self._process is not None:
            self._process.returncode = 0  # a child of the parent, so it cannot be waited for
        if self._descriptor >= 0:
            os.close(self._descriptor)
        self._forget()


def _is_ready(channel: socket.socket) -> bool:
    """Return whether an answer arrives soon."""
    there = select.poll()
    there.register(channel, select.POLLIN)
    return bool(there.poll(_LOOKS))


def _answer_request(memory: mmap.mmap, begin: int, size: int) -> dict[str, object]:
    return answer_request(memoryview(memory), json.loads(memory[begin : begin + size]))
