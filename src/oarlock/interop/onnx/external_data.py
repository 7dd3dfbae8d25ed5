"""Read tensors stored outside the model file. Only files in the model's folder are ever opened."""

import errno
import os
import re
import stat
from pathlib import Path

from oarlock.errors import ArgumentError, FormatError, MissingFileError, ReadError

__all__ = ["ExternalFiles", "find_region"]

_PARTS = re.compile(r"[^/\\:\0]{1,255}(?:/[^/\\:\0]{1,255}){0,15}")
_NUMBER = re.compile(r"[0-9]{1,18}")


def find_region(tensor: object, size: int, folder: "ExternalFiles") -> tuple[str, int]:
    """Return the file and the offset of an external tensor of `size` bytes. Raises FormatError for an invalid entry."""
    entries: dict[str, str] = {}
    for entry in tensor.external_data:  # type: ignore[attr-defined]
        if entry.key in entries:
            raise FormatError(f'"{tensor.name[:80]}": external data has {entry.key[:80]!r} twice')  # type: ignore[attr-defined]
        entries[entry.key] = entry.value
    name = tensor.name[:80]  # type: ignore[attr-defined]
    location, offset, length = entries.get("location", ""), entries.get("offset", "0"), entries.get("length", str(size))
    if not _PARTS.fullmatch(location) or any(part in (".", "..") or part != part.strip() for part in location.split("/")):
        raise FormatError(f'"{name}": external data has the location {location[:80]!r}, which is not a path in the model folder')
    if not _NUMBER.fullmatch(offset) or not _NUMBER.fullmatch(length):
        raise FormatError(f'"{name}": external data has the invalid offset {offset[:40]!r} or length {length[:40]!r}')
    if int(length) != size:
        raise FormatError(f'"{name}": external data has {int(length):,} bytes, but its shape and type need {size:,}')
    there = folder.size_of(location)
    if int(offset) + size > there:
        raise FormatError(f'"{name}": external data ends at byte {int(offset) + size:,} of {location[:80]!r}, which has {there:,} bytes')
    return location, int(offset)


class ExternalFiles:
    """The files of one folder. Symbolic links are rejected. A file is opened again for each tensor.

    With `untrusted`, hard links are rejected too: they could point to any file that this process can read.
    """

    def __init__(self, folder: Path, *, untrusted: bool = False):
        self.folder = folder
        self._untrusted = untrusted
        self._sizes: dict[str, int] = {}

    def size_of(self, location: str) -> int:
        """Return the size of the file at `location` in bytes. Raises MissingFileError, FormatError or ReadError."""
        if location not in self._sizes:
            descriptor = self._open(location)
            try:
                self._sizes[location] = os.fstat(descriptor).st_size
            finally:
                os.close(descriptor)
        return self._sizes[location]

    def read(self, location: str, offset: int, size: int) -> bytearray:
        """Read `size` bytes from `offset`. Raises the errors of `size_of`, and FormatError if the file has become shorter."""
        descriptor = self._open(location)
        try:
            data = bytearray(size)
            with open(descriptor, "rb", closefd=False) as file:
                file.seek(offset)
                count = file.readinto(data)
        except OSError as error:
            raise ReadError(f'"{location[:80]}" cannot be read: {error.strerror}') from error
        finally:
            os.close(descriptor)
        if count != size:
            raise FormatError(f'"{location[:80]}" is truncated')
        return data

    def _open(self, location: str) -> int:
        """Open a regular file folder by folder, rejecting links; return its descriptor."""
        if os.open not in os.supports_dir_fd or not hasattr(os, "O_NOFOLLOW"):
            raise ArgumentError(
                "external data cannot be opened safely on this system, which has no O_NOFOLLOW", hint="save the model as one file"
            )
        *folders, name = location.split("/")
        flags = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY
        opened = []
        try:
            opened.append(os.open(self.folder, flags | os.O_DIRECTORY))
            for folder in folders:
                opened.append(os.open(folder, flags | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=opened[-1]))
            descriptor = os.open(name, flags | os.O_NOFOLLOW, dir_fd=opened[-1])
        except FileNotFoundError:
            raise MissingFileError(f'external data is missing: there is no file "{location[:80]}" in the model folder') from None
        except OSError as error:
            if error.errno in (errno.ELOOP, errno.EMLINK, errno.ENOTDIR):
                raise FormatError(
                    f'external data: "{location[:80]}" is a link or reached through one', hint="copy the file into the model folder"
                ) from None
            raise ReadError(f'"{location[:80]}" cannot be opened: {error.strerror}') from error
        finally:
            for each in opened:
                os.close(each)
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            os.close(descriptor)
            raise FormatError(f'external data: "{location[:80]}" is not a file')
        if self._untrusted and status.st_nlink != 1:
            os.close(descriptor)
            raise FormatError(
                f'external data: "{location[:80]}" has {status.st_nlink} hard links, which is not allowed for untrusted files',
                hint="copy the file, or import the model without untrusted if you trust it",
            )
        return descriptor
