"""Atomic replacement of files: a reader finds either the old file or the complete new one.

The new file is written next to the old one as `.oarlock-....tmp`, which the writing process locks. So the next save in that folder can
recognize files of killed processes, and removes them.
"""

import contextlib
import os
import secrets
import stat
from functools import partial
from io import BufferedWriter
from pathlib import Path

from oarlock.errors import ArgumentError, MissingFileError, OarlockError, WriteError

try:
    import fcntl
except ImportError:  # Windows, which cannot remove open files
    fcntl = None

__all__ = ["write_file"]

_PREFIX, _SUFFIX = ".oarlock-", ".tmp"


def write_file(path: str | os.PathLike[str], data: bytes | memoryview) -> None:
    """Write a new file next to `path`, then replace `path` by it.

    A new file has the mode of the umask; a replacement keeps the mode and, if the system allows it, the owner. A symbolic link is kept,
    and its target is replaced; hard links to the old file keep the old contents. On any error or interrupt, the old file is unchanged and
    no other file is left.

    Raises ArgumentError for a folder, a pipe or a device, MissingFileError if there is no folder, WriteError if the system refuses (no
    space, no permission, a name that is too long).
    """
    path = Path(path)
    try:
        target = Path(os.path.realpath(path))
        old = _look_at(path, target)
        _remove_left_behind(target.parent)
        while not _replace(target, data, old):
            pass
    except OarlockError:  # also an OSError
        raise
    except (FileNotFoundError, NotADirectoryError):
        raise MissingFileError(f'there is no folder "{path.parent}"') from None
    except (OSError, ValueError) as error:  # ValueError: a NUL in the name
        reason = getattr(error, "strerror", None) or error
        raise WriteError(
            f'"{path}" cannot be written: {reason}', hint="free disk space, check the permissions, or use another path"
        ) from error


def _look_at(path: Path, target: Path) -> os.stat_result | None:
    """Return the status of the file at `target`, to which `path` leads, or None if there is none. Raises ArgumentError or OSError."""
    try:
        status = os.stat(target)
    except FileNotFoundError:
        return None
    if stat.S_ISDIR(status.st_mode):
        raise ArgumentError(f'"{path}" is a folder, not a file')
    if not stat.S_ISREG(status.st_mode):
        raise ArgumentError(f'"{path}" is a pipe or a device; open it yourself, and pass the open file')
    if not os.access(target, os.W_OK):  # replacing it would only need write access to the folder
        raise PermissionError(None, "it is read-only")
    return status


def _replace(target: Path, data: bytes | memoryview, old: os.stat_result | None) -> bool:
    """Write `data` to a new file, and rename it to `target`. Return False if another process removed the new file as an orphan."""
    temporary = target.parent / f"{_PREFIX}{secrets.token_hex(8)}{_SUFFIX}"
    mode = 0o666 if old is None else stat.S_IMODE(old.st_mode) & 0o777
    try:
        # Opened in C code, which interrupts cannot enter: either the file is open, and its object closes it, or it does not exist.
        with open(temporary, "xb", opener=partial(os.open, mode=mode)) as file:
            if not _hold(file):
                return False
            if old is not None and fcntl is not None:
                with contextlib.suppress(PermissionError):
                    os.fchown(file.fileno(), old.st_uid, old.st_gid)
                os.fchmod(file.fileno(), mode)  # regardless of the umask
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
            if fcntl is None:
                file.close()  # Windows cannot move open files
            os.replace(temporary, target)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise
    return True


def _hold(file: BufferedWriter) -> bool:
    """Lock a new file until it is closed. Return False if it was already removed. Without locks, no orphans are removed either."""
    if fcntl is not None:
        with contextlib.suppress(OSError):
            fcntl.flock(file, fcntl.LOCK_EX)
    return os.fstat(file.fileno()).st_nlink > 0


def _remove_left_behind(folder: Path) -> None:
    """Remove temporary files that no process has locked: their writers were killed."""
    if fcntl is None:
        return
    with os.scandir(folder) as entries:
        names = [entry.path for entry in entries if entry.name.startswith(_PREFIX) and entry.name.endswith(_SUFFIX)]
    for name in names:
        with contextlib.suppress(OSError):  # owned by another user, already removed, or locked
            descriptor = os.open(name, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
            try:
                status = os.fstat(descriptor)
                if stat.S_ISREG(status.st_mode) and status.st_uid == os.geteuid():
                    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    os.unlink(name)
            finally:
                os.close(descriptor)
