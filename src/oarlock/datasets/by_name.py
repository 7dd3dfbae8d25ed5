"""A data set by its name, as a command line gives it."""

import zipfile
from pathlib import Path

import numpy

from oarlock.datasets import digits, mnist
from oarlock.errors import DataError, OarlockError
from oarlock.io.files import open_file

__all__ = ["load"]

_SETS = {"digits": digits, "mnist": mnist}
_PARTS = ("train", "test", "all")


def load(name: str, *, seed: int = 0) -> dict[str, numpy.ndarray]:
    """The arrays of `digits:train`, `digits:test`, `digits:all`, of `mnist` likewise, or of a `.npz` file. Raises DataError.

    `seed` draws the parts. A file is read without running anything that it holds.
    """
    if name.endswith(".npz"):
        return _load_arrays(name)
    stem, _, part = name.partition(":")
    if stem not in _SETS or part not in ("", *_PARTS):
        raise DataError(
            f'there is no data set "{name}"',
            contract=f"one of {', '.join(f'{known}:{part}' for known in _SETS for part in _PARTS)}, or a .npz file of arrays",
        )
    if part in ("", "all"):
        return _SETS[stem].load()
    train, test = _SETS[stem].split(seed=seed)
    return train if part == "train" else test


def _load_arrays(path: str) -> dict[str, numpy.ndarray]:
    """The arrays in a file that `numpy.savez` wrote. Raises DataError for anything else, whatever is broken of it."""
    try:
        descriptor, _ = open_file(path)
    except OarlockError as error:
        raise DataError(error.message, hint=error.hint) from error
    try:
        with open(descriptor, "rb") as file, zipfile.ZipFile(file) as archive:
            return {name.removesuffix(".npy"): _read_array(archive, name) for name in archive.namelist()}
    except Exception as error:  # of a spoilt file, zipfile, its decompressors and numpy raise errors of a dozen classes
        said = str(error).splitlines() or [type(error).__name__]
        raise DataError(f'"{Path(path).name}" is not a file of plain arrays', given=said[:1]) from error


def _read_array(archive: zipfile.ZipFile, name: str) -> numpy.ndarray:
    with archive.open(name) as member:
        return numpy.lib.format.read_array(member, allow_pickle=False)
