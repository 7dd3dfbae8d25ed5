"""CIFAR-10: one archive, downloaded once, and read in place."""

import io
import tarfile
import zlib
from pathlib import Path

import numpy

from oarlock.datasets.data_set import DataSet, Description, Rows
from oarlock.datasets.remote import RemoteFiles
from oarlock.errors import DataError

__all__ = ["cifar10"]

_ARCHIVE = "cifar-10-binary.tar.gz"
_TRAIN = tuple(f"cifar-10-batches-bin/data_batch_{number}.bin" for number in range(1, 6))
_TEST = ("cifar-10-batches-bin/test_batch.bin",)
_SHAPE = (3, 32, 32)


class Cifar10(DataSet):
    """CIFAR-10: 60,000 color photographs of ten classes, 32 by 32 pixels (A. Krizhevsky, 2009).

    It is one archive of 170 MB, downloaded once: the binary version, because the Python version is a pickle, which could run any code. The
    archive is read in place; nothing is unpacked to disk.
    """

    name = "cifar10"
    DESCRIPTION = Description(
        columns={"image": "float32[n, 3, 32, 32]", "label": "int64[n]"},
        rows={"train": 50_000, "test": 10_000, "all": 60_000},
        classes=("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"),
        source="A. Krizhevsky, 2009: Learning multiple layers of features from tiny images; University of Toronto",
        licence="none stated; the author asks to cite the report",
    )
    FILES = RemoteFiles(
        "CIFAR-10",
        "cifar10",
        ("https://www.cs.toronto.edu/~kriz",),
        {_ARCHIVE: (170_052_171, "c4a38c50a1bc5f3a1c5537f2155ab9d68f9f25eb1ed8d9ddda3db29a59bca1dd")},
    )
    _rows = 10_000  # per batch

    def load(self, path: str | Path | None = None) -> Rows:
        """Return all rows, training rows first: image float32[60000, 3, 32, 32] from 0 to 1, label int64[60000]; 737 MB of memory.

        `path` is the archive, or a folder that contains it; nothing is downloaded then. Otherwise the archive is downloaded by pooch into
        the user's cache unless it is there already. Its SHA-256 is verified. Raises DataError if the archive is missing, cannot be
        downloaded, or has another SHA-256, and ReadError if it cannot be read.
        """
        return self._read(_TRAIN + _TEST, path)

    def split(self, seed: int = 0, *, path: str | Path | None = None) -> tuple[Rows, Rows]:
        """Return the 50,000 training and 10,000 test rows defined by the author; `seed` is ignored. `path` and errors are as in `load`."""
        return self.train(path), self.test(path)

    def train(self, path: str | Path | None = None) -> Rows:
        """Return the 50,000 training rows: image float32[50000, 3, 32, 32], label int64[50000]. `path` and errors are as in `load`."""
        return self._read(_TRAIN, path)

    def test(self, path: str | Path | None = None) -> Rows:
        """Return the 10,000 test rows: image float32[10000, 3, 32, 32], label int64[10000]. `path` and errors are as in `load`."""
        return self._read(_TEST, path)

    def _read(self, names: tuple[str, ...], path: str | Path | None) -> Rows:
        """Return the rows of some batches in the given order, regardless of their order in the archive."""
        image = numpy.empty((self._rows * len(names), *_SHAPE), "float32")
        label = numpy.empty(self._rows * len(names), "int64")
        left = set(names)
        packed = self.FILES.read(_ARCHIVE, path)
        try:
            with tarfile.open(fileobj=io.BytesIO(packed), mode="r|gz") as archive:
                for member in archive:
                    if member.name in left:
                        rows = self._batch(archive, member)
                        place = slice(self._rows * names.index(member.name), self._rows * (names.index(member.name) + 1))
                        label[place] = rows[:, 0]
                        numpy.divide(rows[:, 1:].reshape(-1, *_SHAPE), 255, out=image[place], dtype="float32")
                        left.discard(member.name)
        except (tarfile.TarError, zlib.error, EOFError, OSError) as error:
            raise _invalid_archive(str(error)) from None
        if left:
            raise _invalid_archive(f"{min(left)} is not in it")
        return {"image": image, "label": label}

    def _batch(self, archive: tarfile.TarFile, member: tarfile.TarInfo) -> numpy.ndarray:
        """Return a batch of the archive: uint8[10000, 3073], label and pixels of each row. Links are not followed."""
        size = self._rows * (1 + numpy.prod(_SHAPE, dtype=int))
        file = archive.extractfile(member) if member.isreg() and member.size == size else None
        if file is None:
            raise _invalid_archive(f"{member.name} is not a file of {size:,} bytes")
        rows = numpy.frombuffer(file.read(size), "uint8").reshape(self._rows, -1)
        if rows[:, 0].max() >= len(self.DESCRIPTION.classes):
            raise _invalid_archive(f"{member.name} has a label above 9")
        return rows


def _invalid_archive(why: str) -> DataError:
    return DataError(f"{_ARCHIVE} is not the archive of CIFAR-10: {why}", hint="download it again, or from another source")


cifar10 = Cifar10()
