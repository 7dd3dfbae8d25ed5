"""`.npz` files, spoilt; what may come of one is arrays, or a DataError."""

import io
import zipfile
from functools import cache
from pathlib import Path
from random import Random

import numpy

import oarlock as ol
from fuzz.judging import require_readable
from oarlock.datasets.by_name import load

__all__ = ["judge_arrays", "make_arrays"]


@cache
def _whole(compressed: bool) -> bytes:
    data = io.BytesIO()
    arrays = {"x": numpy.arange(60, dtype="float32").reshape(20, 3), "label": numpy.arange(20), "none": numpy.zeros((0, 2))}
    (numpy.savez_compressed if compressed else numpy.savez)(data, **arrays)  # type: ignore[arg-type]
    return data.getvalue()


def make_arrays(random: Random) -> bytes:
    """A file with bits flipped, cut, or with pieces moved; or one whose members are spoilt, or inflate, and whose archive is sound."""
    data = bytearray(_whole(random.random() < 0.5))
    kind = random.choice(["bits", "bits", "bytes", "cut", "moved", "members", "members", "inflating"])
    if kind == "inflating":
        return _inflating(random)
    if kind == "members":
        return _with_spoilt_members(random)
    if kind == "cut":
        return bytes(data[: random.randrange(len(data))])
    for _ in range(random.choice([1, 1, 2, 8])):
        at = random.randrange(len(data))
        if kind == "bits":
            data[at] ^= 1 << random.randrange(8)
        elif kind == "bytes":
            data[at : at + 4] = random.choice([b"\xff" * 4, b"\0" * 4, b"\x7f\xff\xff\xff", b"PK\x01\x02"])
        else:
            start = random.randrange(len(data))
            data[at:at] = data[start : start + 50]
    return bytes(data)


def _inflating(random: Random) -> bytes:
    """An archive of zeros, some of which say that they are fewer than they are, or more; some have one name."""
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", random.choice([zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])) as archive:
        for name in random.choice([("x.npy",), ("x.npy", "x"), ("x.npy", "y.npy"), ("x", "y", "x.npy")]):
            array = io.BytesIO()
            numpy.lib.format.write_array(array, numpy.zeros(random.choice([10, 10**5, 3 * 10**6]), "uint8"))
            archive.writestr(name, array.getvalue())
    data = bytearray(made.getvalue())
    for offset in (22, 24):  # where a local header, and the central directory, have the size
        at = data.find(b"PK\x03\x04" if offset == 22 else b"PK\x01\x02")
        if random.random() < 0.4:
            data[at + offset : at + offset + 4] = random.choice([100, 10**6, 2**31, 2**32 - 2]).to_bytes(4, "little")
    return bytes(data)


def _with_spoilt_members(random: Random) -> bytes:
    spoilt = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(_whole(compressed=False))) as whole, zipfile.ZipFile(spoilt, "w") as archive:
        for name in whole.namelist():
            content = bytearray(whole.read(name))
            for _ in range(random.choice([0, 1, 3])):
                content[random.randrange(min(len(content), 130))] = random.choice(b"\0\xff9-({'O[|<")
            called = random.choice([name, name, f"../{name}", f"\x1b[2J{name}", name.removesuffix(".npy")])
            archive.writestr(called, bytes(content[: random.choice([10**6, 40])]))
    return spoilt.getvalue()


def judge_arrays(path: Path, data: bytes) -> str:
    """The outcome of a file: "arrays", or "DataError". Raises every other error."""
    path.write_bytes(data)
    try:
        found = load(str(path))
    except ol.DataError as error:
        require_readable(error)
        return "DataError"
    assert all(isinstance(value, numpy.ndarray) and not value.dtype.hasobject for value in found.values())
    return "arrays"
