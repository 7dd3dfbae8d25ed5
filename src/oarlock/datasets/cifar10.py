"""CIFAR-10: 60,000 photographs of ten kinds of things, 32 by 32 pixels in color (A. Krizhevsky, 2009).

One archive of 170 MB, fetched once. It is the binary version: bytes of pixels, where the version for Python is a pickle, which could run
anything. The archive is read where it is; nothing is unpacked to the disk.
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
    licence="none is stated; its author asks to cite the report",
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
_ROWS = 10_000  # of each batch
_SHAPE = (3, 32, 32)


def load(path: str | Path | None = None) -> dict[str, numpy.ndarray]:
    """All of them, those to train on first: image float32[60000, 3, 32, 32] from 0 to 1, label int64[60000]; 737 MB of memory.

    `path` is the archive, or a folder that holds it, and nothing is fetched; without it the archive is fetched into a folder of the user's
    cache if it is not there yet, by pooch. It must have the SHA-256 that is written here. Raises DataError for an archive that is missing,
    cannot be fetched, or is another, and ReadError for one that cannot be read.
    """
    return _read(_TRAIN + _TEST, path)


def split(seed: int = 0, *, path: str | Path | None = None) -> tuple[dict[str, numpy.ndarray], dict[str, numpy.ndarray]]:
    """The 50,000 to train on and the 10,000 to test on, as their author parted them, whatever `seed`; otherwise as `load`."""
    return train(path), test(path)


def train(path: str | Path | None = None) -> dict[str, numpy.ndarray]:
    """The 50,000 to train on: image float32[50000, 3, 32, 32], label int64[50000]. As `load`."""
    return _read(_TRAIN, path)


def test(path: str | Path | None = None) -> dict[str, numpy.ndarray]:  # noqa: PT028  it is no test
    """The 10,000 to test on: image float32[10000, 3, 32, 32], label int64[10000]. As `load`."""
    return _read(_TEST, path)


test.__test__ = False  # type: ignore[attr-defined]  # pytest would take it for one of its own


def _read(names: tuple[str, ...], path: str | Path | None) -> dict[str, numpy.ndarray]:
    """The rows of some batches, in this order, wherever they stand in the archive."""
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
    """A batch of the archive: uint8[10000, 3073], a label and the pixels of each row. Links are not followed."""
    size = _ROWS * (1 + numpy.prod(_SHAPE, dtype=int))
    file = archive.extractfile(member) if member.isreg() and member.size == size else None
    if file is None:
        raise _refused(f"{member.name} is no file of {size:,} bytes")
    rows = numpy.frombuffer(file.read(size), "uint8").reshape(_ROWS, -1)
    if rows[:, 0].max() >= len(DESCRIPTION.classes):
        raise _refused(f"{member.name} has a label above 9")
    return rows


def _refused(why: str) -> DataError:
    return DataError(f"{_ARCHIVE} is not the archive of CIFAR-10: {why}", hint="fetch it again, or from elsewhere")
