"""Remote files: read from a folder or downloaded into the user's cache, and verified by SHA-256."""

import hashlib
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO

from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

from oarlock.errors import DataError, LimitError, MissingFileError
from oarlock.io.files import read_file

__all__ = ["RemoteFiles"]

_PATIENCE = 30  # seconds without a byte


@dataclass(frozen=True)
class RemoteFiles:
    """The files of a data set: title, cache folder, URLs to try, and the size and SHA-256 of each file."""

    title: str
    folder: str
    mirrors: tuple[str, ...]
    files: Mapping[str, tuple[int, str]]

    def read(self, name: str, path: str | Path | None = None) -> bytes:
        """Return the bytes of a file in the folder `path`, or at `path` if there is one file; else from the cache, downloaded if missing.

        Raises DataError if the file is missing, cannot be downloaded, or has another SHA-256, and ReadError if it cannot be read.
        """
        place = self._place(name, path)
        data, wrong = self._look(name, place)
        if data is None and path is None:
            self._fetch(name, place.parent, wrong)
            data, wrong = self._look(name, place)
        if data is None:
            if wrong:
                raise DataError(wrong, hint="download it again, or from another source")
            raise DataError(f'there is no file "{place}"', hint=f"{self.title} consists of {self._names()}")
        return data

    def _place(self, name: str, path: str | Path | None) -> Path:
        if path is None:
            cache = os.environ.get("OARLOCK_DATA") or Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache") / "oarlock"
            return Path(cache).expanduser() / self.folder / name
        given = Path(path).expanduser()
        return given if len(self.files) == 1 and not given.is_dir() else given / name

    def _names(self) -> str:
        return ", ".join(self.files)

    def _look(self, name: str, place: Path) -> tuple[bytes | None, str]:
        """Return the bytes of the file at `place`, or None and the problem with it, empty if there is no file."""
        size, digest = self.files[name]
        try:
            data = read_file(place, largest=size, limit="file_bytes")
        except MissingFileError:
            return None, ""
        except LimitError:
            data = b""
        if hashlib.sha256(data).hexdigest() == digest:
            return data, ""
        return None, f'"{place}" is not the file of {self.title}: its SHA-256 differs'

    def _fetch(self, name: str, folder: Path, wrong: str) -> None:
        """Download a file into the cache, from the first URL that works. Raises DataError."""
        instead = f"put {self._names()} into {folder}, or into another folder: ol.datasets.{self.folder}.split(path=...)"
        missing = wrong or f"{self.title} is not on this machine"
        try:
            import pooch
        except ImportError:
            hint = f'pip install "oarlock[download]"; or {instead}'
            raise DataError(f"{missing}, and pooch, which downloads it, is not installed", hint=hint) from None
        try:
            folder.mkdir(parents=True, exist_ok=True)
            if not os.access(folder, os.W_OK):
                raise PermissionError(None, "it is read-only")
        except OSError as error:
            raise DataError(
                f'{missing}, and its folder "{folder}" cannot be written: {error.strerror}',
                hint=f"set OARLOCK_DATA to another folder; or {instead}",
            ) from None
        size, digest = self.files[name]
        downloader: Any = partial(_download, pooch.HTTPDownloader, size)
        failures = []
        for mirror in self.mirrors:
            try:
                pooch.retrieve(f"{mirror}/{name}", f"sha256:{digest}", fname=name, path=folder, downloader=downloader)
            except ValueError:  # raised by pooch, which has removed the file
                failures.append(f"{mirror}/{name}: the downloaded file has another SHA-256")
            except OSError as error:  # includes the errors of requests
                failures.append(f"{mirror}/{name}: {_reason(error)}")
            else:
                return
        raise DataError(f"{missing}, and cannot be downloaded", given=failures, hint=f"without a network, {instead}")


def _reason(error: OSError) -> str:
    """Return the reason of a failed download in one line; requests nests its errors."""
    from requests import exceptions  # a dependency of pooch

    if isinstance(error, exceptions.HTTPError) and error.response is not None:
        return f"the server responded {error.response.status_code} {error.response.reason}"
    if isinstance(error, exceptions.Timeout):
        return f"no data for {_PATIENCE} seconds"
    if isinstance(error, exceptions.ChunkedEncodingError):
        return "the connection was closed in the middle of the file"
    if isinstance(error, exceptions.ConnectionError):
        return "there is no connection to the server"
    return str(error)


class _Bounded:
    """A file of bounded size that reports the number of bytes written."""

    def __init__(self, file: BinaryIO, size: int, report: Callable[[int], object]):
        self.file, self.left, self.report = file, size, report
        self.flush = file.flush

    def write(self, data: bytes) -> int:
        self.left -= len(data)
        if self.left < 0:
            raise OSError("the downloaded file is too large")
        self.report(len(data))
        return self.file.write(data)


def _download(downloader: Callable[..., Any], size: int, address: str, path: str, _: object) -> None:
    """Download at most `size` bytes with pooch, with a progress bar in a terminal."""
    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TimeRemainingColumn())
    with open(path, "wb") as file, Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        bar = progress.add_task(address.rpartition("/")[2], total=size)
        downloader(timeout=_PATIENCE)(address, _Bounded(file, size, partial(progress.advance, bar)), None)
