"""Data sets that are fetched, from a server of this process: what comes is checked and kept, and what goes wrong is said."""

import ast
import gzip
import hashlib
import io
import os
import socket
import sys
import tarfile
import threading
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy
import pytest

import oarlock as ol
from oarlock.datasets import cifar10, fashion_mnist, mnist, shakespeare
from oarlock.datasets.by_name import GROUPS

FETCHED = {data_set.name: data_set for data_set in GROUPS["downloaded once"]}
COUNTS = {"train": 6, "t10k": 2}


class Server:
    """A server of this process.

    `files` has its answers by name: bytes, a number for a status, or a pair of the length that is told and the bytes that come.
    """

    def __init__(self):
        self.files: dict[str, object] = {}
        self.asked: list[str] = []
        served = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self):
                name = self.path.rpartition("/")[2]
                served.asked.append(name)
                answer = served.files.get(name, 404)
                if isinstance(answer, int):
                    self.send_error(answer)
                    return
                told, data = answer if isinstance(answer, tuple) else (len(answer), answer)
                self.send_response(200)
                self.send_header("Content-Length", str(told))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *_: object) -> None:
                pass

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.address = f"http://127.0.0.1:{self.http.server_port}/files"
        threading.Thread(target=self.http.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()


@pytest.fixture
def server():
    pytest.importorskip("pooch")
    serving = Server()
    yield serving
    serving.http.shutdown()
    serving.http.server_close()


@pytest.fixture
def nowhere():
    """An address at which nobody listens."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield f"http://127.0.0.1:{taken.getsockname()[1]}"


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("NO_PROXY", "*")
    monkeypatch.setenv("OARLOCK_DATA", str(tmp_path / "cache"))
    return tmp_path / "cache"


def idx(array):
    """A file of the form that MNIST has."""
    return gzip.compress(bytes([0, 0, 8, array.ndim]) + numpy.array(array.shape, ">u4").tobytes() + array.tobytes())


def images_and_labels():
    random = numpy.random.default_rng(0)
    made = {}
    for part, count in COUNTS.items():
        made[f"{part}-images-idx3-ubyte.gz"] = idx(random.integers(256, size=(count, 28, 28), dtype="uint8"))
        made[f"{part}-labels-idx1-ubyte.gz"] = idx(random.integers(10, size=count, dtype="uint8"))
    return made


def pretend(monkeypatch, module, files, *mirrors):
    """Let a data set consist of `files`, whose sizes and sums are theirs, and be kept at `mirrors`."""
    assert module.FILES.files.keys() == files.keys()
    known = {name: (len(data), hashlib.sha256(data).hexdigest()) for name, data in files.items()}
    monkeypatch.setattr(module, "FILES", replace(module.FILES, files=known, mirrors=mirrors))
    return files


@pytest.fixture
def digits(monkeypatch, server):
    """MNIST, small, on the server."""
    server.files.update(pretend(monkeypatch, mnist, images_and_labels(), server.address))
    return server.files


def refusal(call, *arguments, **keywords):
    with pytest.raises(ol.DataError) as raised:
        call(*arguments, **keywords)
    return str(raised.value)


PUT = (
    "put train-images-idx3-ubyte.gz, train-labels-idx1-ubyte.gz, t10k-images-idx3-ubyte.gz, t10k-labels-idx1-ubyte.gz into {folder}, or "
    "into another folder: ol.datasets.mnist.split(path=...)"
)


@pytest.mark.parametrize("name", FETCHED)
def test_sizes_and_sums_are_told_and_addresses_say_how_they_are_reached(name):
    files = FETCHED[name].FILES
    assert files.folder == name
    assert all(size > 0 and len(digest) == 64 and int(digest, 16) for size, digest in files.files.values())
    assert files.mirrors
    assert all(mirror.startswith(("https://", "http://")) and mirror[-1] != "/" for mirror in files.mirrors)


@pytest.mark.parametrize("module", [mnist, fashion_mnist], ids=["mnist", "fashion_mnist"])
def test_a_folder_is_read_and_nothing_is_fetched(module, tmp_path, monkeypatch, cache):
    files = pretend(monkeypatch, module, images_and_labels())
    for name, data in files.items():
        (tmp_path / name).write_bytes(data)
    train, test = module.split(path=tmp_path)
    assert (train["image"].shape, train["image"].dtype, train["label"].dtype) == ((6, 1, 28, 28), "float32", "int64")
    assert (test["image"].shape, test["label"].shape) == ((2, 1, 28, 28), (2,))
    raw = numpy.frombuffer(gzip.decompress(files["t10k-images-idx3-ubyte.gz"])[16:], "uint8")
    assert (numpy.rint(test["image"] * 255).astype("uint8").ravel() == raw).all()
    assert 0 <= train["image"].min() < train["image"].max() <= 1
    both = module.load(tmp_path)
    assert (both["label"] == numpy.concatenate([train["label"], test["label"]])).all()
    assert not cache.exists()


def test_what_is_fetched_is_kept_and_found_by_name(digits, server, cache):
    assert len(ol.datasets.load("mnist:train")["label"]) == 6
    assert server.asked == ["train-images-idx3-ubyte.gz", "train-labels-idx1-ubyte.gz"]  # those of the other part are not asked for
    assert len(ol.datasets.load("mnist")["label"]) == 8
    assert sorted(server.asked) == sorted(digits)
    assert sorted(path.name for path in (cache / "mnist").iterdir()) == sorted(digits)
    server.files.clear()
    assert len(ol.datasets.load("mnist:test")["label"]) == 2


def test_the_next_address_is_tried_where_the_first_does_not_give_it(digits, server, nowhere, monkeypatch):
    monkeypatch.setattr(mnist, "FILES", replace(mnist.FILES, mirrors=(nowhere, f"{server.address}/gone/", server.address)))
    assert len(mnist.test()["label"]) == 2


def test_without_a_network_it_says_which_files_to_put_where(digits, nowhere, monkeypatch, cache):
    monkeypatch.setattr(mnist, "FILES", replace(mnist.FILES, mirrors=(nowhere,)))
    assert refusal(mnist.load) == (
        "MNIST is not on this machine, and cannot be downloaded\n"
        f"      {nowhere}/train-images-idx3-ubyte.gz: there is no connection to the server\n"
        f"  Try: without a network, {PUT.format(folder=cache / 'mnist')}    (oarlock explain DataError)"
    )
    assert not list((cache / "mnist").iterdir())


WRONG = {
    "another file": (b"an error page", "the downloaded file has another SHA-256"),
    "a file of the same length": (None, "the downloaded file has another SHA-256"),
    "a larger file": (b"x" * 100_000, "the downloaded file is too large"),
    "a download cut off": ((50_000, b"x" * 100), "the connection was closed in the middle of the file"),
    "a file that is not there": (404, "the server responded 404 Not Found"),
    "a server that fails": (503, "the server responded 503 Service Unavailable"),
}


@pytest.mark.parametrize("what", WRONG)
def test_what_comes_wrong_is_not_kept_and_the_next_try_is_a_new_one(what, digits, server, cache):
    name = "t10k-labels-idx1-ubyte.gz"
    right, (answer, reason) = digits[name], WRONG[what]
    server.files[name] = right[:-1] + b"x" if answer is None else answer
    said = refusal(mnist.test)
    assert said.splitlines()[:2] == ["MNIST is not on this machine, and cannot be downloaded", f"      {server.address}/{name}: {reason}"]
    assert [path.name for path in (cache / "mnist").iterdir()] == ["t10k-images-idx3-ubyte.gz"]
    server.files[name] = right
    assert len(mnist.test()["label"]) == 2


def test_a_file_of_the_cache_that_was_spoilt_is_fetched_again(digits, server, cache, nowhere, monkeypatch):
    mnist.test()
    path = cache / "mnist" / "t10k-labels-idx1-ubyte.gz"
    path.write_bytes(path.read_bytes()[:-3])
    assert len(mnist.test()["label"]) == 2
    path.write_bytes(path.read_bytes() + b"\0")
    monkeypatch.setattr(mnist, "FILES", replace(mnist.FILES, mirrors=(nowhere,)))
    assert refusal(mnist.test).startswith(
        f'"{path}" is not the file of MNIST: its SHA-256 differs, and cannot be downloaded\n      {nowhere}/{path.name}: '
    )


@pytest.mark.parametrize("spoil", [lambda data: data + b"\0", lambda data: data[:-1] + b"x", lambda data: b""])
def test_a_file_of_ones_own_that_is_another_is_refused_and_left_alone(spoil, digits, server, tmp_path):
    for name, data in digits.items():
        (tmp_path / name).write_bytes(data)
    path = tmp_path / "train-labels-idx1-ubyte.gz"
    path.write_bytes(spoil(path.read_bytes()))
    before = path.read_bytes()
    assert refusal(mnist.split, path=tmp_path) == (
        f'"{path}" is not the file of MNIST: its SHA-256 differs\n'
        "  Try: download it again, or from another source    (oarlock explain DataError)"
    )
    assert path.read_bytes() == before
    assert not server.asked


def test_a_file_of_ones_own_that_is_missing_is_named(digits, server, tmp_path):
    assert refusal(mnist.split, path=tmp_path).splitlines()[0] == f'there is no file "{tmp_path / "train-images-idx3-ubyte.gz"}"'
    assert not server.asked


def test_a_cache_that_cannot_be_written_says_how_to_choose_another(digits, server, tmp_path, monkeypatch):
    (tmp_path / "file").write_bytes(b"")
    monkeypatch.setenv("OARLOCK_DATA", str(tmp_path / "file" / "cache"))
    folder = tmp_path / "file" / "cache" / "mnist"
    assert refusal(mnist.load) == (
        f'MNIST is not on this machine, and its folder "{folder}" cannot be written: Not a directory\n'
        f"  Try: set OARLOCK_DATA to another folder; or {PUT.format(folder=folder)}    (oarlock explain DataError)"
    )
    assert not server.asked


def test_a_cache_that_is_read_only_is_read_and_not_written(digits, server, cache, monkeypatch):
    mnist.test()
    (cache / "mnist").chmod(0o500)
    if os.geteuid() == 0:  # whom no mode holds back
        monkeypatch.setattr(os, "access", lambda path, mode: Path(path) != cache / "mnist")
    try:
        assert len(mnist.test()["label"]) == 2
        assert refusal(mnist.train).startswith(
            f'MNIST is not on this machine, and its folder "{cache / "mnist"}" cannot be written: it is read-only\n'
            "  Try: set OARLOCK_DATA to another folder; or put "
        )
    finally:
        (cache / "mnist").chmod(0o700)


def test_without_pooch_the_extra_is_named_and_files_that_are_there_are_read(digits, cache, monkeypatch):
    mnist.test()
    monkeypatch.setitem(sys.modules, "pooch", None)
    assert len(mnist.test()["label"]) == 2
    assert refusal(mnist.train) == (
        "MNIST is not on this machine, and pooch, which downloads it, is not installed\n"
        f'  Try: pip install "oarlock[download]"; or {PUT.format(folder=cache / "mnist")}    (oarlock explain DataError)'
    )


def test_the_cache_is_where_the_system_has_it(monkeypatch, tmp_path):
    monkeypatch.delenv("OARLOCK_DATA")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "there"))
    (tmp_path / "there" / "oarlock" / "shakespeare").mkdir(parents=True)
    files = pretend(monkeypatch, shakespeare, {"input.txt": b"Before we proceed any further, hear me speak.\n"})
    (tmp_path / "there" / "oarlock" / "shakespeare" / "input.txt").write_bytes(files["input.txt"])
    assert shakespeare.vocabulary.decode(shakespeare.load(length=44)["ids"][0]) == "Before we proceed any further, hear me speak"


def test_plays_are_parted_at_nine_tenths(monkeypatch, server, cache):
    text = "First Citizen:\nSpeak, speak.\n" * 100
    server.files.update(pretend(monkeypatch, shakespeare, {"input.txt": text.encode()}, server.address))
    train, test = shakespeare.split(length=10)
    assert "".join(map(shakespeare.vocabulary.decode, train["ids"])) == text[:2600]
    assert "".join(map(shakespeare.vocabulary.decode, test["next"])) == text[2611 : 2611 + 280]
    alone = cache / "shakespeare" / "input.txt"
    assert (shakespeare.load(alone, length=10)["ids"] == shakespeare.load(alone.parent, length=10)["ids"]).all()
    assert ol.datasets.load("shakespeare:test")["ids"].shape == (4, 64)


ROWS = 3


def batch(seed):
    rows = numpy.random.default_rng(seed).integers(0, 256, (ROWS, 3073), dtype="uint8")
    rows[:, 0] %= 10
    return rows


BATCHES = {
    f"cifar-10-batches-bin/{name}.bin": batch(seed) for seed, name in enumerate([*(f"data_batch_{n}" for n in range(1, 6)), "test_batch"])
}


def packed(members, links=None):
    """An archive of files in an order of its own, and of links."""
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w:gz") as archive:
        for name, data in members:
            member = tarfile.TarInfo(name)
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
        for name, target in (links or {}).items():
            member = tarfile.TarInfo(name)
            member.type, member.linkname = tarfile.SYMTYPE, target
            archive.addfile(member)
    return made.getvalue()


def members(without=()):
    return [(name, rows.tobytes()) for name, rows in reversed(BATCHES.items()) if name not in without]


@pytest.fixture
def archive(monkeypatch, tmp_path):
    """A function that lets the data set be an archive of a few rows, and gives its path."""
    monkeypatch.setattr(cifar10, "_rows", ROWS)
    monkeypatch.chdir(tmp_path)

    def put(data):
        pretend(monkeypatch, cifar10, {"cifar-10-binary.tar.gz": data})
        (tmp_path / "given").mkdir(exist_ok=True)
        (tmp_path / "given" / "cifar-10-binary.tar.gz").write_bytes(data)
        return tmp_path / "given" / "cifar-10-binary.tar.gz"

    return put


class Bomb:
    def __reduce__(self):
        return os.mkdir, ("exploded",)


def test_photographs_are_read_where_they_are_whatever_else_is_in_the_archive(archive, tmp_path):
    import pickle

    others = [("../../escaped", b"x"), ("/escaped", b"x"), ("cifar-10-batches-bin/batches.meta", pickle.dumps(Bomb()))]
    path = archive(packed([*others, *members()], {"linked": "/etc/passwd"}))
    before = sorted(tmp_path.rglob("*"))
    train, test = cifar10.split(path=path)
    rows = list(BATCHES.values())
    assert train["label"].tolist() == numpy.concatenate(rows[:5])[:, 0].tolist()
    assert (train["image"].dtype, train["image"].shape, test["image"].shape) == ("float32", (15, 3, 32, 32), (3, 3, 32, 32))
    assert numpy.array_equal(numpy.rint(train["image"] * 255).reshape(15, -1), numpy.concatenate(rows[:5])[:, 1:])
    assert numpy.array_equal(test["image"], (rows[5][:, 1:] / numpy.float32(255)).reshape(3, 3, 32, 32))
    assert len(cifar10.load(path.parent)["label"]) == 18
    assert sorted(tmp_path.rglob("*")) == before
    assert not Path("/escaped").exists()


FIRST = "cifar-10-batches-bin/data_batch_1.bin"
BROKEN = {
    "a batch is missing": (packed(members({FIRST})), f"{FIRST} is not in it"),
    "a batch is a link": (packed(members({FIRST}), {FIRST: "data_batch_2.bin"}), f"{FIRST} is not a file of 9,219 bytes"),
    "a batch is short": (packed([*members({FIRST}), (FIRST, bytes(3073))]), f"{FIRST} is not a file of 9,219 bytes"),
    "a batch is endless": (packed([*members({FIRST}), (FIRST, bytes(10**7))]), f"{FIRST} is not a file of 9,219 bytes"),
    "a label is none": (packed([*members({FIRST}), (FIRST, b"\x0a" * 9219)]), f"{FIRST} has a label above 9"),
    "it is cut": (packed(members())[:-5000], ""),  # by Python, whose versions say it in other words
    "it is no archive": (b"Dear reader", ""),
    "it is empty": (b"", ""),
}


@pytest.mark.parametrize("what", BROKEN)
def test_an_archive_that_is_another_inside_is_refused(what, archive):
    data, why = BROKEN[what]
    path = archive(data)
    first, hint = refusal(cifar10.load, path).splitlines()
    assert first.startswith(f"cifar-10-binary.tar.gz is not the archive of CIFAR-10: {why}")
    assert first.endswith(why) if why else not first.endswith(": ")
    assert hint == "  Try: download it again, or from another source    (oarlock explain DataError)"


def test_nothing_that_reads_data_sets_can_unpickle():
    folder = Path(ol.datasets.__file__).parent
    imported = set()
    for path in folder.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                imported |= {alias.name.partition(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom):
                imported.add((node.module or "").partition(".")[0])
    assert "tarfile" in imported
    assert not imported & {"pickle", "cPickle", "dill", "joblib", "shelve", "marshal", "torch"}


def test_a_terminal_shows_how_much_has_come(digits, monkeypatch, capsys):
    mnist.train()
    assert "━" not in capsys.readouterr().err
    monkeypatch.setenv("FORCE_COLOR", "1")
    mnist.test()
    shown = capsys.readouterr().err
    assert "t10k-labels-idx1-ubyte.gz" in shown
    assert "━" in shown
