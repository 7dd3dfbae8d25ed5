"""Fashion-MNIST: 70,000 images of ten kinds of clothing, 28 by 28 pixels (H. Xiao, K. Rasul and R. Vollgraf, 2017).

It consists of four files in the format of MNIST, 30.9 MB, downloaded once.
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
    classes=("T-shirt/top", "trouser", "pullover", "dress", "coat", "sandal", "shirt", "sneaker", "bag", "ankle boot"),
    source="H. Xiao, K. Rasul and R. Vollgraf, 2017: Fashion-MNIST, Zalando Research; arXiv:1708.07747",
    licence="MIT",
)
FILES = RemoteFiles(
    "Fashion-MNIST",
    "fashion_mnist",
    (
        "https://raw.githubusercontent.com/zalandoresearch/fashion-mnist/b2617bb6d3ffa2e429640350f613e3291e10b141/data/fashion",
        "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com",
    ),
    {
        "train-images-idx3-ubyte.gz": (26_421_880, "3aede38d61863908ad78613f6a32ed271626dd12800ba2636569512369268a84"),
        "train-labels-idx1-ubyte.gz": (29_515, "a04f17134ac03560a47e3764e11b92fc97de4d1bfaf8ba1a3aa29af54cc90845"),
        "t10k-images-idx3-ubyte.gz": (4_422_102, "346e55b948d973a97e58d2351dde16a484bd415d4595297633bb08f03db6a073"),
        "t10k-labels-idx1-ubyte.gz": (5_148, "67da17c76eaffca5446c3361aaab5c3cd6d1c2608764d35dfb1850b086bf8dd5"),
    },
)


def load(path: str | Path | None = None) -> dict[str, numpy.ndarray]:
    """Return all rows, training rows first: image float32[70000, 1, 28, 28] from 0 to 1, label int64[70000].

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
