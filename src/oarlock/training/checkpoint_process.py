"""The process that writes the checkpoints of a run beside its training, or a thread where none can be started.

A thread takes the interpreter's lock from the step each time it comes back from the system: a process does not. It is told one request
at a time, by a message of three numbers; the request and the files lie in memory that both processes have.
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

import oarlock.training.checkpoint_writing as checkpoint_writing  # `from` would ask the package, which looks for what is like it
from oarlock.training.checkpoint_writing import ANSWER, LARGEST, MESSAGE, READY, fulfil

__all__ = ["CheckpointWriter"]

PROGRAM = os.path.abspath(checkpoint_writing.__file__)  # which the process runs
CAN_START = hasattr(os, "memfd_create") and not getattr(sys, "frozen", False)  # a frozen application would start itself once more
_LOOKS = 200  # milliseconds between two looks whether the process lives: a child of this one may hold its end of the channel
ENDED = "the process that writes it has ended"


class CheckpointWriter:
    """Writes one checkpoint at a time beside the training. `lock` is the file that the process holds locked.

    `reserve` gives the memory that the files of a checkpoint are put in, `begin` has it written, `wait` gives the answer to that. A child
    of `fork()` begins anew: it neither writes to the memory of its parent nor speaks to its process.
    """

    def __init__(self, lock: Path):
        self._lock = os.path.abspath(lock)
        self._forget()
        self._uses_process = CAN_START

    def _forget(self) -> None:
        self._owner = os.getpid()
        self._memory: mmap.mmap | None = None
        self._descriptor = -1  # of the memory
        self._process: subprocess.Popen[bytes] | None = None
        self._channel: socket.socket | None = None
        self._is_ready = False
        self._thread: ThreadPoolExecutor | None = None
        self._request: tuple[int, int] | None = None  # that is being written
        self._by_thread: Future[dict[str, object]] | None = None

    def reserve(self, size: int, spare: int) -> mmap.mmap:
        """Memory of so many bytes or more: the same object as long as it is large enough, else one with some to spare. Nothing may be
        being written. Raises OSError where there is none.
        """
        if self._owner != os.getpid():
            self._leave()
        if self._memory is None or len(self._memory) < size:
            size = -(-(size + spare) // mmap.PAGESIZE) * mmap.PAGESIZE
            self._memory = None
            if self._uses_process and self._descriptor < 0:
                try:
                    self._descriptor = os.memfd_create("oarlock checkpoint")
                except OSError:  # somebody forbids it
                    self._uses_process = False
            if self._uses_process:
                os.ftruncate(self._descriptor, size)
                self._memory = mmap.mmap(self._descriptor, size)
            else:
                self._memory = mmap.mmap(-1, size)
        return self._memory

    def begin(self, at: int, size: int) -> None:
        """Have a checkpoint written by a request, which is JSON of so many bytes `at` a place in the memory."""
        assert self._memory is not None
        assert self._request is None
        self._request = at, size
        try:
            if self._uses_process and not any(self._ask() for _ in range(2)):  # one may have been killed since
                self._uses_process = False
            if not self._uses_process:
                self._write_by_thread()
        except BaseException:  # an interrupt: whether it was asked is not known
            self._request = self._by_thread = None
            self._end(kill=True)
            raise

    def wait(self) -> dict[str, Any] | None:
        """The answer to what was begun, when it is there: nothing, or the fault under `reason` or `missing`. None where nothing was."""
        if self._request is None or self._owner != os.getpid():
            return None
        try:
            return self._by_thread.result() if self._by_thread is not None else self._receive()
        except BaseException:  # an interrupt: whether it has answered is not known
            self._end()
            raise
        finally:
            self._request = self._by_thread = None

    def close(self) -> None:
        """End the process; what it writes is there by then. An interrupt ends it at once, and leaves what is unfinished."""
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
        """Tell the process of the request, and start one where there is none; whether it could be told."""
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
            # In a session of its own: Ctrl-C is not for it.
            self._process = subprocess.Popen(  # noqa: S603  this interpreter, and no shell
                command,
                stdin=theirs.fileno(),
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                pass_fds=(self._descriptor,),
                cwd=os.sep,
                start_new_session=True,
            )

    def _receive(self) -> dict[str, object]:
        """The answer of the process. Of one that could not begin, a thread writes what it was asked for, and all that follows."""
        assert self._channel is not None
        assert self._process is not None
        while True:
            said = b""
            with contextlib.suppress(ConnectionResetError):
                try:
                    said = self._channel.recv(LARGEST, socket.MSG_DONTWAIT)  # which is mostly there: steps have been taken since
                except BlockingIOError:
                    if _is_ready(self._channel) or self._process.poll() is None:
                        continue
            if said == READY:
                self._is_ready = True
            elif said:
                fault: dict[str, object] = json.loads(said[ANSWER.size :]) if len(said) > ANSWER.size else {}
                return fault | {"taken": ANSWER.unpack_from(said)}
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
        self._by_thread = self._thread.submit(_fulfil, self._memory, *self._request)
        return self._by_thread

    def _end(self, *, kill: bool = False) -> None:
        """Hang up, and wait until the process has ended."""
        process, channel = self._process, self._channel
        self._process = self._channel = None
        if channel is not None:
            with contextlib.suppress(OSError):
                channel.shutdown(socket.SHUT_RDWR)  # whoever else holds it
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
        """Let go of what is the parent's of this child of `fork()`."""
        if self._channel is not None:
            self._channel.close()
        if self._process is not None:
            self._process.returncode = 0  # which is not ours to wait for
        if self._descriptor >= 0:
            os.close(self._descriptor)
        self._forget()


def _is_ready(channel: socket.socket) -> bool:
    """Whether there is something to receive, soon."""
    there = select.poll()
    there.register(channel, select.POLLIN)
    return bool(there.poll(_LOOKS))


def _fulfil(memory: mmap.mmap, begin: int, size: int) -> dict[str, object]:
    return fulfil(memoryview(memory), json.loads(memory[begin : begin + size]))
