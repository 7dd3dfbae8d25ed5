"""MNIST: 70,000 handwritten digits, 28 by 28 pixels (Y. LeCun, C. Cortes and C. Burges, 1998).

It consists of four files, 11.6 MB, downloaded once.
"""

from pathlib import Path

import numpy

from oarlock.datasets.description import Description
from oarlock.datasets.idx import read_part
from oarlock.datasets.remote import RemoteFiles

__all__ = ["load", "split", "test", "train"]

DESCRIPTION = Description(
    columns={"image": "float32[n, 1, 28, 28]", "label": "int64[n]"},
    rows={"train": 60_000, "test": 10_000, "all": 70_000},
    classes=tuple("0123456789"),
    source="Y. LeCun, C. Cortes and C. Burges, 1998: The MNIST database of handwritten digits",
    licence="CC BY-SA 3.0",
)
FILES = RemoteFiles(
    "MNIST",
    "mnist",
    ("https://storage.googleapis.com/cvdf-datasets/mnist", "https://ossci-datasets.s3.amazonaws.com/mnist"),
    {
        "train-images-idx3-ubyte.gz": (9_912_422, "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609"),
        "train-labels-idx1-ubyte.gz": (28_881, "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c"),
        "t10k-images-idx3-ubyte.gz": (1_648_877, "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6"),
        "t10k-labels-idx1-ubyte.gz": (4_542, "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6"),
    },
)


def load(path: str | Path | None = None) -> dict[str, numpy.ndarray]:
    """Return all rows, training rows first: image float32[70000, 1, 28, 28] from 0 (paper) to 1 (ink), label int64[70000].

    `path` is a folder that contains the four files; nothing is downloaded then. Otherwise missing files are downloaded by pooch into the
    user's cache. Their SHA-256 is verified. Raises DataError if a file is missing, cannot be downloaded, or has another SHA-256, and
    ReadError if it cannot be read.
    """
    parts = split(path=path)
    return {name: numpy.concatenate([part[name] for part in parts]) for name in parts[0]}


def split(seed: int = 0, *, path: str | Path | None = None) -> tuple[dict[str, numpy.ndarray], dict[str, numpy.ndarray]]:
    """Return the 60,000 training and 10,000 test rows defined by the authors; `seed` is ignored. `path` and errors are as in `load`."""
    return train(path), test(path)


def train(path: str | Path | None = None) -> dict[str, numpy.ndarray]:
    """Return the 60,000 training rows: image float32[60000, 1, 28, 28], label int64[60000]. `path` and errors are as in `load`."""
    return read_part(FILES, "train", path)


def test(path: str | Path | None = None) -> dict[str, numpy.ndarray]:  # noqa: PT028  not a test
    """Return the 10,000 test rows: image float32[10000, 1, 28, 28], label int64[10000]. `path` and errors are as in `load`."""
    return read_part(FILES, "t10k", path)


test.__test__ = False  # type: ignore[attr-defined]  # prevents pytest from collecting it
