"""Files of NumPy, as tables."""

import zipfile
from pathlib import Path

import numpy

from oarlock.data.table import ColumnTable
from oarlock.errors import DataError, OarlockError
from oarlock.io.files import open_file

__all__ = ["read_numpy"]


def read_numpy(path: str | Path) -> ColumnTable:
    """The arrays of a `.npz` file, by their names, or of a `.npy` file, by the name of the file; nothing that it holds is run.

    Raises DataError for anything else, whatever is broken of it.
    """
    name = Path(path).name
    try:
        descriptor, _ = open_file(path)
    except OarlockError as error:
        raise DataError(error.message, hint=error.hint) from error
    try:
        with open(descriptor, "rb") as file:
            if name.endswith(".npy"):
                return ColumnTable({name.removesuffix(".npy"): numpy.lib.format.read_array(file, allow_pickle=False)})
            with zipfile.ZipFile(file) as archive:
                return ColumnTable({member.removesuffix(".npy"): _read_array(archive, member) for member in archive.namelist()})
    except Exception as error:  # of a spoilt file, zipfile, its decompressors and numpy raise errors of a dozen classes
        said = str(error).splitlines() or [type(error).__name__]
        raise DataError(f'"{name}" is not a file of plain arrays', given=said[:1]) from error


def _read_array(archive: zipfile.ZipFile, name: str) -> numpy.ndarray:
    with archive.open(name) as member:
        return numpy.lib.format.read_array(member, allow_pickle=False)
