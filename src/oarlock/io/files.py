"""One file: opened with care, perhaps read whole."""

import errno
import os
import stat
from pathlib import Path

from oarlock.errors import ArgumentError, FormatError, LimitError, MissingFileError, ReadError

__all__ = ["open_file", "open_to_lock", "open_within", "read_file"]

# Nothing is waited for (a pipe without a writer), inherited by another process, or made this process's terminal.
_CAREFULLY = sum(getattr(os, flag, 0) for flag in ("O_CLOEXEC", "O_NONBLOCK", "O_NOCTTY", "O_BINARY"))
_READ = os.O_RDONLY | _CAREFULLY
_NO_LINK = getattr(os, "O_NOFOLLOW", 0)


def read_file(path: str | os.PathLike[str], *, largest: int, limit: str, untrusted: bool = False, follow: bool = True) -> bytes:
    """The bytes of a regular file, read through the one descriptor that `open_file` gives. `largest` is the value of `limit` of `Limits`.

    Raises what `open_file` does, LimitError for a file that is larger, and ReadError where it cannot be read.
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
    """Open a file as `open_file` does; return the descriptor and the bytes. Raises LimitError for more than `largest`, a `limit`."""
    descriptor, status = open_file(path, untrusted=untrusted, follow=follow)
    if status.st_size > largest:
        os.close(descriptor)
        raise LimitError(
            f'"{Path(path).name}" has {status.st_size:,} bytes, where {largest:,} are allowed', hint=f"limits=Limits({limit}=...)"
        )
    return descriptor, status.st_size


def open_file(path: str | os.PathLike[str], *, untrusted: bool = False, follow: bool = True) -> tuple[int, os.stat_result]:
    """A descriptor of a regular file, which the caller closes, and its status; of no pipe and no device, which may never end.

    An `untrusted` file is no link either, symbolic or hard, to something that its author could not read and we can. The folder
    that holds it is the caller's own choice, and may be reached by links. With `follow=False` a file must not be a symbolic link:
    files of the folder of a run, which may be a stranger's.
    Raises MissingFileError where there is no such file, FormatError for what is no file or a link, ReadError where the system refuses.
    """
    given, path = os.fspath(path), Path(path)
    try:
        descriptor = _open_no_link(path) if untrusted else os.open(path, _READ | (0 if follow else _NO_LINK))
    except (FileNotFoundError, NotADirectoryError):
        raise MissingFileError(f'there is no file "{given}"') from None
    except FormatError:  # a ValueError too
        raise
    except IsADirectoryError:
        raise FormatError(f'"{given}" is a folder, not a file') from None
    except (OSError, ValueError) as error:
        if not follow and getattr(error, "errno", None) in (errno.ELOOP, errno.EMLINK):
            raise FormatError(
                f'"{given}" is a symbolic link, which a file in the folder of a run must not be', hint="copy the folder, with cp -rL"
            ) from None
        # not ours to read, too many open files, too long a name, a NUL in it
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
    """A descriptor of a regular file, to be locked; the file is made if it is missing, and is not written to.

    Raises FormatError for what is no file or a link, OSError where the system refuses.
    """
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | _CAREFULLY | _NO_LINK, 0o666)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.EMLINK, errno.ENXIO, errno.EISDIR):  # ENXIO is a pipe without a reader, or a device
            raise FormatError(f'"{path}" is a link, a pipe, a device or a folder, not a file') from None
        raise
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise FormatError(f'"{path}" is a link, a pipe, a device or a folder, not a file')
    return descriptor


def _refused(path: str | os.PathLike[str], what: str, error: OSError | ValueError) -> ReadError:
    number = getattr(error, "errno", None)
    hint = "close files that are open, or allow more: ulimit -n" if number in (errno.EMFILE, errno.ENFILE) else None
    return ReadError(f'"{os.fspath(path)}" cannot be {what}: {getattr(error, "strerror", None) or error}', hint=hint)


def _open_no_link(path: Path) -> int:
    """A descriptor of the file at `path`, found in its folder by name, so that what is opened is what stands there."""
    if os.open not in os.supports_dir_fd or not hasattr(os, "O_NOFOLLOW"):
        raise ArgumentError("this system cannot open an untrusted file: it has no O_NOFOLLOW", hint="copy the file, and trust it")
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
        f'"{path.name}" is {what}, which an untrusted file must not be',
        hint="copy the file, or load it without untrusted where it is yours",
    )
