"""`.npz` files: those that NumPy writes are read, and whatever is spoilt is a DataError."""

import io
import os
import random
import struct
import zipfile
from pathlib import Path

import numpy
import pytest
from fuzz.arrays import judge_arrays, make_arrays

import oarlock as ol
from oarlock.datasets.by_name import load

ARRAYS = {
    "x": numpy.arange(6, dtype="float32").reshape(2, 3),
    "label": numpy.array([1, 0]),
    "empty": numpy.zeros((0, 4)),
    "flag": numpy.array(True),
}


def refusal(path: Path) -> str:
    with pytest.raises(ol.DataError) as raised:
        load(str(path))
    return str(raised.value)


@pytest.mark.parametrize("save", [numpy.savez, numpy.savez_compressed])
def test_what_numpy_writes_is_read_as_numpy_reads_it(save, tmp_path):
    save(tmp_path / "a.npz", turned=numpy.asfortranarray(ARRAYS["x"]), **ARRAYS)
    found = load(str(tmp_path / "a.npz"))
    with numpy.load(tmp_path / "a.npz") as read:
        assert list(found) == list(read)
        for name, value in read.items():
            assert (found[name].dtype, found[name].shape, found[name].tobytes()) == (value.dtype, value.shape, value.tobytes())


def whole() -> bytes:
    data = io.BytesIO()
    numpy.savez_compressed(data, **ARRAYS)  # type: ignore[arg-type]
    return data.getvalue()


def spoilt(**members: bytes) -> bytes:
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as archive:
        for name, content in members.items():
            archive.writestr(f"{name}.npy", content)
    return data.getvalue()


def encrypted() -> bytes:
    data = bytearray(spoilt(x=b"x"))
    data[6] |= 1
    data[data.index(b"PK\x01\x02") + 8] |= 1
    return bytes(data)


def packed_by(method: int) -> bytes:
    data = bytearray(spoilt(x=b"x"))
    data[8:10] = data[data.index(b"PK\x01\x02") + 10 :][:2] = struct.pack("<H", method)
    at = data.index(b"PK\x01\x02") + 10
    data[at : at + 2] = struct.pack("<H", method)
    return bytes(data)


def array(header: str) -> bytes:
    text = header.encode("latin1") + b"\n"
    return spoilt(x=b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text)


PLAIN = io.BytesIO()
numpy.save(PLAIN, ARRAYS["x"])

SPOILT = {
    "empty": b"",
    "text": b"Dear reader",
    "one array": PLAIN.getvalue(),
    "cut": whole()[:-30],
    "cut at the front": whole()[40:],
    "no array in it": spoilt(x=b"hello"),
    "nothing in it": spoilt(x=b""),
    "encrypted": encrypted(),
    "packed in a way that is unknown": packed_by(97),
    "a pickle": array("{'descr': '|O', 'fortran_order': False, 'shape': (1,)}"),
    "more than there is": array("{'descr': '<f4', 'fortran_order': False, 'shape': (1000000,)}"),
    "more than fits": array("{'descr': '<f8', 'fortran_order': False, 'shape': (4611686018427387904,)}"),
    "fewer than none": array("{'descr': '<f4', 'fortran_order': False, 'shape': (-1,)}"),
    "code": array("__import__('os').getcwd()"),
    "a header that does not end": array("{'descr': '" + "(" * 5_000),
    "a checksum that differs": whole().replace(b"PK\x01\x02", b"PK\x01\x02", 1)[:14] + b"\0\0\0\0" + whole()[18:],
}


@pytest.mark.parametrize("name", SPOILT)
def test_a_file_that_is_broken_is_a_data_error(name, tmp_path):
    (tmp_path / "a.npz").write_bytes(SPOILT[name])
    if name == "a checksum that differs":  # the one in the directory counts
        data = bytearray(SPOILT[name])
        data[data.index(b"PK\x01\x02") + 16] ^= 255
        (tmp_path / "a.npz").write_bytes(bytes(data))
    said = refusal(tmp_path / "a.npz").splitlines()
    assert said[0] == '"a.npz" is not a file of plain arrays'
    assert len(said) == 2
    assert said[1].strip()


def test_what_is_no_file_is_a_data_error_at_once(tmp_path):
    os.mkfifo(tmp_path / "pipe.npz")
    (tmp_path / "folder.npz").mkdir()
    assert refusal(tmp_path / "pipe.npz") == f'"{tmp_path}/pipe.npz" is a pipe or a device, not a file'
    assert refusal(tmp_path / "folder.npz") == f'"{tmp_path}/folder.npz" is a folder, not a file'
    assert refusal(tmp_path / "none.npz") == f'there is no file "{tmp_path}/none.npz"'
    assert refusal(Path("x" * 300 + ".npz")) == f'"{"x" * 300}.npz" cannot be opened: File name too long'
    assert refusal(tmp_path / "a\0b.npz") == f'"{tmp_path}/a\\x00b.npz" cannot be opened: embedded null byte'


def test_files_that_are_changed_anywhere_are_read_or_refused(tmp_path):
    draws = random.Random(0)
    outcomes = {judge_arrays(tmp_path / "a.npz", make_arrays(draws)) for _ in range(400)}
    assert outcomes == {"arrays", "DataError"}


def test_an_interrupt_while_arrays_are_read_stays_one(tmp_path, monkeypatch):
    (tmp_path / "a.npz").write_bytes(whole())

    def interrupt(*_: object, **__: object) -> object:
        raise KeyboardInterrupt

    monkeypatch.setattr(numpy.lib.format, "read_array", interrupt)
    with pytest.raises(KeyboardInterrupt):
        load(str(tmp_path / "a.npz"))
