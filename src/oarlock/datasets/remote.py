"""Files that others keep: found in a folder, or fetched into the user's cache, each with the SHA-256 that is written here."""

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
    """The files of a data set: its title, the folder of the cache, addresses to try, and the size and SHA-256 of each file."""

    title: str
    folder: str
    mirrors: tuple[str, ...]
    files: Mapping[str, tuple[int, str]]

    def read(self, name: str, path: str | Path | None = None) -> bytes:
        """The bytes of a file: of the one in the folder `path`, or at it where there is one file; else of the cache, fetched if need be.

        Raises DataError for a file that is missing, cannot be fetched, or is not what its SHA-256 says, and ReadError for one that cannot
        be read.
        """
        place = self._place(name, path)
        data, wrong = self._look(name, place)
        if data is None and path is None:
            self._fetch(name, place.parent, wrong)
            data, wrong = self._look(name, place)
        if data is None:
            if wrong:
                raise DataError(wrong, hint="fetch it again, or from elsewhere")
            raise DataError(f'there is no file "{place}"', hint=f"{self.title} is {self._names()}")
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
        """The bytes of the file at `place`, or None and what is wrong with it: nothing where there is none."""
        size, digest = self.files[name]
        try:
            data = read_file(place, largest=size, limit="file_bytes")
        except MissingFileError:
            return None, ""
        except LimitError:
            data = b""
        if hashlib.sha256(data).hexdigest() == digest:
            return data, ""
        return None, f'"{place}" is not the file that {self.title} is known by: its SHA-256 differs'

    def _fetch(self, name: str, folder: Path, wrong: str) -> None:
        """Fetch a file into the cache, from the first address that gives it. Raises DataError."""
        instead = f"put {self._names()} into {folder}, or into a folder of yours: ol.datasets.{self.folder}.split(path=...)"
        missing = wrong or f"{self.title} is not on this machine"
        try:
            import pooch
        except ImportError:
            hint = f'pip install "oarlock[download]"; or {instead}'
            raise DataError(f"{missing}, and pooch, which would fetch it, is not installed", hint=hint) from None
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
            except ValueError:  # of pooch, which has removed what came
                failures.append(f"{mirror}/{name}: what came is another file, its SHA-256 differs")
            except OSError as error:  # those of requests too
                failures.append(f"{mirror}/{name}: {_reason(error)}")
            else:
                return
        raise DataError(f"{missing}, and cannot be fetched", given=failures, hint=f"without a network, {instead}")


def _reason(error: OSError) -> str:
    """The reason why a download failed, in one line: requests tells it as it was met, layer by layer."""
    from requests import exceptions  # which pooch needs

    if isinstance(error, exceptions.HTTPError) and error.response is not None:
        return f"the server says {error.response.status_code} {error.response.reason}"
    if isinstance(error, exceptions.Timeout):
        return f"nothing came for {_PATIENCE} seconds"
    if isinstance(error, exceptions.ChunkedEncodingError):
        return "the connection ended in the middle of the file"
    if isinstance(error, exceptions.ConnectionError):
        return "there is no connection to the server"
    return str(error)


class _Bounded:
    """A file that takes so many bytes and no more, however many a server sends, and tells how many came."""

    def __init__(self, file: BinaryIO, size: int, tell: Callable[[int], object]):
        self.file, self.left, self.tell = file, size, tell
        self.flush = file.flush

    def write(self, data: bytes) -> int:
        self.left -= len(data)
        if self.left < 0:
            raise OSError("what came is another file, for it is larger")
        self.tell(len(data))
        return self.file.write(data)


def _download(downloader: Callable[..., Any], size: int, address: str, path: str, _: object) -> None:
    """A download as pooch asks for it, of at most `size` bytes, with a bar in a terminal."""
    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TimeRemainingColumn())
    with open(path, "wb") as file, Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        bar = progress.add_task(address.rpartition("/")[2], total=size)
        downloader(timeout=_PATIENCE)(address, _Bounded(file, size, partial(progress.advance, bar)), None)
