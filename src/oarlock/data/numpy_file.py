"""Files of NumPy, as tables."""

import zipfile
from pathlib import Path

import numpy

from oarlock.data.table import ColumnTable
from oarlock.errors import DataError, OarlockError
from oarlock.io.files import open_file

__all__ = ["read_numpy"]

_INFLATED, _RATIO = 256 * 2**20, 100  # bytes of compressed arrays; as many times the bytes of the file


def read_numpy(path: str | Path) -> ColumnTable:
    """The arrays of a `.npz` file, by their names, or of a `.npy` file, by the name of the file; nothing that it holds is run.

    Compressed arrays may be up to 100 times as large as the file, or 256 MiB. Raises DataError for more, for two arrays of one name, and
    for anything else, whatever is broken of it.
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
    except Exception as error:  # of a spoilt file, zipfile, its decompressors and numpy raise errors of a dozen classes
        said = str(error).splitlines() or [type(error).__name__]
        raise DataError(f'"{name}" is not a file of plain arrays', given=said[:1]) from error


def _members(archive: zipfile.ZipFile, size: int) -> dict[str, zipfile.ZipInfo]:
    """The members of an archive of `size` bytes by array names. Raises DataError for a duplicate name, or too many bytes."""
    members: dict[str, zipfile.ZipInfo] = {}
    for member in archive.infolist():
        column = member.filename.removesuffix(".npy")
        if column in members:
            raise DataError(f"it holds two arrays called {column!r:.80}")
        members[column] = member
    total, allowed = sum(member.file_size for member in members.values()), max(_INFLATED, _RATIO * size)
    if total > allowed:
        raise DataError(
            f"its arrays have {total:,} bytes, where {allowed:,} are allowed in a file of {size:,}",
            hint="numpy.savez, which does not compress, writes a file of yours so that it is read",
        )
    return members


def _read_array(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> numpy.ndarray:
    with archive.open(member) as file:
        return numpy.lib.format.read_array(file, allow_pickle=False)
