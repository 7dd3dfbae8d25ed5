"""CIFAR-10: 60,000 color photographs of ten classes, 32 by 32 pixels (A. Krizhevsky, 2009).

It is one archive of 170 MB, downloaded once: the binary version, because the Python version is a pickle, which could run any code. The
archive is read in place; nothing is unpacked to disk.
"""

import io
import tarfile
import zlib
from pathlib import Path

import numpy

from oarlock.datasets.description import Description
from oarlock.datasets.remote import RemoteFiles
from oarlock.errors import DataError

__all__ = ["load", "split", "test", "train"]

DESCRIPTION = Description(
    columns={"image": "float32[n, 3, 32, 32]", "label": "int64[n]"},
    rows={"train": 50_000, "test": 10_000, "all": 60_000},
    classes=("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"),
    source="A. Krizhevsky, 2009: Learning multiple layers of features from tiny images; University of Toronto",
    licence="none stated; the author asks to cite the report",
)
_ARCHIVE = "cifar-10-binary.tar.gz"
FILES = RemoteFiles(
    "CIFAR-10",
    "cifar10",
    ("https://www.cs.toronto.edu/~kriz",),
    {_ARCHIVE: (170_052_171, "c4a38c50a1bc5f3a1c5537f2155ab9d68f9f25eb1ed8d9ddda3db29a59bca1dd")},
)
_TRAIN = tuple(f"cifar-10-batches-bin/data_batch_{number}.bin" for number in range(1, 6))
_TEST = ("cifar-10-batches-bin/test_batch.bin",)
_ROWS = 10_000  # per batch
_SHAPE = (3, 32, 32)


def load(path: str | Path | None = None) -> dict[str, numpy.ndarray]:
    """Return all rows, training rows first: image float32[60000, 3, 32, 32] from 0 to 1, label int64[60000]; 737 MB of memory.

    `path` is the archive, or a folder that contains it; nothing is downloaded then. Otherwise the archive is downloaded by pooch into the
    user's cache unless it is there already. Its SHA-256 is verified. Raises DataError if the archive is missing, cannot be downloaded, or
    has another SHA-256, and ReadError if it cannot be read.
    """
    return _read(_TRAIN + _TEST, path)


def split(seed: int = 0, *, path: str | Path | None = None) -> tuple[dict[str, numpy.ndarray], dict[str, numpy.ndarray]]:
    """Return the 50,000 training and 10,000 test rows defined by the author; `seed` is ignored. `path` and errors are as in `load`."""
    return train(path), test(path)


def train(path: str | Path | None = None) -> dict[str, numpy.ndarray]:
    """Return the 50,000 training rows: image float32[50000, 3, 32, 32], label int64[50000]. `path` and errors are as in `load`."""
    return _read(_TRAIN, path)


def test(path: str | Path | None = None) -> dict[str, numpy.ndarray]:  # noqa: PT028  not a test
    """Return the 10,000 test rows: image float32[10000, 3, 32, 32], label int64[10000]. `path` and errors are as in `load`."""
    return _read(_TEST, path)


test.__test__ = False  # type: ignore[attr-defined]  # prevents pytest from collecting it


def _read(names: tuple[str, ...], path: str | Path | None) -> dict[str, numpy.ndarray]:
    """Return the rows of some batches in the given order, regardless of their order in the archive."""
    image = numpy.empty((_ROWS * len(names), *_SHAPE), "float32")
    label = numpy.empty(_ROWS * len(names), "int64")
    left = set(names)
    packed = FILES.read(_ARCHIVE, path)
    try:
        with tarfile.open(fileobj=io.BytesIO(packed), mode="r|gz") as archive:
            for member in archive:
                if member.name in left:
                    rows = _batch(archive, member)
                    place = slice(_ROWS * names.index(member.name), _ROWS * (names.index(member.name) + 1))
                    label[place] = rows[:, 0]
                    numpy.divide(rows[:, 1:].reshape(-1, *_SHAPE), 255, out=image[place], dtype="float32")
                    left.discard(member.name)
    except (tarfile.TarError, zlib.error, EOFError, OSError) as error:
        raise _refused(str(error)) from None
    if left:
        raise _refused(f"{min(left)} is not in it")
    return {"image": image, "label": label}


def _batch(archive: tarfile.TarFile, member: tarfile.TarInfo) -> numpy.ndarray:
    """Return a batch of the archive: uint8[10000, 3073], label and pixels of each row. Links are not followed."""
    size = _ROWS * (1 + numpy.prod(_SHAPE, dtype=int))
    file = archive.extractfile(member) if member.isreg() and member.size == size else None
    if file is None:
        raise _refused(f"{member.name} is not a file of {size:,} bytes")
    rows = numpy.frombuffer(file.read(size), "uint8").reshape(_ROWS, -1)
    if rows[:, 0].max() >= len(DESCRIPTION.classes):
        raise _refused(f"{member.name} has a label above 9")
    return rows


def _refused(why: str) -> DataError:
    return DataError(f"{_ARCHIVE} is not the archive of CIFAR-10: {why}", hint="download it again, or from another source")
