"""MNIST: 70,000 handwritten digits, 28 by 28 pixels (Y. LeCun, C. Cortes and C. Burges, 1998).

Four files, fetched once and then read from a folder; each must have the SHA-256 that is written here.
"""

import gzip
import hashlib
import urllib.request
from http.client import HTTPException
from pathlib import Path

import numpy

from oarlock.errors import DataError, MissingFileError
from oarlock.io.atomic_write import write_file
from oarlock.io.files import read_file

__all__ = ["load", "split", "test", "train"]

_MIRROR = "https://storage.googleapis.com/cvdf-datasets/mnist"
_FOLDER = Path("~/.cache/oarlock/mnist")
_SUMS = {
    "train-images-idx3-ubyte.gz": "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609",
    "train-labels-idx1-ubyte.gz": "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c",
    "t10k-images-idx3-ubyte.gz": "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6",
    "t10k-labels-idx1-ubyte.gz": "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6",
}
_LARGEST = 16 * 2**20  # bytes of a file; the largest has 9.9 million
_PATIENCE = 30  # seconds without a byte


def load(folder: str | Path | None = None) -> dict[str, numpy.ndarray]:
    """All of them, those to train on first: image float32[70000, 1, 28, 28] from 0 (paper) to 1 (ink), label int64[70000].

    `folder` holds the four files, and nothing is fetched; without it they are fetched into a folder of the user's cache where
    they are not there yet. Raises DataError for a file that is missing, cannot be fetched, or is not what its SHA-256 says,
    and ReadError for one that cannot be read.
    """
    parts = split(folder=folder)
    return {name: numpy.concatenate([part[name] for part in parts]) for name in parts[0]}


def split(seed: int = 0, *, folder: str | Path | None = None) -> tuple[dict[str, numpy.ndarray], dict[str, numpy.ndarray]]:
    """The 60,000 to train on and the 10,000 to test on, as their authors parted them, whatever `seed`; otherwise as `load`."""
    return train(folder), test(folder)


def train(folder: str | Path | None = None) -> dict[str, numpy.ndarray]:
    """The 60,000 to train on: image float32[60000, 1, 28, 28], label int64[60000]. As `load`."""
    return _part("train", folder)


def test(folder: str | Path | None = None) -> dict[str, numpy.ndarray]:  # noqa: PT028  it is no test
    """The 10,000 to test on: image float32[10000, 1, 28, 28], label int64[10000]. As `load`."""
    return _part("t10k", folder)


test.__test__ = False  # type: ignore[attr-defined]  # pytest would take it for one of its own


def _part(part: str, folder: str | Path | None) -> dict[str, numpy.ndarray]:
    return {
        "image": _read(f"{part}-images-idx3-ubyte.gz", folder)[:, None].astype("float32") / numpy.float32(255),
        "label": _read(f"{part}-labels-idx1-ubyte.gz", folder).astype("int64"),
    }


def _read(name: str, folder: str | Path | None) -> numpy.ndarray:
    """The bytes in a file: two zeros, the type 8, the number of dimensions; each size as four bytes; then the elements."""
    data = gzip.decompress(_verified(name, folder))
    rank = data[3]
    shape = [int(size) for size in numpy.frombuffer(data, ">u4", rank, offset=4)]
    return numpy.frombuffer(data, "uint8", offset=4 + 4 * rank).reshape(shape)


def _verified(name: str, folder: str | Path | None) -> bytes:
    """The content of a file, fetched where there is no `folder` and it is not here yet. Raises DataError and ReadError."""
    path = (_FOLDER if folder is None else Path(folder)).expanduser() / name
    try:
        data = read_file(path, largest=_LARGEST, limit="file_bytes")
        fetched = False
    except MissingFileError:
        if folder is not None:
            raise DataError(f'there is no file "{path}"', hint=f"the folder holds {', '.join(_SUMS)}") from None
        data = _fetch(name, path.parent)
        fetched = True
    if hashlib.sha256(data).hexdigest() != _SUMS[name]:
        what = f"{_MIRROR}/{name}" if fetched else f'"{path}"'
        raise DataError(f"{what} is not the file that MNIST is known by: its SHA-256 differs", hint="fetch it again, or from elsewhere")
    if fetched:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_file(path, data)
    return data


def _fetch(name: str, folder: Path) -> bytes:
    try:
        with urllib.request.urlopen(f"{_MIRROR}/{name}", timeout=_PATIENCE) as response:  # noqa: S310  the address is ours
            return response.read(_LARGEST)
    except (OSError, HTTPException) as error:
        raise DataError(
            f"MNIST is not on this machine, and {_MIRROR}/{name} cannot be fetched",
            given=[str(error)],
            hint=f'without a network, copy {", ".join(_SUMS)} to {folder}, or to a folder of yours: ol.datasets.mnist.split(folder="...")',
        ) from None
