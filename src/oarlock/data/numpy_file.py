"""NumPy files as tables."""

import zipfile
from pathlib import Path

import numpy

from oarlock.data.table import ColumnTable
from oarlock.errors import DataError, OarlockError
from oarlock.io.files import open_file

__all__ = ["read_numpy"]

_INFLATED, _RATIO = 256 * 2**20, 100  # limits of the size of arrays: bytes, or a multiple of the size of the file


def read_numpy(path: str | Path) -> ColumnTable:
    """Read the arrays of a `.npz` file by name, or the array of a `.npy` file, named after the file. Nothing in the file is run.

    Compressed arrays may be up to 100 times as large as the file, or 256 MiB. Raises DataError if they are larger, for duplicate names,
    and for any other kind of file or damage.
    """
    name = Path(path).name
    try:
        descriptor, status = open_file(path)
    except OarlockError as error:
        raise DataError(error.message, hint=error.hint) from error
    try:
        with open(descriptor, "rb") as file:
            if name.endswith(".npy"):
                return ColumnTable({name.removesuffix(".npy"): numpy.lib.format.read_array(file, allow_pickle=False)})
            with zipfile.ZipFile(file) as archive:
                return ColumnTable({column: _read_array(archive, member) for column, member in _members(archive, status.st_size).items()})
    except DataError as error:
        raise DataError(f'"{name}": {error.message}', hint=error.hint) from None
    except Exception as error:  # for a damaged file, zipfile, decompressors and numpy raise a dozen classes of errors
        reason = str(error).splitlines() or [type(error).__name__]
        raise DataError(f'"{name}" is not a file of plain arrays', given=reason[:1]) from error


def _members(archive: zipfile.ZipFile, size: int) -> dict[str, zipfile.ZipInfo]:
    """Return the members of an archive of `size` bytes by array name. Raises DataError for duplicate names or arrays that are too large."""
    members: dict[str, zipfile.ZipInfo] = {}
    for member in archive.infolist():
        column = member.filename.removesuffix(".npy")
        if column in members:
            raise DataError(f"it contains two arrays called {column!r:.80}")
        members[column] = member
    total, allowed = sum(member.file_size for member in members.values()), max(_INFLATED, _RATIO * size)
    if total > allowed:
        raise DataError(
            f"its arrays have {total:,} bytes, but the limit is {allowed:,} for a file of {size:,}",
            hint="if you trust the file, save it again without compression, with numpy.savez",
        )
    return members


def _read_array(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> numpy.ndarray:
    with archive.open(member) as file:
        return numpy.lib.format.read_array(file, allow_pickle=False)
