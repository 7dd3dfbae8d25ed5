"""Opening and reading single files safely."""

import errno
import os
import stat
from pathlib import Path

from oarlock.errors import ArgumentError, FormatError, LimitError, MissingFileError, ReadError

__all__ = ["open_file", "open_to_lock", "open_within", "read_file"]

# Opening does not block on a pipe, is not inherited by other processes, and never sets the controlling terminal.
_CAREFULLY = sum(getattr(os, flag, 0) for flag in ("O_CLOEXEC", "O_NONBLOCK", "O_NOCTTY", "O_BINARY"))
_READ = os.O_RDONLY | _CAREFULLY
_NO_LINK = getattr(os, "O_NOFOLLOW", 0)


def read_file(path: str | os.PathLike[str], *, largest: int, limit: str, untrusted: bool = False, follow: bool = True) -> bytes:
    """Read a regular file through the descriptor that `open_file` returns. `largest` is the value of the `Limits` field `limit`.

    Raises the errors of `open_file`, LimitError if the file is larger, and ReadError.
    """
    descriptor, size = open_within(path, largest=largest, limit=limit, untrusted=untrusted, follow=follow)
    try:
        with open(descriptor, "rb", closefd=False) as file:
            return file.read(size)
    except OSError as error:
        raise _refused(path, "read", error) from error
    finally:
        os.close(descriptor)


def open_within(path: str | os.PathLike[str], *, largest: int, limit: str, untrusted: bool = False, follow: bool = True) -> tuple[int, int]:
    """Open a file like `open_file`; return its descriptor and size. Raises LimitError for more than `largest` bytes, the limit `limit`."""
    descriptor, status = open_file(path, untrusted=untrusted, follow=follow)
    if status.st_size > largest:
        os.close(descriptor)
        raise LimitError(
            f'"{Path(path).name}" has {status.st_size:,} bytes, but the limit is {largest:,}', hint=f"limits=Limits({limit}=...)"
        )
    return descriptor, status.st_size


def open_file(path: str | os.PathLike[str], *, untrusted: bool = False, follow: bool = True) -> tuple[int, os.stat_result]:
    """Open a regular file, never a pipe or device, which may not end. Return its descriptor, which the caller must close, and its status.

    An `untrusted` file must not be a symbolic or hard link either, which could lead to a file that its author cannot read but we can. Its
    folder is chosen by the caller, and may be reached by links. With `follow=False`, used for files of run folders, the file must not be a
    symbolic link. Raises MissingFileError if there is no file, FormatError for a link or another kind of file, ReadError if the system
    refuses.
    """
    given, path = os.fspath(path), Path(path)
    try:
        descriptor = _open_no_link(path) if untrusted else os.open(path, _READ | (0 if follow else _NO_LINK))
    except (FileNotFoundError, NotADirectoryError):
        raise MissingFileError(f'there is no file "{given}"') from None
    except FormatError:  # also a ValueError
        raise
    except IsADirectoryError:
        raise FormatError(f'"{given}" is a folder, not a file') from None
    except (OSError, ValueError) as error:
        if not follow and getattr(error, "errno", None) in (errno.ELOOP, errno.EMLINK):
            raise FormatError(
                f'"{given}" is a symbolic link, which is not allowed in a run folder', hint="copy the folder with cp -rL"
            ) from None
        # no permission, too many open files, a name that is too long or contains NUL
        raise _refused(given, "opened", error) from error
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            kind = "folder" if stat.S_ISDIR(status.st_mode) else "pipe or a device"
            raise FormatError(f'"{given}" is a {kind}, not a file')
        if untrusted and status.st_nlink != 1:
            raise _is_link(path, f"one of {status.st_nlink} names of the same file")
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor, status


def open_to_lock(path: Path) -> int:
    """Open a regular file to be locked, creating it if it is missing, and return its descriptor. The file is not written to.

    Raises FormatError for a link or another kind of file, OSError if the system refuses.
    """
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | _CAREFULLY | _NO_LINK, 0o666)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.EMLINK, errno.ENXIO, errno.EISDIR):  # ENXIO: a pipe without a reader, or a device
            raise FormatError(f'"{path}" is a link, a pipe, a device or a folder, not a file') from None
        raise
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise FormatError(f'"{path}" is a link, a pipe, a device or a folder, not a file')
    return descriptor


def _refused(path: str | os.PathLike[str], what: str, error: OSError | ValueError) -> ReadError:
    number = getattr(error, "errno", None)
    hint = "close open files, or allow more with ulimit -n" if number in (errno.EMFILE, errno.ENFILE) else None
    return ReadError(f'"{os.fspath(path)}" cannot be {what}: {getattr(error, "strerror", None) or error}', hint=hint)


def _open_no_link(path: Path) -> int:
    """Open the file at `path` relative to its open folder, so that the folder cannot be replaced meanwhile."""
    if os.open not in os.supports_dir_fd or not hasattr(os, "O_NOFOLLOW"):
        raise ArgumentError(
            "this system cannot open an untrusted file: it has no O_NOFOLLOW", hint="if you trust the file, open it without untrusted"
        )
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        return os.open(path.name or ".", _READ | os.O_NOFOLLOW, dir_fd=folder)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.EMLINK):
            raise _is_link(path, "a symbolic link") from None
        raise
    finally:
        os.close(folder)


def _is_link(path: Path, what: str) -> FormatError:
    return FormatError(
        f'"{path.name}" is {what}, which is not allowed for an untrusted file',
        hint="copy the file, or load it without untrusted if it is yours",
    )
