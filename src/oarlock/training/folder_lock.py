"""The lock of the folder of a run: one process trains in it, and one that writes its checkpoints may live a little longer."""

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
_OPEN: set[str] = set()  # folders of runs of this process, which its lock would let in
_PATIENCE = 60.0  # seconds, for the process of a trainer that was killed to write what it was asked for


class FolderLock:
    """The lock of a folder, while it is taken: a byte of a file. Children do not inherit it, as they would a flock."""

    def __init__(self, folder: Path):
        self._folder = folder
        self._file: IO[bytes] | None = None

    def take(self) -> None:
        """Take the lock, and wait for the process that writes what a killed trainer has asked for.

        Raises WriteError, OSError, and FormatError where the lock is no file.
        """
        name = str(self._folder.resolve())
        try:
            if name in _OPEN:
                raise BlockingIOError
            self._file = os.fdopen(open_to_lock(self._folder / LOCK), "ab")  # it is locked until the run ends
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
                    f'"{self._folder}" belongs to a run that another process has not ended', hint="another folder, or wait for it"
                ) from None
            raise

    def give_back(self) -> None:
        """Let others have it."""
        if self._file is not None:
            _OPEN.discard(str(self._folder.resolve()))
            self._file.close()
            self._file = None


def _wait_for_writer(file: IO[bytes], kind: int) -> None:
    """Wait until no process writes checkpoints there. Raises BlockingIOError where that takes too long."""
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
    """Wait until the process of a trainer that was killed has ended, in a folder that another process of ours has the lock of.

    Raises WriteError where that takes too long.
    """
    if fcntl is None or str(folder.resolve()) in _OPEN or not (folder / LOCK).exists():
        return
    try:
        with os.fdopen(open_file(folder / LOCK, follow=False)[0], "rb") as file:
            _wait_for_writer(file, fcntl.LOCK_SH)
    except BlockingIOError:
        raise WriteError(f'"{folder}" belongs to a run that another process has not ended', hint="another folder, or wait for it") from None


def is_running(folder: Path) -> bool:
    """Whether a process trains the run in a folder now, or writes a checkpoint of it; False where the system has no locks."""
    if str(folder.resolve()) in _OPEN:
        return True  # whose lock would be given up by this process as soon as it closed another descriptor of the file
    try:
        with os.fdopen(open_file(folder / LOCK, follow=False)[0], "rb") as lock:
            if fcntl is not None:
                fcntl.lockf(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except (OSError, OarlockError):  # a lock that is no file, say: nobody trains there
        return False
    return False
