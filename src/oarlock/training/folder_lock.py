"""The lock of a run folder: one process trains in it, and its checkpoint writer may live a little longer."""

import os
import time
from pathlib import Path
from typing import IO

from oarlock.errors import OarlockError, WriteError
from oarlock.io.files import open_file, open_to_lock
from oarlock.training.checkpoint_writing import LOCKED_BY_TRAINER, LOCKED_BY_WRITER

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None

__all__ = ["LOCK", "FolderLock", "is_running", "wait_for_writer"]

LOCK = "lock"
_OPEN: set[str] = set()  # locked by this process, which its own lock would not exclude
_PATIENCE = 60.0  # seconds to wait for the checkpoint writer of a killed trainer


class FolderLock:
    """The lock of a run folder: a locked byte of a file. Unlike a flock, child processes do not inherit it."""

    def __init__(self, folder: Path):
        self._folder = folder
        self._file: IO[bytes] | None = None

    def take(self) -> None:
        """Take the lock, after waiting for the checkpoint writer of a killed trainer.

        Raises WriteError, OSError, or FormatError if the lock is not a regular file.
        """
        name = str(self._folder.resolve())
        try:
            if name in _OPEN:
                raise BlockingIOError
            self._file = os.fdopen(open_to_lock(self._folder / LOCK), "ab")  # kept open until the run ends
            if fcntl is not None:
                fcntl.lockf(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, LOCKED_BY_TRAINER)
                _wait_for_writer(self._file, fcntl.LOCK_EX)
            _OPEN.add(name)
        except BaseException as error:
            if self._file is not None:
                self._file.close()
                self._file = None
            if isinstance(error, BlockingIOError):
                raise WriteError(
                    f'"{self._folder}" is in use by a run of another process', hint="use another folder, or wait until that run ends"
                ) from None
            raise

    def release(self) -> None:
        """Release the lock."""
        if self._file is not None:
            _OPEN.discard(str(self._folder.resolve()))
            self._file.close()
            self._file = None


def _wait_for_writer(file: IO[bytes], kind: int) -> None:
    """Wait until no process writes checkpoints in the folder. Raises BlockingIOError after a timeout."""
    assert fcntl is not None
    until = time.monotonic() + _PATIENCE
    while True:
        try:
            fcntl.lockf(file, kind | fcntl.LOCK_NB, 1, LOCKED_BY_WRITER)
            fcntl.lockf(file, fcntl.LOCK_UN, 1, LOCKED_BY_WRITER)
            return
        except BlockingIOError:
            if time.monotonic() > until:
                raise
            time.sleep(0.005)


def wait_for_writer(folder: Path) -> None:
    """Wait for the checkpoint writer of a killed trainer, in a folder that another worker has locked.

    Raises WriteError after a timeout.
    """
    if fcntl is None or str(folder.resolve()) in _OPEN or not (folder / LOCK).exists():
        return
    try:
        with os.fdopen(open_file(folder / LOCK, follow=False)[0], "rb") as file:
            _wait_for_writer(file, fcntl.LOCK_SH)
    except BlockingIOError:
        raise WriteError(
            f'"{folder}" is in use by a run of another process', hint="use another folder, or wait until that run ends"
        ) from None


def is_running(folder: Path) -> bool:
    """Return whether a process is training in a folder or writing a checkpoint; False if the system has no locks."""
    if str(folder.resolve()) in _OPEN:
        return True  # opening and closing the file here would release this process's own lock
    try:
        with os.fdopen(open_file(folder / LOCK, follow=False)[0], "rb") as lock:
            if fcntl is not None:
                fcntl.lockf(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except (OSError, OarlockError):  # such as a lock that is not a regular file
        return False
    return False
