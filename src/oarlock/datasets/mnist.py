"""MNIST and Fashion-MNIST: images and labels in two parts, in four files of the IDX format, downloaded once."""

import gzip
from pathlib import Path

import numpy

from oarlock.datasets.data_set import DataSet, Description, Rows
from oarlock.datasets.remote import RemoteFiles

__all__ = ["fashion_mnist", "mnist"]


class MnistDataSet(DataSet):
    """A data set in the format of MNIST: images and labels of two parts."""

    FILES: RemoteFiles

    def load(self, path: str | Path | None = None) -> Rows:
        """Return all rows, training rows first: image float32[70000, 1, 28, 28] from 0 to 1, label int64[70000].

        `path` is a folder that contains the four files; nothing is downloaded then. Otherwise missing files are downloaded by pooch into
        the user's cache. Their SHA-256 is verified. Raises DataError if a file is missing, cannot be downloaded, or has another SHA-256,
        and ReadError if it cannot be read.
        """
        parts = self.split(path=path)
        return {name: numpy.concatenate([part[name] for part in parts]) for name in parts[0]}

    def split(self, seed: int = 0, *, path: str | Path | None = None) -> tuple[Rows, Rows]:
        """Return the 60,000 training and 10,000 test rows defined by the authors; `seed` is ignored. `path` and errors are as in `load`."""
        return self.train(path), self.test(path)

    def train(self, path: str | Path | None = None) -> Rows:
        """Return the 60,000 training rows: image float32[60000, 1, 28, 28], label int64[60000]. `path` and errors are as in `load`."""
        return self._part("train", path)

    def test(self, path: str | Path | None = None) -> Rows:
        """Return the 10,000 test rows: image float32[10000, 1, 28, 28], label int64[10000]. `path` and errors are as in `load`."""
        return self._part("t10k", path)

    def _part(self, part: str, path: str | Path | None) -> Rows:
        return {
            "image": _elements(self.FILES.read(f"{part}-images-idx3-ubyte.gz", path))[:, None].astype("float32") / numpy.float32(255),
            "label": _elements(self.FILES.read(f"{part}-labels-idx1-ubyte.gz", path)).astype("int64"),
        }


def _elements(packed: bytes) -> numpy.ndarray:
    """Return the elements of an IDX file: two zeros, the type 8, the rank; each size in four bytes; then the elements."""
    data = gzip.decompress(packed)
    rank = data[3]
    shape = [int(size) for size in numpy.frombuffer(data, ">u4", rank, offset=4)]
    return numpy.frombuffer(data, "uint8", offset=4 + 4 * rank).reshape(shape)


class Mnist(MnistDataSet):
    """MNIST: 70,000 handwritten digits, 28 by 28 pixels (Y. LeCun, C. Cortes and C. Burges, 1998).

    It consists of four files, 11.6 MB, downloaded once. `image` is from 0 (paper) to 1 (ink).
    """

    name = "mnist"
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


class FashionMnist(MnistDataSet):
    """Fashion-MNIST: 70,000 images of ten kinds of clothing, 28 by 28 pixels (H. Xiao, K. Rasul and R. Vollgraf, 2017).

    It consists of four files in the format of MNIST, 30.9 MB, downloaded once.
    """

    name = "fashion_mnist"
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


mnist, fashion_mnist = Mnist(), FashionMnist()
