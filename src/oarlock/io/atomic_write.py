"""One file, replaced whole: whoever reads it finds the old one or the new one.

The new one is written beside it under a name of ours, `.oarlock-....tmp`, which the process that writes holds locked: so the next
save in that folder sees which of them nobody will finish, because their process was killed, and removes those.
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
except ImportError:  # Windows, which removes no file that is open
    fcntl = None

__all__ = ["write_file"]

_PREFIX, _SUFFIX = ".oarlock-", ".tmp"


def write_file(path: str | os.PathLike[str], data: bytes | memoryview) -> None:
    """Write a file beside `path`, then put it in place of what stands there, whole.

    A new file has the mode that the umask leaves; one that replaces another has that one's mode and, where the system allows it, its
    owner. A symbolic link stays, and the file that it leads to is replaced; other names of that file keep the old content.
    Whatever ends this early, an interrupt too, leaves the old file as it was and nothing beside it.

    Raises ArgumentError for a folder, a pipe or a device, MissingFileError where there is no folder to write in, WriteError where the
    system refuses: no room, no rights, a name that is too long.
    """
    path = Path(path)
    try:
        target = Path(os.path.realpath(path))
        old = _look_at(path, target)
        _remove_left_behind(target.parent)
        while not _replace(target, data, old):
            pass
    except OarlockError:  # an OSError too
        raise
    except (FileNotFoundError, NotADirectoryError):
        raise MissingFileError(f'there is no folder "{path.parent}"') from None
    except (OSError, ValueError) as error:  # a ValueError for a NUL in the name
        said = getattr(error, "strerror", None) or error
        raise WriteError(
            f'"{path}" cannot be written: {said}', hint="make room or get the rights there, or save to another place"
        ) from error


def _look_at(path: Path, target: Path) -> os.stat_result | None:
    """The status of the file at `target`, which `path` leads to; None for none. Raises ArgumentError where it is no file, and OSError."""
    try:
        status = os.stat(target)
    except FileNotFoundError:
        return None
    if stat.S_ISDIR(status.st_mode):
        raise ArgumentError(f'"{path}" is a folder; a model is one file')
    if not stat.S_ISREG(status.st_mode):
        raise ArgumentError(f'"{path}" is a pipe or a device; a model is a file, or is written to one that is open')
    if not os.access(target, os.W_OK):  # which could be replaced all the same: its folder is asked, not the file
        raise PermissionError(None, "it is read-only")
    return status


def _replace(target: Path, data: bytes | memoryview, old: os.stat_result | None) -> bool:
    """Write `data` into a new file, and put that in place; False where somebody took the new file for one that was left behind."""
    temporary = target.parent / f"{_PREFIX}{secrets.token_hex(8)}{_SUFFIX}"
    mode = 0o666 if old is None else stat.S_IMODE(old.st_mode) & 0o777
    try:
        # Opened by C code alone, which no interrupt enters: either the file is open and its object closes it, or it is not there.
        with open(temporary, "xb", opener=partial(os.open, mode=mode)) as file:
            if not _hold(file):
                return False
            if old is not None and fcntl is not None:
                with contextlib.suppress(PermissionError):
                    os.fchown(file.fileno(), old.st_uid, old.st_gid)
                os.fchmod(file.fileno(), mode)  # the umask has no say in it
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
            if fcntl is None:
                file.close()  # Windows moves no file that is open
            os.replace(temporary, target)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise
    return True


def _hold(file: BufferedWriter) -> bool:
    """Lock a new file until it is closed. False where it was removed before; where nothing can be locked, nothing is removed either."""
    if fcntl is not None:
        with contextlib.suppress(OSError):
            fcntl.flock(file, fcntl.LOCK_EX)
    return os.fstat(file.fileno()).st_nlink > 0


def _remove_left_behind(folder: Path) -> None:
    """Remove the files of ours that no process holds: each was being written by one that was killed."""
    if fcntl is None:
        return
    with os.scandir(folder) as entries:
        names = [entry.path for entry in entries if entry.name.startswith(_PREFIX) and entry.name.endswith(_SUFFIX)]
    for name in names:
        with contextlib.suppress(OSError):  # another's, gone already, or held
            descriptor = os.open(name, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
            try:
                status = os.fstat(descriptor)
                if stat.S_ISREG(status.st_mode) and status.st_uid == os.geteuid():
                    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    os.unlink(name)
            finally:
                os.close(descriptor)
