"""The IDX file format of MNIST and compatible data sets: images and labels of two parts, in four files."""

import gzip
from pathlib import Path

import numpy

from oarlock.datasets.remote import RemoteFiles

__all__ = ["read_part"]


def read_part(files: RemoteFiles, part: str, path: str | Path | None) -> dict[str, numpy.ndarray]:
    """Return the rows of a part, "train" or "t10k": image float32[n, 1, 28, 28] from 0 to 1, label int64[n].

    Raises the errors of `RemoteFiles.read`.
    """
    return {
        "image": _array(files.read(f"{part}-images-idx3-ubyte.gz", path))[:, None].astype("float32") / numpy.float32(255),
        "label": _array(files.read(f"{part}-labels-idx1-ubyte.gz", path)).astype("int64"),
    }


def _array(packed: bytes) -> numpy.ndarray:
    """Return the elements of an IDX file: two zeros, the type 8, the rank; each size in four bytes; then the elements."""
    data = gzip.decompress(packed)
    rank = data[3]
    shape = [int(size) for size in numpy.frombuffer(data, ">u4", rank, offset=4)]
    return numpy.frombuffer(data, "uint8", offset=4 + 4 * rank).reshape(shape)
