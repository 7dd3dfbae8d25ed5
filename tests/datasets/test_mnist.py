"""MNIST, as far as it can be shown without it: files of its form, their sums, the folder, and no network."""

import gzip
import hashlib
import io
import urllib.error
import urllib.request

import numpy
import pytest

import oarlock as ol
from oarlock.datasets import mnist

COUNTS = {"train": 6, "t10k": 2}


def idx(array):
    """A file of the form that MNIST has."""
    return gzip.compress(bytes([0, 0, 8, array.ndim]) + numpy.array(array.shape, ">u4").tobytes() + array.tobytes())


@pytest.fixture
def files(monkeypatch):
    """Four small files, whose sums are the ones asked for."""
    random = numpy.random.default_rng(0)
    made = {}
    for part, count in COUNTS.items():
        made[f"{part}-images-idx3-ubyte.gz"] = idx(random.integers(256, size=(count, 28, 28), dtype="uint8"))
        made[f"{part}-labels-idx1-ubyte.gz"] = idx(random.integers(10, size=count, dtype="uint8"))
    assert made.keys() == mnist._SUMS.keys()
    monkeypatch.setattr(mnist, "_SUMS", {name: hashlib.sha256(data).hexdigest() for name, data in made.items()})
    return made


@pytest.fixture
def folder(files, tmp_path):
    for name, data in files.items():
        (tmp_path / name).write_bytes(data)
    return tmp_path


def no_network(address, timeout):
    raise urllib.error.URLError("no route")


def test_the_sums_are_of_sixty_four_digits():
    assert all(len(digest) == 64 and int(digest, 16) for digest in mnist._SUMS.values())


def test_a_folder_is_read_and_nothing_is_fetched(folder, monkeypatch):
    monkeypatch.setattr(urllib.request, "urlopen", no_network)
    train, test = mnist.split(folder=folder)
    assert (train["image"].shape, train["image"].dtype, train["label"].dtype) == ((6, 1, 28, 28), "float32", "int64")
    assert (test["image"].shape, test["label"].shape) == ((2, 1, 28, 28), (2,))
    raw = numpy.frombuffer(gzip.decompress((folder / "t10k-images-idx3-ubyte.gz").read_bytes())[16:], "uint8")
    assert (numpy.rint(test["image"] * 255).astype("uint8").ravel() == raw).all()
    assert 0 <= train["image"].min() < train["image"].max() <= 1
    both = mnist.load(folder)
    assert (both["label"] == numpy.concatenate([train["label"], test["label"]])).all()


def test_what_is_fetched_is_kept_and_found_by_name(files, tmp_path, monkeypatch):
    asked = []

    def fetch(address, timeout):
        asked.append(address.rpartition("/")[2])
        return io.BytesIO(files[asked[-1]])

    monkeypatch.setattr(mnist, "_FOLDER", tmp_path / "cache" / "mnist")
    monkeypatch.setattr(urllib.request, "urlopen", fetch)
    assert len(ol.datasets.load("mnist:train")["label"]) == 6
    assert sorted(asked) == sorted(files)
    monkeypatch.setattr(urllib.request, "urlopen", no_network)
    assert len(ol.datasets.load("mnist:test")["label"]) == 2


def test_without_a_network_it_says_what_to_do(tmp_path, monkeypatch):
    monkeypatch.setattr(mnist, "_FOLDER", tmp_path)
    monkeypatch.setattr(urllib.request, "urlopen", no_network)
    with pytest.raises(ol.DataError) as raised:
        mnist.load()
    assert str(raised.value) == (
        f"MNIST is not on this machine, and {mnist._MIRROR}/train-images-idx3-ubyte.gz cannot be fetched\n"
        "      <urlopen error no route>\n"
        "  Try: without a network, copy train-images-idx3-ubyte.gz, train-labels-idx1-ubyte.gz, t10k-images-idx3-ubyte.gz, "
        f"t10k-labels-idx1-ubyte.gz to {tmp_path}, or to a folder of yours: "
        'ol.datasets.mnist.split(folder="...")    (oarlock explain DataError)'
    )


def test_a_file_that_is_not_there(folder):
    (folder / "t10k-labels-idx1-ubyte.gz").unlink()
    with pytest.raises(ol.DataError, match='there is no file ".*t10k-labels-idx1-ubyte.gz"'):
        mnist.split(folder=folder)


def test_a_file_that_was_changed_is_refused_and_one_that_came_changed_is_not_kept(folder, tmp_path, monkeypatch):
    path = folder / "train-labels-idx1-ubyte.gz"
    path.write_bytes(path.read_bytes() + b"\0")
    with pytest.raises(ol.DataError, match='train-labels-idx1-ubyte.gz" is not the file that MNIST is known by: its SHA-256 differs'):
        mnist.split(folder=folder)
    monkeypatch.setattr(mnist, "_FOLDER", tmp_path / "cache")
    monkeypatch.setattr(urllib.request, "urlopen", lambda address, timeout: io.BytesIO(b"an error page"))
    with pytest.raises(ol.DataError, match="https://.*train-images-idx3-ubyte.gz is not the file"):
        mnist.load()
    assert not (tmp_path / "cache").exists()
